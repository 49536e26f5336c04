//! A compiled ValidatingAdmissionPolicy: match constraints, variables, validations and audit annotations.

use std::collections::BTreeMap;

use cel::{Program, Type};
use serde_json::Value;

use crate::admission::conditions::Conditions;
use crate::admission::matching::Matching;
use crate::storage::text;
use schema::expressions::{Scope, admission_environment};

/// An expression, or why it is none. What was accepted compiles; what was stored before fails.
pub(super) type Compiled = Result<Program, String>;

/// One policy.
pub(super) struct Policy {
    pub name: String,
    pub is_ignored_when_failing: bool,
    /// apiVersion and kind of its parameters, if it has any.
    pub param_kind: Option<(String, String)>,
    pub matching: Matching,
    pub conditions: Conditions,
    /// In the order in which they are defined; each may use those before it.
    pub variables: BTreeMap<String, Compiled>,
    pub validations: Vec<Validation>,
    /// What is written down about a write: keys and expressions.
    pub audit_annotations: Vec<(String, Compiled, String)>,
}

/// Something that has to hold.
pub(super) struct Validation {
    pub program: Compiled,
    pub expression: String,
    pub message: String,
    pub message_program: Option<Program>,
    pub reason: String,
}

impl Policy {
    pub fn compile(source: &Value) -> Self {
        let spec = &source["spec"];
        let param_kind = spec["paramKind"].is_object().then(|| {
            (text(spec, "/paramKind/apiVersion").to_owned(), text(spec, "/paramKind/kind").to_owned())
        });
        let scope = Scope::Policy { has_params: param_kind.is_some() };
        let list = |key: &str| spec[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let compiled_in = |scope: Scope, source: &str, defined: &BTreeMap<String, Type>| {
            Program::compile(source, &admission_environment(scope, defined))
                .map_err(|issues| issues.to_string())
        };
        let compiled = |source: &str, defined: &BTreeMap<String, Type>| compiled_in(scope, source, defined);
        let mut defined = BTreeMap::new();
        let mut variables = BTreeMap::new();
        for variable in list("variables") {
            let name = text(variable, "/name").to_owned();
            let program = compiled(text(variable, "/expression"), &defined);
            defined
                .insert(name.clone(), program.as_ref().map_or(Type::ANY, |program| program.result().clone()));
            variables.insert(name, program);
        }
        let validation = |source: &Value| Validation {
            program: compiled(text(source, "/expression"), &defined),
            expression: text(source, "/expression").trim().to_owned(),
            message: text(source, "/message").trim().to_owned(),
            message_program: source["messageExpression"]
                .as_str()
                .and_then(|text| compiled_in(scope.of_message(), text, &defined).ok()),
            reason: text(source, "/reason").to_owned(),
        };
        let annotation = |source: &Value| {
            let expression = text(source, "/valueExpression").trim();
            (text(source, "/key").to_owned(), compiled(expression, &defined), expression.to_owned())
        };
        Self {
            name: text(source, "/metadata/name").to_owned(),
            is_ignored_when_failing: spec["failurePolicy"] == "Ignore",
            param_kind,
            matching: Matching::of_policy(&spec["matchConstraints"]),
            conditions: Conditions::compile(&spec["matchConditions"], scope, &BTreeMap::new()),
            validations: list("validations").iter().map(validation).collect(),
            audit_annotations: list("auditAnnotations").iter().map(annotation).collect(),
            variables,
        }
    }
}
