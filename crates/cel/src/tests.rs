//! Expressions and what they are. `tests/answers.txt` is what cel-go answers in the environment of Kubernetes
//! 1.35, line by line, to `tests/expressions.txt` for the object `tests/self.json` with the schema
//! `tests/schema.json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value as Json;

use super::*;
use crate::value::Value;

mod access;
mod bombs;
mod properties;

pub(crate) fn hooks() -> Hooks {
    Hooks {
        pattern: |text| Regex::new(text).map(Arc::new).map_err(|error| error.to_string()),
        quantity: |text| {
            let end =
                text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
            let number: f64 = text[..end].parse().ok()?;
            let unit = match &text[end..] {
                "" => 1.0,
                "m" => 0.001,
                "k" => 1e3,
                "G" => 1e9,
                "Gi" => 1024.0 * 1024.0 * 1024.0,
                _ => return None,
            };
            Some((number * unit * 1e9) as i128)
        },
        format: |_, text| Some(if text.is_empty() { Vec::new() } else { vec![String::from("wrong")] }),
    }
}

/// The type of a schema, as far as the tests need it.
fn kind(schema: &Json) -> Type {
    let most = |key: &str, otherwise: u64| schema[key].as_u64().unwrap_or(otherwise);
    if schema["x-kubernetes-int-or-string"] == true {
        return Type::Dyn(most("maxLength", 0) * 4);
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("integer"), _) => Type::Int,
        (Some("number"), _) => Type::Double,
        (Some("boolean"), _) => Type::Bool,
        (_, Some("date-time")) => Type::Timestamp(32),
        (_, Some("duration")) => Type::Duration(32),
        (_, Some("byte")) => Type::Bytes(most("maxLength", 0)),
        (Some("array"), _) => Type::List(Arc::new(kind(&schema["items"])), most("maxItems", 0)),
        (Some("object"), _) if schema["additionalProperties"].is_object() => {
            let value = kind(&schema["additionalProperties"]);
            Type::Map(Arc::new(Type::String(0)), Arc::new(value), most("maxProperties", 0))
        }
        (Some("object"), _) => {
            let fields = schema["properties"].as_object().into_iter().flatten().map(|(key, schema)| {
                let name = if key == "namespace" {
                    "__namespace__".to_owned()
                } else {
                    key.replace('-', "__dash__")
                };
                (name, Field { key: key.clone(), kind: kind(schema) })
            });
            Type::Object(Arc::new(Object { name: "object".to_owned(), fields: fields.collect() }))
        }
        _ => Type::String(schema["maxLength"].as_u64().map_or(3_145_726, |most| most * 4)),
    }
}

struct Self_<'a>(&'a Json, &'a Type);

impl<'a> Activation<'a> for Self_<'a> {
    fn variable(&self, name: &str) -> Option<Value<'a>> {
        (name == "self").then(|| Value::of(self.0, self.1))
    }
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::String(text) => Json::from(&**text).to_string(),
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Optional(None) => "optional()".to_owned(),
        Value::Optional(Some(inner)) => format!("optional({})", shown(inner)),
        Value::List(list) => {
            format!("[{}]", list.iter().map(|item| shown(&item)).collect::<Vec<_>>().join(", "))
        }
        other => other.type_name().to_owned(),
    }
}

/// What an expression is for the object of the tests: value, largest cost, cost.
fn answer(source: &str, environment: &Environment, object: &Json, kind: &Type) -> (String, u64, u64) {
    let program = match Program::compile(source, environment) {
        Ok(program) => program,
        Err(issues) => return (format!("issue {issues}"), 0, 0),
    };
    let budget = Budget::new(1_000_000);
    let value = program.evaluate(&Self_(object, kind), &budget);
    let told = value.map_or_else(|failure| format!("error {failure}"), |value| shown(&value));
    (told, program.cost_max(), budget.spent())
}

pub(crate) fn environment(kind: Type) -> Environment {
    Environment { variables: BTreeMap::from([("self".to_owned(), kind)]), hooks: hooks() }
}

#[test]
fn expressions_are_what_cel_go_says() {
    let schema: Json = serde_json::from_str(include_str!("tests/schema.json")).unwrap();
    let object: Json = serde_json::from_str(include_str!("tests/self.json")).unwrap();
    let kind = kind(&schema);
    let environment = environment(kind.clone());
    let mut different = Vec::new();
    let lines = include_str!("tests/expressions.txt").lines().zip(include_str!("tests/answers.txt").lines());
    let mut count = 0;
    for (source, expected) in lines {
        count += 1;
        let expected: String = serde_json::from_str(expected).unwrap();
        let (told, most, cost) = answer(source, &environment, &object, &kind);
        let mut parts = expected.split(" | max ");
        let wanted = parts.next().unwrap();
        // Constants are folded there before anything is evaluated, and fail then.
        let same = match wanted.strip_prefix("program ") {
            Some(wrong) => told.starts_with(&format!("error {wrong}")),
            None => told == wanted,
        };
        let near =
            |ours: u64, theirs: u64| ours.abs_diff(theirs) <= 100 || ours.abs_diff(theirs) <= theirs / 5;
        let costs_fit = parts.next().is_none_or(|costs| {
            let (wanted_most, wanted_cost) = costs.split_once(" | cost ").unwrap();
            near(most, wanted_most.parse().unwrap()) && near(cost, wanted_cost.parse().unwrap())
        });
        if !same || !costs_fit {
            different
                .push(format!("{source}\n  is     {told} | max {most} | cost {cost}\n  not    {expected}"));
        }
    }
    assert!(count > 200, "the tables are read");
    assert!(different.is_empty(), "{}", different.join("\n"));
}
