//! A value together with its field path, and the checks that many fields share. Must not know any kind.

use serde_json::Value;

use apimachinery::error::{FieldError, FieldErrorKind};
use apimachinery::names;
use apimachinery::selector::LabelSelector;

/// What was found wrong so far.
pub(super) type Errors = Vec<FieldError>;

static ABSENT: Value = Value::Null;

/// A value and its path; an absent field is null.
#[derive(Clone)]
pub(super) struct Field<'a> {
    pub(super) value: &'a Value,
    pub(super) path: String,
}

impl<'a> Field<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    /// The field at a dotted path.
    pub(super) fn at(&self, path: &str) -> Self {
        let value = path.split('.').try_fold(self.value, |value, key| value.get(key)).unwrap_or(&ABSENT);
        let joined = if self.path.is_empty() { path.to_owned() } else { format!("{}.{path}", self.path) };
        Self { value, path: joined }
    }

    /// The elements of the list at a dotted path.
    pub(super) fn items(&self, path: &str) -> Vec<Self> {
        let list = self.at(path);
        let items = list.value.as_array().map(Vec::as_slice).unwrap_or_default().iter().enumerate();
        items.map(|(index, value)| Self { value, path: format!("{}[{index}]", list.path) }).collect()
    }

    /// The entries of the map at a dotted path, as `path[key]`.
    pub(super) fn entries(&self, path: &str) -> Vec<(&'a str, Self)> {
        let map = self.at(path);
        let entries = map.value.as_object().into_iter().flatten();
        entries
            .map(|(key, value)| (key.as_str(), Self { value, path: format!("{}[{key}]", map.path) }))
            .collect()
    }

    pub(super) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    pub(super) fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    pub(super) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether nothing stands here, or something without content.
    pub(super) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        }
    }

    pub(super) fn required(&self, detail: &str) -> FieldError {
        FieldError::required(self.path.clone(), detail)
    }

    pub(super) fn invalid(&self, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(self.path.clone(), self.value.clone(), detail)
    }

    pub(super) fn forbidden(&self, detail: impl Into<String>) -> FieldError {
        FieldError::forbidden(self.path.clone(), detail)
    }

    pub(super) fn duplicate(&self) -> FieldError {
        FieldError::duplicate(self.path.clone(), self.value.clone())
    }

    pub(super) fn not_found(&self) -> FieldError {
        FieldError::new(FieldErrorKind::NotFound, self.path.clone(), self.text(), "")
    }

    pub(super) fn not_supported(&self, allowed: &[&str]) -> FieldError {
        FieldError::not_supported(self.path.clone(), self.value.clone(), allowed)
    }

    /// Refuses a number below zero.
    pub(super) fn check_non_negative(&self, errors: &mut Errors) {
        if self.number().is_some_and(|number| number < 0) {
            errors.push(self.invalid(NON_NEGATIVE));
        }
    }

    /// Refuses a text that is set and none of those allowed.
    pub(super) fn check_one_of(&self, allowed: &[&str], errors: &mut Errors) {
        if self.is_set() && !allowed.contains(&self.text()) {
            errors.push(self.not_supported(allowed));
        }
    }

    /// Refuses an absent or empty text.
    pub(super) fn check_required(&self, errors: &mut Errors) {
        if self.is_empty() {
            errors.push(self.required(""));
        }
    }

    /// Refuses a text by the rules for names of some sort.
    pub(super) fn check_name(&self, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
        errors.extend(rule(self.text()).into_iter().map(|why| self.invalid(why)));
    }

    /// As `check_name`, unless nothing stands here.
    pub(super) fn check_optional_name(&self, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
        if !self.is_empty() {
            self.check_name(rule, errors);
        }
    }

    /// Refuses a value that changed.
    pub(super) fn check_immutable(&self, old: &Value, errors: &mut Errors) {
        if !same(self.value, old) {
            errors.push(self.invalid("field is immutable"));
        }
    }
}

pub(super) const NON_NEGATIVE: &str = "must be greater than or equal to 0";

/// Whether two values mean the same: absent, null and empty are one.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(left), Value::Object(right)) => {
            let keys = left.keys().chain(right.keys().filter(|key| !left.contains_key(*key)));
            keys.into_iter()
                .all(|key| same(left.get(key).unwrap_or(&ABSENT), right.get(key).unwrap_or(&ABSENT)))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        _ => one == other || (is_void(one) && is_void(other)),
    }
}

fn is_void(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_void),
        _ => false,
    }
}

/// Whether a path segment stands in the text.
pub(super) fn has_segment(text: &str, segment: &str) -> bool {
    text.split('/').any(|part| part == segment)
}

/// The labels of a map: keys and values by their rules, both told of the map itself.
pub(super) fn check_labels(labels: &Field<'_>, errors: &mut Errors) {
    let rules = (names::label_key, names::label_value);
    for (key, value) in labels.value.as_object().into_iter().flatten() {
        let refuse = |text: &str, why: String| FieldError::invalid(labels.path.clone(), text, why);
        errors.extend(rules.0(key).into_iter().map(|why| refuse(key, why)));
        let value = value.as_str().unwrap_or_default();
        errors.extend(rules.1(value).into_iter().map(|why| refuse(value, why)));
    }
}

/// A `metav1.LabelSelector`; one that is absent is no error here.
pub(super) fn check_selector(selector: &Field<'_>, errors: &mut Errors) {
    check_labels(&selector.at("matchLabels"), errors);
    for expression in selector.items("matchExpressions") {
        let (operator, values) = (expression.at("operator"), expression.at("values"));
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => {
                errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                errors.push(
                    values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
                );
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.push(operator.invalid("not a valid selector operator")),
        }
        expression.at("key").check_name(names::label_key, errors);
        for value in expression.items("values") {
            value.check_name(names::label_value, errors);
        }
    }
}

/// Whether a selector can be read and does not select these labels.
pub(super) fn misses(selector: &Field<'_>, labels: &Value) -> bool {
    LabelSelector::from_value(selector.value).is_ok_and(|selector| !selector.matches_labels(labels))
}

/// An int-or-percentage, zero or more.
pub(super) fn check_amount(amount: &Field<'_>, errors: &mut Errors) {
    if amount.value.is_string() && percent(amount.text()).is_none() {
        errors.push(amount.invalid(
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
             regex used for validation is '[0-9]+%')",
        ));
    }
    amount.check_non_negative(errors);
}

/// Refuses a percentage above one hundred.
pub(super) fn check_at_most_all(amount: &Field<'_>, errors: &mut Errors) {
    if percent(amount.text()).is_some_and(|percent| percent > 100) {
        errors.push(amount.invalid("must not be greater than 100%"));
    }
}

/// The number of an int-or-percentage, zero where it cannot be read.
pub(super) fn amount(field: &Field<'_>) -> i64 {
    field.number().or_else(|| percent(field.text())).unwrap_or(0)
}

fn percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}
