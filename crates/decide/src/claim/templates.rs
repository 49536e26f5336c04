//! The index of templates by what a policy selects and by their claim: "which templates does this edit touch" costs
//! what matches, never what exists (B5). Decides nothing.

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
    all: Arc<BTreeMap<Arc<TemplateKey>, Arc<Template>>>,
    kinds: Arc<BTreeMap<String, BTreeMap<String, KindIndex>>>,
    claims: Arc<BTreeMap<String, Keys>>,
    taken: Arc<BTreeMap<String, Keys>>,
}

/// Templates of one kind.
#[derive(Debug, Clone, Default)]
struct KindIndex {
    namespaces: BTreeMap<String, Keys>,
    names: BTreeMap<String, Keys>,
    labels: BTreeMap<String, BTreeMap<String, Keys>>,
}

type Keys = BTreeSet<Arc<TemplateKey>>;

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
        let keys = index.and_then(|index| index.namespaces.get(namespace));
        keys.into_iter().flatten().filter_map(|key| self.all.get(key))
    }

    /// Puts a template in, in place of the one with the same name; returns that one.
    pub fn insert(&mut self, template: impl Into<Arc<Template>>) -> Option<Arc<Template>> {
        let template = template.into();
        let previous = Arc::make_mut(&mut self.all).insert(Arc::clone(&template.key), Arc::clone(&template));
        if let Some(previous) = &previous {
            self.unclaim(previous);
        }
        match &previous {
            None => self.index(&template),
            Some(previous) if previous.labels != template.labels => self.reindex(previous, &template),
            Some(_) => {}
        }
        if let Some(mark) = claim_on(&template.labels, &template.annotations) {
            let claims = Arc::make_mut(&mut self.claims);
            claims.entry(mark.id).or_default().insert(Arc::clone(&template.key));
        }
        if let Some(uid) = loser(&template) {
            Arc::make_mut(&mut self.taken).entry(uid).or_default().insert(Arc::clone(&template.key));
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
    pub fn claimed(&self, policy_id: &str) -> impl Iterator<Item = &Arc<TemplateKey>> {
        self.claims.get(policy_id).into_iter().flatten()
    }

    /// Templates that another policy took from the policy with this uid by preemption.
    pub fn taken_from(&self, policy_uid: &str) -> impl Iterator<Item = &Arc<TemplateKey>> {
        self.taken.get(policy_uid).into_iter().flatten()
    }

    /// Templates that a policy selects and does not exclude.
    pub fn selected(&self, policy: &Policy) -> BTreeSet<Arc<TemplateKey>> {
        let mut found = self.found(&policy.key, &policy.spec.resource_selectors);
        found.retain(|key| self.all.get(key).is_some_and(|template| matched(policy, template).is_some()));
        found
    }

    /// Whether a policy selects a template that it does not exclude.
    pub fn selects_any(&self, policy: &Policy) -> bool {
        policy.spec.resource_selectors.iter().any(|selector| {
            let mut found = Vec::new();
            self.collect(&policy.key, selector, &mut found);
            let means = |key: &Arc<TemplateKey>| {
                self.all.get(key).is_some_and(|template| matched(policy, template).is_some())
            };
            found.into_iter().any(means)
        })
    }

    /// Templates that selectors of a policy of any kind mean or nearly mean; the caller checks each.
    pub fn found(&self, owner: &PolicyKey, selectors: &[ResourceSelector]) -> BTreeSet<Arc<TemplateKey>> {
        let mut found = Vec::new();
        for selector in selectors {
            self.collect(owner, selector, &mut found);
        }
        // Sorted in one go, which is far cheaper than one by one.
        found.into_iter().cloned().collect()
    }

    /// Templates whose decision may change when a policy is created, edited or deleted: those it claims,
    /// and those it selects now. What it merely selected before was not its own.
    pub fn touched(&self, before: Option<&Policy>, after: Option<&Policy>) -> BTreeSet<Arc<TemplateKey>> {
        let mut touched = after.map(|policy| self.selected(policy)).unwrap_or_default();
        let ids: BTreeSet<&str> = [before, after].into_iter().flatten().map(Policy::id).collect();
        for claimed in ids.into_iter().filter_map(|id| self.claims.get(id)) {
            let mut more = claimed.difference(&touched).cloned().collect();
            touched.append(&mut more);
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
        let key = &template.key;
        let kind = self.kind(key);
        kind.namespaces.entry(key.namespace.clone()).or_default().insert(Arc::clone(key));
        kind.names.entry(key.name.clone()).or_default().insert(Arc::clone(key));
        for (label, value) in &template.labels {
            kind.label(label, value, key);
        }
    }

    fn unindex(&mut self, template: &Template) {
        let key = &template.key;
        let kind = self.kind(key);
        drop_key(&mut kind.namespaces, &key.namespace, key);
        drop_key(&mut kind.names, &key.name, key);
        for (label, value) in &template.labels {
            kind.unlabel(label, value, key);
        }
    }

    /// Other labels are another place among the labels only.
    fn reindex(&mut self, previous: &Template, template: &Template) {
        let key = &template.key;
        let kind = self.kind(key);
        for (label, value) in
            previous.labels.iter().filter(|(label, value)| template.labels.get(*label) != Some(value))
        {
            kind.unlabel(label, value, key);
        }
        for (label, value) in
            template.labels.iter().filter(|(label, value)| previous.labels.get(*label) != Some(value))
        {
            kind.label(label, value, key);
        }
    }

    /// Templates a selector may mean, each checked by the caller.
    fn collect<'t>(
        &'t self,
        owner: &PolicyKey,
        selector: &ResourceSelector,
        found: &mut Vec<&'t Arc<TemplateKey>>,
    ) {
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
        kind.collect(&pattern, selector, found);
    }
}

impl KindIndex {
    fn label(&mut self, label: &str, value: &str, key: &Arc<TemplateKey>) {
        let by_value = self.labels.entry(label.to_owned()).or_default();
        by_value.entry(value.to_owned()).or_default().insert(Arc::clone(key));
    }

    fn unlabel(&mut self, label: &str, value: &str, key: &TemplateKey) {
        let Some(by_value) = self.labels.get_mut(label) else { return };
        drop_key(by_value, value, key);
        if by_value.is_empty() {
            self.labels.remove(label);
        }
    }

    fn collect<'t>(
        &'t self,
        pattern: &Pattern,
        selector: &ResourceSelector,
        found: &mut Vec<&'t Arc<TemplateKey>>,
    ) {
        if !selector.name.is_empty() {
            return self.named(pattern, &selector.name, found);
        }
        match (selector.label_selector.as_ref().and_then(|wanted| self.labelled(wanted)), pattern) {
            (Some(sets), Pattern::Any) => found.extend(sets.into_iter().flatten()),
            (by_label, _) => {
                // Whichever is shorter: everything in these namespaces, or everything with the label.
                let sets = meant(pattern, &self.namespaces);
                let size = |sets: &[&Keys]| sets.iter().map(|keys| keys.len()).sum::<usize>();
                let shorter = by_label.filter(|labelled| size(labelled) < size(&sets));
                found.extend(shorter.unwrap_or(sets).into_iter().flatten());
            }
        }
    }

    /// Templates of one name stand in the order of their namespaces.
    fn named<'t>(&'t self, pattern: &Pattern, name: &str, found: &mut Vec<&'t Arc<TemplateKey>>) {
        let Some(keys) = self.names.get(name) else { return };
        let Pattern::OneOf(items) = pattern else { return found.extend(keys) };
        for item in items {
            let (Item::Exact(start) | Item::Prefix(start)) = item;
            let first =
                TemplateKey { name: name.to_owned(), namespace: start.clone(), ..TemplateKey::default() };
            found.extend(keys.range(first..).take_while(|key| item.matches(&key.namespace)));
        }
    }

    /// Templates with a label that the selector needs; none if it needs no label.
    fn labelled(&self, wanted: &api::LabelSelector) -> Option<Vec<&Keys>> {
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

/// What stands under the namespaces that a pattern means, each once.
fn meant<'m>(pattern: &Pattern, namespaces: &'m BTreeMap<String, Keys>) -> Vec<&'m Keys> {
    let Pattern::OneOf(items) = pattern else { return namespaces.values().collect() };
    let mut found = BTreeMap::new();
    for item in items {
        match item {
            Item::Exact(name) => found.extend(namespaces.get_key_value(name)),
            Item::Prefix(prefix) => found.extend(
                namespaces
                    .range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded))
                    .take_while(|(namespace, _)| namespace.starts_with(prefix.as_str())),
            ),
        }
    }
    found.into_values().collect()
}

/// Uid of the policy that lost the template by preemption.
fn loser(template: &Template) -> Option<String> {
    template.claim_record().map(|record| record.taken_from).filter(|uid| !uid.is_empty())
}

fn drop_key(map: &mut BTreeMap<String, Keys>, outer: &str, key: &TemplateKey) {
    if let Some(keys) = map.get_mut(outer) {
        keys.remove(key);
        if keys.is_empty() {
            map.remove(outer);
        }
    }
}
