//! A change of a snapshot, parsed from the object a user would write, and the templates to reconcile afterwards: what
//! the change touches, not what exists (B5).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use api::{
    Binding, Cluster, ClusterTaintPolicy, OverridePolicy, PropagationPolicy, RolloutPolicy,
    WorkloadRebalancer, kinds, names,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Snapshot;
use crate::binding::Rollout;
use crate::eviction::taints;
use crate::policy::{Policy, PolicyKey};
use crate::rebalance::rebalance;
use crate::template::{BindingKey, Template, TemplateKey};

mod removal;

/// One change of one object.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It is there now, new or instead of an older version.
    Put(Arc<Value>),
    /// It is gone.
    Delete {
        /// `group/version`.
        api_version: String,
        /// Kind.
        kind: String,
        /// Empty for cluster-scoped kinds.
        namespace: String,
        /// Name.
        name: String,
    },
}

/// Why a change makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeError {
    what: String,
    reason: String,
}

impl fmt::Display for ChangeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "read {}: {}", self.what, self.reason)
    }
}

impl std::error::Error for ChangeError {}

impl Snapshot {
    /// Applies a change, and returns the templates to reconcile. Nothing is settled yet.
    ///
    /// The object is taken as it is, so it should be the API server's response to a dry run: with uid, generation and
    /// timestamps.
    pub fn apply(&mut self, change: &Change) -> Result<BTreeSet<Arc<TemplateKey>>, ChangeError> {
        match change {
            Change::Put(object) => self.put(Arc::clone(object)),
            Change::Delete { api_version, kind, namespace, name } => {
                Ok(self.delete(api_version, kind, namespace, name))
            }
        }
    }

    /// Inserts an object without copying it; returns the affected templates.
    pub fn take(&mut self, object: Value) -> Result<BTreeSet<Arc<TemplateKey>>, ChangeError> {
        self.put(Arc::new(object))
    }

    fn put(&mut self, object: Arc<Value>) -> Result<BTreeSet<Arc<TemplateKey>>, ChangeError> {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        match (crate::template::group(text("apiVersion")), text("kind")) {
            (kinds::POLICY_GROUP, "PropagationPolicy" | "ClusterPropagationPolicy") => {
                let policy = Arc::new(Policy::from(&read::<PropagationPolicy>(&object)?));
                let before = self.policies.insert(Arc::clone(&policy));
                Ok(self.templates.touched(before.as_deref(), Some(&policy)))
            }
            (kinds::POLICY_GROUP, "OverridePolicy" | "ClusterOverridePolicy") => {
                let policy: OverridePolicy = read(&object)?;
                let key = policy_key(policy.kind.starts_with("Cluster"), &policy.metadata);
                let policy = Arc::new(policy);
                let before = self.overrides.insert(key.clone(), Arc::clone(&policy));
                Ok(self.overridden(&key, [before.as_deref(), Some(&policy)]))
            }
            (kinds::POLICY_GROUP, "RolloutPolicy" | "ClusterRolloutPolicy") => {
                let rollout = Rollout::from(&read::<RolloutPolicy>(&object)?);
                let before = self.rollouts.insert(rollout.key.clone(), rollout.clone());
                Ok(self.held_by([before.as_ref(), Some(&rollout)]))
            }
            (kinds::CLUSTER_GROUP, "Cluster") => {
                let cluster: Cluster = read(&object)?;
                let clusters = Arc::make_mut(&mut self.clusters);
                clusters.retain(|known| known.metadata.name != cluster.metadata.name);
                clusters.push(cluster);
                clusters.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
                self.taint();
                Ok(self.in_clusters())
            }
            (kinds::POLICY_GROUP, "ClusterTaintPolicy") => {
                let policy: ClusterTaintPolicy = read(&object)?;
                self.taint_policies.insert(policy.metadata.name.clone(), policy);
                self.taint();
                Ok(self.in_clusters())
            }
            (kinds::WORK_GROUP, "ResourceBinding" | "ClusterResourceBinding") => {
                let binding: Binding = read(&object)?;
                let metadata = &binding.metadata;
                let key = BindingKey { namespace: metadata.namespace.clone(), name: metadata.name.clone() };
                let touched = Arc::new(TemplateKey::of(&binding));
                self.put_binding(&key, Arc::new(binding));
                Ok([touched].into())
            }
            (kinds::APPS_GROUP, "WorkloadRebalancer") => Ok(self.rebalance(&read(&object)?)),
            // Everything else of ours is no template.
            (group, _) if kinds::is_karmada_group(group) => Ok(BTreeSet::new()),
            _ => self.put_template(object),
        }
    }

    fn put_template(&mut self, object: Arc<Value>) -> Result<BTreeSet<Arc<TemplateKey>>, ChangeError> {
        let nameless = error(&object, "it has no type or no name");
        let template = Template::read(&object).ok_or(nameless)?;
        if names::is_no_template(&template.key.namespace, &object) {
            return Ok(BTreeSet::new());
        }
        let key = template.key.clone();
        self.templates.insert(template);
        Ok([key].into())
    }

    /// Bindings that are asked for a fresh placement.
    fn rebalance(&mut self, rebalancer: &WorkloadRebalancer) -> BTreeSet<Arc<TemplateKey>> {
        let find = |key: &BindingKey| self.bindings.get(key).map(AsRef::as_ref);
        let asked = rebalance(rebalancer, find, self.now).asked;
        let mut touched = BTreeSet::new();
        for (key, at) in asked {
            let Some(mut binding) = self.bindings.get(&key).cloned() else { continue };
            Arc::make_mut(&mut binding).spec.reschedule_triggered_at = Some(at);
            touched.insert(Arc::new(TemplateKey::of(&binding)));
            self.put_binding(&key, binding);
        }
        touched
    }

    /// Gives every cluster the taints that policies tie to its conditions.
    fn taint(&mut self) {
        if !self.gates.failover || self.taint_policies.is_empty() {
            return;
        }
        let policies: Vec<ClusterTaintPolicy> = self.taint_policies.values().cloned().collect();
        let now = self.now;
        let staying = |cluster: &&mut Cluster| cluster.metadata.deletion_timestamp.is_none();
        for cluster in Arc::make_mut(&mut self.clusters).iter_mut().filter(staying) {
            cluster.spec.taints = taints(cluster, &policies, now);
        }
    }

    /// What an override policy changes, and what policies that name it were waiting for.
    fn overridden(
        &self,
        key: &PolicyKey,
        versions: [Option<&OverridePolicy>; 2],
    ) -> BTreeSet<Arc<TemplateKey>> {
        let mut touched = BTreeSet::new();
        for spec in versions.into_iter().flatten().map(|policy| &policy.spec) {
            match spec.resource_selectors.as_slice() {
                [] => touched.extend(self.in_clusters()),
                selectors => touched.extend(self.templates.found(key, selectors)),
            }
        }
        let names = |policy: &&Arc<Policy>| {
            policy.key.namespace == key.namespace && policy.spec.dependent_overrides.contains(&key.name)
        };
        for policy in self.policies.iter().filter(names) {
            touched.extend(self.templates.claimed(policy.id()).cloned());
        }
        touched
    }

    fn held_by(&self, rollouts: [Option<&Rollout>; 2]) -> BTreeSet<Arc<TemplateKey>> {
        let found = |rollout: &Rollout| self.templates.found(&rollout.key, &rollout.spec.resource_selectors);
        rollouts.into_iter().flatten().flat_map(found).collect()
    }

    /// A cluster that comes, goes or changes may concern everything that has a binding, and every namespace.
    fn in_clusters(&self) -> BTreeSet<Arc<TemplateKey>> {
        let namespaces = self.templates.in_namespace("v1", "Namespace", "");
        let bound = self.bindings.values().map(|binding| Arc::new(TemplateKey::of(binding)));
        bound.chain(namespaces.map(|namespace| Arc::clone(&namespace.key))).collect()
    }
}

fn policy_key(cluster_scoped: bool, metadata: &api::ObjectMeta) -> PolicyKey {
    let namespace = if cluster_scoped { String::new() } else { metadata.namespace.clone() };
    PolicyKey { namespace, name: metadata.name.clone() }
}

fn read<T: DeserializeOwned>(object: &Value) -> Result<T, ChangeError> {
    T::deserialize(object).map_err(|reason| error(object, &reason.to_string()))
}

fn error(object: &Value, reason: &str) -> ChangeError {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("?");
    ChangeError { what: format!("{} {}", text("/kind"), text("/metadata/name")), reason: reason.to_owned() }
}
