//! Merges an applied configuration into a live object. Adds and replaces, never removes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::compare::is_empty;
use super::element::PathElement;
use super::shape::{Form, Shape};

/// The live value with what is applied laid over it.
pub(super) fn merged(shape: Shape<'_>, live: &Value, applied: &Value) -> Value {
    let form = match (shape.form(live), shape.form(applied)) {
        (Some(one), Some(other)) if one != other => return applied.clone(),
        (one, other) => one.or(other),
    };
    match form {
        _ if is_empty(Some(live)) && is_empty(Some(applied)) => applied.clone(),
        Some(Form::Map) => merged_fields(shape, live, applied),
        Some(Form::List) => {
            let empty = Vec::new();
            let live = live.as_array().unwrap_or(&empty);
            merged_elements(shape, live, applied.as_array().unwrap_or(&empty))
        }
        _ => applied.clone(),
    }
}

fn merged_fields(shape: Shape<'_>, live: &Value, applied: &Value) -> Value {
    let none = Map::new();
    let (live, applied) = (live.as_object().unwrap_or(&none), applied.as_object().unwrap_or(&none));
    let untouched = live.iter().filter(|(name, _)| !applied.contains_key(*name));
    let mut out: Map<String, Value> = untouched.map(|(name, value)| (name.clone(), value.clone())).collect();
    for (name, value) in applied {
        let value = match live.get(name) {
            Some(live) => merged(shape.field(name), live, value),
            None => value.clone(),
        };
        out.insert(name.clone(), value);
    }
    Value::Object(out)
}

/// Applied elements stand in their order; live ones that are not applied stay where they were between
/// them.
fn merged_elements(shape: Shape<'_>, live: &[Value], applied: &[Value]) -> Value {
    let lists = Lists::new(shape, live, applied);
    let mut shared = lists.applied.iter().filter(|(identity, _)| lists.by_identity.contains_key(identity));
    let mut next_shared = shared.next().map(|(identity, _)| identity);
    let mut done = BTreeSet::new();
    let mut out = Vec::with_capacity(live.len().max(applied.len()));
    let (mut left, mut right) = (lists.live.iter().peekable(), lists.applied.iter().peekable());
    while left.peek().is_some() || right.peek().is_some() {
        if let (Some((at_left, _)), Some((at_right, _))) = (left.peek(), right.peek())
            && at_left != at_right
            && lists.is_applied(at_left)
            && next_shared.is_some_and(|next| next != at_left)
        {
            left.next();
            continue;
        }
        if let Some((identity, item)) = left.peek() {
            if !lists.is_applied(identity) {
                out.push((*item).clone());
                left.next();
                continue;
            }
            if done.contains(identity) || right.peek().is_some_and(|(at_right, _)| at_right == identity) {
                left.next();
            }
        }
        if let Some((identity, item)) = right.next() {
            out.push(lists.merged(identity, item));
            if next_shared == Some(identity) {
                next_shared = shared.next().map(|(identity, _)| identity);
            }
            done.insert(identity);
        }
    }
    Value::Array(out)
}

/// Both lists with the identities of their elements.
struct Lists<'s, 'v> {
    shape: Shape<'s>,
    live: Vec<(PathElement, &'v Value)>,
    applied: Vec<(PathElement, &'v Value)>,
    /// Live elements; none for those that stand twice, which are replaced and not merged.
    by_identity: BTreeMap<PathElement, Option<&'v Value>>,
    applied_identities: BTreeSet<PathElement>,
}

impl<'s, 'v> Lists<'s, 'v> {
    fn new(shape: Shape<'s>, live: &'v [Value], applied: &'v [Value]) -> Self {
        let identified = |items: &'v [Value]| -> Vec<(PathElement, &'v Value)> {
            items.iter().filter_map(|item| Some((shape.identity(item).ok()?, item))).collect()
        };
        let (live, applied) = (identified(live), identified(applied));
        let mut by_identity = BTreeMap::new();
        for (identity, item) in &live {
            let found = by_identity.entry(identity.clone());
            found.and_modify(|item| *item = None).or_insert(Some(*item));
        }
        let applied_identities = applied.iter().map(|(identity, _)| identity.clone()).collect();
        Self { shape, live, applied, by_identity, applied_identities }
    }

    fn is_applied(&self, identity: &PathElement) -> bool {
        self.applied_identities.contains(identity)
    }

    fn merged(&self, identity: &PathElement, applied: &Value) -> Value {
        match self.by_identity.get(identity) {
            Some(Some(live)) => merged(self.shape.element(), live, applied),
            _ => applied.clone(),
        }
    }
}
