//! Evaluates a policy for one write with one parameter object. Variables are evaluated lazily and once.

use std::cell::RefCell;
use std::collections::BTreeMap;

use cel::{AccessCheck, Activation, Budget, Decision, Failure, Program, Type, Value as Cel};
use serde_json::Value;

use super::policy::{Compiled, Policy, Validation};
use crate::admission::ExpressionAuthorizer;
use schema::expressions::{COST_OF_ALL_MAX, COST_OF_ONE_MAX, MESSAGE_BYTES_MAX};

static ANY: Type = Type::ANY;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Something that does not hold.
pub(super) struct Finding {
    /// Which of the policy's validations it is.
    pub index: usize,
    pub message: String,
    pub reason: String,
}

/// What a policy says about a write.
#[derive(Default)]
pub(super) struct Findings {
    pub failed: Vec<Finding>,
    pub audit_annotations: Vec<(String, String)>,
}

/// What the expressions of a policy see.
pub(super) struct Evaluation<'a> {
    policy: &'a Policy,
    variables: [(&'static str, &'a Value); 5],
    authorizer: ExpressionAuthorizer<'a>,
    made: RefCell<BTreeMap<String, Result<Cel<'a>, Failure>>>,
}

impl<'a> Activation<'a> for Evaluation<'a> {
    fn variable(&self, name: &str) -> Option<Cel<'a>> {
        let known = self.variables.iter().find(|(known, _)| *known == name);
        known.map(|(_, value)| Cel::of(value, &ANY)).or_else(|| self.authorizer.variable(name))
    }

    fn dotted(&self, variable: &str, field: &str) -> Option<Cel<'a>> {
        self.authorizer.dotted(variable, field)
    }

    fn decide(&self, question: &AccessCheck, verb: &str) -> Decision {
        self.authorizer.decide(question, verb)
    }

    fn member(&self, variable: &str, field: &str, budget: &Budget) -> Option<Result<Cel<'a>, Failure>> {
        if variable != "variables" {
            return None;
        }
        if let Some(made) = self.made.borrow().get(field) {
            return Some(made.clone());
        }
        let value = evaluate(self.policy.variables.get(field)?, self, budget);
        let value = value.map_err(|failure| match failure {
            Failure::Exhausted => Failure::Exhausted,
            wrong => Failure::Wrong(format!("composited variable {field:?} fails to evaluate: {wrong}")),
        });
        self.made.borrow_mut().insert(field.to_owned(), value.clone());
        Some(value)
    }
}

fn evaluate<'a>(
    program: &'a Compiled,
    evaluation: &Evaluation<'a>,
    budget: &Budget,
) -> Result<Cel<'a>, Failure> {
    match program {
        Ok(program) => program.evaluate(evaluation, budget),
        Err(issues) => Err(Failure::Wrong(format!("compilation failed: {issues}"))),
    }
}

impl<'a> Evaluation<'a> {
    pub fn new(
        policy: &'a Policy,
        variables: [(&'static str, &'a Value); 5],
        authorizer: ExpressionAuthorizer<'a>,
    ) -> Self {
        Self { policy, variables, authorizer, made: RefCell::default() }
    }

    /// Evaluates all validations and audit annotations of the policy.
    pub fn findings(&self) -> Findings {
        let mut findings = Findings::default();
        match self.policy.conditions.hold(self) {
            Ok(true) => {}
            Ok(false) => return findings,
            Err(why) => {
                self.fail(&mut findings, 0, why);
                return findings;
            }
        }
        let mut left = COST_OF_ALL_MAX;
        for (index, validation) in self.policy.validations.iter().enumerate() {
            let budget = Budget::new(COST_OF_ONE_MAX.min(left));
            let value = evaluate(&validation.program, self, &budget);
            left = left.saturating_sub(budget.spent());
            match value {
                _ if left == 0 => {
                    self.fail(&mut findings, index, OUT_OF_BUDGET.to_owned());
                    break;
                }
                Ok(Cel::Bool(true)) => {}
                Ok(_) => {
                    let message = self.message(validation, &mut left);
                    findings.failed.push(Finding { index, message, reason: validation.reason.clone() });
                }
                Err(failure) => {
                    let message =
                        format!("expression '{}' resulted in error: {failure}", validation.expression);
                    self.fail(&mut findings, index, message);
                }
            }
        }
        self.annotate(&mut findings);
        findings
    }

    /// What cannot be evaluated counts as the policy says.
    fn fail(&self, findings: &mut Findings, index: usize, message: String) {
        if !self.policy.is_ignored_when_failing {
            findings.failed.push(Finding { index, message, reason: String::new() });
        }
    }

    fn message(&self, validation: &'a Validation, left: &mut u64) -> String {
        let described =
            validation.message_program.as_ref().and_then(|program| self.evaluated_message(program, left));
        match (described, validation.message.as_str()) {
            (Some(described), _) => described,
            (None, "") => format!("failed expression: {}", validation.expression),
            (None, message) => message.to_owned(),
        }
    }

    fn evaluated_message(&self, program: &'a Program, left: &mut u64) -> Option<String> {
        let budget = Budget::new(COST_OF_ONE_MAX.min(*left));
        let value = program.evaluate(self, &budget);
        *left = left.saturating_sub(budget.spent());
        let Ok(Cel::String(text)) = value else { return None };
        let text = text.trim();
        let fits = !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
        fits.then(|| text.to_owned())
    }

    fn annotate(&self, findings: &mut Findings) {
        let mut left = COST_OF_ALL_MAX;
        for (key, program, expression) in &self.policy.audit_annotations {
            let budget = Budget::new(COST_OF_ONE_MAX.min(left));
            let value = evaluate(program, self, &budget);
            left = left.saturating_sub(budget.spent());
            match value {
                Ok(Cel::String(text)) if !text.trim().is_empty() => {
                    findings.audit_annotations.push((key.clone(), text.trim().to_owned()));
                }
                Ok(Cel::String(_) | Cel::Null) => {}
                Ok(_) => {
                    let message = format!(
                        "valueExpression '{expression}' resulted in unsupported return type. Return type must be \
                         either string or null."
                    );
                    findings.failed.push(Finding { index: 0, message, reason: String::new() });
                }
                Err(failure) => {
                    let message = format!("expression '{expression}' resulted in error: {failure}");
                    self.fail(findings, 0, message);
                }
            }
        }
    }
}
