//! Kubernetes' authorizer library for CEL: builds permission checks and reads their decisions. The caller that
//! evaluates an expression provides the authorizer that decides.

use std::rc::Rc;

use super::Context;
use crate::budget::{Failure, tenth};
use crate::value::Value;

/// The type of the authorizer of one user or service account.
pub(crate) const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
/// The type of a question about a path.
pub(crate) const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
/// The type of a question about a group that names no resource yet.
pub(crate) const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
/// The type of a question about a resource.
pub(crate) const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
/// The type of the answer.
pub(crate) const DECISION: &str = "kubernetes.authorization.Decision";

/// What a decision costs, so that an expression can ask for two.
pub(crate) const CHECK_COST: u64 = 350_000;

/// What is asked about, as far as it has been said. What is not said is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// The service account that is checked, by namespace and name; none for the requesting user.
    pub account: Option<(String, String)>,
    /// What they want to do it to.
    pub on: Target,
}

/// The resource or path of a permission check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Target {
    /// Nothing has been said yet.
    #[default]
    Unsaid,
    /// A path that is no resource.
    Path(String),
    /// A group, whose resource has not been named yet.
    Group(String),
    /// A resource.
    Resource(Resource),
}

/// A resource, a part of one, or one object of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resource {
    /// The group of the resource.
    pub group: String,
    /// Its plural.
    pub resource: String,
    /// The part of the object that is meant.
    pub subresource: String,
    /// The namespace, empty for the cluster.
    pub namespace: String,
    /// The name of the object, empty for all.
    pub name: String,
}

/// The decision of a permission check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub is_allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong when it was decided.
    pub error: Option<String>,
}

impl Question {
    /// The name of its type in expressions.
    pub(crate) fn type_name(&self) -> &'static str {
        match self.on {
            Target::Unsaid => AUTHORIZER,
            Target::Path(_) => PATH_CHECK,
            Target::Group(_) => GROUP_CHECK,
            Target::Resource(_) => RESOURCE_CHECK,
        }
    }

    /// Whether enough has been said to decide.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.on, Target::Path(_) | Target::Resource(_))
    }
}

/// What reading a selector of so many characters costs: a list, and a structure with a list for every two characters.
pub(crate) fn selector_cost(characters: u64) -> u64 {
    let requirements = characters.div_ceil(2).saturating_mul(50);
    tenth(characters).saturating_add(requirements).saturating_add(10)
}

/// The value of a function on a question, if there is one of this name.
pub(super) fn ask<'a>(
    name: &str,
    question: &Question,
    args: &[Value<'a>],
    context: Context<'_>,
) -> Result<Option<Value<'a>>, Failure> {
    let texts: Option<Vec<&str>> =
        args.iter().map(|arg| if let Value::String(text) = arg { Some(&**text) } else { None }).collect();
    let Some(texts) = texts else { return Ok(None) };
    context.budget.charge(match (name, &texts[..]) {
        ("fieldSelector" | "labelSelector", [text]) => selector_cost(text.chars().count() as u64),
        _ => 1,
    })?;
    let on = match (name, &question.on, &texts[..]) {
        ("serviceAccount", Target::Unsaid, [namespace, name]) => {
            return service_account(namespace, name, context).map(Some);
        }
        ("path", Target::Unsaid, [path]) if path.trim().is_empty() => {
            return Err(Failure::wrong("path must not be empty"));
        }
        ("path", Target::Unsaid, [path]) => Target::Path((*path).to_owned()),
        ("group", Target::Unsaid, [group]) => Target::Group((*group).to_owned()),
        ("resource", Target::Group(_), [resource]) if resource.trim().is_empty() => {
            return Err(Failure::wrong("resource must not be empty"));
        }
        ("resource", Target::Group(group), [resource]) => {
            let (group, resource) = (group.clone(), (*resource).to_owned());
            Target::Resource(Resource { group, resource, ..Resource::default() })
        }
        (_, Target::Resource(resource), [text]) => match narrowed(name, resource.clone(), text) {
            Some(resource) => Target::Resource(resource),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(Some(Value::Question(Rc::new(Question { account: question.account.clone(), on }))))
}

fn narrowed(name: &str, mut resource: Resource, text: &str) -> Option<Resource> {
    match name {
        "subresource" => resource.subresource = text.to_owned(),
        "namespace" => resource.namespace = text.to_owned(),
        "name" => resource.name = text.to_owned(),
        // RBAC ignores selectors: a user who may read all objects may read some.
        "fieldSelector" | "labelSelector" => {}
        _ => return None,
    }
    Some(resource)
}

fn service_account<'a>(namespace: &str, name: &str, context: Context<'_>) -> Result<Value<'a>, Failure> {
    let is_wrong = |format: &str, text: &str| {
        (context.hooks.format)(format, text).is_none_or(|faults| !faults.is_empty())
    };
    if is_wrong("dns1123Subdomain", name) {
        return Err(Failure::wrong("Invalid service account name"));
    }
    if is_wrong("dns1123Label", namespace) {
        return Err(Failure::wrong("Invalid service account namespace"));
    }
    let account = Some((namespace.to_owned(), name.to_owned()));
    Ok(Value::Question(Rc::new(Question { account, on: Target::Unsaid })))
}

/// What a decision says.
pub(super) fn told<'a>(
    name: &str,
    decision: &Decision,
    args: &[Value<'a>],
    context: Context<'_>,
) -> Result<Option<Value<'a>>, Failure> {
    if !args.is_empty() {
        return Ok(None);
    }
    let value = match name {
        "allowed" => Value::Bool(decision.is_allowed),
        "errored" => Value::Bool(decision.error.is_some()),
        "reason" => Value::text(decision.reason.as_str()),
        "error" => Value::text(decision.error.as_deref().unwrap_or_default()),
        _ => return Ok(None),
    };
    context.budget.charge(1)?;
    Ok(Some(value))
}
