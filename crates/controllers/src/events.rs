//! The event recorder: writes Kubernetes Events about templates, bindings and clusters. The same Event about the same
//! object raises a count instead of making a new one, also after a restart, because its name follows from what it says.
//! Recording never waits and never fails. Each object has a limit of its own, as in client-go's recorder (E1).

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard};

use api::{Binding, Object, Time};
use decide::Template;
use serde_json::{Value, json};
use supervise::Recovered as _;

use crate::ctx::Ctx;
use crate::rest::{Collection, Error};
use crate::runtime::{Action, Priority};

mod aggregator;
mod spam_filter;

use aggregator::Aggregator;
use spam_filter::SpamFilter;

/// How many Events may wait to be written: what bounds the memory, not what an object may say.
const PENDING_MAX: usize = 100_000;
/// What the message of an Event begins with that stands for several.
const COMBINED: &str = "(combined from similar events): ";
/// How many Events are remembered to be there.
const KNOWN_MAX: usize = 10_000;
/// The longest message that Kubernetes takes.
const MESSAGE_BYTES_MAX: usize = 1024;
/// The longest part of an object's name that is repeated in an Event's.
const NAME_BYTES_MAX: usize = 200;

/// What an Event is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Regarding {
    /// `group/version`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Unique over time.
    pub uid: String,
}

impl From<&Template> for Regarding {
    fn from(template: &Template) -> Self {
        let key = decide::TemplateKey::clone(&template.key);
        let uid = template.uid.clone();
        Self { api_version: key.api_version, kind: key.kind, namespace: key.namespace, name: key.name, uid }
    }
}

impl<Spec, Status> From<&Object<Spec, Status>> for Regarding {
    fn from(object: &Object<Spec, Status>) -> Self {
        Self {
            api_version: object.api_version.clone(),
            kind: object.kind.clone(),
            namespace: object.metadata.namespace.clone(),
            name: object.metadata.name.clone(),
            uid: object.metadata.uid.clone(),
        }
    }
}

impl Regarding {
    /// The template that a binding is about.
    pub fn template_of(binding: &Binding) -> Self {
        let resource = binding.spec.resource.clone();
        Self {
            api_version: resource.api_version,
            kind: resource.kind,
            namespace: resource.namespace,
            name: resource.name,
            uid: resource.uid,
        }
    }
}

/// The type of an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Something went as it should.
    Normal,
    /// Something failed or needs attention.
    Warning,
}

impl EventType {
    fn as_str(self) -> &'static str {
        match self {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

/// Which Event: its namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventKey {
    namespace: String,
    name: String,
}

impl EventKey {
    /// The namespace that the Event lies in.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Event {
    /// About what.
    pub regarding: Regarding,
    /// The reporting component, by the name of Karmada's component.
    pub component: &'static str,
    /// Its type.
    pub event_type: EventType,
    /// One word.
    pub reason: &'static str,
    /// One sentence.
    pub message: String,
}

/// What was recorded and is not written yet. Clones share it.
#[derive(Clone, Default)]
pub struct Events {
    /// Each with how often it was recorded; held for moments.
    pending: Arc<Mutex<BTreeMap<EventKey, (Event, u64)>>>,
    /// What each object may still say, warnings apart from the rest; held for moments.
    spam_filter: Arc<Mutex<SpamFilter<(u64, EventType)>>>,
    /// Which messages have an Event of their own; held for moments.
    aggregator: Arc<Mutex<Aggregator<u64>>>,
    /// Events that are there for sure; held for moments. Forgetting costs a request.
    known: Arc<Mutex<BTreeSet<EventKey>>>,
}

impl Events {
    fn pending(&self) -> MutexGuard<'_, BTreeMap<EventKey, (Event, u64)>> {
        self.pending.lock().recovered()
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<EventKey>> {
        self.known.lock().recovered()
    }

    fn note(&self, key: &EventKey) {
        let mut known = self.known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(key.clone());
    }

    /// Takes in an Event and how often it was recorded; none when its object has said too much already.
    fn take(&self, mut event: Event, times: u64) -> Option<EventKey> {
        let message = hash(&event.message);
        let group = hash(&Event { message: String::new(), ..event.clone() });
        if self.aggregator.lock().recovered().is_combined(group, message) {
            event.message.insert_str(0, COMBINED);
        }
        cut(&mut event.message, MESSAGE_BYTES_MAX);
        let key = key(&event);
        let mut pending = self.pending();
        if !pending.contains_key(&key) && (pending.len() >= PENDING_MAX || !self.may_record(&event)) {
            return None;
        }
        let recorded = pending.entry(key.clone()).or_insert((event.clone(), 0));
        *recorded = (event, recorded.1 + times);
        Some(key)
    }

    fn may_record(&self, event: &Event) -> bool {
        self.spam_filter.lock().recovered().take((hash(&event.regarding), event.event_type))
    }
}

impl Ctx {
    /// Records that something happened, as an Event on each of these objects.
    pub fn record_event(
        &self,
        about: impl IntoIterator<Item = Regarding>,
        component: &'static str,
        event_type: EventType,
        reason: &'static str,
        message: &str,
    ) {
        let news =
            |regarding| Event { regarding, component, event_type, reason, message: message.to_owned() };
        about.into_iter().for_each(|regarding| self.take_in(news(regarding), 1));
    }

    /// Records that something is so, as an Event that is written once, however often that is found.
    pub fn record_standing_event(
        &self,
        regarding: Regarding,
        component: &'static str,
        event_type: EventType,
        reason: &'static str,
        message: &str,
    ) {
        self.take_in(Event { regarding, component, event_type, reason, message: message.to_owned() }, 0);
    }

    fn take_in(&self, news: Event, times: u64) {
        match self.events.take(news, times) {
            Some(key) => self.queues.news.add(key, Priority::Resync),
            None => self.metrics.count("events_dropped_total", &[]),
        }
    }
}

/// Writes one Event, or raises its count. A server that does not want it is no reason to try again.
pub async fn reconcile(ctx: &Ctx, key: &EventKey) -> Result<Action, Error> {
    let Some((news, count)) = ctx.events.pending().remove(key) else { return Ok(Action::AwaitChange) };
    match write(ctx, key, &news, count).await {
        Ok(()) => Ok(Action::AwaitChange),
        Err(error @ Error::Conflict { .. }) => {
            ctx.events.pending().entry(key.clone()).or_insert((news, 0)).1 += count;
            Err(error)
        }
        Err(error) => {
            tracing::debug!(%error, reason = news.reason, "an event is not written");
            Ok(Action::AwaitChange)
        }
    }
}

async fn write(ctx: &Ctx, key: &EventKey, news: &Event, count: u64) -> Result<(), Error> {
    let collection = Collection::new("v1", "events", &key.namespace);
    let path = collection.object(&key.name);
    let now = Time::from((ctx.now)());
    if count == 0 && ctx.control.get::<Value>(&path).await?.is_some() {
        return Ok(());
    }
    let known = ctx.events.known().contains(key);
    let found = if known { ctx.control.get::<Value>(&path).await? } else { None };
    let found = match found {
        Some(found) => found,
        // Most events are new, so it is created without reading it first.
        None => match ctx.control.create(&collection, &event(key, news, count.max(1), now)).await {
            Err(Error::Conflict { .. }) => ctx.control.fetch::<Value>(&path).await?,
            created => return created.map(|_| ctx.events.note(key)),
        },
    };
    ctx.events.note(key);
    let patch = json!({
        "metadata": { "resourceVersion": found["metadata"]["resourceVersion"] },
        "message": news.message,
        "count": found["count"].as_u64().unwrap_or(0).saturating_add(count),
        "lastTimestamp": now,
    });
    ctx.control.merge(&path, &patch).await.map(drop)
}

fn event(key: &EventKey, news: &Event, count: u64, now: Time) -> Value {
    let Regarding { api_version, kind, namespace, name, uid } = &news.regarding;
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "namespace": key.namespace, "name": key.name },
        "involvedObject": {
            "apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name, "uid": uid,
        },
        "type": news.event_type.as_str(),
        "reason": news.reason,
        "message": news.message,
        "source": { "component": news.component },
        "reportingComponent": news.component,
        "reportingInstance": "",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": count,
    })
}

/// The Event's namespace and name. Events about objects without a namespace lie in `default`, as Kubernetes wants it.
fn key(event: &Event) -> EventKey {
    // Combined Events are one, whatever the message of the last one is.
    let named = match event.message.starts_with(COMBINED) {
        true => hash(&Event { message: COMBINED.to_owned(), ..event.clone() }),
        false => hash(event),
    };
    let mut name = event.regarding.name.replace(':', ".").to_lowercase();
    cut(&mut name, NAME_BYTES_MAX);
    let namespace = match event.regarding.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    };
    let name = format!("{}.{named:016x}", name.trim_end_matches(['.', '-']));
    EventKey { namespace: namespace.to_owned(), name }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn cut(text: &mut String, bytes: usize) {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(name: &str, message: &str) -> Event {
        Event {
            regarding: Regarding { kind: "Deployment".into(), name: name.into(), ..Regarding::default() },
            component: "resource-detector",
            event_type: EventType::Normal,
            reason: "ApplyPolicySucceed",
            message: message.to_owned(),
        }
    }

    #[test]
    fn the_same_event_is_counted() {
        let events = Events::default();
        assert!(events.take(news("web", "a"), 1).is_some() && events.take(news("web", "a"), 1).is_some());
        assert_eq!(events.pending().values().map(|(_, count)| *count).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn e1_one_object_does_not_silence_another() {
        let events = Events::default();
        let record = |name: &str, reason| events.take(Event { reason, ..news(name, "a") }, 1).is_some();
        let reasons: Vec<&'static str> =
            (0..40).map(|number| &*Box::leak(number.to_string().into_boxed_str())).collect();
        let recorded = reasons.iter().filter(|reason| record("web", reason)).count();
        assert!((10..40).contains(&recorded), "{recorded}: an object has a limit");
        assert!(reasons.iter().take(10).all(|reason| record("web", reason)), "what waits already is counted");
        let fleet = (0..5_000).filter(|number| record(&format!("web-{number}"), "Synced")).count();
        assert_eq!(fleet, 5_000, "every object tells its own story");
        let warning = Event { event_type: EventType::Warning, ..news("web", "it failed") };
        assert!(events.take(warning, 1).is_some(), "warnings have a limit of their own");
    }

    #[test]
    fn e1_messages_that_change_each_time_become_one_event() {
        let events = Events::default();
        (0..30).for_each(|number| drop(events.take(news("web", &format!("attempt {number}")), 1)));
        let pending = events.pending();
        assert_eq!(pending.len(), 11);
        let combined = pending.values().find(|(event, _)| event.message.starts_with(COMBINED));
        let (event, count) = combined.expect("the rest is combined");
        assert_eq!((event.message.as_str(), *count), ("(combined from similar events): attempt 29", 20));
    }

    #[test]
    fn names_are_valid_whatever_the_object_is_called() {
        for (name, start) in [("web", "web."), ("system:Role", "system.role."), (&*"x".repeat(253), "xxx")] {
            let key = key(&news(name, "é".repeat(2000).as_str()));
            assert!(key.name.starts_with(start) && key.name.len() < 253, "{}", key.name);
            assert_eq!(key.namespace, "default");
        }
        let events = Events::default();
        events.take(news("web", &"é".repeat(2000)), 1);
        assert!(events.pending().values().all(|(news, _)| news.message.len() <= MESSAGE_BYTES_MAX));
    }
}
