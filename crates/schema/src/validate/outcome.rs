//! The result of validating one value against one schema: the failures, and how much of the schema matched. `anyOf`
//! and `oneOf` report the alternative that matched most, so the count must be Kubernetes' own.

use serde_json::Value;

use crate::structural::child;
use apimachinery::error::{FieldError, FieldErrorKind};

/// One failure, in two wordings: the message that identifies it for deduplication, and the field error.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    /// The path below the checked value; none where Kubernetes does not point at a field.
    name: Option<String>,
    kind: FieldErrorKind,
    value: Value,
    detail: String,
    sentence: String,
}

impl Failure {
    /// A failure at a field, whose sentence is also its detail.
    pub(super) fn new(kind: FieldErrorKind, name: &str, value: impl Into<Value>, sentence: String) -> Self {
        let detail = sentence.clone();
        Self { name: Some(name.to_owned()), kind, value: value.into(), detail, sentence }
    }

    /// A failure whose detail reads otherwise than its sentence.
    pub(super) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// A failure of a combination, which Kubernetes reports without a field.
    pub(super) fn nowhere(sentence: String) -> Self {
        let detail = sentence.clone();
        Self { name: None, kind: FieldErrorKind::Invalid, value: "".into(), detail, sentence }
    }

    /// The field error, for a value that itself stands at `path`.
    pub(super) fn at(self, path: &str) -> FieldError {
        let name = self.name.unwrap_or_default();
        let field = match (path, name.strip_prefix('.').unwrap_or(&name)) {
            ("", "") => String::from("<nil>"),
            (path, "") => path.to_owned(),
            (path, name) => child(path, name),
        };
        FieldError::new(self.kind, field, self.value, self.detail)
    }
}

/// Failures without repetition, and the number of checks that were made.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// What went wrong, in the order it was found.
    pub(super) failures: Vec<Failure>,
    /// How many checks passed or applied; Kubernetes' `MatchCount`.
    pub(super) matches: usize,
}

impl Outcome {
    /// Whether nothing went wrong.
    pub(super) fn is_valid(&self) -> bool {
        self.failures.is_empty()
    }

    /// Adds a failure unless the same sentence is there.
    pub(super) fn fail(&mut self, failure: Failure) {
        if !self.failures.iter().any(|known| known.sentence == failure.sentence) {
            self.failures.push(failure);
        }
    }

    /// Adds the failures and the count of a part.
    pub(super) fn merge(&mut self, part: Outcome) {
        self.matches += part.matches;
        part.failures.into_iter().for_each(|failure| self.fail(failure));
    }
}
