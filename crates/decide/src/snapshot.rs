//! A snapshot of everything that decisions depend on, as one value, and its fixed point: the controllers' decisions,
//! folded until none changes anything. Knows no API server and no clock.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::interpreter::DependentObjectReference;
use api::{Binding, Cluster, ClusterTaintPolicy, OverridePolicy};
use jiff::Timestamp;
use serde_json::Value;

use crate::binding::Rollout;
use crate::claim::policies::Policies;
use crate::claim::templates::Templates;
use crate::dependencies::{self, attached};
use crate::fields::text;
use crate::gates::Gates;
use crate::placement::Recent;
use crate::policy::{Policy, PolicyKey};
use crate::propagation::{Facts, Propagation, propagation};
use crate::selector::labels_match;
use crate::template::{BindingKey, Template, TemplateKey};

mod change;
mod interpreters;
mod kinds;
mod rest;

pub use change::{Change, ChangeError};
pub use interpreters::Interpreters;
pub(crate) use interpreters::render_namespace;
pub(crate) use kinds::is_definition;
pub(crate) use rest::Rest;

/// A whole control plane at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Policies of both scopes.
    pub policies: Policies,
    /// Everything that can be propagated.
    pub templates: Templates,
    /// Bindings of both scopes; a copy of the world shares them until one changes.
    pub bindings: Arc<BTreeMap<Arc<BindingKey>, Arc<Binding>>>,
    /// Members, by name.
    pub clusters: Arc<Vec<Cluster>>,
    /// Override policies of both scopes.
    pub overrides: BTreeMap<PolicyKey, Arc<OverridePolicy>>,
    /// Rollout policies of both scopes.
    pub rollouts: BTreeMap<PolicyKey, Rollout>,
    /// What ties taints to the conditions of clusters, by name.
    pub taint_policies: BTreeMap<String, ClusterTaintPolicy>,
    /// Switches.
    pub gates: Gates,
    /// Which moment; at the beginning of time no toleration has worn out.
    pub now: Timestamp,
}

impl Snapshot {
    /// What becomes of one template now; none if there is no such template.
    pub fn look(&self, key: &TemplateKey, interpreters: Interpreters<'_>) -> Option<Propagation> {
        let template = self.templates.get(key)?;
        let binding = self.bindings.get(&key.binding());
        Some(self.look_at(template, binding.map(AsRef::as_ref), interpreters))
    }

    /// What becomes of this template with this binding now.
    pub(crate) fn look_at(
        &self,
        template: &Template,
        binding: Option<&Binding>,
        interpreters: Interpreters<'_>,
    ) -> Propagation {
        let Snapshot { policies, rollouts, gates, .. } = self;
        let facts = Facts { template, binding, policies, rollouts, gates };
        let missing = |policy: &Policy| self.missing_overrides(policy);
        propagation(facts, |template, _| (interpreters.interpret)(template), missing)
    }

    /// Writes what should be until nothing is left to write, for these templates and what they need.
    /// Returns the templates whose binding or claim was written.
    pub fn settle(
        &mut self,
        keys: &BTreeSet<Arc<TemplateKey>>,
        interpreters: Interpreters<'_>,
    ) -> BTreeSet<Arc<TemplateKey>> {
        self.settle_seen(keys, interpreters, &mut |_, _| {})
    }

    /// The same, and shows the first decision about each template, which is the one that has the reasons.
    pub(crate) fn settle_seen(
        &mut self,
        keys: &BTreeSet<Arc<TemplateKey>>,
        interpreters: Interpreters<'_>,
        see: &mut dyn FnMut(&Arc<TemplateKey>, &Propagation),
    ) -> BTreeSet<Arc<TemplateKey>> {
        let mut written = Vec::new();
        let mut dirty = Cow::Borrowed(keys);
        let mut recent = Recent::default();
        for _ in 0..ROUNDS_MAX {
            for key in dirty.iter() {
                if self.settle_one(key, interpreters, &mut recent, |decided| see(key, decided)) {
                    written.push(Arc::clone(key));
                }
            }
            let mut again = self.attach(interpreters);
            written.extend(again.iter().cloned());
            let mut learned = self.learn(dirty.iter());
            if !learned.is_empty() {
                // Interpreters hold for the clusters they were given for.
                recent = Recent::default();
                again.append(&mut learned);
            }
            if again.is_empty() {
                break;
            }
            dirty = Cow::Owned(again);
        }
        written.into_iter().collect()
    }

    /// The same for every template there is.
    pub fn settle_all(&mut self, interpreters: Interpreters<'_>) -> BTreeSet<Arc<TemplateKey>> {
        let keys = self.templates.iter().map(|template| template.key.clone()).collect();
        self.settle(&keys, interpreters)
    }

    /// Takes a template and, as the garbage collector does, its own binding out.
    pub fn remove_template(&mut self, key: &TemplateKey) -> Option<Arc<Template>> {
        let template = self.templates.remove(key)?;
        let binding = key.binding();
        if self
            .bindings
            .get(&binding)
            .is_some_and(|found| crate::binding::refusal(&template, found).is_none())
        {
            Arc::make_mut(&mut self.bindings).remove(&binding);
        }
        Some(template)
    }

    /// The override policies that may be about what is in a namespace, or in none.
    pub(crate) fn overrides_near(&self, namespace: &str) -> Vec<OverridePolicy> {
        let near = |name: &str| name.is_empty() || name == namespace;
        let all = self.overrides.iter().filter(|(key, _)| near(&key.namespace));
        all.map(|(_, policy)| OverridePolicy::clone(policy)).collect()
    }

    /// The template that an object is a state of.
    pub(crate) fn template(&self, object: &Value) -> Option<&Arc<Template>> {
        let part = |path: &[&str]| text(object, path).to_owned();
        self.templates.get(&TemplateKey {
            api_version: part(&["apiVersion"]),
            kind: part(&["kind"]),
            namespace: part(&["metadata", "namespace"]),
            name: part(&["metadata", "name"]),
        })
    }

    fn missing_overrides(&self, policy: &Policy) -> Vec<String> {
        let exists = |name: &&String| {
            let key = PolicyKey { namespace: policy.key.namespace.clone(), name: (*name).clone() };
            !self.overrides.contains_key(&key)
        };
        policy.spec.dependent_overrides.iter().filter(exists).cloned().collect()
    }

    /// Brings every attached binding in line with the bindings that need it.
    fn attach(&mut self, interpreters: Interpreters<'_>) -> BTreeSet<Arc<TemplateKey>> {
        let mut written = BTreeSet::new();
        for (key, binding) in self.attachments(interpreters) {
            self.put_binding(&key.binding(), Arc::new(binding));
            written.insert(key);
        }
        written
    }

    /// The attached bindings that are not as the bindings that need them want them.
    pub(crate) fn attachments(&self, interpreters: Interpreters<'_>) -> Vec<(Arc<TemplateKey>, Binding)> {
        // Switched off, nothing new is taken along and nothing is taken away.
        if !self.gates.propagate_deps {
            return Vec::new();
        }
        let mut needs = self.needs(interpreters);
        for template in self.bindings.values().filter(|binding| !binding.spec.required_by.is_empty()) {
            needs.entry(Arc::new(TemplateKey::of(template))).or_default();
        }
        let mut found = Vec::new();
        for (key, needed_by) in needs {
            let Some(template) = self.templates.get(&key) else { continue };
            let existing = self.bindings.get(&key.binding()).map(AsRef::as_ref);
            let needed_by: Vec<&Binding> =
                needed_by.iter().filter_map(|by| self.bindings.get(by)).map(AsRef::as_ref).collect();
            let wanted = attached(template, existing, &needed_by, self.rollouts.values());
            if let Some(wanted) = wanted.filter(|wanted| Some(&wanted.binding) != existing) {
                found.push((key, wanted.binding));
            }
        }
        found
    }

    fn needs(&self, interpreters: Interpreters<'_>) -> BTreeMap<Arc<TemplateKey>, BTreeSet<Arc<BindingKey>>> {
        let mut needs: BTreeMap<Arc<TemplateKey>, BTreeSet<Arc<BindingKey>>> = BTreeMap::new();
        for (by, binding) in self.bindings.iter().filter(|(_, binding)| binding.spec.propagate_deps) {
            let template = self.templates.get(&TemplateKey::of(binding)).map(AsRef::as_ref);
            for reference in dependencies::needs(binding, template, interpreters.dependencies) {
                for key in self.found(&reference).into_iter().filter(|key| key.binding() != **by) {
                    needs.entry(key).or_default().insert(Arc::clone(by));
                }
            }
        }
        needs
    }

    /// The templates a dependency means: one by name, or any by label in its namespace.
    pub fn found(&self, reference: &DependentObjectReference) -> Vec<Arc<TemplateKey>> {
        let key = TemplateKey {
            api_version: reference.api_version.clone(),
            kind: reference.kind.clone(),
            namespace: reference.namespace.clone(),
            name: reference.name.clone(),
        };
        match &reference.label_selector {
            None => self.templates.get(&key).map(|template| template.key.clone()).into_iter().collect(),
            Some(wanted) => self
                .templates
                .in_namespace(&key.api_version, &key.kind, &key.namespace)
                .filter(|template| labels_match(wanted, &template.labels))
                .map(|template| template.key.clone())
                .collect(),
        }
    }
}

/// More rounds than what needs each other takes.
const ROUNDS_MAX: usize = 8;

/// True when a binding is about this template.
pub(crate) fn is_about(binding: &Binding, key: &TemplateKey) -> bool {
    let resource = &binding.spec.resource;
    resource.name == key.name
        && resource.namespace == key.namespace
        && resource.kind == key.kind
        && resource.api_version == key.api_version
}
