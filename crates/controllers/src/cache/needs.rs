//! The dependency index: which binding needs which template, in both directions. Filled from what bindings record, so
//! it is the same after a restart.

use std::collections::{BTreeMap, BTreeSet};

use api::interpreter::DependentObjectReference;
use decide::selector::labels_match;
use decide::{BindingKey, Template, TemplateKey};

/// What bindings need, and which bindings need a template.
#[derive(Default)]
pub struct Needs {
    of: BTreeMap<BindingKey, Vec<DependentObjectReference>>,
    /// A need by label has no name.
    by: BTreeMap<TemplateKey, BTreeSet<BindingKey>>,
}

impl Needs {
    /// Takes in what a binding needs, instead of what it needed before.
    pub fn put(&mut self, binding: &BindingKey, needs: Vec<DependentObjectReference>) {
        for before in self.of.remove(binding).unwrap_or_default() {
            let key = place(&before);
            if let Some(bindings) = self.by.get_mut(&key) {
                bindings.remove(binding);
                if bindings.is_empty() {
                    self.by.remove(&key);
                }
            }
        }
        if needs.is_empty() {
            return;
        }
        for need in &needs {
            self.by.entry(place(need)).or_default().insert(binding.clone());
        }
        self.of.insert(binding.clone(), needs);
    }

    /// The bindings that need a template.
    pub fn who(&self, template: &Template) -> BTreeSet<BindingKey> {
        let by_name = self.by.get(&template.key).into_iter().flatten();
        let anywhere = TemplateKey { name: String::new(), ..TemplateKey::clone(&template.key) };
        let by_label = self.by.get(&anywhere).into_iter().flatten();
        let mean = |binding: &&BindingKey| {
            self.of.get(*binding).into_iter().flatten().any(|need| {
                let labelled = need.label_selector.as_ref();
                place(need) == anywhere
                    && labelled.is_some_and(|wanted| labels_match(wanted, &template.labels))
            })
        };
        by_name.chain(by_label.filter(mean)).cloned().collect()
    }
}

fn place(need: &DependentObjectReference) -> TemplateKey {
    let name = if need.label_selector.is_some() { String::new() } else { need.name.clone() };
    TemplateKey {
        api_version: need.api_version.clone(),
        kind: need.kind.clone(),
        namespace: need.namespace.clone(),
        name,
    }
}
