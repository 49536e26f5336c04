//! The context that every controller shares: clients of the control plane and the members, informer cache, clock, work
//! queues.

use std::sync::Arc;

use api::{Binding, Scope, kinds};
use decide::{BindingKey, TemplateKey};
use jiff::Timestamp;
use supervise::Injector;

use crate::cache::Cache;
use crate::events::{Event, EventRecorder, EventType, Regarding};
use crate::eviction_limiter::EvictionLimiter;
use crate::gates::FeatureGates;
pub use crate::members::Members;
use crate::metrics::Metrics;
use crate::policy_counts::PolicyCounts;
use crate::queues::Queues;
use crate::rest::{Collection, Error, Path, Rest};
use crate::runtime::{Priority, Supervisor};
use crate::status_coalescer::StatusCoalescer;

/// The controllers that write bindings, as Events name them.
const COMPONENT: &str = "resource-detector";

/// The shared context. Clones share everything.
#[derive(Clone)]
pub struct Ctx {
    /// The client of the control plane.
    pub control: Rest,
    /// The registry of members, with their clients.
    pub members: Members,
    /// The informer cache.
    pub cache: Cache,
    /// The wall clock.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// The work queues.
    pub queues: Queues,
    /// The feature gates.
    pub feature_gates: FeatureGates,
    /// The event recorder, with the events that are not written yet.
    pub events: EventRecorder,
    /// Counters and histograms.
    pub metrics: Metrics,
    /// How many templates each policy has, by state.
    pub policy_counts: PolicyCounts,
    /// The rate limiter of taint evictions.
    pub eviction_limiter: EvictionLimiter,
    /// Status writes that are delayed because more changes are coming.
    pub coalescer: StatusCoalescer,
    /// The panic handler.
    pub supervisor: Supervisor,
}

impl Ctx {
    /// A context that knows nothing yet.
    pub fn new(
        control: Rest,
        members: Members,
        feature_gates: FeatureGates,
        now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    ) -> Self {
        let metrics = Metrics::default();
        let cache = Cache::new(feature_gates.gates.clone());
        Self {
            control,
            members,
            supervisor: Supervisor::new(metrics.clone(), Injector::default()),
            queues: Queues::new(&cache),
            cache,
            now,
            feature_gates,
            events: EventRecorder::default(),
            metrics,
            policy_counts: PolicyCounts::default(),
            eviction_limiter: EvictionLimiter::default(),
            coalescer: StatusCoalescer::default(),
        }
    }

    /// The same context where a test lets things fail.
    #[doc(hidden)]
    pub fn with_faults(mut self, injector: Injector) -> Self {
        self.cache = Cache::with_faults(self.feature_gates.gates.clone(), injector.clone());
        self.queues = Queues::new(&self.cache);
        self.supervisor = Supervisor::new(self.metrics.clone(), injector);
        self
    }

    /// Creates a binding, or replaces the state of it that was seen.
    pub async fn write_binding(&self, key: &BindingKey, binding: &Binding) -> Result<(), Error> {
        let collection = bindings(key);
        let written = match binding.metadata.resource_version.is_empty() {
            true => self.control.create(&collection, binding).await,
            false => self.control.replace(&collection.object(&key.name), binding).await,
        };
        written.map(drop).inspect_err(|error| self.record_rejection(binding, error))
    }

    /// Records a Warning event on a binding and on its template if admission refuses to change the binding: until an
    /// administrator mends it, members keep what they have.
    pub fn record_rejection(&self, binding: &Binding, error: &Error) {
        if !error.is_rejection() {
            return;
        }
        let message = format!("The binding cannot be changed, so members keep what they have: {error}");
        for about in [Regarding::from(binding), Regarding::template_of(binding)] {
            self.record_standing_event(
                about,
                COMPONENT,
                EventType::Warning,
                "UpdateBindingRejected",
                &message,
            );
        }
    }

    /// Records that something happened, as an Event on each of these objects.
    pub fn record_event(
        &self,
        about: impl IntoIterator<Item = Regarding>,
        component: &'static str,
        event_type: EventType,
        reason: &'static str,
        message: &str,
    ) {
        let event =
            |regarding| Event { regarding, component, event_type, reason, message: message.to_owned() };
        about.into_iter().for_each(|regarding| self.enqueue_event(event(regarding), 1));
    }

    /// Records a state, as an Event that is written once, however often the state is found.
    pub fn record_standing_event(
        &self,
        regarding: Regarding,
        component: &'static str,
        event_type: EventType,
        reason: &'static str,
        message: &str,
    ) {
        let event = Event { regarding, component, event_type, reason, message: message.to_owned() };
        self.enqueue_event(event, 0);
    }

    fn enqueue_event(&self, event: Event, times: u64) {
        match self.events.record(event, times) {
            Some(key) => self.queues.events.add(key, Priority::Resync),
            None => self.metrics.count("events_dropped_total", &[]),
        }
    }

    /// The path of a template; none while its kind is not served.
    pub fn template_path(&self, key: &TemplateKey) -> Option<Path> {
        let served = self.cache.served().get(&key.api_version, &key.kind)?;
        let namespace = if served.namespaced { key.namespace.as_str() } else { "" };
        Some(Collection::new(&key.api_version, &served.plural, namespace).object(&key.name))
    }
}

/// The collection that a binding lies in.
pub fn bindings(key: &BindingKey) -> Collection {
    let kind = match key.namespace.as_str() {
        "" => &kinds::CLUSTER_RESOURCE_BINDING,
        _ => &kinds::RESOURCE_BINDING,
    };
    Collection::of(kind, &key.namespace)
}

/// The collection that a Work lies in.
pub fn works(cluster: &str) -> Collection {
    Collection::of(&kinds::WORK, &api::names::execution_namespace(cluster))
}

/// The finalizer that keeps a binding until its Works are gone.
pub fn binding_finalizer(binding: &Binding) -> &'static str {
    match scope(binding) {
        Scope::Namespaced => api::finalizers::BINDING,
        Scope::Cluster => api::finalizers::CLUSTER_RESOURCE_BINDING,
    }
}

fn scope(binding: &Binding) -> Scope {
    match binding.metadata.namespace.as_str() {
        "" => Scope::Cluster,
        _ => Scope::Namespaced,
    }
}
