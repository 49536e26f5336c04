//! All templates, found by what a policy selects and by who claims them: "which templates does this edit
//! touch" costs what matches, never what exists (B5). Decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use api::{ResourceSelector, Scope};

use super::{claim_on, matched};
use crate::policy::{Policy, PolicyKey};
use crate::selector::pattern::{Item, Pattern};
use crate::selector::{Pivot, pivot};
use crate::template::{Template, TemplateKey};

/// Every template with an index over kind, namespace, name, labels and claim. A copy shares everything with
/// its original until one of them changes.
#[derive(Debug, Clone, Default)]
pub struct Templates {
    all: Arc<BTreeMap<TemplateKey, Arc<Template>>>,
    kinds: Arc<BTreeMap<String, BTreeMap<String, KindIndex>>>,
    claims: Arc<BTreeMap<String, BTreeSet<TemplateKey>>>,
    taken: Arc<BTreeMap<String, BTreeSet<TemplateKey>>>,
}

/// Templates of one kind; a place is namespace and name.
#[derive(Debug, Clone, Default)]
struct KindIndex {
    namespaces: BTreeMap<Arc<str>, BTreeMap<Arc<str>, ()>>,
    names: BTreeMap<Arc<str>, BTreeMap<Arc<str>, ()>>,
    labels: BTreeMap<String, BTreeMap<String, BTreeSet<Place>>>,
}

type Place = (Arc<str>, Arc<str>);

impl Templates {
    /// All of them, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Template>> {
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

    /// The template of that name.
    pub fn get(&self, key: &TemplateKey) -> Option<&Arc<Template>> {
        self.all.get(key)
    }

    /// Templates of one kind in one namespace.
    pub fn in_namespace(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
    ) -> impl Iterator<Item = &Arc<Template>> {
        let index = self.kinds.get(api_version).and_then(|kinds| kinds.get(kind));
        let names = index.and_then(|index| index.namespaces.get(namespace));
        let key = |name: &Arc<str>| TemplateKey {
            name: name.to_string(),
            namespace: namespace.to_owned(),
            kind: kind.to_owned(),
            api_version: api_version.to_owned(),
        };
        let keys: Vec<TemplateKey> = names.into_iter().flat_map(|names| names.keys()).map(key).collect();
        keys.into_iter().filter_map(|key| self.all.get(&key))
    }

    /// Puts a template in, in place of the one with the same name; returns that one.
    pub fn insert(&mut self, template: impl Into<Arc<Template>>) -> Option<Arc<Template>> {
        let template = template.into();
        let previous = Arc::make_mut(&mut self.all).insert(template.key.clone(), Arc::clone(&template));
        if let Some(previous) = &previous {
            self.unclaim(previous);
            if previous.labels != template.labels {
                self.unindex(previous);
            }
        }
        if previous.as_ref().is_none_or(|previous| previous.labels != template.labels) {
            self.index(&template);
        }
        if let Some(mark) = claim_on(&template.labels, &template.annotations) {
            let claims = Arc::make_mut(&mut self.claims);
            claims.entry(mark.id).or_default().insert(template.key.clone());
        }
        if let Some(uid) = loser(&template) {
            Arc::make_mut(&mut self.taken).entry(uid).or_default().insert(template.key.clone());
        }
        previous
    }

    /// Takes a template out.
    pub fn remove(&mut self, key: &TemplateKey) -> Option<Arc<Template>> {
        let template = Arc::make_mut(&mut self.all).remove(key)?;
        self.unclaim(&template);
        self.unindex(&template);
        Some(template)
    }

    /// Templates that carry the claim of the policy with this id, whether it still exists or not.
    pub fn claimed(&self, policy_id: &str) -> impl Iterator<Item = &TemplateKey> {
        self.claims.get(policy_id).into_iter().flatten()
    }

    /// Templates that somebody took from the policy with this uid by preemption.
    pub fn taken_from(&self, policy_uid: &str) -> impl Iterator<Item = &TemplateKey> {
        self.taken.get(policy_uid).into_iter().flatten()
    }

    /// Templates that a policy selects and does not exclude.
    pub fn selected(&self, policy: &Policy) -> BTreeSet<TemplateKey> {
        let mut found = self.found(&policy.key, &policy.spec.resource_selectors);
        found.retain(|key| self.all.get(key).is_some_and(|template| matched(policy, template).is_some()));
        found
    }

    /// Templates that selectors of a policy of any kind mean or nearly mean; the caller checks each.
    pub fn found(&self, owner: &PolicyKey, selectors: &[ResourceSelector]) -> BTreeSet<TemplateKey> {
        let mut found = BTreeSet::new();
        for selector in selectors {
            self.collect(owner, selector, &mut found);
        }
        found
    }

    /// Templates whose decision may change when a policy is created, edited or deleted: those it claims,
    /// and those it selects now. What it merely selected before was not its own.
    pub fn touched(&self, before: Option<&Policy>, after: Option<&Policy>) -> BTreeSet<TemplateKey> {
        let mut touched = after.map(|policy| self.selected(policy)).unwrap_or_default();
        for policy in [before, after].into_iter().flatten() {
            let more: Vec<&TemplateKey> =
                self.claimed(policy.id()).filter(|key| !touched.contains(*key)).collect();
            touched.extend(more.into_iter().cloned());
        }
        touched
    }

    fn unclaim(&mut self, template: &Template) {
        if let Some(mark) = claim_on(&template.labels, &template.annotations) {
            drop_key(Arc::make_mut(&mut self.claims), &mark.id, &template.key);
        }
        if let Some(uid) = loser(template) {
            drop_key(Arc::make_mut(&mut self.taken), &uid, &template.key);
        }
    }

    fn kind(&mut self, key: &TemplateKey) -> &mut KindIndex {
        let kinds = Arc::make_mut(&mut self.kinds).entry(key.api_version.clone()).or_default();
        kinds.entry(key.kind.clone()).or_default()
    }

    fn index(&mut self, template: &Template) {
        let place = place(&template.key);
        let kind = self.kind(&template.key);
        kind.namespaces.entry(Arc::clone(&place.0)).or_default().insert(Arc::clone(&place.1), ());
        kind.names.entry(Arc::clone(&place.1)).or_default().insert(Arc::clone(&place.0), ());
        for (key, value) in &template.labels {
            let by_value = kind.labels.entry(key.clone()).or_default();
            by_value.entry(value.clone()).or_default().insert(place.clone());
        }
    }

    fn unindex(&mut self, template: &Template) {
        let place = place(&template.key);
        let kind = self.kind(&template.key);
        drop_pair(&mut kind.namespaces, &place.0, &place.1);
        drop_pair(&mut kind.names, &place.1, &place.0);
        for (key, value) in &template.labels {
            let Some(by_value) = kind.labels.get_mut(key) else { continue };
            if let Some(places) = by_value.get_mut(value) {
                places.remove(&place);
                if places.is_empty() {
                    by_value.remove(value);
                }
            }
            if by_value.is_empty() {
                kind.labels.remove(key);
            }
        }
    }

    /// Places a selector may mean, each checked by the caller.
    fn collect(&self, owner: &PolicyKey, selector: &ResourceSelector, found: &mut BTreeSet<TemplateKey>) {
        let Some(kind) = self.kinds.get(&selector.api_version).and_then(|kinds| kinds.get(&selector.kind))
        else {
            return;
        };
        let pattern = match owner.scope() {
            Scope::Namespaced => Pattern::OneOf(vec![Item::Exact(owner.namespace.clone())]),
            Scope::Cluster => match Pattern::parse(&selector.namespace) {
                Ok(pattern) => pattern,
                Err(_) => return,
            },
        };
        kind.visit(&pattern, selector, &mut |namespace, name| {
            found.insert(TemplateKey {
                api_version: selector.api_version.clone(),
                kind: selector.kind.clone(),
                namespace: namespace.to_string(),
                name: name.to_string(),
            });
        });
    }
}

impl KindIndex {
    fn visit(
        &self,
        pattern: &Pattern,
        selector: &ResourceSelector,
        each: &mut impl FnMut(&Arc<str>, &Arc<str>),
    ) {
        if !selector.name.is_empty() {
            if let Some((name, namespaces)) = self.names.get_key_value(selector.name.as_str()) {
                meant(pattern, namespaces).into_iter().for_each(|(namespace, _)| each(namespace, name));
            }
            return;
        }
        match (selector.label_selector.as_ref().and_then(|wanted| self.labelled(wanted)), pattern) {
            (Some(sets), Pattern::Any) => visit_places(sets, each),
            (by_label, _) => {
                // Whichever is shorter: everything in these namespaces, or everything with the label.
                let places = meant(pattern, &self.namespaces);
                let count: usize = places.values().map(|names| names.len()).sum();
                match by_label {
                    Some(sets) if sets.iter().map(|set| set.len()).sum::<usize>() < count => {
                        visit_places(sets, each)
                    }
                    _ => places
                        .into_iter()
                        .for_each(|(namespace, names)| names.keys().for_each(|name| each(namespace, name))),
                }
            }
        }
    }

    /// Templates with a label that the selector needs; none if it needs no label.
    fn labelled(&self, wanted: &api::LabelSelector) -> Option<Vec<&BTreeSet<Place>>> {
        match pivot(wanted) {
            Pivot::Pairs(key, values) => {
                let by_value = self.labels.get(key);
                Some(values.iter().filter_map(|value| by_value?.get(value)).collect())
            }
            Pivot::Key(key) => {
                Some(self.labels.get(key).into_iter().flat_map(|values| values.values()).collect())
            }
            Pivot::Nothing => None,
        }
    }
}

fn visit_places(sets: Vec<&BTreeSet<Place>>, each: &mut impl FnMut(&Arc<str>, &Arc<str>)) {
    sets.into_iter().flatten().for_each(|(namespace, name)| each(namespace, name));
}

/// The namespaces among these that a pattern means.
fn meant<'m, V>(pattern: &Pattern, namespaces: &'m BTreeMap<Arc<str>, V>) -> BTreeMap<&'m Arc<str>, &'m V> {
    let Pattern::OneOf(items) = pattern else { return namespaces.iter().collect() };
    let mut found = BTreeMap::new();
    for item in items {
        match item {
            Item::Exact(name) => found.extend(namespaces.get_key_value(name.as_str())),
            Item::Prefix(prefix) => found.extend(
                namespaces
                    .range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded))
                    .take_while(|(namespace, _)| namespace.starts_with(prefix.as_str())),
            ),
        }
    }
    found
}

fn place(key: &TemplateKey) -> Place {
    (Arc::from(key.namespace.as_str()), Arc::from(key.name.as_str()))
}

/// Uid of the policy that lost the template by preemption.
fn loser(template: &Template) -> Option<String> {
    template.claim_record().map(|record| record.taken_from).filter(|uid| !uid.is_empty())
}

fn drop_key(map: &mut BTreeMap<String, BTreeSet<TemplateKey>>, outer: &str, key: &TemplateKey) {
    if let Some(keys) = map.get_mut(outer) {
        keys.remove(key);
        if keys.is_empty() {
            map.remove(outer);
        }
    }
}

fn drop_pair(map: &mut BTreeMap<Arc<str>, BTreeMap<Arc<str>, ()>>, outer: &str, inner: &str) {
    if let Some(set) = map.get_mut(outer) {
        set.remove(inner);
        if set.is_empty() {
            map.remove(outer);
        }
    }
}
