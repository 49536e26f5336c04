//! Validates the CEL rules of a definition: type checking against the schema, and estimated cost for the largest
//! object that the schema allows.

use cel::{Program, Type};
use serde_json::Value;

use super::{environment, list, text};
use crate::fields;
use apimachinery::error::{FieldError, FieldErrorKind};
use schema::expressions::{Declared, declared};

/// What one rule may cost at most, over all values it is asked about.
const RULE_COST_MAX: u64 = 10_000_000;
/// What the rules of a schema may cost at most.
const SCHEMA_COST_MAX: u64 = 100_000_000;
/// How many of the most expensive rules are named.
const NAMED_MAX: usize = 4;

/// What is wrong with the rules of a schema that is otherwise fine.
pub(crate) fn check(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut checked = Checked::default();
    let place = Place { count_max: Some(1), uncorrelated: None, is_resource: true };
    checked.node(schema, path, &place);
    checked.expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
    if checked.total > SCHEMA_COST_MAX {
        let detail =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let named = checked.expensive.iter().take(NAMED_MAX);
        checked.errors.extend(named.map(|(path, _)| FieldError::forbidden(path, detail)));
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let detail = too_expensive(what, checked.total, SCHEMA_COST_MAX);
        checked.errors.push(FieldError::forbidden(path, detail));
    }
    checked.errors
}

#[derive(Default)]
struct Checked {
    errors: Vec<FieldError>,
    total: u64,
    expensive: Vec<(String, u64)>,
}

/// Where a node stands.
#[derive(Clone)]
struct Place {
    /// How many values of the node an object can have, where the nodes above bound it.
    count_max: Option<u64>,
    /// The first node above whose parts cannot be told apart from one state to the next.
    uncorrelated: Option<String>,
    is_resource: bool,
}

impl Place {
    fn below(&self, child: &Value, times: Option<u64>) -> Self {
        let both = self.count_max.zip(times);
        Self {
            count_max: both.map(|(count, times)| count.saturating_mul(times)),
            uncorrelated: self.uncorrelated.clone(),
            is_resource: child["x-kubernetes-embedded-resource"] == true,
        }
    }
}

impl Checked {
    fn node(&mut self, schema: &Value, path: &str, place: &Place) {
        let most = |key: &str| schema[key].as_i64().map(|most| u64::try_from(most).unwrap_or(0));
        let values = &schema["additionalProperties"];
        let per_child = if values.is_null() { Some(1) } else { most("maxProperties") };
        if values.is_object() {
            self.node(values, &format!("{path}.additionalProperties"), &place.below(values, per_child));
        }
        for (name, child) in fields(&schema["properties"]) {
            self.node(child, &format!("{path}.properties[{name}]"), &place.below(child, per_child));
        }
        let items = &schema["items"];
        if items.is_object() {
            let mut below = place.below(items, most("maxItems"));
            if schema["x-kubernetes-list-type"] != "map" {
                below.uncorrelated.get_or_insert_with(|| path.to_owned());
            }
            self.node(items, &format!("{path}.items"), &below);
        }
        let rules = list(&schema["x-kubernetes-validations"]);
        if rules.is_empty() {
            return;
        }
        let Some(declared) = declared(schema, place.is_resource) else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations \
                          rules: unable to convert structural schema to CEL declarations";
            let field = format!("{path}.x-kubernetes-validations");
            return self.errors.push(FieldError::invalid(field, "", detail));
        };
        for (index, rule) in rules.iter().enumerate() {
            self.rule(rule, &declared, place, &format!("{path}.x-kubernetes-validations[{index}]"));
        }
    }

    fn rule(&mut self, rule: &Value, declared: &Declared, place: &Place, path: &str) {
        let environment = environment(&declared.kind, rule["optionalOldSelf"] == true);
        let field = format!("{path}.rule");
        let program = match Program::compile(text(&rule["rule"]), &environment) {
            Err(issues) => Err(format!("compilation failed: {issues}")),
            Ok(program) if !matches!(program.result(), Type::Bool) => {
                Err("cel expression must evaluate to a bool".to_owned())
            }
            Ok(program) => Ok(program),
        };
        let count = place.count_max.unwrap_or_else(|| declared.count_max());
        if let Ok(program) = &program {
            self.afford(program.cost_max().saturating_mul(count), "estimated rule cost", &field);
        }
        let uses_old = program.as_ref().is_ok_and(|program| program.uses("oldSelf"));
        if let Err(detail) = program {
            self.errors.push(refused(&field, rule, &detail));
        } else {
            self.message(rule, &environment, path);
        }
        if let Some(above) = place.uncorrelated.as_ref().filter(|_| uses_old) {
            let detail =
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {above}");
            self.errors.push(FieldError::invalid(&field, rule["rule"].clone(), detail));
        }
        if !uses_old && !rule["optionalOldSelf"].is_null() {
            let detail = "may not be set if oldSelf is not used in rule";
            let field = format!("{path}.optionalOldSelf");
            self.errors.push(FieldError::invalid(field, rule["optionalOldSelf"].clone(), detail));
        }
    }

    fn message(&mut self, rule: &Value, environment: &cel::Environment, path: &str) {
        let source = text(&rule["messageExpression"]);
        if source.is_empty() {
            return;
        }
        let field = format!("{path}.messageExpression");
        let detail = match Program::compile(source, environment) {
            Err(issues) => format!("messageExpression compilation failed: {issues}"),
            Ok(program) if !matches!(program.result(), Type::String(_)) => {
                "messageExpression must evaluate to a string".to_owned()
            }
            Ok(program) => {
                return self.afford(program.cost_max(), "estimated messageExpression cost", &field);
            }
        };
        self.errors.push(refused(&field, rule, &detail));
    }

    fn afford(&mut self, cost: u64, what: &str, field: &str) {
        if cost > RULE_COST_MAX {
            self.errors.push(FieldError::forbidden(field, too_expensive(what, cost, RULE_COST_MAX)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= SCHEMA_COST_MAX / 100 {
            self.expensive.push((field.to_owned(), cost));
        }
    }
}

fn too_expensive(what: &str, cost: u64, most: u64) -> String {
    let times = cost as f64 / most as f64;
    let factor = match times {
        times if times > 100.0 => "more than 100x".to_owned(),
        times if times < 1.5 => format!("{times:.6}x"),
        times => format!("{times:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, \
         and maxLength where arrays, maps, and strings are declared)"
    )
}

/// A rule as kube-apiserver holds and prints it.
fn shown(rule: &Value) -> String {
    let one = |key: &str| match &rule[key] {
        Value::Null if !matches!(key, "reason" | "optionalOldSelf") => "\"\"".to_owned(),
        value => value.to_string(),
    };
    let text = format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        one("rule"),
        one("message"),
        one("messageExpression"),
        one("reason"),
        one("fieldPath"),
        one("optionalOldSelf")
    );
    // Go writes these so that a browser does not take them for its own.
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// A rule that cannot be one.
fn refused(field: &str, rule: &Value, detail: &str) -> FieldError {
    FieldError::new(FieldErrorKind::Broken, field, Value::Null, format!("{}: {detail}", shown(rule)))
}
