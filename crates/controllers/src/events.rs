//! Kubernetes Events: who sees an object also sees what happened to it. The same news about the same object
//! raises a count instead of making a new Event, also after a restart, because the Event's name follows from
//! what it says. Telling never waits and never fails; when too much is told at once, the rest is dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard};

use api::{Binding, Object, Time};
use decide::Template;
use serde_json::{Value, json};
use supervise::Recovered as _;

use crate::ctx::Ctx;
use crate::rest::{Collection, Error};
use crate::runtime::{Action, Priority};

mod rate_limiter;

use rate_limiter::RateLimiter;

/// How many Events may wait to be written.
const PENDING_MAX: usize = 4096;
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

/// Whether somebody should worry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// No: something was decided.
    Normal,
    /// Perhaps.
    Warning,
    /// No: all goes its way, as was decided before.
    Routine,
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

/// One piece of news.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Event {
    /// About what.
    pub regarding: Regarding,
    /// Who says so, by the name of Karmada's component.
    pub component: &'static str,
    /// How bad.
    pub tone: EventType,
    /// One word.
    pub reason: &'static str,
    /// One sentence.
    pub message: String,
}

/// What is told and not written yet. Clones share it.
#[derive(Clone)]
pub struct Events {
    /// And how often it was told; held for moments.
    pending: Arc<Mutex<BTreeMap<EventKey, (Event, u64)>>>,
    /// How much is still told of what was decided.
    decisions: RateLimiter,
    /// How much is still told of what goes its way.
    routine: RateLimiter,
    /// Events that are there for sure; held for moments. Forgetting costs a request.
    known: Arc<Mutex<BTreeSet<EventKey>>>,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            pending: Arc::default(),
            decisions: RateLimiter::of_decisions(),
            routine: RateLimiter::of_routine(),
            known: Arc::default(),
        }
    }
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

    /// Takes in what is told, and how often; none when so much waits already that it is dropped.
    fn take(&self, mut news: Event, times: u64) -> Option<EventKey> {
        cut(&mut news.message, MESSAGE_BYTES_MAX);
        let key = key(&news);
        let mut pending = self.pending();
        if !pending.contains_key(&key) && (pending.len() >= PENDING_MAX || !self.may_tell(news.tone)) {
            return None;
        }
        pending.entry(key.clone()).or_insert((news, 0)).1 += times;
        Some(key)
    }

    fn may_tell(&self, tone: EventType) -> bool {
        match tone {
            EventType::Routine => self.routine.take(),
            EventType::Normal => self.decisions.take(),
            EventType::Warning => true,
        }
    }
}

impl Ctx {
    /// Tells that something happened, as an Event on each of these objects.
    pub fn record_event(
        &self,
        about: impl IntoIterator<Item = Regarding>,
        component: &'static str,
        tone: EventType,
        reason: &'static str,
        message: &str,
    ) {
        let news = |regarding| Event { regarding, component, tone, reason, message: message.to_owned() };
        about.into_iter().for_each(|regarding| self.take_in(news(regarding), 1));
    }

    /// Tells that something is so, as an Event that is there once however often it is found to be so.
    pub fn record_standing_event(
        &self,
        regarding: Regarding,
        component: &'static str,
        tone: EventType,
        reason: &'static str,
        message: &str,
    ) {
        self.take_in(Event { regarding, component, tone, reason, message: message.to_owned() }, 0);
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
        // Most news are new, so nobody asks before.
        None => match ctx.control.create(&collection, &event(key, news, count.max(1), now)).await {
            Err(Error::Conflict { .. }) => ctx.control.fetch::<Value>(&path).await?,
            created => return created.map(|_| ctx.events.note(key)),
        },
    };
    ctx.events.note(key);
    let patch = json!({
        "metadata": { "resourceVersion": found["metadata"]["resourceVersion"] },
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
        "type": match news.tone { EventType::Routine | EventType::Normal => "Normal", EventType::Warning => "Warning" },
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

/// Event about objects without namespace lies in `default`, as Kubernetes wants it.
fn key(news: &Event) -> EventKey {
    let mut hasher = DefaultHasher::new();
    // What Kubernetes calls the same is the same Event.
    let tone = if news.tone == EventType::Routine { EventType::Normal } else { news.tone };
    Event { tone, ..news.clone() }.hash(&mut hasher);
    let mut name = news.regarding.name.replace(':', ".").to_lowercase();
    cut(&mut name, NAME_BYTES_MAX);
    let namespace = match news.regarding.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    };
    let name = format!("{}.{:016x}", name.trim_end_matches(['.', '-']), hasher.finish());
    EventKey { namespace: namespace.to_owned(), name }
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
            tone: EventType::Normal,
            reason: "ApplyPolicySucceed",
            message: message.to_owned(),
        }
    }

    #[test]
    fn the_same_news_is_one_event_and_too_much_is_dropped() {
        let events = Events::default();
        assert!(events.take(news("web", "a"), 1).is_some() && events.take(news("web", "a"), 1).is_some());
        assert_eq!(events.pending().values().map(|(_, count)| *count).collect::<Vec<_>>(), [2]);
        for number in 1..PENDING_MAX {
            let bad = Event { tone: EventType::Warning, ..news("web", &number.to_string()) };
            assert!(events.take(bad, 1).is_some(), "only good news is limited");
        }
        assert_eq!(events.take(news("web", "one too many"), 1), None);
        assert!(events.take(news("web", "a"), 1).is_some(), "what waits already is still counted");
    }

    #[test]
    fn what_goes_its_way_takes_nothing_from_what_is_decided() {
        let events = Events::default();
        let mut number = 0;
        while events.take(Event { tone: EventType::Routine, ..news("web", &number.to_string()) }, 1).is_some()
        {
            number += 1;
        }
        assert!((1..PENDING_MAX).contains(&number), "{number}");
        assert!(events.take(news("web", "decided"), 1).is_some());
        assert_eq!(key(&Event { tone: EventType::Routine, ..news("web", "a") }), key(&news("web", "a")));
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
