//! RBAC privilege escalation prevention: a user may write or bind a role only if they hold every permission in it, or
//! have the verbs `escalate` and `bind` for it.

use serde_json::Value;

use super::rules::missing;
use super::{Action, Object, Rbac, Rule};
use crate::authn::Identity;
use crate::registry::Resource;
use crate::storage::text;
use apimachinery::error::{ApiError, Subject};
use apimachinery::gotext::quoted;

const GROUP: &str = "rbac.authorization.k8s.io";
const AGGREGATION: &str = "must have cluster-admin privileges to use the aggregationRule";

/// A write of a role or a binding, or of any other object, which passes.
#[derive(Clone, Copy)]
pub(crate) struct RoleWrite<'a> {
    pub identity: &'a Identity,
    pub resource: &'a Resource,
    pub namespace: &'a str,
    /// The name in the path, empty on create.
    pub name: &'a str,
}

impl Rbac {
    /// Refuses a role or binding that gives away more than its writer has.
    pub fn check_escalation(
        &self,
        write: RoleWrite<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        if &*write.resource.group != GROUP || write.identity.is_administrator() {
            return Ok(());
        }
        if old.is_some_and(|old| only_changes_owners_and_finalizers(object, old)) {
            return Ok(());
        }
        match &*write.resource.plural {
            "roles" | "clusterroles" => self.check_role(write, object, old),
            "rolebindings" | "clusterrolebindings" => self.check_binding(write, object),
            _ => Ok(()),
        }
    }

    fn check_role(&self, write: RoleWrite<'_>, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
        let namespace = write.namespace;
        let role = Object {
            group: GROUP,
            resource: &write.resource.plural,
            namespace,
            name: write.name,
            ..Object::default()
        };
        if self.decide(write.identity, &Action::on("escalate", role)).is_some() {
            return Ok(());
        }
        let subject = write.resource.subject(text(object, "/metadata/name"));
        self.check_grants(write.identity, namespace, &Rule::all_of(object), subject)?;
        let aggregates = |role: &Value| {
            let selectors = role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array);
            selectors.is_some_and(|selectors| !selectors.is_empty())
        };
        if !aggregates(object) && !old.is_some_and(aggregates) {
            return Ok(());
        }
        // What a rule of aggregation gathers is not known yet, so that it takes every right to set one.
        let owned = self.rules_for(write.identity, namespace);
        match missing(&owned, &Rule::everything()) {
            None => Ok(()),
            Some(_) => Err(ApiError::forbidden(subject, AGGREGATION)),
        }
    }

    fn check_binding(&self, write: RoleWrite<'_>, object: &Value) -> Result<(), ApiError> {
        let namespace = write.namespace;
        let (kind, name) = (text(object, "/roleRef/kind"), text(object, "/roleRef/name"));
        let resource = match kind {
            "ClusterRole" => "clusterroles",
            "Role" => "roles",
            // Nothing else can be bound; what is invalid is said in a moment.
            _ => return Ok(()),
        };
        let role = Object { group: GROUP, resource, namespace, name, ..Object::default() };
        if self.decide(write.identity, &Action::on("bind", role)).is_some() {
            return Ok(());
        }
        let rules = self.rules_of(kind == "ClusterRole", namespace, name);
        let rules = rules.ok_or_else(|| ApiError::not_found(write.resource.subject(name)))?;
        let subject = write.resource.subject(text(object, "/metadata/name"));
        self.check_grants(write.identity, namespace, &rules, subject)
    }

    fn check_grants(
        &self,
        identity: &Identity,
        namespace: &str,
        rules: &[Rule],
        subject: Subject<'_>,
    ) -> Result<(), ApiError> {
        let owned = self.rules_for(identity, namespace);
        let Some(missing) = missing(&owned, rules) else { return Ok(()) };
        let groups: Vec<String> = identity.groups.iter().map(|group| quoted(group)).collect();
        let why = format!(
            "user {} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{missing}",
            quoted(&identity.user),
            groups.join(" ")
        );
        Err(ApiError::forbidden(subject, why))
    }
}

/// Whether a change touches nothing but what keeps the object from being deleted.
fn only_changes_owners_and_finalizers(object: &Value, old: &Value) -> bool {
    let bare = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for key in ["finalizers", "ownerReferences", "managedFields", "resourceVersion"] {
                metadata.remove(key);
            }
        }
        object
    };
    bare(object) == bare(old)
}
