//! Kubernetes' authorizer library for CEL: builds permission checks and reads their decisions. The caller that
//! evaluates an expression provides the authorizer that decides.

use std::rc::Rc;

use super::Context;
use crate::authorizer::{AccessCheck, Decision, Resource, Target, selector_cost};
use crate::budget::Failure;
use crate::value::Value;

/// The value of a function on a permission check, if there is one of this name.
pub(super) fn call_on_check<'a>(
    name: &str,
    check: &AccessCheck,
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
    let on = match (name, &check.on, &texts[..]) {
        ("serviceAccount", Target::Unspecified, [namespace, name]) => {
            return service_account(namespace, name, context).map(Some);
        }
        ("path", Target::Unspecified, [path]) if path.trim().is_empty() => {
            return Err(Failure::wrong("path must not be empty"));
        }
        ("path", Target::Unspecified, [path]) => Target::Path((*path).to_owned()),
        ("group", Target::Unspecified, [group]) => Target::Group((*group).to_owned()),
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
    Ok(Some(Value::AccessCheck(Rc::new(AccessCheck { account: check.account.clone(), on }))))
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
    Ok(Value::AccessCheck(Rc::new(AccessCheck { account, on: Target::Unspecified })))
}

/// The value of a function on a decision, if there is one of this name.
pub(super) fn call_on_decision<'a>(
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
