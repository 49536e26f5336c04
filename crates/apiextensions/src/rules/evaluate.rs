//! Evaluates the CEL rules of a definition for an object, in field order, until the cost budget is exhausted.
//! Failures of unchanged values are ignored (ratcheting).

use cel::{Activation, Budget, Failure, Program, Value as Cel};
use serde_json::Value;

use super::{Node, Rule, Rules};
use apimachinery::error::{FieldError, FieldErrorKind};
use schema::expressions::{COST_OF_ALL_MAX, COST_OF_ONE_MAX, MESSAGE_BYTES_MAX};
use schema::validate::{DEPTH_MAX, child};

/// What the rules say about an object.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The rules that do not hold.
    pub errors: Vec<FieldError>,
    /// Those that did not hold before either, for a value that did not change.
    pub warnings: Vec<String>,
}

impl Rules {
    /// What the rules say about an object; `old` is the state that it replaces.
    pub fn judge(&self, object: &Value, old: Option<&Value>) -> Verdict {
        let mut evaluator =
            RuleEvaluator { left: COST_OF_ALL_MAX, has_ended: false, verdict: Verdict::default() };
        evaluator.node(&self.root, object, Seen { old, parent: None, depth: 0 }, "");
        evaluator.verdict
    }
}

/// What a value is compared with.
#[derive(Clone, Copy)]
struct Seen<'a> {
    /// Its own former state.
    old: Option<&'a Value>,
    /// Where that is not known: a value around it, and its former state.
    parent: Option<(&'a Value, &'a Value)>,
    depth: usize,
}

impl<'a> Seen<'a> {
    fn below(self, value: &'a Value, old: Option<&'a Value>) -> Self {
        Self { old, parent: self.old.map(|own| (value, own)).or(self.parent), depth: self.depth + 1 }
    }

    fn is_unchanged(&self, value: &Value) -> bool {
        match self.old {
            Some(old) => old == value,
            None => self.parent.is_some_and(|(value, old)| value == old),
        }
    }
}

struct RuleEvaluator {
    /// The cost that may still be spent.
    left: u64,
    has_ended: bool,
    verdict: Verdict,
}

/// The variables of one rule.
struct Variables<'a> {
    value: Cel<'a>,
    old: Option<Cel<'a>>,
}

impl<'a> Activation<'a> for Variables<'a> {
    fn variable(&self, name: &str) -> Option<Cel<'a>> {
        match name {
            "self" => Some(self.value.clone()),
            "oldSelf" => self.old.clone(),
            _ => None,
        }
    }
}

impl RuleEvaluator {
    fn node<'a>(&mut self, node: &'a Node, value: &'a Value, seen: Seen<'a>, path: &str) {
        if value.is_null() || self.has_ended || seen.depth > DEPTH_MAX {
            return;
        }
        self.rules(node, value, seen, path);
        match value {
            Value::Object(fields) => {
                let old = |name: &str| seen.old.and_then(|old| old.get(name));
                if let Some(values) = &node.values {
                    for (name, field) in fields {
                        self.node(values, field, seen.below(value, old(name)), &format!("{path}[{name}]"));
                    }
                }
                for (name, below) in &node.properties {
                    if let Some(field) = fields.get(name) {
                        self.node(below, field, seen.below(value, old(name)), &child(path, name));
                    }
                }
            }
            Value::Array(items) => {
                let Some(below) = &node.items else { return };
                for (index, item) in items.iter().enumerate() {
                    let old = seen.old.and_then(|old| former(old, item, node.keys.as_deref()));
                    self.node(below, item, seen.below(value, old), &format!("{path}[{index}]"));
                }
            }
            _ => {}
        }
    }

    fn rules<'a>(&mut self, node: &'a Node, value: &'a Value, seen: Seen<'a>, path: &str) {
        let field = if path.is_empty() { "<nil>" } else { path };
        for rule in &node.rules {
            let program = match &rule.program {
                Ok(program) => program,
                Err(issues) => {
                    self.fail(field, node, format!("rule compile error: compilation failed: {issues}"));
                    continue;
                }
            };
            if rule.uses_old && seen.old.is_none() && !rule.has_optional_old {
                continue;
            }
            if self.left == 0 {
                return self.end(field, node, OUT_OF_BUDGET.to_owned());
            }
            let old = seen.old.map(|old| Cel::of(old, &node.kind));
            let old = match rule.has_optional_old {
                true => Some(old.map_or(Cel::Optional(None), Cel::some)),
                false => old,
            };
            let variables = Variables { value: Cel::of(value, &node.kind), old };
            match self.evaluate(program, &variables) {
                Err(Spent) => return self.end(field, node, OUT_OF_BUDGET.to_owned()),
                Ok(Ok(Cel::Bool(true))) => {}
                Ok(Ok(_)) => self.broken(rule, node, value, seen, path, &variables),
                Ok(Err(Failure::Exhausted)) => {
                    let why = Failure::Exhausted;
                    let more =
                        "no further validation rules will be run due to call cost exceeds limit for rule";
                    return self.end(field, node, format!("'{why}': {more}: {}", rule.shown()));
                }
                Ok(Err(Failure::Wrong(why))) if why == "no such overload" => {
                    let more = "call arguments did not match a supported operator, function or macro signature \
                                for rule";
                    self.fail(field, node, format!("'{why}': {more}: {}", rule.shown()));
                }
                Ok(Err(Failure::Wrong(why))) => {
                    self.fail(field, node, format!("{why} evaluating rule: {}", rule.shown()));
                }
            }
            if self.has_ended {
                return;
            }
        }
    }

    /// Evaluates and pays. Nothing is said about a value that could not be paid for.
    fn evaluate<'a>(
        &mut self,
        program: &'a Program,
        variables: &Variables<'a>,
    ) -> Result<Result<Cel<'a>, Failure>, Spent> {
        let budget = Budget::new(COST_OF_ONE_MAX);
        let value = program.evaluate(variables, &budget);
        match self.left.checked_sub(budget.spent()) {
            Some(left) => self.left = left,
            None => return Err(Spent),
        }
        Ok(value)
    }

    fn broken<'a>(
        &mut self,
        rule: &'a Rule,
        node: &Node,
        value: &Value,
        seen: Seen<'_>,
        path: &str,
        variables: &Variables<'a>,
    ) {
        let field = match &rule.field_path {
            Some(more) => child(path, more),
            None if path.is_empty() => "<nil>".to_owned(),
            None => path.to_owned(),
        };
        let told = match &rule.message_program {
            Some(program) => match self.evaluate(program, variables) {
                Err(Spent) => {
                    let detail = "messageExpression evaluation failed due to running out of cost budget, no further \
                                  validation rules will be run";
                    return self.end(&field, node, detail.to_owned());
                }
                Ok(told) => message(told),
            },
            None => None,
        };
        let detail = told.unwrap_or_else(|| match rule.message.as_str() {
            "" => format!("failed rule: {}", rule.expression),
            message => message.to_owned(),
        });
        let is_large = matches!(node.type_name.as_str(), "object" | "array");
        let kind = match (rule.reason.as_str(), is_large) {
            ("FieldValueForbidden", _) => FieldErrorKind::Forbidden,
            ("FieldValueRequired", _) => FieldErrorKind::Required,
            ("FieldValueDuplicate", _) => FieldErrorKind::Duplicate,
            (_, true) => FieldErrorKind::Broken,
            (_, false) => FieldErrorKind::Invalid,
        };
        let detail = if kind == FieldErrorKind::Duplicate { String::new() } else { detail };
        let error = FieldError::new(kind, field, value.clone(), detail);
        match !rule.uses_old && seen.is_unchanged(value) {
            true => self.verdict.warnings.push(error.to_string()),
            false => self.verdict.errors.push(error),
        }
    }

    fn fail(&mut self, field: &str, node: &Node, detail: String) {
        self.verdict.errors.push(FieldError::invalid(field, node.type_name.as_str(), detail));
    }

    fn end(&mut self, field: &str, node: &Node, detail: String) {
        self.fail(field, node, detail);
        self.has_ended = true;
    }
}

/// There is nothing left to pay with.
struct Spent;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

impl Rule {
    fn shown(&self) -> &str {
        match self.message.as_str() {
            "" => &self.expression,
            message => message,
        }
    }
}

/// What an expression says about a failure, if it is something that can be said in a line.
fn message(told: Result<Cel<'_>, Failure>) -> Option<String> {
    let Ok(Cel::String(text)) = told else { return None };
    let text = text.trim();
    let fits = !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
    fits.then(|| text.to_owned())
}

/// The old state of a list element, if the list has keys to find it by.
fn former<'a>(old: &'a Value, item: &Value, keys: Option<&[String]>) -> Option<&'a Value> {
    let keys = keys?;
    old.as_array()?.iter().find(|known| keys.iter().all(|key| known.get(key) == item.get(key)))
}
