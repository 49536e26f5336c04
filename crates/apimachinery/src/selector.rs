//! Label and field selectors. Must not know where objects are stored: they see a value, or the bytes of one.

use std::fmt;

use serde_json::Value;

use crate::error::{ApiError, FieldError};

mod field;
mod parse;
mod scan;

pub use field::{FieldSelector, SelectableFields};

/// A question about labels: every requirement must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
    /// A missing `metav1.LabelSelector` selects nothing, an empty one everything.
    nothing: bool,
}

/// One comparison of one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// How the label is compared.
    pub operator: Operator,
    /// What it is compared with, sorted.
    pub values: Vec<String>,
}

/// The comparisons of the selector language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `key in (a,b)`
    In,
    /// `key notin (a,b)`
    NotIn,
    /// `key=a`
    Equals,
    /// `key==a`
    DoubleEquals,
    /// `key!=a`
    NotEquals,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
    /// `key>1`
    GreaterThan,
    /// `key<1`
    LessThan,
}

impl LabelSelector {
    /// Reads the language of `?labelSelector=`.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let requirements = parse::requirements(text).map_err(ApiError::bad_request)?;
        Ok(Self::all_of(requirements))
    }

    /// Reads a `metav1.LabelSelector`; null selects nothing.
    pub fn from_value(selector: &Value) -> Result<Self, String> {
        if selector.is_null() {
            return Ok(Self { requirements: Vec::new(), nothing: true });
        }
        let mut requirements = Vec::new();
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            let values = vec![value.as_str().unwrap_or_default().to_owned()];
            requirements.push(Requirement::new(key, Operator::Equals, values)?);
        }
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            requirements.push(Requirement::from_expression(expression)?);
        }
        Ok(Self::all_of(requirements))
    }

    /// Reads a plain map of labels, as in `Service.spec.selector`.
    pub fn from_labels(labels: &Value) -> Self {
        let entries = labels.as_object().into_iter().flatten();
        Self::all_of(entries.map(|(key, value)| Requirement::equals(key, value)).collect())
    }

    fn all_of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        Self { requirements, nothing: false }
    }

    /// Whether every object matches.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty() && !self.nothing
    }

    /// Whether labels match; `lookup` gives the value of a key.
    pub fn matches<Text: AsRef<str>>(&self, lookup: impl Fn(&str) -> Option<Text>) -> bool {
        !self.nothing
            && self
                .requirements
                .iter()
                .all(|requirement| requirement.holds(lookup(&requirement.key).as_ref().map(AsRef::as_ref)))
    }

    /// Whether a map of labels matches.
    pub fn matches_labels(&self, labels: &Value) -> bool {
        self.matches(|key| labels.get(key).and_then(Value::as_str))
    }

    /// Whether the labels of a well-formed JSON object match; reads no further than its labels.
    pub fn matches_raw(&self, object: &[u8]) -> bool {
        if self.is_everything() {
            return true;
        }
        let labels = scan::find(object, &["metadata", "labels"]);
        self.matches(|key| labels.and_then(|labels| scan::find(labels, &[key])).and_then(scan::text))
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(formatter, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl Requirement {
    fn new(key: &str, operator: Operator, mut values: Vec<String>) -> Result<Self, String> {
        let wrong = parse::wrong_requirement(key, operator, &values);
        if !wrong.is_empty() {
            return Err(joined(&wrong));
        }
        values.sort();
        Ok(Self { key: key.to_owned(), operator, values })
    }

    fn equals(key: &str, value: &Value) -> Self {
        let values = vec![value.as_str().unwrap_or_default().to_owned()];
        Self { key: key.to_owned(), operator: Operator::Equals, values }
    }

    fn from_expression(expression: &Value) -> Result<Self, String> {
        let name = expression["operator"].as_str().unwrap_or_default();
        let operator = match name {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => return Err(format!("{name:?} is not a valid label selector operator")),
        };
        let values = expression["values"].as_array().into_iter().flatten();
        let values = values.map(|value| value.as_str().unwrap_or_default().to_owned()).collect();
        Self::new(expression["key"].as_str().unwrap_or_default(), operator, values)
    }

    fn holds(&self, label: Option<&str>) -> bool {
        let is_listed = |label: &str| self.values.iter().any(|value| value == label);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => label.is_some_and(is_listed),
            Operator::NotIn | Operator::NotEquals => !label.is_some_and(is_listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => self.compared(label).is_some_and(|(label, limit)| label > limit),
            Operator::LessThan => self.compared(label).is_some_and(|(label, limit)| label < limit),
        }
    }

    fn compared(&self, label: Option<&str>) -> Option<(i64, i64)> {
        Some((label?.parse().ok()?, self.values.first()?.parse().ok()?))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::Exists => write!(formatter, "{key}"),
            Operator::DoesNotExist => write!(formatter, "!{key}"),
            Operator::In => write!(formatter, "{key} in ({values})"),
            Operator::NotIn => write!(formatter, "{key} notin ({values})"),
            Operator::Equals => write!(formatter, "{key}={values}"),
            Operator::DoubleEquals => write!(formatter, "{key}=={values}"),
            Operator::NotEquals => write!(formatter, "{key}!={values}"),
            Operator::GreaterThan => write!(formatter, "{key}>{values}"),
            Operator::LessThan => write!(formatter, "{key}<{values}"),
        }
    }
}

/// Several field errors in one line, as Kubernetes prints an aggregate.
fn joined(errors: &[FieldError]) -> String {
    match errors {
        [one] => one.to_string(),
        many => format!("[{}]", many.iter().map(FieldError::to_string).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests;
