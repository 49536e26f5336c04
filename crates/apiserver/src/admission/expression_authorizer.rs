//! The CEL variable `authorizer` in admission expressions: permission checks for the requesting user, and for any
//! service account.

use std::rc::Rc;

use cel::{AccessCheck, Decision, Resource, Target, Value as Cel};
use serde_json::Value;

use super::WriteAttributes;
use crate::authn::{Identity, account_groups, account_user};
use crate::authz::{Action, Object, On, Rbac};
use crate::storage::text;

/// The authorizer for the expressions about one write.
#[derive(Clone, Copy)]
pub(super) struct ExpressionAuthorizer<'a> {
    rbac: &'a Rbac,
    attributes: &'a WriteAttributes<'a>,
    object: &'a Value,
}

impl<'a> ExpressionAuthorizer<'a> {
    /// The authorizer of the user who writes this object.
    pub fn new(rbac: &'a Rbac, attributes: &'a WriteAttributes<'a>, object: &'a Value) -> Self {
        Self { rbac, attributes, object }
    }

    /// `authorizer`.
    pub fn variable<'v>(&self, name: &str) -> Option<Cel<'v>> {
        (name == "authorizer").then(|| Cel::AccessCheck(Rc::default()))
    }

    /// `authorizer.requestResource`.
    pub fn dotted<'v>(&self, variable: &str, field: &str) -> Option<Cel<'v>> {
        if (variable, field) != ("authorizer", "requestResource") {
            return None;
        }
        let call = self.attributes.call;
        let name = match call.name() {
            "" => text(self.object, "/metadata/name"),
            name => name,
        };
        let namespace = match &*call.resource.table {
            "/namespaces" => name,
            _ => call.namespace.as_deref().unwrap_or_default(),
        };
        let resource = Resource {
            group: call.resource.group.to_string(),
            resource: call.resource.plural.to_string(),
            subresource: call.subresource().to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let question = AccessCheck { account: None, on: Target::Resource(resource) };
        Some(Cel::AccessCheck(Rc::new(question)))
    }

    /// Asks RBAC whether the user or service account may do this.
    pub fn decide(&self, question: &AccessCheck, verb: &str) -> Decision {
        // As in Kubernetes, an account that is asked about belongs to the groups of accounts and to no other.
        let account = question.account.as_ref().map(|(namespace, name)| Identity {
            user: account_user(namespace, name),
            groups: account_groups(namespace),
            ..Identity::default()
        });
        let identity = account.as_ref().unwrap_or(&self.attributes.call.identity);
        let on = match &question.on {
            Target::Path(path) => On::Path(path),
            Target::Resource(resource) => On::Object(Object {
                group: &resource.group,
                resource: &resource.resource,
                subresource: &resource.subresource,
                namespace: &resource.namespace,
                name: &resource.name,
            }),
            Target::Unspecified | Target::Group(_) => return Decision::default(),
        };
        let reason = self.rbac.decide(identity, &Action { verb: verb.into(), on });
        Decision { is_allowed: reason.is_some(), reason: reason.unwrap_or_default(), error: None }
    }
}
