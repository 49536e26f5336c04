//! A change of a world, read from the object a user would write, and which templates must be looked at
//! afterwards: what the change touches, not what exists (B5).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use api::{Cluster, OverridePolicy, PropagationPolicy, RolloutPolicy, kinds};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::World;
use crate::binding::Rollout;
use crate::policy::{Policy, PolicyKey};
use crate::template::{Template, TemplateKey};

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

impl World {
    /// Makes a change, and says which templates must be looked at. Nothing is settled yet.
    ///
    /// The object is taken as it stands, so it should be what the API server answers to a dry run: with
    /// uid, generation and stamps.
    pub fn apply(&mut self, change: &Change) -> Result<BTreeSet<Arc<TemplateKey>>, ChangeError> {
        match change {
            Change::Put(object) => self.put(Arc::clone(object)),
            Change::Delete { api_version, kind, namespace, name } => {
                Ok(self.delete(api_version, kind, namespace, name))
            }
        }
    }

    /// Takes in an object that nobody else holds; says which templates are touched.
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
                self.remove_cluster(&cluster.metadata.name);
                let clusters = Arc::make_mut(&mut self.clusters);
                clusters.push(cluster);
                clusters.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
                Ok(self.bound())
            }
            _ => {
                let nameless = error(&object, "it has no type or no name");
                let template = Template::read(object).ok_or(nameless)?;
                let key = template.key.clone();
                self.templates.insert(template);
                Ok([key].into())
            }
        }
    }

    fn delete(
        &mut self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> BTreeSet<Arc<TemplateKey>> {
        let key = PolicyKey { namespace: namespace.to_owned(), name: name.to_owned() };
        match (crate::template::group(api_version), kind) {
            (kinds::POLICY_GROUP, "PropagationPolicy" | "ClusterPropagationPolicy") => {
                let before = self.policies.remove(&key);
                self.templates.touched(before.as_deref(), None)
            }
            (kinds::POLICY_GROUP, "OverridePolicy" | "ClusterOverridePolicy") => {
                let before = self.overrides.remove(&key);
                self.overridden(&key, [before.as_deref(), None])
            }
            (kinds::POLICY_GROUP, "RolloutPolicy" | "ClusterRolloutPolicy") => {
                let before = self.rollouts.remove(&key);
                self.held_by([before.as_ref(), None])
            }
            (kinds::CLUSTER_GROUP, "Cluster") => {
                self.remove_cluster(name);
                self.bound()
            }
            _ => {
                let template = TemplateKey {
                    api_version: api_version.to_owned(),
                    kind: kind.to_owned(),
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                };
                self.remove_template(&template);
                [Arc::new(template)].into()
            }
        }
    }

    fn remove_cluster(&mut self, name: &str) {
        Arc::make_mut(&mut self.clusters).retain(|cluster| cluster.metadata.name != name);
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
                [] => touched.extend(self.bound()),
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

    /// A cluster that comes, goes or changes may concern everything that has a binding.
    fn bound(&self) -> BTreeSet<Arc<TemplateKey>> {
        self.bindings.values().map(|binding| Arc::new(TemplateKey::of(binding))).collect()
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
