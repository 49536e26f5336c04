//! How a strategic merge patch changes one list: by key for objects, as a set for scalars, and in which
//! order the result stands. Must not look at fields inside the elements; that is the caller's recursion.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{DIRECTIVE, cleaned, merge_object, unclassified, unknown_directive, unprocessable, wrong_type};
use apimachinery::error::ApiError;
use apimachinery::gotext;
use schema::Schema;

/// What the schema says about one list.
pub(super) struct Rules<'s> {
    /// Elements are merged; otherwise the patch replaces the list.
    pub merges: bool,
    /// The merge key of the list's objects; none for scalars.
    pub key: Option<&'s str>,
    element: Option<&'s Schema>,
}

impl<'s> Rules<'s> {
    pub fn of(list: Option<&'s Schema>) -> Self {
        Self {
            merges: list.is_some_and(|list| list.patch.merge),
            key: list.and_then(|list| list.patch.merge_key.as_deref()),
            element: list.and_then(|list| list.items.as_deref()),
        }
    }
}

/// The merged list, ordered as the patch orders its own elements, with the others kept in between.
pub(super) fn merge(
    present: Vec<Value>,
    patch: &[Value],
    rules: &Rules<'_>,
    delete: bool,
    levels_left: usize,
) -> Result<Vec<Value>, ApiError> {
    if present.is_empty() && patch.is_empty() {
        return Ok(present);
    }
    if !elements_are_objects(&present, patch)? {
        return match delete {
            true => Ok(without(present, patch)),
            false => merge_scalars(present, patch),
        };
    }
    let Some(key) = rules.key else {
        return Err(unclassified("cannot merge lists without merge key for struct"));
    };
    let changes = split_directives(patch, key)?;
    if changes.replace {
        return Ok(changes.elements.iter().filter_map(|element| cleaned(element)).collect());
    }
    let present: Vec<Value> =
        present.into_iter().filter(|item| !changes.deleted.contains(&item[key])).collect();
    let live_order = order_of(&present, Some(key));
    let wanted_order = order_of(changes.elements.iter().copied(), Some(key));
    let merged = merge_objects(present, &changes.elements, key, rules.element, levels_left)?;
    arranged(merged, &wanted_order, &live_order, Some(key))
}

/// All elements must have one type, and it must not be a list.
fn elements_are_objects(present: &[Value], patch: &[Value]) -> Result<bool, ApiError> {
    let mut elements = present.iter().chain(patch);
    let first = elements.next().map_or("", gotext::type_name);
    if first == "[]interface {}" {
        return Err(unprocessable());
    }
    if elements.any(|element| gotext::type_name(element) != first) {
        let lists = Value::Array(vec![present.to_vec().into(), patch.to_vec().into()]);
        let text = gotext::plain(&lists);
        return Err(unclassified(format!("list element types are not identical: {text}")));
    }
    Ok(first == "map[string]interface {}")
}

fn without(present: Vec<Value>, unwanted: &[Value]) -> Vec<Value> {
    let unwanted: HashSet<&Value> = unwanted.iter().collect();
    present.into_iter().filter(|item| !unwanted.contains(item)).collect()
}

fn merge_scalars(present: Vec<Value>, patch: &[Value]) -> Result<Vec<Value>, ApiError> {
    let live_order = order_of(&present, None);
    let mut seen = HashSet::new();
    let both = present.iter().chain(patch).filter(|item| seen.insert(*item)).cloned().collect();
    arranged(both, &order_of(patch, None), &live_order, None)
}

/// The elements of a patch list by what they ask for.
struct Changes<'p> {
    elements: Vec<&'p Value>,
    deleted: HashSet<&'p Value>,
    replace: bool,
}

fn split_directives<'p>(patch: &'p [Value], key: &str) -> Result<Changes<'p>, ApiError> {
    let mut changes = Changes { elements: Vec::new(), deleted: HashSet::new(), replace: false };
    for element in patch {
        let Value::Object(fields) = element else {
            return Err(wrong_type("map[string]interface {}", element));
        };
        match fields.get(DIRECTIVE) {
            None => changes.elements.push(element),
            Some(Value::String(directive)) if directive == "delete" => {
                changes.deleted.insert(fields.get(key).ok_or_else(|| keyless(element, key))?);
            }
            Some(Value::String(directive)) if directive == "replace" => changes.replace = true,
            Some(Value::String(directive)) if directive == "merge" => {
                return Err(unclassified("merging lists cannot yet be specified in the patch"));
            }
            Some(directive) => return Err(unknown_directive(directive, fields)),
        }
    }
    Ok(changes)
}

fn merge_objects(
    mut present: Vec<Value>,
    patch: &[&Value],
    key: &str,
    schema: Option<&Schema>,
    levels_left: usize,
) -> Result<Vec<Value>, ApiError> {
    let mut places: HashMap<Value, usize> = HashMap::new();
    for (place, item) in present.iter().enumerate() {
        if let Some(identity) = item.get(key) {
            places.entry(identity.clone()).or_insert(place);
        }
    }
    for &element in patch {
        let identity = element.get(key).ok_or_else(|| keyless(element, key))?;
        let fields = element.as_object().expect("elements_are_objects was asked");
        match places.get(identity).map(|place| &mut present[*place]) {
            Some(Value::Object(target)) => merge_object(target, fields, schema, levels_left)?,
            _ => {
                places.insert(identity.clone(), present.len());
                present.extend(cleaned(element));
            }
        }
    }
    Ok(present)
}

/// The identities of the elements in their order.
pub(super) fn order_of<'a>(
    items: impl IntoIterator<Item = &'a Value>,
    key: Option<&str>,
) -> HashMap<Value, usize> {
    let mut order = HashMap::new();
    for (place, item) in items.into_iter().enumerate() {
        order.entry(identity(item, key).clone()).or_insert(place);
    }
    order
}

/// The order of the live list for a patch that comes with an order of its own. Kubernetes sees as many new
/// elements at its end as the patch deletes, because they take the places of the deleted ones.
pub(super) fn live_order(
    present: &[Value],
    patch: Option<&[Value]>,
    rules: &Rules<'_>,
) -> HashMap<Value, usize> {
    let (Some(patch), Some(key), true) = (patch, rules.key, rules.merges) else {
        return order_of(present, rules.key);
    };
    let directive = |element: &Value| element.get(DIRECTIVE).cloned();
    let deleted: HashSet<&Value> = patch
        .iter()
        .filter(|element| directive(element).is_some_and(|directive| directive == "delete"))
        .map(|element| &element[key])
        .collect();
    let kept = || present.iter().filter(|item| !deleted.contains(&item[key]));
    let mut order = order_of(kept(), Some(key));
    let mut places = kept().count()..present.len();
    for element in patch.iter().filter(|element| directive(element).is_none()) {
        if let Entry::Vacant(new) = order.entry(element[key].clone())
            && let Some(place) = places.next()
        {
            new.insert(place);
        }
    }
    order
}

/// Elements that `wanted_order` names stand in that order; the others stay before whichever of them they
/// stood before in the live list.
pub(super) fn arranged(
    items: Vec<Value>,
    wanted_order: &HashMap<Value, usize>,
    live_order: &HashMap<Value, usize>,
    key: Option<&str>,
) -> Result<Vec<Value>, ApiError> {
    if let Some(key) = key {
        check_keys(items.iter(), key)?;
    }
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        items.into_iter().partition(|item| wanted_order.contains_key(identity(item, key)));
    named.sort_by_key(|item| wanted_order.get(identity(item, key)).copied());
    let live_place = |item: &Value| live_order.get(identity(item, key)).copied();
    others.sort_by_key(|item| live_place(item).unwrap_or(usize::MAX));
    let mut out = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in named {
        let goes_first = |other: &Value| match (live_place(other), live_place(&item)) {
            (Some(other), Some(item)) => other < item,
            _ => false,
        };
        while let Some(other) = others.next_if(goes_first) {
            out.push(other);
        }
        out.push(item);
    }
    out.extend(others);
    Ok(out)
}

fn check_keys<'a>(elements: impl Iterator<Item = &'a Value>, key: &str) -> Result<(), ApiError> {
    for element in elements {
        match element {
            Value::Object(fields) if fields.contains_key(key) => {}
            Value::Object(_) => return Err(keyless(element, key)),
            other => return Err(wrong_type("map[string]interface {}", other)),
        }
    }
    Ok(())
}

fn identity<'a>(item: &'a Value, key: Option<&str>) -> &'a Value {
    match key {
        Some(key) => &item[key],
        None => item,
    }
}

/// The patch may only hold elements that the order names, in that order; deletions do not count.
pub(super) fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), ApiError> {
    if let Some(key) = key {
        check_keys(order.iter(), key)?;
    }
    if order.is_empty() {
        return Ok(());
    }
    let is_deletion = |element: &&Value| element.get(DIRECTIVE).is_some_and(|name| name == "delete");
    let mut places = order.iter().map(|item| identity(item, key)).peekable();
    for element in patch.iter().filter(|element| !is_deletion(element)) {
        // Other directives are passed over only while there is order left: so does Kubernetes.
        let is_directive = element.get(DIRECTIVE).is_some();
        if let Some(key) = key.filter(|_| !is_directive) {
            check_keys(std::iter::once(element), key)?;
        }
        let fits = match is_directive {
            true => places.peek().is_some(),
            false => places.any(|place| place == identity(element, key)),
        };
        if !fits {
            let (patch, order) =
                (gotext::plain(&patch.to_vec().into()), gotext::plain(&order.to_vec().into()));
            return Err(unclassified(format!(
                "The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n"
            )));
        }
    }
    Ok(())
}

fn keyless(element: &Value, key: &str) -> ApiError {
    let element = gotext::plain(element);
    unclassified(format!("map: {element} does not contain declared merge key: {key}"))
}
