//! The read permissions of a request's caller, evaluated with the server's RBAC once per kind and namespace. Turns them
//! into a `Sight`, which filters.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use api::kinds::{CLUSTER, CLUSTER_PROPAGATION_POLICY, Kind, PROPAGATION_POLICY, RESOURCE_BINDING};
use apiserver::extension::{Caller, Request};
use decide::plan::Plan;
use decide::sight::Sight;
use decide::why::Why;
use decide::{PolicyKey, Snapshot, TemplateKey};

/// The permissions of the caller.
pub struct Rights<'r> {
    caller: Caller<'r>,
    sees_all: bool,
    /// What was asked before: resource, group and namespace.
    known: RefCell<BTreeMap<(String, String, String), bool>>,
    /// Kinds by apiVersion and kind: their names in paths.
    plurals: RefCell<BTreeMap<(String, String), Option<String>>>,
}

impl<'r> Rights<'r> {
    /// The rights of the caller of a request.
    pub fn new(request: &Request<'r>) -> Self {
        let caller = request.caller;
        let sees_all = caller.may("get", "*", "*", "");
        Self { caller, sees_all, known: RefCell::default(), plurals: RefCell::default() }
    }

    /// The snapshot as the caller may see it; with a namespace, only what is in there.
    pub fn seen<'w>(&self, whole: &'w Snapshot, within: Option<&str>) -> Cow<'w, Snapshot> {
        if self.sees_all && within.is_none() {
            return Cow::Borrowed(whole);
        }
        let is_within = |namespace: &str| within.is_none_or(|within| within == namespace);
        let template = |key: &TemplateKey| is_within(&key.namespace) && self.sees_template(key);
        let policy = |key: &PolicyKey| match key.namespace.as_str() {
            // One of the cluster is shown within a namespace if it concerns something there.
            "" => within.is_none() && self.sees_policy(key),
            namespace => is_within(namespace) && self.sees_policy(key),
        };
        let namespace = |namespace: &str| is_within(namespace) && self.sees_namespace(namespace);
        let sight = Sight { template: &template, policy: &policy, namespace: &namespace };
        Cow::Owned(sight.snapshot(whole))
    }

    /// A plan without what the caller may not see, and how many templates that are.
    pub fn plan(&self, plan: Plan) -> (Plan, usize) {
        self.with_sight(|sight| sight.plan(plan))
    }

    /// An explanation without what the caller may not see.
    pub fn why(&self, why: Why) -> Why {
        self.with_sight(|sight| sight.why(why))
    }

    /// Whether a policy may be named as one that matches what the caller sees.
    pub fn names(&self, policy: &PolicyKey) -> bool {
        self.with_sight(|sight| sight.names(policy))
    }

    fn with_sight<Answer>(&self, ask: impl FnOnce(&Sight<'_>) -> Answer) -> Answer {
        let template = |key: &TemplateKey| self.sees_template(key);
        let policy = |key: &PolicyKey| self.sees_policy(key);
        let namespace = |namespace: &str| self.sees_namespace(namespace);
        ask(&Sight { template: &template, policy: &policy, namespace: &namespace })
    }

    /// Whether the caller may read templates of this kind in this namespace.
    pub fn sees_template(&self, key: &TemplateKey) -> bool {
        if self.sees_all {
            return true;
        }
        let kind = (key.api_version.clone(), key.kind.clone());
        let mut plurals = self.plurals.borrow_mut();
        let plural = plurals
            .entry(kind)
            .or_insert_with(|| self.caller.resource(&key.api_version, &key.kind).map(|(plural, _)| plural));
        plural.as_ref().is_some_and(|plural| self.gets(key.group(), plural, &key.namespace))
    }

    /// Whether the caller may read a policy.
    pub fn sees_policy(&self, key: &PolicyKey) -> bool {
        match key.namespace.as_str() {
            "" => self.gets_kind(&CLUSTER_PROPAGATION_POLICY, ""),
            namespace => self.gets_kind(&PROPAGATION_POLICY, namespace),
        }
    }

    /// Whether the caller may read clusters.
    pub fn sees_clusters(&self) -> bool {
        self.gets_kind(&CLUSTER, "")
    }

    fn sees_namespace(&self, namespace: &str) -> bool {
        namespace.is_empty() || self.gets_kind(&RESOURCE_BINDING, namespace)
    }

    fn gets_kind(&self, kind: &Kind, namespace: &str) -> bool {
        self.gets(kind.group, kind.plural, namespace)
    }

    fn gets(&self, group: &str, plural: &str, namespace: &str) -> bool {
        if self.sees_all {
            return true;
        }
        let key = (plural.to_owned(), group.to_owned(), namespace.to_owned());
        let known = self.known.borrow().get(&key).copied();
        known.unwrap_or_else(|| {
            let may = self.caller.may("get", group, plural, namespace);
            self.known.borrow_mut().insert(key, may);
            may
        })
    }
}
