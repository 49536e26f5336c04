//! ResourceQuotas of object counts. The store counts with every write and checks the limits of a write when it
//! commits it, so that concurrent creates never exceed a quota together, and a check costs the same however many
//! objects there are. Compute resources and storage are not counted: the members run the pods.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use serde_json::Value;
use store::{Counter, Limit, Range, Store, Tally};
use supervise::Recovered as _;

use crate::call::Call;
use crate::registry::{DEFINITIONS, Resource};
use crate::storage::{stored, text};
use apimachinery::error::ApiError;
use apimachinery::quantity::Quantity;

mod measures;

/// Where quotas are.
pub(crate) const TABLE: &str = "/resourcequotas";

/// The tables whose events are never counted, as in Kubernetes.
const EVENTS: [&str; 2] = ["/events", "events.k8s.io/events"];

/// Names from before `count/…`, each with the table and the number of its tally that it means.
const CLASSIC: [(&str, &str, Counter); 9] = [
    ("configmaps", "/configmaps", Counter::Entries),
    ("persistentvolumeclaims", "/persistentvolumeclaims", Counter::Entries),
    ("pods", measures::PODS, measures::ACTIVE),
    ("replicationcontrollers", "/replicationcontrollers", Counter::Entries),
    ("resourcequotas", TABLE, Counter::Entries),
    ("secrets", "/secrets", Counter::Entries),
    ("services", measures::SERVICES, Counter::Entries),
    ("services.loadbalancers", measures::SERVICES, measures::LOAD_BALANCERS),
    ("services.nodeports", measures::SERVICES, measures::NODE_PORTS),
];

/// The quotas in effect, by namespace.
pub(crate) struct Quotas {
    store: Store,
    /// Held for moments; namespaces without quotas are not in it.
    of: RwLock<HashMap<Box<str>, Arc<[Quota]>>>,
}

/// One quota, as far as it is enforced.
#[derive(Debug)]
struct Quota {
    name: String,
    counts: Vec<Count>,
}

/// One line of `spec.hard` that is enforced.
#[derive(Debug)]
struct Count {
    /// As users write it.
    name: String,
    table: String,
    counter: Counter,
    hard: Quantity,
}

impl Quotas {
    /// Reads the quotas that the store holds, and lets it count what they are about.
    pub fn load(store: &Store) -> Self {
        measures::register(store);
        let quotas = Self { store: store.clone(), of: RwLock::default() };
        let entries = store.range(TABLE, Range::default()).map(|page| page.entries).unwrap_or_default();
        let mut namespaces: Vec<&str> = entries.iter().filter_map(|entry| namespace_of(&entry.key)).collect();
        namespaces.dedup();
        namespaces.into_iter().for_each(|namespace| quotas.follow(namespace));
        quotas
    }

    /// The limits of a write by the quotas of its namespace; refuses one that exceeds them already. `old` are the bytes
    /// of the object that it replaces.
    pub fn check(
        &self,
        call: &Call,
        name: &str,
        old: Option<&[u8]>,
        new: &[u8],
    ) -> Result<Vec<Limit>, ApiError> {
        // The server gives every namespace its default objects; a quota must not keep it from starting. Parts of objects
        // are not counted in Kubernetes either.
        let is_exempt = call.identity.is_server_controller() || !call.subresource().is_empty();
        let quotas = call.namespace.as_deref().filter(|_| !is_exempt).and_then(|own| self.of(own));
        let (Some(quotas), Some(namespace)) = (quotas, call.namespace.as_deref()) else {
            return Ok(Vec::new());
        };
        let table = &*call.resource.table;
        let used = self.store.tally(table, namespace);
        let before = Tally::of_entry(old.map(|bytes| measures::measure(table, bytes)));
        let after = Tally::of_entry(Some(measures::measure(table, new)));
        let mut limits = Vec::new();
        for quota in quotas.iter() {
            let added = |count: &Count| after.get(count.counter).saturating_sub(before.get(count.counter));
            let asked: Vec<&Count> = quota.about(table).filter(|count| added(count) > 0).collect();
            let fits = |count: &Count| used.get(count.counter).saturating_add(added(count)) <= count.max();
            let exceeded: Vec<&Count> = asked.iter().copied().filter(|count| !fits(count)).collect();
            if !exceeded.is_empty() {
                let why = refusal(&quota.name, &exceeded, added, |count| used.get(count.counter));
                return Err(ApiError::forbidden(call.resource.subject(name), why));
            }
            limits.extend(asked.iter().map(|count| Limit { counter: count.counter, max: count.max() }));
        }
        Ok(limits)
    }

    /// Follows a committed write, and answers with the namespaces whose quotas have to be counted anew.
    pub fn follow_write(&self, resource: &Resource, old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
        let Some(object) = new.or(old) else { return Vec::new() };
        let namespace = text(object, "/metadata/namespace");
        match &*resource.table {
            TABLE => {
                let spec = |object: Option<&Value>| object.map(|object| object["spec"].clone());
                if spec(old) != spec(new) {
                    self.follow(namespace);
                }
                vec![namespace.to_owned()]
            }
            // A kind that is served from now on is counted, one that is gone is not.
            DEFINITIONS => self.namespaces(),
            table if old.is_none() || new.is_none() || measures::is_measured(table) => {
                let is_about = |quota: &Quota| quota.about(table).next().is_some();
                let is_counted = self.of(namespace).is_some_and(|quotas| quotas.iter().any(is_about));
                if is_counted { vec![namespace.to_owned()] } else { Vec::new() }
            }
            _ => Vec::new(),
        }
    }

    /// Reads the quotas of a namespace again, because one changed.
    fn follow(&self, namespace: &str) {
        let prefix = format!("{namespace}/");
        // Read under the lock, so that what is kept is never older than what was kept before.
        let mut of = self.of.write().recovered();
        let page = self.store.range(TABLE, Range { prefix: &prefix, ..Range::default() });
        let entries = page.map(|page| page.entries).unwrap_or_default();
        let quotas: Arc<[Quota]> =
            entries.iter().map(|entry| Quota::read(&stored::parse(&entry.value))).collect();
        match quotas.is_empty() {
            true => drop(of.remove(namespace)),
            false => drop(of.insert(namespace.into(), quotas)),
        }
    }

    fn of(&self, namespace: &str) -> Option<Arc<[Quota]>> {
        self.of.read().recovered().get(namespace).cloned()
    }

    fn namespaces(&self) -> Vec<String> {
        self.of.read().recovered().keys().map(|namespace| namespace.to_string()).collect()
    }
}

impl Quota {
    fn read(object: &Value) -> Self {
        let hard = object["spec"]["hard"].as_object().filter(|_| !is_scoped(object));
        let counts = hard.into_iter().flatten().filter_map(|(name, hard)| {
            let (table, counter) = counted(name)?;
            Some(Count { name: name.clone(), table, counter, hard: Quantity::from_value(hard).ok()? })
        });
        Self { name: text(object, "/metadata/name").to_owned(), counts: counts.collect() }
    }

    fn about<'a>(&'a self, table: &'a str) -> impl Iterator<Item = &'a Count> {
        self.counts.iter().filter(move |count| count.table == table)
    }
}

impl Count {
    /// The largest whole number within the quota.
    fn max(&self) -> u64 {
        u64::try_from(self.hard.billionths() / 1_000_000_000).unwrap_or(u64::MAX)
    }
}

/// What is written and not enforced, in one warning.
pub(crate) fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some_and(|old| old["spec"] == object["spec"]) {
        return Vec::new();
    }
    let scoped = is_scoped(object);
    let hard = object["spec"]["hard"].as_object();
    let names = hard.into_iter().flatten().map(|(name, _)| name.as_str());
    let ignored: Vec<&str> = names.filter(|name| scoped || counted(name).is_none()).collect();
    if ignored.is_empty() {
        return Vec::new();
    }
    let why = match scoped {
        true => "quotas with scopes count pods where they run",
        false => "only numbers of objects are counted here",
    };
    vec![format!("spec.hard: {} is stored and not enforced by this API server: {why}", ignored.join(", "))]
}

/// The namespace in the key of a quota.
pub(crate) fn namespace_of(key: &str) -> Option<&str> {
    key.split_once('/').map(|(namespace, _)| namespace)
}

/// What a name in `spec.hard` means, if it is a number of objects: a table, and a number of its tally.
pub(crate) fn counted(name: &str) -> Option<(String, Counter)> {
    if let Some((_, table, counter)) = CLASSIC.iter().find(|(classic, ..)| *classic == name) {
        return Some(((*table).to_owned(), *counter));
    }
    let resource = name.strip_prefix("count/")?;
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    let table = format!("{group}/{plural}");
    (!EVENTS.contains(&table.as_str())).then_some((table, Counter::Entries))
}

/// Whether a quota is about some pods only.
pub(crate) fn is_scoped(object: &Value) -> bool {
    let spec = &object["spec"];
    let has_scopes = spec["scopes"].as_array().is_some_and(|scopes| !scopes.is_empty());
    let expressions = spec["scopeSelector"]["matchExpressions"].as_array();
    has_scopes || expressions.is_some_and(|expressions| !expressions.is_empty())
}

/// What Kubernetes says when a quota is exceeded.
fn refusal(
    quota: &str,
    exceeded: &[&Count],
    added: impl Fn(&Count) -> u64,
    used: impl Fn(&Count) -> u64,
) -> String {
    let list = |amount: &dyn Fn(&Count) -> Quantity| {
        let lines: Vec<String> =
            exceeded.iter().map(|count| format!("{}={}", count.name, amount(count))).collect();
        lines.join(",")
    };
    let requested = list(&|count| whole(added(count)));
    let used = list(&|count| whole(used(count)));
    let limited = list(&|count| count.hard);
    format!("exceeded quota: {quota}, requested: {requested}, used: {used}, limited: {limited}")
}

/// A whole number as a quantity.
pub(crate) fn whole(number: u64) -> Quantity {
    Quantity::whole(i64::try_from(number).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
