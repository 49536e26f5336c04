//! The dependency index: which binding depends on which template, in both directions. Filled from what bindings record,
//! so it is the same after a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::RwLock;

use api::interpreter::DependentObjectReference;
use decide::selector::labels_match;
use decide::{BindingKey, Template, TemplateKey};
use supervise::Recovered as _;

/// The dependencies of bindings, and the bindings that depend on a template.
#[derive(Default)]
pub struct DependencyIndex(RwLock<Entries>);

#[derive(Default)]
struct Entries {
    of: BTreeMap<BindingKey, Vec<DependentObjectReference>>,
    /// By the template; a dependency by label has no name.
    by: BTreeMap<TemplateKey, BTreeSet<BindingKey>>,
}

impl DependencyIndex {
    /// Sets the dependencies of a binding.
    pub fn put(&self, binding: &BindingKey, dependencies: Vec<DependentObjectReference>) {
        self.0.write().recovered().put(binding, dependencies);
    }

    /// The bindings that depend on a template.
    pub fn dependents(&self, template: &Template) -> BTreeSet<BindingKey> {
        self.0.read().recovered().dependents(template)
    }
}

impl Entries {
    fn put(&mut self, binding: &BindingKey, dependencies: Vec<DependentObjectReference>) {
        for before in self.of.remove(binding).unwrap_or_default() {
            let key = template_key(&before);
            if let Some(bindings) = self.by.get_mut(&key) {
                bindings.remove(binding);
                if bindings.is_empty() {
                    self.by.remove(&key);
                }
            }
        }
        if dependencies.is_empty() {
            return;
        }
        for dependency in &dependencies {
            self.by.entry(template_key(dependency)).or_default().insert(binding.clone());
        }
        self.of.insert(binding.clone(), dependencies);
    }

    fn dependents(&self, template: &Template) -> BTreeSet<BindingKey> {
        let by_name = self.by.get(&template.key).into_iter().flatten();
        let anywhere = TemplateKey { name: String::new(), ..TemplateKey::clone(&template.key) };
        let by_label = self.by.get(&anywhere).into_iter().flatten();
        let mean = |binding: &&BindingKey| {
            self.of.get(*binding).into_iter().flatten().any(|dependency| {
                let labelled = dependency.label_selector.as_ref();
                template_key(dependency) == anywhere
                    && labelled.is_some_and(|wanted| labels_match(wanted, &template.labels))
            })
        };
        by_name.chain(by_label.filter(mean)).cloned().collect()
    }
}

/// The template that is depended on; by label it has no name.
fn template_key(dependency: &DependentObjectReference) -> TemplateKey {
    let name = if dependency.label_selector.is_some() { String::new() } else { dependency.name.clone() };
    TemplateKey {
        api_version: dependency.api_version.clone(),
        kind: dependency.kind.clone(),
        namespace: dependency.namespace.clone(),
        name,
    }
}
