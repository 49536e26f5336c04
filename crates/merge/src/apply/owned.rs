//! The paths that an applied configuration owns, and which of them are removed with it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::PathElement;
use super::set::{Node, PathSet};
use super::shape::{Form, Shape};

/// Every path that the value mentions: leaves, keys of maps and elements of lists.
pub(super) fn mentioned(shape: Shape<'_>, value: &Value) -> PathSet {
    match (shape.form(value), value) {
        (Some(Form::Map), Value::Object(fields)) => mentioned_fields(shape, fields),
        (Some(Form::List), Value::Array(items)) => mentioned_elements(shape, items),
        _ => PathSet::default(),
    }
}

fn mentioned_fields(shape: Shape<'_>, fields: &Map<String, Value>) -> PathSet {
    let mut set = PathSet::default();
    for (name, value) in fields {
        let field = shape.field(name);
        let is_leaf = !matches!(field.form(value), Some(Form::Map | Form::List));
        let is_empty = value.as_object().is_some_and(Map::is_empty);
        let member = is_leaf || is_empty || shape.declared_field(name).is_none();
        set.add(PathElement::field(name), member, mentioned(field, value));
    }
    set
}

/// Elements that stand twice are claimed, and nothing below them.
fn mentioned_elements(shape: Shape<'_>, items: &[Value]) -> PathSet {
    let mut below: BTreeMap<PathElement, PathSet> = BTreeMap::new();
    for item in items {
        if let Ok(identity) = shape.identity(item) {
            let set = match below.contains_key(&identity) {
                true => PathSet::default(),
                false => mentioned(shape.element(), item),
            };
            below.insert(identity, set);
        }
    }
    below.into_iter().map(|(element, below)| Node { element, member: true, below }).collect()
}

/// The set with every declared field on the way to its paths.
pub(super) fn with_declared_parents(shape: Shape<'_>, set: &PathSet) -> PathSet {
    let complete = |node: &Node| {
        let declared = match &node.element {
            PathElement::Field(name) => shape.declared_field(name.as_str()).is_some(),
            _ => false,
        };
        Node {
            element: node.element.clone(),
            member: node.member || declared,
            below: with_declared_parents(shape.at(&node.element), &node.below),
        }
    };
    set.nodes().iter().map(complete).collect()
}

/// The set as the schema of today would write it: what is below a value that is owned whole by now is
/// owned through that value.
pub(super) fn reconciled(shape: Shape<'_>, set: PathSet) -> PathSet {
    if is_current(shape, &set) {
        return set;
    }
    let reconcile = |node: &Node| {
        let shape = shape.at(&node.element);
        match !node.below.is_empty() && shape.is_whole() {
            true => Node { element: node.element.clone(), member: true, below: PathSet::default() },
            false => Node {
                element: node.element.clone(),
                member: node.member,
                below: reconciled(shape, node.below.clone()),
            },
        }
    };
    set.nodes().iter().map(reconcile).collect()
}

fn is_current(shape: Shape<'_>, set: &PathSet) -> bool {
    set.nodes().iter().filter(|node| !node.below.is_empty()).all(|node| {
        let shape = shape.at(&node.element);
        !shape.is_whole() && is_current(shape, &node.below)
    })
}
