//! The index of policies by what they select: "which policies could own this template" costs what matches, never what
//! exists (B5). Chooses nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::{ResourceSelector, Scope};

use crate::policy::{Policy, PolicyKey};
use crate::selector::pattern::{Item, Pattern};
use crate::selector::{Pivot, pivot};
use crate::template::Template;

/// Every policy of both scopes with an index over their selectors.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    all: BTreeMap<PolicyKey, Arc<Policy>>,
    kinds: BTreeMap<String, BTreeMap<String, KindIndex>>,
}

/// Selectors of one kind, by where they look.
#[derive(Debug, Clone, Default)]
struct KindIndex {
    exact: BTreeMap<String, Slot>,
    prefix: BTreeMap<String, Slot>,
    any: Slot,
}

/// Selectors that look in the same place, by what they look for.
#[derive(Debug, Clone, Default)]
struct Slot {
    names: BTreeMap<String, Keys>,
    labels: BTreeMap<String, BTreeMap<String, Keys>>,
    label_keys: BTreeMap<String, Keys>,
    rest: Keys,
}

/// How many selectors of each policy stand there: a policy may say the same twice.
type Keys = BTreeMap<PolicyKey, usize>;

impl Policies {
    /// All of them, in a fixed order: cluster-scoped ones first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.all.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The policy of that name.
    pub fn get(&self, key: &PolicyKey) -> Option<&Arc<Policy>> {
        self.all.get(key)
    }

    /// Puts a policy in, in place of the one with the same name; returns that one.
    pub fn insert(&mut self, policy: impl Into<Arc<Policy>>) -> Option<Arc<Policy>> {
        let policy = policy.into();
        let previous = self.remove(&policy.key);
        self.index(&policy, |keys, key| *keys.entry(key.clone()).or_default() += 1);
        self.all.insert(policy.key.clone(), policy);
        previous
    }

    /// Takes a policy out.
    pub fn remove(&mut self, key: &PolicyKey) -> Option<Arc<Policy>> {
        let policy = self.all.remove(key)?;
        self.index(&policy, |keys, key| {
            if let Some(count) = keys.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    keys.remove(key);
                }
            }
        });
        Some(policy)
    }

    /// Policies of which a selector may mean the template, each once, in a fixed order.
    pub(crate) fn candidates(&self, template: &Template) -> Vec<&Arc<Policy>> {
        let mut keys = BTreeSet::new();
        let namespace = template.key.namespace.as_str();
        if let Some(index) =
            self.kinds.get(&template.key.api_version).and_then(|kinds| kinds.get(&template.key.kind))
        {
            index.any.collect(template, &mut keys);
            if let Some(slot) = index.exact.get(namespace) {
                slot.collect(template, &mut keys);
            }
            for end in (1..=namespace.len()).filter(|end| namespace.is_char_boundary(*end)) {
                if let Some(slot) = index.prefix.get(&namespace[..end]) {
                    slot.collect(template, &mut keys);
                }
            }
        }
        keys.into_iter().filter_map(|key| self.all.get(key)).collect()
    }

    fn index(&mut self, policy: &Policy, change: impl Fn(&mut Keys, &PolicyKey)) {
        for selector in &policy.spec.resource_selectors {
            let kinds = self.kinds.entry(selector.api_version.clone()).or_default();
            let index = kinds.entry(selector.kind.clone()).or_default();
            for place in places(policy, selector) {
                index.at(place, |slot| slot.each(selector, |keys| change(keys, &policy.key)));
            }
        }
    }
}

/// Where a selector looks.
enum Place {
    Exact(String),
    Prefix(String),
    Any,
}

/// A PropagationPolicy looks in its own namespace only, whatever its selector says.
fn places(policy: &Policy, selector: &ResourceSelector) -> Vec<Place> {
    if policy.scope() == Scope::Namespaced {
        return vec![Place::Exact(policy.key.namespace.clone())];
    }
    match Pattern::parse(&selector.namespace) {
        Err(_) => Vec::new(),
        Ok(Pattern::Any) => vec![Place::Any],
        Ok(Pattern::OneOf(items)) => items.into_iter().map(Place::from).collect(),
    }
}

impl From<Item> for Place {
    fn from(item: Item) -> Self {
        match item {
            Item::Exact(name) => Place::Exact(name),
            Item::Prefix(prefix) => Place::Prefix(prefix),
        }
    }
}

impl KindIndex {
    fn at(&mut self, place: Place, change: impl Fn(&mut Slot)) {
        let (slots, name) = match place {
            Place::Any => return change(&mut self.any),
            Place::Exact(name) => (&mut self.exact, name),
            Place::Prefix(prefix) => (&mut self.prefix, prefix),
        };
        let slot = slots.entry(name.clone()).or_default();
        change(slot);
        if slot.is_empty() {
            slots.remove(&name);
        }
    }
}

impl Slot {
    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.labels.is_empty() && self.label_keys.is_empty() && self.rest.is_empty()
    }

    fn each(&mut self, selector: &ResourceSelector, change: impl Fn(&mut Keys)) {
        if !selector.name.is_empty() {
            return at(&mut self.names, &selector.name, change);
        }
        match selector.label_selector.as_ref().map(pivot) {
            Some(Pivot::Pairs(key, values)) => {
                let by_value = self.labels.entry(key.clone()).or_default();
                values.iter().for_each(|value| at(by_value, value, &change));
                if by_value.is_empty() {
                    self.labels.remove(key);
                }
            }
            Some(Pivot::Key(key)) => at(&mut self.label_keys, key, change),
            Some(Pivot::Nothing) | None => change(&mut self.rest),
        }
    }

    fn collect<'s>(&'s self, template: &Template, keys: &mut BTreeSet<&'s PolicyKey>) {
        keys.extend(self.rest.keys());
        if let Some(found) = self.names.get(&template.key.name) {
            keys.extend(found.keys());
        }
        for (key, value) in &template.labels {
            if let Some(found) = self.labels.get(key).and_then(|values| values.get(value)) {
                keys.extend(found.keys());
            }
            if let Some(found) = self.label_keys.get(key) {
                keys.extend(found.keys());
            }
        }
    }
}

fn at(map: &mut BTreeMap<String, Keys>, key: &str, change: impl Fn(&mut Keys)) {
    let keys = map.entry(key.to_owned()).or_default();
    change(keys);
    if keys.is_empty() {
        map.remove(key);
    }
}
