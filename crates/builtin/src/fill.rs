//! Sets absent fields of a value, from tables of dotted paths. Must not know any kind.

use serde_json::{Map, Value, json};

use apimachinery::quantity::Quantity;

/// A path and what stands there when nothing does. `a.b[].c` means `c` of every element of `b` in `a`;
/// a rule whose way leads through something absent does nothing.
pub(super) type Rule = (&'static str, Fill);

/// What an absent field gets.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fill {
    /// A text; the empty text counts as absent.
    Text(&'static str),
    /// The empty text, which a client may not see missing.
    EmptyText,
    /// A number.
    Number(i64),
    /// A number where zero counts as absent.
    Positive(i64),
    /// A truth value.
    Flag(bool),
    /// An object without fields.
    Object,
    /// An explicit null.
    Null,
}

impl Fill {
    fn is_absent(self, value: Option<&Value>) -> bool {
        match (self, value) {
            (Self::Null, value) => value.is_none(),
            (_, None | Some(Value::Null)) => true,
            (Self::Text(_), Some(value)) => value == "",
            (Self::Positive(_), Some(value)) => value == 0,
            _ => false,
        }
    }

    fn value(self) -> Value {
        match self {
            Self::Text(text) => text.into(),
            Self::EmptyText => "".into(),
            Self::Number(number) | Self::Positive(number) => number.into(),
            Self::Flag(flag) => flag.into(),
            Self::Object => json!({}),
            Self::Null => Value::Null,
        }
    }
}

/// Applies rules in their order.
pub(super) fn fill(value: &mut Value, rules: &[Rule]) {
    for (path, absent) in rules {
        let (parents, field) = path.rsplit_once('.').unwrap_or(("", path));
        each(value, parents, &mut |parent| {
            let Some(fields) = parent.as_object_mut() else { return };
            if absent.is_absent(fields.get(field)) {
                fields.insert(field.to_owned(), absent.value());
            }
        });
    }
}

/// Calls `act` with every object at a path that is there; an empty path is the value itself.
pub(super) fn each(value: &mut Value, path: &str, act: &mut dyn FnMut(&mut Value)) {
    if path.is_empty() {
        return act(value);
    }
    let (segment, rest) = path.split_once('.').unwrap_or((path, ""));
    let list = segment.strip_suffix("[]");
    let Some(next) = value.get_mut(list.unwrap_or(segment)) else { return };
    match (list, next) {
        (Some(_), Value::Array(items)) => items.iter_mut().for_each(|item| each(item, rest, act)),
        (None, next @ Value::Object(_)) => each(next, rest, act),
        _ => {}
    }
}

/// The object at a field, made where there is none; nothing where something else stands there.
pub(super) fn object<'a>(value: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    let slot = value.as_object_mut()?.entry(field).or_insert(Value::Null);
    if slot.is_null() {
        *slot = json!({});
    }
    slot.as_object_mut()
}

/// Sets a field of an object.
pub(super) fn set(value: &mut Value, field: &str, to: impl Into<Value>) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert(field.to_owned(), to.into());
    }
}

/// Whether a field is absent, null, empty text or an empty list or map.
pub(super) fn is_unset(value: &Value, field: &str) -> bool {
    match value.get(field) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(_) => false,
    }
}

/// Writes quantities canonically; `path` leads to single quantities. What is no quantity stays for
/// validation to refuse.
pub(super) fn canonical(value: &mut Value, path: &str, field: &str) {
    each(value, path, &mut |parent| {
        if let Some(quantity) = parent.get_mut(field).filter(|quantity| !quantity.is_null()) {
            rewrite(quantity, None);
        }
    });
}

/// Writes every quantity of a map of resources canonically, rounded up to the milli.
pub(super) fn canonical_map(value: &mut Value, path: &str) {
    each(value, path, &mut |map| {
        for quantity in map.as_object_mut().into_iter().flatten() {
            rewrite(quantity.1, Some(3));
        }
    });
}

fn rewrite(value: &mut Value, decimals: Option<u8>) {
    if let Ok(quantity) = Quantity::from_value(value) {
        let rounded = decimals.map_or(quantity, |decimals| quantity.rounded_up(decimals));
        *value = rounded.to_string().into();
    }
}
