//! The Common Expression Language (CEL) in Kubernetes' dialect: parser, type checker, cost estimator and evaluator.
//! Each is bounded in depth, steps and memory for every input. Must not know what a Kubernetes object is.

mod ast;
mod authorizer;
mod budget;
mod check;
mod evaluate;
mod functions;
mod issue;
mod parse;
mod signatures;
#[cfg(test)]
mod tests;
mod time_text;
mod token;
mod types;
mod value;

use std::collections::BTreeSet;

pub use authorizer::{AccessCheck, Decision, Resource, Target};
pub use budget::{Budget, Failure};
pub use check::Environment;
pub use evaluate::Activation;
pub use functions::Hooks;
pub use issue::Issues;
pub use parse::RESERVED;
pub use types::{Field, Object, Type, UNBOUNDED};
pub use value::Value;

/// An expression that makes sense.
#[derive(Debug, Clone)]
pub struct Program {
    root: ast::Expr,
    result: Type,
    cost: u64,
    used: BTreeSet<String>,
    hooks: Hooks,
}

impl Program {
    /// Reads and checks an expression.
    pub fn compile(source: &str, environment: &Environment) -> Result<Self, Issues> {
        let root = parse::parse(source).map_err(|issues| Issues::of(source, &issues))?;
        let mut checker = check::Checker::new(environment);
        let known = checker.check(&root);
        if !checker.issues.is_empty() {
            return Err(Issues::of(source, &checker.issues));
        }
        let (used, hooks) = (checker.used, environment.hooks);
        Ok(Self { root, result: known.kind, cost: known.cost, used, hooks })
    }

    /// The type of its value.
    pub fn result(&self) -> &Type {
        &self.result
    }

    /// What evaluating it costs at most, by the sizes of the types it was compiled for.
    pub fn cost_max(&self) -> u64 {
        self.cost
    }

    /// Whether it uses a variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.used.contains(variable)
    }

    /// Its value for these variables, or why it has none.
    pub fn evaluate<'a>(
        &'a self,
        activation: &dyn Activation<'a>,
        budget: &Budget,
    ) -> Result<Value<'a>, Failure> {
        let mut evaluator = evaluate::Evaluator { activation, budget, hooks: self.hooks, scope: Vec::new() };
        evaluator.evaluate(&self.root)
    }
}
