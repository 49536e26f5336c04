//! Compares two objects of a kind: added, changed and removed fields as path sets. Must not know who owns the fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::{PathElement, same};
use super::set::PathSet;
use super::shape::{Form, Shape};

/// The paths by which a new object differs from an old one; no path is in two of the sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    /// Only in the old object.
    pub removed: PathSet,
    /// In both, with different values.
    pub modified: PathSet,
    /// Only in the new object.
    pub added: PathSet,
}

#[derive(Clone, Copy)]
enum Change {
    Removed,
    Modified,
    Added,
}

impl Comparison {
    /// How `new` differs from `old`, without the metadata that cannot be owned.
    pub fn of_objects(shape: Shape<'_>, old: &Value, new: &Value) -> Self {
        let mut comparison = Self::default();
        comparison.compare(shape, Some(old), Some(new));
        comparison
    }

    /// Whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Leaves out everything at and below the paths of a set.
    pub fn ignore(&mut self, ignored: &PathSet) {
        for set in [&mut self.removed, &mut self.modified, &mut self.added] {
            set.subtract_below(ignored);
        }
    }

    /// What is new in the new object: values that were added or changed.
    pub fn into_changed(self) -> PathSet {
        let mut changed = self.added;
        changed.merge(self.modified);
        changed
    }

    /// Collects the differences below this place and returns the one at this place.
    fn compare(&mut self, shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) -> Option<Change> {
        let old_form = old.and_then(|old| shape.form(old));
        let new_form = new.and_then(|new| shape.form(new));
        match (old_form, new_form) {
            (Some(one), Some(other)) if one != other => {
                // The value changed its type: what was below is gone, what is below is new.
                self.descend(shape, one, old, None);
                self.descend(shape, other, None, new);
                Some(Change::Modified)
            }
            (form, other) => {
                let form = form.or(other).unwrap_or(Form::Leaf);
                let is_leaf = form == Form::Leaf || is_empty(old) && is_empty(new);
                if !is_leaf {
                    self.descend(shape, form, old, new);
                }
                match (old, new) {
                    (None, Some(_)) => Some(Change::Added),
                    (Some(_), None) => Some(Change::Removed),
                    (Some(old), Some(new)) if is_leaf && !same(old, new) => Some(Change::Modified),
                    _ => None,
                }
            }
        }
    }

    fn descend(&mut self, shape: Shape<'_>, form: Form, old: Option<&Value>, new: Option<&Value>) {
        match form {
            Form::Leaf => {}
            Form::Map => {
                self.compare_fields(shape, old.and_then(Value::as_object), new.and_then(Value::as_object));
            }
            Form::List => self.compare_elements(shape, elements(old), elements(new)),
        }
    }

    fn compare_fields(
        &mut self,
        shape: Shape<'_>,
        old: Option<&Map<String, Value>>,
        new: Option<&Map<String, Value>>,
    ) {
        for (name, value) in old.into_iter().flatten() {
            let new_value = new.and_then(|new| new.get(name));
            self.compare_field(shape, name, (old, Some(value)), (new, new_value));
        }
        let added = new.into_iter().flatten();
        for (name, value) in added.filter(|(name, _)| old.is_none_or(|old| !old.contains_key(*name))) {
            self.compare_field(shape, name, (old, None), (new, Some(value)));
        }
    }

    fn compare_field(
        &mut self,
        shape: Shape<'_>,
        name: &str,
        (old_parent, old): (Option<&Map<String, Value>>, Option<&Value>),
        (new_parent, new): (Option<&Map<String, Value>>, Option<&Value>),
    ) {
        let old = shape.stored(name, old).or_else(|| old_parent.and_then(|_| shape.absent(name)));
        let new = shape.stored(name, new).or_else(|| new_parent.and_then(|_| shape.absent(name)));
        if shape.is_unownable(name) || old.is_none() && new.is_none() {
            return;
        }
        self.compare_below(|| PathElement::field(name), shape.field(name), old, new);
    }

    fn compare_below(
        &mut self,
        element: impl FnOnce() -> PathElement,
        shape: Shape<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
    ) {
        let mut below = Self::default();
        let change = below.compare(shape, old, new);
        if change.is_some() || !below.is_empty() {
            self.add(element(), change, below);
        }
    }

    fn add(&mut self, element: PathElement, change: Option<Change>, below: Self) {
        let (removed, modified, added) = match change {
            None => (false, false, false),
            Some(Change::Removed) => (true, false, false),
            Some(Change::Modified) => (false, true, false),
            Some(Change::Added) => (false, false, true),
        };
        let sets = [
            (&mut self.removed, removed, below.removed),
            (&mut self.modified, modified, below.modified),
            (&mut self.added, added, below.added),
        ];
        let mut element = Some(element);
        let mut left = sets.iter().filter(|(_, member, below)| *member || !below.is_empty()).count();
        for (set, member, below) in sets {
            if member || !below.is_empty() {
                left -= 1;
                let element = if left == 0 { element.take() } else { element.clone() };
                set.add(element.expect("only the last set takes it"), member, below);
            }
        }
    }

    /// Elements with one identity are compared as one.
    fn compare_elements(&mut self, shape: Shape<'_>, old: &[Value], new: &[Value]) {
        if old == new {
            return;
        }
        let mut pairs: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in old {
            if let Ok(identity) = shape.identity(item) {
                pairs.entry(identity).or_default().0.push(item);
            }
        }
        for item in new {
            if let Ok(identity) = shape.identity(item) {
                pairs.entry(identity).or_default().1.push(item);
            }
        }
        let shape = shape.element();
        for (identity, (old, new)) in pairs {
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => {
                    let (old, new) = (old.first().copied(), new.first().copied());
                    self.compare_below(|| identity, shape, old, new);
                }
                (old, new) => self.compare_duplicates(identity, shape, old, new),
            }
        }
    }

    fn compare_duplicates(
        &mut self,
        identity: PathElement,
        shape: Shape<'_>,
        old: &[&Value],
        new: &[&Value],
    ) {
        let change = match (old, new) {
            ([_, _, ..], [_, _, ..]) => {
                let equal = old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new));
                (!equal).then_some(Change::Modified)
            }
            ([_, _, ..], _) => {
                if let [new] = new {
                    self.compare_below(|| identity.clone(), shape, None, Some(new));
                }
                Some(Change::Removed)
            }
            _ => {
                if let [old] = old {
                    self.compare_below(|| identity.clone(), shape, Some(old), None);
                }
                Some(Change::Added)
            }
        };
        self.add(identity, change, Self::default());
    }
}

fn elements(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Whether there is nothing in a value; such values are owned whole.
pub(super) fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}
