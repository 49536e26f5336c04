//! Authorization: Kubernetes' role-based access control (RBAC). A request is allowed only if a rule that is bound to
//! its user or groups allows it. Must not know how the user was authenticated.

use std::borrow::Cow;

use http::Method;

use crate::authn::Identity;
use crate::http::{Query, ResourcePath, Target};
use apimachinery::error::{ApiError, Subject};
use apimachinery::gotext::quoted;

mod escalation;
mod index;
mod rules;

pub(crate) use escalation::RoleWrite;
pub(crate) use index::{CLUSTER_ROLES, Rbac};
pub(crate) use rules::{Rule, missing};

/// The attributes of a request that RBAC decides on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Action<'a> {
    /// The word for it, such as `list`.
    pub verb: Cow<'a, str>,
    /// What it is done to.
    pub on: On<'a>,
}

/// What an action is done to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum On<'a> {
    /// An object, a part of one, or a collection.
    Object(Object<'a>),
    /// A path that is no resource.
    Path(&'a str),
}

/// An object, a part of one, or a collection; what is not said is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Object<'a> {
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
}

impl<'a> Action<'a> {
    /// An action on an object.
    pub fn on(verb: &'a str, object: Object<'a>) -> Self {
        Self { verb: verb.into(), on: On::Object(object) }
    }

    /// What a request does, in the words of RBAC. Read from the same target that is served later, so that nothing
    /// can mean one thing here and another there.
    pub fn of(method: &Method, target: &'a Target, path: &'a str, query: &'a Query) -> Self {
        let Target::Resource(target) = target else {
            return Self { verb: method.as_str().to_ascii_lowercase().into(), on: On::Path(path) };
        };
        let (verb, name) = verb_and_name(method, target, query);
        // A namespace is inside itself, so that a role in it can speak of it.
        let namespace = match target.resource == "namespaces" {
            true => target.name.as_deref(),
            false => target.namespace.as_deref(),
        };
        let part = target.subresource.as_deref().unwrap_or_default();
        let object = Object {
            group: &target.group,
            resource: &target.resource,
            subresource: part.split('/').next().unwrap_or_default(),
            namespace: namespace.unwrap_or_default(),
            name,
        };
        Self::on(verb, object)
    }

    /// The namespace it happens in, empty for the cluster.
    pub fn namespace(&self) -> &str {
        match &self.on {
            On::Object(object) => object.namespace,
            On::Path(_) => "",
        }
    }

    /// Why it is not allowed, in Kubernetes' words.
    pub fn refusal(&self, identity: &Identity) -> ApiError {
        let user = quoted(&identity.user);
        let (subject, message) = match &self.on {
            On::Path(path) => (
                Subject { group: "", resource: "", name: "" },
                format!("User {user} cannot {} path {}", self.verb, quoted(path)),
            ),
            On::Object(object) => {
                let resource = match object.subresource {
                    "" => quoted(object.resource),
                    part => quoted(&format!("{}/{part}", object.resource)),
                };
                let place = match object.namespace {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {}", quoted(namespace)),
                };
                let group = quoted(object.group);
                let message = format!(
                    "User {user} cannot {} resource {resource} in API group {group} {place}",
                    self.verb
                );
                (Subject { group: object.group, resource: object.resource, name: object.name }, message)
            }
        };
        let message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        ApiError::forbidden(subject, message)
    }
}

/// The verb of a request on a resource, and the name that a rule may be about.
fn verb_and_name<'a>(method: &Method, target: &'a ResourcePath, query: &'a Query) -> (&'static str, &'a str) {
    let name = target.name.as_deref().unwrap_or_default();
    let watches = query.flag("watch");
    let verb = match (method.as_str(), name.is_empty()) {
        ("POST", _) => "create",
        ("GET" | "HEAD", _) if watches => "watch",
        ("GET" | "HEAD", true) => "list",
        ("GET" | "HEAD", false) => "get",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "deletecollection",
        ("DELETE", false) => "delete",
        _ => "",
    };
    // A user who may read one object by name may list and watch exactly that one.
    let selected = match (name.is_empty(), verb) {
        (true, "list" | "watch") => query.get("fieldSelector").and_then(exact_name),
        _ => None,
    };
    (verb, selected.unwrap_or(name))
}

/// The one name that a field selector leaves.
fn exact_name(selector: &str) -> Option<&str> {
    // An escaped comma would make this split differ from the one that is served.
    if selector.contains('\\') {
        return None;
    }
    let term = selector.split(',').find_map(|term| term.strip_prefix("metadata.name="))?;
    let name = term.strip_prefix('=').unwrap_or(term);
    (!name.is_empty() && !name.contains(['=', '!', '/', '%', ' '])).then_some(name)
}

impl Rbac {
    /// Lets an action be done, or says why not.
    pub fn authorize(&self, identity: &Identity, action: &Action<'_>) -> Result<(), ApiError> {
        match self.decide(identity, action) {
            Some(_) => Ok(()),
            None => Err(action.refusal(identity)),
        }
    }

    /// Why an action is allowed; none if nothing allows it.
    pub fn decide(&self, identity: &Identity, action: &Action<'_>) -> Option<String> {
        if identity.is_administrator() {
            return Some(String::new());
        }
        // A server without roles has no role that opens the health endpoints to all clients.
        if action.verb == "get" && matches!(action.on, On::Path(path) if crate::authn::is_public(path)) {
            return Some(String::new());
        }
        self.allows(identity, action)
    }
}

#[cfg(test)]
mod tests;
