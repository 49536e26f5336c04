//! Strategic merge patch: a merge patch in which lists merge by key and `$` directives delete, replace
//! and order. Which lists merge, and by which key, the schema says.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{GO_MAP, NESTING_MAX, unclassified, undecodable, unprocessable, within_nesting};
use apimachinery::error::ApiError;
use apimachinery::gotext;
use schema::Schema;

mod list;

pub(super) const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

/// The object under a strategic merge patch of its kind.
pub fn strategic_merge(object: &Value, patch: &Value, schema: &Schema) -> Result<Value, ApiError> {
    let Value::Object(changes) = patch else {
        return Err(undecodable("", patch, GO_MAP));
    };
    let mut merged = object.as_object().cloned().unwrap_or_default();
    merge_object(&mut merged, changes, Some(schema), NESTING_MAX)?;
    within_nesting(Value::Object(merged))
}

/// The patch as kube-apiserver quotes it once it is merged: directives are used up, and so are the lists
/// whose order they gave.
pub fn without_directives(patch: &Value) -> Value {
    let Value::Object(fields) = patch else { return patch.clone() };
    let ordered: BTreeSet<&str> =
        fields.keys().filter_map(|name| directed_field(name, ELEMENT_ORDER).ok()).collect();
    let is_used_up = |name: &str| name.starts_with('$') || ordered.contains(name);
    let left = fields.iter().filter(|(name, _)| !is_used_up(name));
    left.map(|(name, value)| (name.clone(), without_directives(value))).collect()
}

/// Merges into one object. Fields that the schema does not know are merged without lists.
fn merge_object(
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    schema: Option<&Schema>,
    levels_left: usize,
) -> Result<(), ApiError> {
    let levels_left = levels_left.checked_sub(1).ok_or_else(unprocessable)?;
    if let Some(directive) = patch.get(DIRECTIVE) {
        return follow_directive(target, patch, directive);
    }
    retain_keys(target, patch)?;
    let ordered = merge_ordered_lists(target, patch, schema, levels_left)?;
    for (name, change) in patch {
        if name == RETAIN_KEYS || name.starts_with(ELEMENT_ORDER) || ordered.contains(name.as_str()) {
            continue;
        }
        match name.starts_with(DELETE_FROM) {
            true => delete_from_list(target, directed_field(name, DELETE_FROM)?, change)?,
            false => merge_field(target, name, change, schema, levels_left)?,
        }
    }
    Ok(())
}

fn follow_directive(
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    directive: &Value,
) -> Result<(), ApiError> {
    target.clear();
    match directive.as_str() {
        Some("delete") => Ok(()),
        Some("replace") => {
            let fields = patch.iter().filter(|(name, value)| *name != DIRECTIVE && !value.is_null());
            target.extend(fields.filter_map(|(name, value)| Some((name.clone(), cleaned(value)?))));
            Ok(())
        }
        _ => Err(unknown_directive(directive, patch)),
    }
}

fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> ApiError {
    let map = gotext::plain(&Value::Object(patch.clone()));
    unclassified(format!("unknown patch type: {} in map: {map}", gotext::string_verb(directive)))
}

/// `$retainKeys` drops what it does not list, and must list whatever the patch sets.
fn retain_keys(target: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), ApiError> {
    let Some(directive) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || ApiError::bad_request("invalid patch format of retainKeys");
    let listed: BTreeSet<&str> =
        directive.as_array().ok_or_else(malformed)?.iter().filter_map(Value::as_str).collect();
    let sets = |name: &str, value: &Value| {
        !value.is_null()
            && name != RETAIN_KEYS
            && !name.starts_with(DELETE_FROM)
            && !name.starts_with(ELEMENT_ORDER)
    };
    if patch.iter().any(|(name, value)| sets(name, value) && !listed.contains(name.as_str())) {
        return Err(malformed());
    }
    target.retain(|name, _| listed.contains(name.as_str()));
    Ok(())
}

/// Merges the lists that come with a `$setElementOrder` and returns their names.
fn merge_ordered_lists<'p>(
    target: &mut Map<String, Value>,
    patch: &'p Map<String, Value>,
    schema: Option<&Schema>,
    levels_left: usize,
) -> Result<BTreeSet<&'p str>, ApiError> {
    let mut done = BTreeSet::new();
    for (name, order) in patch.iter().filter(|(name, _)| name.starts_with(ELEMENT_ORDER)) {
        let order = as_list(order)?;
        let field = directed_field(name, ELEMENT_ORDER)?;
        let change = patch.get(field).map(as_list).transpose()?;
        let rules = list::Rules::of(field_schema(schema, field));
        let mut present = match target.remove(field) {
            None => None,
            Some(Value::Array(items)) => Some(items),
            Some(other) => return Err(wrong_type("[]interface {}", &other)),
        };
        if present.is_none() && change.is_none() {
            continue;
        }
        if present.as_deref().unwrap_or_default().is_empty() && change.unwrap_or_default().is_empty() {
            return Err(unclassified("no elements in any of the given slices"));
        }
        list::check_order(change.unwrap_or_default(), order, rules.key)?;
        let live_order = list::live_order(present.as_deref().unwrap_or_default(), change, &rules);
        let merged = match (present.take(), change) {
            (Some(items), None) => items,
            (Some(items), Some(change)) if rules.merges => {
                list::merge(items, change, &rules, false, levels_left)?
            }
            (_, change) => change.unwrap_or_default().iter().filter_map(cleaned).collect(),
        };
        let arranged = list::arranged(merged, &list::order_of(order, rules.key), &live_order, rules.key)?;
        target.insert(field.to_owned(), Value::Array(arranged));
        done.insert(field);
    }
    Ok(done)
}

fn merge_field(
    target: &mut Map<String, Value>,
    name: &str,
    change: &Value,
    schema: Option<&Schema>,
    levels_left: usize,
) -> Result<(), ApiError> {
    if change.is_null() {
        target.remove(name);
        return Ok(());
    }
    match (target.get_mut(name), change) {
        (Some(Value::Object(present)), Value::Object(wanted)) => {
            merge_object(present, wanted, field_schema(schema, name), levels_left)
        }
        (Some(Value::Array(present)), Value::Array(wanted)) => {
            let rules = list::Rules::of(field_schema(schema, name));
            *present = match rules.merges {
                true => list::merge(std::mem::take(present), wanted, &rules, false, levels_left)?,
                false => wanted.iter().filter_map(cleaned).collect(),
            };
            Ok(())
        }
        _ => {
            match cleaned(change) {
                Some(value) => target.insert(name.to_owned(), value),
                None => target.remove(name),
            };
            Ok(())
        }
    }
}

/// `$deleteFromPrimitiveList/x` works whatever the strategy of `x`; an absent list has nothing to lose.
fn delete_from_list(target: &mut Map<String, Value>, field: &str, unwanted: &Value) -> Result<(), ApiError> {
    match (target.get_mut(field), unwanted) {
        (_, Value::Null) => {
            target.remove(field);
        }
        (Some(Value::Array(present)), Value::Array(unwanted)) => {
            let rules = list::Rules::of(None);
            *present = list::merge(std::mem::take(present), unwanted, &rules, true, NESTING_MAX)?;
        }
        _ => {}
    }
    Ok(())
}

fn directed_field<'p>(name: &'p str, directive: &str) -> Result<&'p str, ApiError> {
    let field = name.strip_prefix(directive).and_then(|rest| rest.strip_prefix('/'));
    field.ok_or_else(|| {
        ApiError::bad_request(match directive {
            DELETE_FROM => "invalid patch format of primitive list",
            _ => "invalid patch format of setElementOrder list",
        })
    })
}

fn field_schema<'s>(schema: Option<&'s Schema>, name: &str) -> Option<&'s Schema> {
    let schema = schema?;
    schema.properties.get(name).or(schema.values.as_ref()).map(|child| &**child)
}

fn as_list(value: &Value) -> Result<&[Value], ApiError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(wrong_type("[]interface {}", other)),
    }
}

fn wrong_type(expected: &str, found: &Value) -> ApiError {
    unclassified(format!("expected a {expected}, but received a {}", gotext::type_name(found)))
}

/// A new value without nulls and directives; an object that is itself a directive is no value.
fn cleaned(value: &Value) -> Option<Value> {
    Some(match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => return None,
        Value::Object(fields) => {
            let is_field = |name: &str| {
                name != RETAIN_KEYS && !name.starts_with(DELETE_FROM) && !name.starts_with(ELEMENT_ORDER)
            };
            let kept = fields.iter().filter(|(name, value)| !value.is_null() && is_field(name));
            kept.filter_map(|(name, value)| Some((name.clone(), cleaned(value)?))).collect()
        }
        Value::Array(items) => items.iter().filter_map(cleaned).collect(),
        scalar => scalar.clone(),
    })
}
