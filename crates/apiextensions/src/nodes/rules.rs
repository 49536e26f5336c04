//! `x-kubernetes-validations` of one node, as far as it can be validated without compiling the CEL expressions.

use serde_json::Value;

use super::{list, text};
use apimachinery::error::FieldError;

const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// What is wrong with the rules of a node.
pub(super) fn check(schema: &Value, path: &str) -> Vec<FieldError> {
    let all = list(&schema["x-kubernetes-validations"]).iter().enumerate();
    all.flat_map(|(index, rule)| one(rule, schema, &format!("{path}.x-kubernetes-validations[{index}]")))
        .collect()
}

fn one(rule: &Value, schema: &Value, path: &str) -> Vec<FieldError> {
    let breaks = |text: &str| text.contains(['\n', '\r']);
    let expression = text(&rule["rule"]).trim();
    let given = text(&rule["message"]);
    let message = given.trim();
    let mut errors = Vec::new();
    let field = format!("{path}.message");
    if expression.is_empty() {
        errors.push(FieldError::required(format!("{path}.rule"), "rule is not specified"));
    } else if !given.is_empty() && message.is_empty() {
        errors.push(FieldError::invalid(field, given, "must be non-empty if specified"));
    } else if breaks(message) {
        errors.push(FieldError::invalid(field, given, "must not contain line breaks"));
    } else if breaks(expression) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(field, detail));
    }
    let message_expression = text(&rule["messageExpression"]);
    if !message_expression.is_empty() && message_expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(format!("{path}.messageExpression"), detail));
    }
    if let Some(reason) = rule["reason"].as_str().filter(|reason| !REASONS.contains(reason)) {
        errors.push(FieldError::not_supported(format!("{path}.reason"), reason, &REASONS));
    }
    let field_path = text(&rule["fieldPath"]);
    if !field_path.is_empty() && field_path.trim().is_empty() {
        let field = format!("{path}.fieldPath");
        errors.push(FieldError::invalid(field, field_path, "must be non-empty if specified"));
    }
    if breaks(field_path) {
        let field = format!("{path}.fieldPath");
        errors.push(FieldError::invalid(field, field_path, "must not contain line breaks"));
    }
    if !field_path.is_empty() && crate::rules::field_path(field_path, schema).is_none() {
        let field = format!("{path}.fieldPath");
        errors.push(FieldError::invalid(field, field_path, "must be a valid path"));
    }
    errors
}
