//! Cascading deletion: the binding of a deleted template, the contents of a namespace, and the objects of a kind.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::kinds;

use crate::fields::text;
use crate::policy::PolicyKey;
use crate::snapshot::{Snapshot, is_definition};
use crate::template::{TemplateKey, group};

impl Snapshot {
    /// Removes an object, and returns the templates to reconcile.
    pub(super) fn delete(
        &mut self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> BTreeSet<Arc<TemplateKey>> {
        let key = PolicyKey { namespace: namespace.to_owned(), name: name.to_owned() };
        match (group(api_version), kind) {
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
            (kinds::POLICY_GROUP, "ClusterTaintPolicy") => {
                // Taints that it brought stay, as in Karmada.
                self.taint_policies.remove(name);
                BTreeSet::new()
            }
            (kinds::CLUSTER_GROUP, "Cluster") => self.delete_cluster(name),
            (group, _) if kinds::is_karmada_group(group) => BTreeSet::new(),
            _ => {
                let template = TemplateKey {
                    api_version: api_version.to_owned(),
                    kind: kind.to_owned(),
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                };
                self.delete_template(template)
            }
        }
    }

    /// It stays, on its way out, until nothing is on it any more.
    fn delete_cluster(&mut self, name: &str) -> BTreeSet<Arc<TemplateKey>> {
        let now = self.now;
        let clusters = Arc::make_mut(&mut self.clusters).iter_mut();
        for cluster in clusters.filter(|cluster| cluster.metadata.name == name) {
            cluster.metadata.deletion_timestamp.get_or_insert(now.into());
        }
        self.in_clusters()
    }

    fn delete_template(&mut self, key: TemplateKey) -> BTreeSet<Arc<TemplateKey>> {
        let mut touched = self.taken_along(&key);
        touched.insert(Arc::new(key));
        touched.iter().for_each(|key| drop(self.remove_template(key)));
        touched
    }

    /// The templates that are deleted together with a template.
    fn taken_along(&mut self, key: &TemplateKey) -> BTreeSet<Arc<TemplateKey>> {
        match (key.api_version.as_str(), key.kind.as_str()) {
            ("v1", "Namespace") => {
                self.empty(&key.name);
                self.keys(|other| other.namespace == key.name)
            }
            _ if is_definition(key) => {
                let Some(definition) = self.templates.get(key) else { return BTreeSet::new() };
                let definition = definition.object();
                let part = |path: &[&str]| text(&definition, path);
                let (group, kind) = (part(&["spec", "group"]), part(&["spec", "names", "kind"]));
                self.keys(|other| other.group() == group && other.kind == kind)
            }
            _ => BTreeSet::new(),
        }
    }

    /// Takes the policies out of a namespace; they concern nothing outside of it.
    fn empty(&mut self, namespace: &str) {
        let own: Vec<PolicyKey> = self
            .policies
            .iter()
            .map(|policy| policy.key.clone())
            .filter(|key| key.namespace == namespace)
            .collect();
        own.iter().for_each(|key| drop(self.policies.remove(key)));
        self.overrides.retain(|key, _| key.namespace != namespace);
        self.rollouts.retain(|key, _| key.namespace != namespace);
    }
}
