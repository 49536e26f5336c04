//! The work queues, one per controller and named after it; the controller that writes to members has one per member.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use decide::{BindingKey, PolicyKey, TemplateKey};
use supervise::Recovered as _;

use crate::cache::{Cache, WorkKey};
use crate::events::EventKey;
use crate::runtime::{Priority, Queue, QueueStats};

/// One queue per controller. Where keys belong to namespaces, these take turns.
#[derive(Clone)]
pub struct Queues {
    /// Templates whose claim or binding may have to change.
    pub detector: Queue<TemplateKey>,
    /// Bindings that may have to be placed.
    pub scheduler: Queue<BindingKey>,
    /// Bindings whose Works may have to change.
    pub binding: Queue<BindingKey>,
    /// Bindings whose status may have to change.
    pub binding_status: Queue<BindingKey>,
    /// Works that may have to be written to their member, one queue per member.
    pub execution: PerMember,
    /// Clusters whose execution namespace, finalizer or health taints may have to change.
    pub cluster: Queue<String>,
    /// Clusters whose health check is due.
    pub cluster_status: Queue<String>,
    /// Clusters whose client may have to change.
    pub clients: Queue<String>,
    /// Clusters whose credentials may have to be renewed.
    pub credentials: Queue<String>,
    /// Policies whose finalizer may have to be removed.
    pub policies: Queue<PolicyKey>,
    /// Namespaces to be sent to members.
    pub namespaces: Queue<String>,
    /// Bindings whose list of dependencies may have to change.
    pub dependencies: Queue<BindingKey>,
    /// Templates whose binding follows the bindings that depend on it.
    pub attachments: Queue<TemplateKey>,
    /// Bindings that may have to leave a cluster.
    pub failover: Queue<BindingKey>,
    /// Clusters whose taints may have to change.
    pub taints: Queue<String>,
    /// WorkloadRebalancers to be continued.
    pub rebalancer: Queue<String>,
    /// Policies whose status may have to change.
    pub policy_status: Queue<PolicyKey>,
    /// Events to write.
    pub events: Queue<EventKey>,
}

impl Queues {
    /// Empty queues; the cache knows which namespace a Work is for.
    pub fn new(cache: &Cache) -> Self {
        let bindings = || Queue::fair(|key: &BindingKey| key.namespace.clone());
        let templates = || Queue::fair(|key: &TemplateKey| key.namespace.clone());
        let policies = || Queue::fair(|key: &PolicyKey| key.namespace.clone());
        Self {
            detector: templates(),
            scheduler: bindings(),
            binding: bindings(),
            binding_status: bindings(),
            execution: PerMember { queues: Arc::default(), cache: cache.clone() },
            cluster: Queue::new(),
            cluster_status: Queue::new(),
            clients: Queue::new(),
            credentials: Queue::new(),
            policies: policies(),
            namespaces: Queue::new(),
            dependencies: bindings(),
            attachments: templates(),
            failover: bindings(),
            taints: Queue::new(),
            rebalancer: Queue::new(),
            policy_status: policies(),
            events: Queue::fair(|key: &EventKey| key.namespace.clone()),
        }
    }

    /// What every queue holds and has done, by controller; members' queues by member.
    pub fn stats(&self) -> Vec<(String, QueueStats)> {
        let own = [
            ("detector", self.detector.stats()),
            ("scheduler", self.scheduler.stats()),
            ("binding", self.binding.stats()),
            ("binding-status", self.binding_status.stats()),
            ("cluster", self.cluster.stats()),
            ("cluster-status", self.cluster_status.stats()),
            ("clients", self.clients.stats()),
            ("credentials", self.credentials.stats()),
            ("policies", self.policies.stats()),
            ("namespaces", self.namespaces.stats()),
            ("dependencies", self.dependencies.stats()),
            ("attachments", self.attachments.stats()),
            ("failover", self.failover.stats()),
            ("taints", self.taints.stats()),
            ("rebalancer", self.rebalancer.stats()),
            ("policy-status", self.policy_status.stats()),
            ("events", self.events.stats()),
        ];
        let members = self.execution.stats();
        own.into_iter().map(|(name, stats)| (name.to_owned(), stats)).chain(members).collect()
    }
}

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
            Queue::fair(move |key: &WorkKey| cache.works().binding_of(key).unwrap_or_default().namespace)
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

#[cfg(test)]
mod tests {
    use api::{Binding, ObjectMeta};

    use super::*;
    use crate::cache::{WorkSummary, binding_id};
    use crate::runtime::Key;

    /// How many keys of a flood are worked on between the arrival of another tenant's key and its turn, with this
    /// many workers.
    async fn flood_before<K: Key>(queue: &Queue<K>, flood: Vec<K>, other: K) -> usize {
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
    async fn five_thousand_templates_of_one_tenant_delay_another_by_two_keys_at_most() {
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
            let summary: WorkSummary =
                serde_json::from_value(serde_json::json!({ "metadata": metadata })).expect("a Work");
            cache.works().put(key.clone(), &summary);
            key
        };
        let flood = 0..5_000;
        let counts = [
            flood_before(
                &queues.detector,
                flood.clone().map(|n| template("a", n)).collect(),
                template("b", 0),
            )
            .await,
            flood_before(
                &queues.scheduler,
                flood.clone().map(|n| binding("a", n)).collect(),
                binding("b", 0),
            )
            .await,
            flood_before(&queues.binding, flood.clone().map(|n| binding("a", n)).collect(), binding("b", 0))
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
