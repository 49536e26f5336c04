//! Watches of the model test: what was asked, what came, and what should have come.

use std::collections::BTreeMap;

use apiserver::body::Body;
use futures::FutureExt as _;
use http_body_util::BodyExt as _;
use serde_json::Value;

use super::steps::{Begin, Kind, Place};
use super::world::{Thing, World};

/// A running watch.
pub struct Watching {
    kind: Kind,
    scope: Option<&'static str>,
    selector: &'static str,
    begin: Begin,
    /// The revision of the world when it was opened, and after which events are expected.
    after: u64,
    /// It began before what was compacted.
    too_old: bool,
    /// Absent once it has ended.
    body: Option<Body>,
    text: Vec<u8>,
}

/// An event without its unpredictable fields.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Object(&'static str, Place, Thing),
    InitialEnd(u64),
    Expired,
}

impl Watching {
    pub fn new(
        world: &World,
        kind: Kind,
        scope: Option<&'static str>,
        selector: &'static str,
        begin: Begin,
        body: Body,
    ) -> Self {
        let after = Self::start(world, begin);
        let too_old = matches!(begin, Begin::Ago(_)) && after < world.compacted;
        Self { kind, scope, selector, begin, after, too_old, body: Some(body), text: Vec::new() }
    }

    /// The revision after which a watch gets events.
    pub fn start(world: &World, begin: Begin) -> u64 {
        match begin {
            Begin::State { .. } | Begin::Initial => world.revision,
            // 0 would mean something else.
            Begin::Ago(ago) => world.revision.saturating_sub(ago).max(1),
        }
    }

    /// Takes what is there, without waiting.
    pub fn read_ready(&mut self) {
        while let Some(()) = self.read().now_or_never() {
            if self.body.is_none() {
                return;
            }
        }
    }

    /// Takes the next piece.
    async fn read(&mut self) {
        let Some(body) = &mut self.body else { return };
        match body.frame().await {
            Some(frame) => {
                let frame = frame.expect("watches do not break");
                self.text.extend_from_slice(frame.data_ref().expect("watches send data"));
            }
            None => self.body = None,
        }
    }

    /// Reads to the end and compares with what the world did.
    pub async fn check(mut self, world: &World) {
        while self.body.is_some() {
            self.read().await;
        }
        let seen = self.seen();
        let expected = self.expected(world);
        if seen.last() == Some(&Seen::Expired) && !self.too_old {
            // Compaction overtook a reader that was too slow: what it got is a beginning of the truth, and
            // something of its table that it had not looked at was compacted.
            assert!(expected.starts_with(&seen[..seen.len() - 1]), "{seen:#?}\n{expected:#?}");
            let lost = world.history.iter().any(|change| {
                change.place.kind == self.kind
                    && (self.after + 1..=world.compacted).contains(&change.revision)
            });
            assert!(lost, "nothing was compacted that it needed");
            return;
        }
        assert_eq!(seen, expected, "{:?} {:?} {:?} {:?}", self.kind, self.scope, self.selector, self.begin);
        if !self.too_old {
            self.check_fold(world, &seen);
        }
    }

    fn seen(&self) -> Vec<Seen> {
        let lines = self.text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let mut last = 0;
        let mut seen = Vec::new();
        for line in lines {
            let event: Value = serde_json::from_slice(line).expect("an event per line");
            let object = &event["object"];
            match event["type"].as_str() {
                Some("ERROR") => {
                    assert_eq!(
                        (&object["code"], &object["reason"]),
                        (&410.into(), &"Expired".into()),
                        "{event}"
                    );
                    seen.push(Seen::Expired);
                }
                Some("BOOKMARK") => {
                    let revision = object["metadata"]["resourceVersion"].as_str().expect("a version");
                    let revision = revision.parse().expect("a number");
                    assert!(revision >= last, "a bookmark goes forward");
                    last = revision;
                    if object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true" {
                        seen.push(Seen::InitialEnd(revision));
                    }
                }
                Some(kind) => {
                    let kind = ["ADDED", "MODIFIED", "DELETED"].into_iter().find(|word| *word == kind);
                    let (place, thing) = Thing::read(object);
                    last = last.max(thing.revision);
                    seen.push(Seen::Object(kind.expect("a known type"), place, thing));
                }
                None => panic!("an event without type: {event}"),
            }
        }
        seen
    }

    fn expected(&self, world: &World) -> Vec<Seen> {
        if self.too_old {
            return vec![Seen::Expired];
        }
        let mut expected = Vec::new();
        if !matches!(self.begin, Begin::Ago(_)) {
            expected.extend(
                self.initial(world).into_iter().map(|(place, thing)| Seen::Object("ADDED", place, thing)),
            );
        }
        if matches!(self.begin, Begin::Initial) {
            expected.push(Seen::InitialEnd(self.after));
        }
        let relevant = world.history.iter().filter(|change| change.revision > self.after);
        for change in relevant.filter(|change| change.place.is_in(self.kind, self.scope)) {
            let before = change.before.as_ref().filter(|thing| thing.matches(self.selector));
            let after = change.after.as_ref().filter(|thing| thing.matches(self.selector));
            let event = match (before, after) {
                (None, None) => continue,
                (None, Some(thing)) => ("ADDED", thing.clone()),
                (Some(_), Some(thing)) => ("MODIFIED", thing.clone()),
                (Some(thing), None) => ("DELETED", Thing { revision: change.revision, ..thing.clone() }),
            };
            expected.push(Seen::Object(event.0, change.place, event.1));
        }
        expected
    }

    fn initial(&self, world: &World) -> BTreeMap<Place, Thing> {
        let mut objects = world.at(self.after);
        objects.retain(|place, thing| place.is_in(self.kind, self.scope) && thing.matches(self.selector));
        objects
    }

    /// The events, folded over the state they began with, are the state at the end.
    fn check_fold(&self, world: &World, seen: &[Seen]) {
        let mut objects = match self.begin {
            Begin::Ago(_) => self.initial(world),
            _ => BTreeMap::new(),
        };
        for event in seen {
            match event {
                Seen::Object("DELETED", place, _) => drop(objects.remove(place)),
                Seen::Object(_, place, thing) => drop(objects.insert(*place, thing.clone())),
                Seen::InitialEnd(_) | Seen::Expired => {}
            }
        }
        let mut now = world.objects.clone();
        now.retain(|place, thing| place.is_in(self.kind, self.scope) && thing.matches(self.selector));
        assert_eq!(objects, now);
    }
}
