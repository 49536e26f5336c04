//! A field error, in the words of Kubernetes' `field.Error`.

use serde_json::{Value, json};

use crate::gotext::{number_text, quoted};

/// What is wrong with a field; decides the words and the cause's `reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// The value has to be there.
    Required,
    /// The value is malformed or breaks a rule.
    Invalid,
    /// The value's JSON type is wrong.
    TypeInvalid,
    /// The value is not one of the allowed ones.
    NotSupported,
    /// The value stands twice where it may stand once.
    Duplicate,
    /// The value may not be set here.
    Forbidden,
    /// The string is too long.
    TooLong,
    /// The list or map has too many entries.
    TooMany,
    /// The value refers to something that is not there.
    NotFound,
    /// A rule of a definition does not hold for a value that is too large to print.
    Broken,
}

/// One wrong field of a rejected object.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// What is wrong.
    pub kind: FieldErrorKind,
    /// Where, as `spec.template.spec.containers[0].name`.
    pub field: String,
    /// The offending value; ignored for kinds that do not print it.
    pub value: Value,
    /// The rest of the sentence. For `NotSupported`: the allowed values, already formatted.
    pub detail: String,
}

impl FieldError {
    /// A field error of any kind.
    pub fn new(
        kind: FieldErrorKind,
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self { kind, field: field.into(), value: value.into(), detail: detail.into() }
    }

    /// `field: Required value: detail`.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, field, Value::Null, detail)
    }

    /// `field: Invalid value: value: detail`.
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, field, value, detail)
    }

    /// `field: Forbidden: detail`.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, Value::Null, detail)
    }

    /// `field: Duplicate value: value`.
    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(FieldErrorKind::Duplicate, field, value, "")
    }

    /// `field: Unsupported value: value: supported values: "a", "b"`.
    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, allowed: &[&str]) -> Self {
        let quoted: Vec<String> = allowed.iter().map(|text| quoted(text)).collect();
        let detail = match quoted.is_empty() {
            true => String::new(),
            false => format!("supported values: {}", quoted.join(", ")),
        };
        Self::new(FieldErrorKind::NotSupported, field, value, detail)
    }

    /// `field: Too long: may not be more than N bytes`.
    pub fn too_long(field: impl Into<String>, limit_bytes: usize) -> Self {
        let detail = format!("may not be more than {limit_bytes} bytes");
        Self::new(FieldErrorKind::TooLong, field, Value::Null, detail)
    }

    /// `field: Too many: actual: must have at most N items`.
    pub fn too_many(field: impl Into<String>, actual: usize, limit: usize) -> Self {
        let detail = format!("must have at most {limit} items");
        Self::new(FieldErrorKind::TooMany, field, Value::from(actual), detail)
    }

    /// The entry of `details.causes` for this field.
    pub fn cause(&self) -> Value {
        json!({ "reason": self.reason(), "message": self.body(), "field": self.field })
    }

    fn reason(&self) -> &'static str {
        match self.kind {
            FieldErrorKind::Required => "FieldValueRequired",
            FieldErrorKind::Invalid | FieldErrorKind::Broken => "FieldValueInvalid",
            FieldErrorKind::TypeInvalid => "FieldValueTypeInvalid",
            FieldErrorKind::NotSupported => "FieldValueNotSupported",
            FieldErrorKind::Duplicate => "FieldValueDuplicate",
            FieldErrorKind::Forbidden => "FieldValueForbidden",
            FieldErrorKind::TooLong => "FieldValueTooLong",
            FieldErrorKind::TooMany => "FieldValueTooMany",
            FieldErrorKind::NotFound => "FieldValueNotFound",
        }
    }

    fn headline(&self) -> &'static str {
        match self.kind {
            FieldErrorKind::Required => "Required value",
            FieldErrorKind::Invalid | FieldErrorKind::TypeInvalid | FieldErrorKind::Broken => "Invalid value",
            FieldErrorKind::NotSupported => "Unsupported value",
            FieldErrorKind::Duplicate => "Duplicate value",
            FieldErrorKind::Forbidden => "Forbidden",
            FieldErrorKind::TooLong => "Too long",
            FieldErrorKind::TooMany => "Too many",
            FieldErrorKind::NotFound => "Not found",
        }
    }

    fn body(&self) -> String {
        let mut body = self.headline().to_owned();
        if !matches!(
            self.kind,
            FieldErrorKind::Required
                | FieldErrorKind::Forbidden
                | FieldErrorKind::TooLong
                | FieldErrorKind::Broken
        ) {
            body = format!("{body}: {}", printed(&self.value));
        }
        match self.detail.as_str() {
            "" => body,
            detail => format!("{body}: {detail}"),
        }
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.field, self.body())
    }
}

/// Kubernetes prints strings quoted, nulls as `null`, and everything else as JSON.
fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) => number_text(number),
        other => other.to_string(),
    }
}
