//! The event recorder: collects Kubernetes Events about templates, bindings and clusters until `event_writer` writes
//! them. The same Event about the same object raises a count instead of making a new one, also after a restart, because
//! its name follows from its content. Recording never waits and never fails. Each object has a rate limit of its own, as
//! in client-go's recorder (E1).

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard};

use api::{Binding, Object};
use decide::Template;
use supervise::Recovered as _;

mod aggregator;
mod spam_filter;

use aggregator::Aggregator;
use spam_filter::SpamFilter;

/// How many Events may wait to be written. It bounds the memory; the rate limit of an object is another one.
const PENDING_MAX: usize = 100_000;
/// How the message of an Event begins that stands for several.
const COMBINED: &str = "(combined from similar events): ";
/// How many Events are remembered to exist.
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
    /// As the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

/// Which Event: its namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventKey {
    /// The namespace that the Event lies in.
    pub namespace: String,
    /// The name of the Event.
    pub name: String,
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

/// The events that were recorded and are not written yet. Clones share it.
#[derive(Clone, Default)]
pub struct EventRecorder {
    /// Each with how often it was recorded; held for moments.
    pending: Arc<Mutex<BTreeMap<EventKey, (Event, u64)>>>,
    /// The rate limit of each object, for Warning events apart from Normal ones; held for moments.
    spam_filter: Arc<Mutex<SpamFilter<(u64, EventType)>>>,
    /// Which messages have an Event of their own; held for moments.
    aggregator: Arc<Mutex<Aggregator<u64>>>,
    /// Events that are there for sure; held for moments. Forgetting costs a request.
    known: Arc<Mutex<BTreeSet<EventKey>>>,
}

impl EventRecorder {
    fn pending(&self) -> MutexGuard<'_, BTreeMap<EventKey, (Event, u64)>> {
        self.pending.lock().recovered()
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<EventKey>> {
        self.known.lock().recovered()
    }

    /// Adds an Event and how often it was recorded; `None` when the rate limit of its object drops it.
    pub fn record(&self, mut event: Event, times: u64) -> Option<EventKey> {
        let message = hash(&event.message);
        let group = hash(&Event { message: String::new(), ..event.clone() });
        if self.aggregator.lock().recovered().is_combined(group, message) {
            event.message.insert_str(0, COMBINED);
        }
        truncate(&mut event.message, MESSAGE_BYTES_MAX);
        let key = key(&event);
        let mut pending = self.pending();
        if !pending.contains_key(&key) && (pending.len() >= PENDING_MAX || !self.may_record(&event)) {
            return None;
        }
        let recorded = pending.entry(key.clone()).or_insert((event.clone(), 0));
        *recorded = (event, recorded.1 + times);
        Some(key)
    }

    /// Takes an Event out, to be written, with how often it was recorded.
    pub fn take(&self, key: &EventKey) -> Option<(Event, u64)> {
        self.pending().remove(key)
    }

    /// Puts an Event back that could not be written.
    pub fn put_back(&self, key: &EventKey, event: Event, count: u64) {
        self.pending().entry(key.clone()).or_insert((event, 0)).1 += count;
    }

    /// Whether an Event exists for sure.
    pub fn is_known(&self, key: &EventKey) -> bool {
        self.known().contains(key)
    }

    /// Notes that an Event exists.
    pub fn note_written(&self, key: &EventKey) {
        let mut known = self.known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(key.clone());
    }

    fn may_record(&self, event: &Event) -> bool {
        self.spam_filter.lock().recovered().take((hash(&event.regarding), event.event_type))
    }
}

/// The Event's namespace and name. Events about objects without a namespace lie in `default`, as Kubernetes wants it.
fn key(event: &Event) -> EventKey {
    // Combined Events are one, whatever the message of the last one is.
    let named = match event.message.starts_with(COMBINED) {
        true => hash(&Event { message: COMBINED.to_owned(), ..event.clone() }),
        false => hash(event),
    };
    let mut name = event.regarding.name.replace(':', ".").to_lowercase();
    truncate(&mut name, NAME_BYTES_MAX);
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

fn truncate(text: &mut String, bytes: usize) {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, message: &str) -> Event {
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
        let events = EventRecorder::default();
        assert!(
            events.record(event("web", "a"), 1).is_some() && events.record(event("web", "a"), 1).is_some()
        );
        assert_eq!(events.pending().values().map(|(_, count)| *count).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn e1_one_object_does_not_silence_another() {
        let events = EventRecorder::default();
        let record = |name: &str, reason| events.record(Event { reason, ..event(name, "a") }, 1).is_some();
        let reasons: Vec<&'static str> =
            (0..40).map(|number| &*Box::leak(number.to_string().into_boxed_str())).collect();
        let recorded = reasons.iter().filter(|reason| record("web", reason)).count();
        assert!((10..40).contains(&recorded), "{recorded}: an object has a limit");
        assert!(reasons.iter().take(10).all(|reason| record("web", reason)), "pending events are counted");
        let fleet = (0..5_000).filter(|number| record(&format!("web-{number}"), "Synced")).count();
        assert_eq!(fleet, 5_000, "every object has a limit of its own");
        let warning = Event { event_type: EventType::Warning, ..event("web", "it failed") };
        assert!(events.record(warning, 1).is_some(), "warnings have a limit of their own");
    }

    #[test]
    fn e1_messages_that_change_each_time_become_one_event() {
        let events = EventRecorder::default();
        (0..30).for_each(|number| drop(events.record(event("web", &format!("attempt {number}")), 1)));
        let pending = events.pending();
        assert_eq!(pending.len(), 11);
        let combined = pending.values().find(|(event, _)| event.message.starts_with(COMBINED));
        let (event, count) = combined.expect("the rest is combined");
        assert_eq!((event.message.as_str(), *count), ("(combined from similar events): attempt 29", 20));
    }

    #[test]
    fn names_are_valid_whatever_the_object_is_called() {
        for (name, start) in [("web", "web."), ("system:Role", "system.role."), (&*"x".repeat(253), "xxx")] {
            let key = key(&event(name, "é".repeat(2000).as_str()));
            assert!(key.name.starts_with(start) && key.name.len() < 253, "{}", key.name);
            assert_eq!(key.namespace, "default");
        }
        let events = EventRecorder::default();
        events.record(event("web", &"é".repeat(2000)), 1);
        assert!(events.pending().values().all(|(event, _)| event.message.len() <= MESSAGE_BYTES_MAX));
    }
}
