//! `matchConditions`: CEL expressions that all have to be true for a webhook or policy to be called.

use std::collections::BTreeMap;

use cel::{AccessCheck, Activation, Budget, Decision, Failure, Program, Type, Value as Cel};
use serde_json::Value;

use super::ExpressionAuthorizer;
use crate::storage::text;
use schema::expressions::{COST_OF_CONDITIONS_MAX, COST_OF_ONE_MAX, Scope, admission_environment};

/// The conditions of a webhook or a policy.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    all: Vec<(String, Result<Program, String>)>,
}

impl Conditions {
    /// Reads conditions. What does not compile was never accepted, and fails whatever it is asked about.
    pub fn compile(source: &Value, scope: Scope, defined: &BTreeMap<String, Type>) -> Self {
        let source = source.as_array().map(Vec::as_slice).unwrap_or_default();
        if source.is_empty() {
            return Self::default();
        }
        let environment = admission_environment(scope, defined);
        let one = |condition: &Value| {
            let program = Program::compile(text(condition, "/expression"), &environment);
            (text(condition, "/name").to_owned(), program.map_err(|issues| issues.to_string()))
        };
        Self { all: source.iter().map(one).collect() }
    }

    /// Whether there is nothing to ask.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether all hold. One that does not hold decides, whatever fails besides.
    pub fn hold<'a>(&'a self, activation: &dyn Activation<'a>) -> Result<bool, String> {
        let mut failed = Vec::new();
        let mut left = COST_OF_CONDITIONS_MAX;
        for (name, program) in &self.all {
            let budget = Budget::new(COST_OF_ONE_MAX.min(left));
            let value = match program {
                Ok(program) => program.evaluate(activation, &budget),
                Err(issues) => Err(Failure::Wrong(format!("compilation failed: {issues}"))),
            };
            left = left.saturating_sub(budget.spent());
            match value {
                Ok(Cel::Bool(true)) => {}
                Ok(Cel::Bool(false)) => return Ok(false),
                Ok(_) => failed.push(format!("match condition '{name}' is neither true nor false")),
                Err(failure) => failed.push(format!("match condition '{name}' failed: {failure}")),
            }
        }
        match failed.is_empty() {
            true => Ok(true),
            false => Err(failed.join(", ")),
        }
    }
}

/// A write as conditions of webhooks see it.
pub(super) struct Write<'a> {
    pub object: &'a Value,
    pub old: &'a Value,
    pub request: &'a Value,
    pub authorizer: ExpressionAuthorizer<'a>,
}

static ANY: Type = Type::ANY;

impl<'a> Activation<'a> for Write<'a> {
    fn variable(&self, name: &str) -> Option<Cel<'a>> {
        match name {
            "object" => Some(Cel::of(self.object, &ANY)),
            "oldObject" => Some(Cel::of(self.old, &ANY)),
            "request" => Some(Cel::of(self.request, &ANY)),
            name => self.authorizer.variable(name),
        }
    }

    fn dotted(&self, variable: &str, field: &str) -> Option<Cel<'a>> {
        self.authorizer.dotted(variable, field)
    }

    fn decide(&self, question: &AccessCheck, verb: &str) -> Decision {
        self.authorizer.decide(question, verb)
    }
}
