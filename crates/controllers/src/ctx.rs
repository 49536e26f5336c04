//! The context that every controller shares: clients of the control plane and the members, informer cache, clock, work
//! queues.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use api::{Binding, Scope, kinds};
use decide::{BindingKey, TemplateKey};
use jiff::Timestamp;
use supervise::{Injector, Recovered as _};

use crate::binding_status::StatusCoalescer;
use crate::cache::{Cache, WorkKey};
use crate::events::{EventKey, EventType, Events, Regarding};
use crate::gates::FeatureGates;
pub use crate::members::Members;
use crate::metrics::Metrics;
use crate::pace::Pace;
use crate::policy_status::Tally;
use crate::rest::{Collection, Error, Path, Rest};
use crate::runtime::{Priority, Queue, QueueStats, Supervisor};

/// The controllers that write bindings, as Events name them.
const COMPONENT: &str = "resource-detector";

/// The shared context. Clones share everything.
#[derive(Clone)]
pub struct Ctx {
    /// The control plane.
    pub control: Rest,
    /// The members that can be reached, by name.
    pub members: Members,
    /// What is known.
    pub cache: Cache,
    /// The wall clock.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Work to do.
    pub queues: Queues,
    /// What is switched on.
    pub feature_gates: FeatureGates,
    /// The event recorder, with the events that are not written yet.
    pub events: Events,
    /// What is counted.
    pub metrics: Metrics,
    /// How the templates of each policy fare.
    pub tally: Tally,
    /// How fast taints evict.
    pub pace: Pace,
    /// Statuses that are kept back because more is on its way.
    pub coalescer: StatusCoalescer,
    /// What becomes of panics.
    pub supervisor: Supervisor,
}

/// One queue per controller. Where keys belong to namespaces, these take turns.
#[derive(Clone)]
pub struct Queues {
    /// Templates whose claim or binding may have to change.
    pub templates: Queue<TemplateKey>,
    /// Bindings that may have to be placed.
    pub placements: Queue<BindingKey>,
    /// Bindings whose Works may have to change.
    pub works: Queue<BindingKey>,
    /// Bindings whose status may have to change.
    pub statuses: Queue<BindingKey>,
    /// Works that may have to be written to their member, one queue per member.
    pub execution: PerMember,
    /// Clusters to be tended.
    pub clusters: Queue<String>,
    /// Clusters whose health is due.
    pub cluster_status: Queue<String>,
    /// Clusters whose client may have to change.
    pub clients: Queue<String>,
    /// Clusters whose credentials may have to be renewed.
    pub credentials: Queue<String>,
    /// Policies whose finalizer may have to be removed.
    pub policies: Queue<decide::PolicyKey>,
    /// Namespaces to be sent to members.
    pub namespaces: Queue<String>,
    /// Bindings whose list of needs may have to change.
    pub dependencies: Queue<BindingKey>,
    /// Templates whose binding follows those that need it.
    pub attachments: Queue<TemplateKey>,
    /// Bindings that may have to leave a cluster.
    pub failover: Queue<BindingKey>,
    /// Clusters whose taints may have to change.
    pub taints: Queue<String>,
    /// Rebalancers to be brought forward.
    pub rebalancers: Queue<String>,
    /// Policies whose status may have to change.
    pub policy_status: Queue<decide::PolicyKey>,
    /// Events to write.
    pub news: Queue<EventKey>,
}

impl Queues {
    /// Empty queues; the cache knows which namespace a Work is for.
    pub fn new(cache: &Cache) -> Self {
        let bindings = || Queue::fair(|key: &BindingKey| key.namespace.clone());
        let templates = || Queue::fair(|key: &TemplateKey| key.namespace.clone());
        let policies = || Queue::fair(|key: &decide::PolicyKey| key.namespace.clone());
        Self {
            templates: templates(),
            placements: bindings(),
            works: bindings(),
            statuses: bindings(),
            execution: PerMember { queues: Arc::default(), cache: cache.clone() },
            clusters: Queue::new(),
            cluster_status: Queue::new(),
            clients: Queue::new(),
            credentials: Queue::new(),
            policies: policies(),
            namespaces: Queue::new(),
            dependencies: bindings(),
            attachments: templates(),
            failover: bindings(),
            taints: Queue::new(),
            rebalancers: Queue::new(),
            policy_status: policies(),
            news: Queue::fair(|key: &EventKey| key.namespace().to_owned()),
        }
    }

    /// Looks at many templates again.
    pub fn look_at(&self, templates: impl IntoIterator<Item = TemplateKey>, priority: Priority) {
        templates.into_iter().for_each(|key| self.templates.add(key, priority));
    }

    /// Looks at how a binding is doing, once its members have had time to say it: each of them says it several times
    /// while something starts, and every time would be a write to the binding and one to the template.
    pub fn look_at_status(&self, key: BindingKey) {
        self.statuses.add_gathered_for(key, STATUS_GATHER);
    }

    /// Looks at everything that hangs on a binding.
    pub fn look_at_binding(&self, key: &BindingKey, priority: Priority) {
        self.placements.add(key.clone(), priority);
        self.works.add(key.clone(), priority);
        self.look_at_status(key.clone());
        self.failover.add(key.clone(), priority);
    }
}

/// How long statuses are gathered at least.
const STATUS_GATHER: Duration = Duration::from_secs(1);

/// A work queue per member, so that a slow member does not delay the others. Each is fair between namespaces.
#[derive(Clone)]
pub struct PerMember {
    queues: Arc<RwLock<BTreeMap<String, Queue<WorkKey>>>>,
    /// Knows which namespace a Work is for.
    cache: Cache,
}

impl PerMember {
    /// The queue of a member.
    pub fn of(&self, cluster: &str) -> Queue<WorkKey> {
        if let Some(queue) = self.queues.read().recovered().get(cluster) {
            return queue.clone();
        }
        let mut queues = self.queues.write().recovered();
        let fair = || {
            let cache = self.cache.clone();
            Queue::fair(move |key: &WorkKey| cache.binding_of(key).unwrap_or_default().namespace)
        };
        queues.entry(cluster.to_owned()).or_insert_with(fair).clone()
    }

    /// What each member's queue holds and has done.
    pub fn stats(&self) -> Vec<(String, QueueStats)> {
        let queues = self.queues.read().recovered();
        queues.iter().map(|(member, queue)| (format!("execution-{member}"), queue.stats())).collect()
    }

    /// Forgets the queue of a member that has gone.
    pub fn remove(&self, cluster: &str) {
        self.queues.write().recovered().remove(cluster);
    }

    /// Adds a Work to the queue of its member.
    pub fn add(&self, key: WorkKey, priority: Priority) {
        self.of(&key.cluster).add(key, priority);
    }

    /// Adds a Work to the queue of its member, debounced.
    pub fn add_debounced(&self, key: WorkKey) {
        self.of(&key.cluster).add_debounced(key);
    }
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
            events: Events::default(),
            metrics,
            tally: Tally::default(),
            pace: Pace::default(),
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

    /// What every queue holds and has done, by controller; members' queues by member.
    pub fn queue_stats(&self) -> Vec<(String, QueueStats)> {
        let queues = &self.queues;
        let own = [
            ("detector", queues.templates.stats()),
            ("scheduler", queues.placements.stats()),
            ("binding", queues.works.stats()),
            ("binding-status", queues.statuses.stats()),
            ("cluster", queues.clusters.stats()),
            ("cluster-status", queues.cluster_status.stats()),
            ("clients", queues.clients.stats()),
            ("credentials", queues.credentials.stats()),
            ("policies", queues.policies.stats()),
            ("namespaces", queues.namespaces.stats()),
            ("dependencies", queues.dependencies.stats()),
            ("attachments", queues.attachments.stats()),
            ("failover", queues.failover.stats()),
            ("taints", queues.taints.stats()),
            ("rebalancer", queues.rebalancers.stats()),
            ("policy-status", queues.policy_status.stats()),
            ("events", queues.news.stats()),
        ];
        let members = queues.execution.stats();
        own.into_iter().map(|(name, stats)| (name.to_owned(), stats)).chain(members).collect()
    }

    /// The path of a template; none while its kind is not served.
    pub fn template_path(&self, key: &TemplateKey) -> Option<Path> {
        let served = self.cache.served(&key.api_version, &key.kind)?;
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

#[cfg(test)]
mod tests {
    use api::ObjectMeta;

    use super::*;
    use crate::cache::{WorkNews, binding_id};

    /// How many keys of a flood are worked on between the arrival of another tenant's key and its turn, with this
    /// many workers.
    async fn flood_before<K: crate::runtime::Key>(queue: &Queue<K>, flood: Vec<K>, other: K) -> usize {
        const WORKERS: usize = 8;
        let all = flood.len();
        flood.into_iter().for_each(|key| queue.add(key, Priority::User));
        let mut working = Vec::new();
        for _ in 0..WORKERS {
            working.push(queue.next().await);
        }
        queue.add(other.clone(), Priority::User);
        let mut before = 0;
        loop {
            let done = working.remove(0);
            queue.succeeded(&done);
            let next = queue.next().await;
            if next == other {
                return before;
            }
            before += 1;
            assert!(before < all, "it comes last");
            working.push(next);
        }
    }

    #[tokio::test]
    async fn a_tenant_with_five_thousand_templates_delays_nobody_by_more_than_two_keys() {
        let cache = Cache::default();
        let queues = Queues::new(&cache);
        let binding = |namespace: &str, number: usize| BindingKey {
            namespace: namespace.to_owned(),
            name: format!("web-{number}-deployment"),
        };
        let template = |namespace: &str, number: usize| TemplateKey {
            namespace: namespace.to_owned(),
            name: format!("web-{number}"),
            kind: "Deployment".to_owned(),
            api_version: "apps/v1".to_owned(),
        };
        let work = |namespace: &str, number: usize| {
            let name = format!("{namespace}-{number}");
            let id = format!("id-{name}");
            let labels =
                [(api::labels::RESOURCE_BINDING_PERMANENT_ID.to_owned(), id.clone())].into_iter().collect();
            let metadata = ObjectMeta { labels, name: name.clone(), ..ObjectMeta::default() };
            assert_eq!(binding_id(&metadata), id);
            let key = WorkKey { cluster: "member1".to_owned(), name };
            let bound = Binding { metadata: metadata.clone(), ..Binding::default() };
            cache.put_binding(binding(namespace, number), bound);
            let news: WorkNews =
                serde_json::from_value(serde_json::json!({ "metadata": metadata })).expect("a Work");
            cache.put_work(key.clone(), &news);
            key
        };
        let flood = 0..5_000;
        let counts = [
            flood_before(
                &queues.templates,
                flood.clone().map(|n| template("a", n)).collect(),
                template("b", 0),
            )
            .await,
            flood_before(
                &queues.placements,
                flood.clone().map(|n| binding("a", n)).collect(),
                binding("b", 0),
            )
            .await,
            flood_before(&queues.works, flood.clone().map(|n| binding("a", n)).collect(), binding("b", 0))
                .await,
            flood_before(
                &queues.execution.of("member1"),
                flood.map(|n| work("a", n)).collect(),
                work("b", 0),
            )
            .await,
        ];
        assert!(counts.iter().all(|before| *before <= 2), "{counts:?}");
    }
}
