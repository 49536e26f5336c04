//! An object as the printers read it: every field may be absent, and then has its zero value.
//! Must not know any kind.

use jiff::Timestamp;
use serde_json::Value;

use super::age;
use apimachinery::quantity::Quantity;
use apimachinery::selector::LabelSelector;

pub(super) const NONE: &str = "<none>";

/// An object and the moment its ages are measured at.
pub(super) struct Object<'a> {
    pub(super) value: &'a Value,
    pub(super) now: Timestamp,
}

impl<'a> Object<'a> {
    pub(super) fn new(value: &'a Value, now: Timestamp) -> Self {
        Self { value, now }
    }

    /// The value at a dotted path, null where there is none.
    pub(super) fn at(&self, path: &str) -> &'a Value {
        at(self.value, path)
    }

    pub(super) fn text(&self, path: &str) -> &'a str {
        text(self.value, path)
    }

    /// The text at a path, `<none>` where it is empty.
    pub(super) fn text_or_none(&self, path: &str) -> &'a str {
        or(self.text(path), NONE)
    }

    pub(super) fn integer(&self, path: &str) -> i64 {
        integer(self.value, path)
    }

    pub(super) fn list(&self, path: &str) -> &'a [Value] {
        list(self.value, path)
    }

    pub(super) fn name(&self) -> &'a str {
        self.text("metadata.name")
    }

    pub(super) fn age(&self) -> String {
        self.since("metadata.creationTimestamp")
    }

    pub(super) fn since(&self, path: &str) -> String {
        age::since(self.at(path), self.now)
    }

    pub(super) fn is_being_deleted(&self) -> bool {
        self.at("metadata.deletionTimestamp").is_string()
    }

    /// The status of a condition, empty where there is none.
    pub(super) fn condition(&self, kind: &str) -> &'a str {
        let condition =
            self.list("status.conditions").iter().find(|condition| text(condition, "type") == kind);
        condition.map_or("", |condition| text(condition, "status"))
    }

    /// A `metav1.LabelSelector` as text, `<none>` where it selects everything.
    pub(super) fn selector(&self, path: &str) -> String {
        match LabelSelector::from_value(self.at(path)) {
            Ok(selector) => or(&selector.to_string(), NONE).to_owned(),
            Err(_) => String::from("<error>"),
        }
    }

    /// A map of labels as text, `<none>` where it is empty.
    pub(super) fn labels(&self, path: &str) -> String {
        let labels = self.at(path).as_object().into_iter().flatten();
        let pairs: Vec<String> =
            labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
        or(&pairs.join(","), NONE).to_owned()
    }

    /// A quantity in its canonical form, `0` where there is none.
    pub(super) fn quantity(&self, path: &str) -> String {
        quantity(self.at(path))
    }
}

/// The value at a dotted path, null where there is none.
pub(super) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    static ABSENT: Value = Value::Null;
    path.split('.').try_fold(value, |value, key| value.get(key)).unwrap_or(&ABSENT)
}

pub(super) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).as_str().unwrap_or_default()
}

pub(super) fn integer(value: &Value, path: &str) -> i64 {
    at(value, path).as_i64().unwrap_or_default()
}

pub(super) fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The text, or another one in place of an empty one.
pub(super) fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

pub(super) fn quantity(value: &Value) -> String {
    match value {
        Value::Null => String::from("0"),
        other => Quantity::from_value(other).map(|quantity| quantity.to_string()).unwrap_or_default(),
    }
}

/// Texts in one line.
pub(super) fn joined<'a>(texts: impl IntoIterator<Item = &'a str>, separator: &str) -> String {
    texts.into_iter().collect::<Vec<_>>().join(separator)
}
