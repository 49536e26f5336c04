//! Index of RBAC roles and bindings by subject, so that a decision reads only what is bound to the requesting user
//! and groups. Follows the store: every change of a role or binding is read again from there, so that the order of
//! notifications does not matter.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, RwLock};

use serde_json::Value;
use store::{Range, Store};
use supervise::Recovered as _;

use super::{Action, Rule};
use crate::authn::{Identity, account_user};
use crate::storage::{stored, text};
use apimachinery::gotext::quoted;

const GROUP: &str = "rbac.authorization.k8s.io";
/// The table of cluster roles.
pub(crate) const CLUSTER_ROLES: &str = "rbac.authorization.k8s.io/clusterroles";
const ROLES: [&str; 2] = ["rbac.authorization.k8s.io/roles", CLUSTER_ROLES];
const BINDINGS: [&str; 2] =
    ["rbac.authorization.k8s.io/rolebindings", "rbac.authorization.k8s.io/clusterrolebindings"];

/// The roles and bindings that RBAC decides by.
#[derive(Default)]
pub(crate) struct Rbac {
    /// Held for moments; written only when a role or binding changes.
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    /// Rules by the key of their role: `name`, or `namespace/name`.
    roles: HashMap<Box<str>, Arc<[Rule]>>,
    /// What was last seen of each binding, to take it away again.
    bindings: HashMap<Box<str>, Vec<Subject>>,
    users: HashMap<Box<str>, Bound>,
    groups: HashMap<Box<str>, Bound>,
}

/// The grants of one subject: by namespace (empty for the cluster), then by the name of the binding.
type Bound = BTreeMap<Box<str>, BTreeMap<Box<str>, Grant>>;

/// A role that is bound.
#[derive(Debug, Clone)]
struct Grant {
    is_cluster_role: bool,
    role: Box<str>,
    /// Whom the binding names, in the words of the reason.
    subject: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    User(Box<str>),
    Group(Box<str>),
}

impl Rbac {
    /// Reads everything that the store holds.
    pub fn load(store: &Store) -> Self {
        let rbac = Self::default();
        for table in ROLES.into_iter().chain(BINDINGS) {
            let entries = store.range(table, Range::default()).map(|page| page.entries).unwrap_or_default();
            entries.iter().for_each(|entry| rbac.put(table, &entry.key, Some(&stored::parse(&entry.value))));
        }
        rbac
    }

    /// Whether objects of a table matter here.
    pub fn concerns(table: &str) -> bool {
        table.starts_with(GROUP)
    }

    /// Looks again at an object that changed.
    pub fn follow(&self, store: &Store, table: &str, key: &str) {
        let mut state = self.state.write().recovered();
        let object = store.get(table, key).map(|entry| stored::parse(&entry.value));
        state.put(table, key, object.as_ref());
    }

    pub(super) fn put(&self, table: &str, key: &str, object: Option<&Value>) {
        self.state.write().recovered().put(table, key, object);
    }

    /// Why an action is allowed; none if no rule allows it.
    pub fn allows(&self, identity: &Identity, action: &Action<'_>) -> Option<String> {
        let state = self.state.read().recovered();
        state.grants(identity, action.namespace()).find_map(|(namespace, name, grant)| {
            let rules = state.rules(grant, namespace)?;
            rules.iter().any(|rule| rule.allows(action)).then(|| grant.reason(namespace, name))
        })
    }

    /// Every rule that is bound to an identity in a namespace.
    pub fn rules_for(&self, identity: &Identity, namespace: &str) -> Vec<Rule> {
        let state = self.state.read().recovered();
        let rules = state.grants(identity, namespace);
        let rules = rules.filter_map(|(place, _, grant)| state.rules(grant, place));
        rules.flat_map(|rules| rules.iter().cloned()).collect()
    }

    /// The rules of a role; none if it is not there.
    pub fn rules_of(&self, is_cluster_role: bool, namespace: &str, role: &str) -> Option<Arc<[Rule]>> {
        let state = self.state.read().recovered();
        let grant = Grant { is_cluster_role, role: role.into(), subject: String::new() };
        state.rules(&grant, namespace).cloned()
    }
}

impl State {
    fn put(&mut self, table: &str, key: &str, object: Option<&Value>) {
        if ROLES.contains(&table) {
            match object {
                Some(role) => drop(self.roles.insert(key.into(), Rule::all_of(role).into())),
                None => drop(self.roles.remove(key)),
            }
        }
        if BINDINGS.contains(&table) {
            self.put_binding(key, object);
        }
    }

    fn put_binding(&mut self, key: &str, object: Option<&Value>) {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        for subject in self.bindings.remove(key).unwrap_or_default() {
            self.unbind(&subject, namespace, name);
        }
        let Some(binding) = object else { return };
        let named = binding["subjects"].as_array().map(Vec::as_slice).unwrap_or_default();
        let role = &binding["roleRef"];
        let mut bound = Vec::new();
        for (subject, described) in named.iter().filter_map(|named| read_subject(named, namespace)) {
            let grant = Grant {
                is_cluster_role: role["kind"] == "ClusterRole",
                role: text(role, "/name").into(),
                subject: described,
            };
            let place = self.of(&subject).entry(namespace.into()).or_default();
            place.entry(name.into()).or_insert(grant);
            bound.push(subject);
        }
        self.bindings.insert(key.into(), bound);
    }

    fn of(&mut self, subject: &Subject) -> &mut Bound {
        match subject {
            Subject::User(name) => self.users.entry(name.clone()).or_default(),
            Subject::Group(name) => self.groups.entry(name.clone()).or_default(),
        }
    }

    fn unbind(&mut self, subject: &Subject, namespace: &str, name: &str) {
        let bound = self.of(subject);
        if let Some(place) = bound.get_mut(namespace) {
            place.remove(name);
            if place.is_empty() {
                bound.remove(namespace);
            }
        }
        if bound.is_empty() {
            match subject {
                Subject::User(name) => drop(self.users.remove(name)),
                Subject::Group(name) => drop(self.groups.remove(name)),
            }
        }
    }

    /// The grants of an identity in the cluster and in a namespace.
    fn grants<'s>(
        &'s self,
        identity: &'s Identity,
        namespace: &'s str,
    ) -> impl Iterator<Item = (&'s str, &'s str, &'s Grant)> {
        let of_user = self.users.get(identity.user.as_str());
        let of_groups = identity.groups.iter().filter_map(|group| self.groups.get(group.as_str()));
        let places = ["", namespace];
        let places = if namespace.is_empty() { &places[..1] } else { &places[..] }.to_vec();
        of_user.into_iter().chain(of_groups).flat_map(move |bound| {
            places
                .clone()
                .into_iter()
                .filter_map(|place| bound.get_key_value(place))
                .flat_map(|(place, names)| names.iter().map(move |(name, grant)| (&**place, &**name, grant)))
        })
    }

    fn rules(&self, grant: &Grant, namespace: &str) -> Option<&Arc<[Rule]>> {
        match grant.is_cluster_role {
            true => self.roles.get(&*grant.role),
            false if namespace.is_empty() => None,
            false => self.roles.get(format!("{namespace}/{}", grant.role).as_str()),
        }
    }
}

impl Grant {
    fn reason(&self, namespace: &str, name: &str) -> String {
        let role = if self.is_cluster_role { "ClusterRole" } else { "Role" };
        let (kind, name) = match namespace {
            "" => ("ClusterRoleBinding", name.to_owned()),
            namespace => ("RoleBinding", format!("{name}/{namespace}")),
        };
        format!(
            "RBAC: allowed by {kind} {} of {role} {} to {}",
            quoted(&name),
            quoted(&self.role),
            self.subject
        )
    }
}

/// A subject, and how the reason of a decision names it.
fn read_subject(subject: &Value, namespace: &str) -> Option<(Subject, String)> {
    let (kind, name) = (text(subject, "/kind"), text(subject, "/name"));
    let described = |name: &str| format!("{kind} {}", quoted(name));
    match kind {
        "User" => Some((Subject::User(name.into()), described(name))),
        "Group" => Some((Subject::Group(name.into()), described(name))),
        "ServiceAccount" => {
            let own = text(subject, "/namespace");
            let place = if own.is_empty() { namespace } else { own };
            let user = Subject::User(account_user(place, name).into());
            (!place.is_empty()).then(|| (user, described(&format!("{name}/{place}"))))
        }
        _ => None,
    }
}
