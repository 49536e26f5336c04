//! `x-kubernetes-validations`: the CEL rules of a definition, compiled and evaluated for objects.

use std::sync::Arc;

use cel::{Environment, Program, Type};
use serde_json::Value;

use super::{list, text};
use schema::expressions::{declared, hooks};

mod check;
mod evaluate;
mod path;

pub use evaluate::Verdict;

pub(super) use check::check;
pub(super) use path::field_path;

/// The rules of a version's schema; none where it has none.
#[derive(Debug, Clone)]
pub struct Rules {
    root: Arc<Node>,
    /// What they were compiled from.
    source: Arc<Value>,
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

/// The rules of one node of a schema and of what is under it.
#[derive(Debug)]
struct Node {
    /// What the values of the node are in expressions.
    kind: Type,
    /// The word for it in errors.
    type_name: String,
    rules: Vec<Rule>,
    properties: Vec<(String, Node)>,
    values: Option<Box<Node>>,
    items: Option<Box<Node>>,
    /// The keys that identify list elements, if the list has any.
    keys: Option<Vec<String>>,
}

/// One rule.
#[derive(Debug)]
struct Rule {
    /// The expression, or why it is none: rules that were never checked fail everything.
    program: Result<Program, String>,
    message_program: Option<Program>,
    expression: String,
    message: String,
    reason: String,
    /// The place below the node that failures are reported at.
    field_path: Option<String>,
    has_optional_old: bool,
    uses_old: bool,
}

impl Rules {
    /// The rules of a schema, if it has any. The schema was checked, and so is not too deep.
    pub(super) fn compile(schema: &Value) -> Option<Self> {
        let root = node(schema, true, 0)?;
        Some(Self { root: Arc::new(root), source: Arc::new(schema.clone()) })
    }
}

/// The variables of a rule.
fn environment(kind: &Type, has_optional_old: bool) -> Environment {
    let old = match has_optional_old {
        true => Type::Optional(Arc::new(kind.clone())),
        false => kind.clone(),
    };
    let variables = [("self".to_owned(), kind.clone()), ("oldSelf".to_owned(), old)];
    Environment { variables: variables.into_iter().collect(), hooks: hooks() }
}

fn node(schema: &Value, is_resource: bool, depth: usize) -> Option<Node> {
    if depth > schema::validate::DEPTH_MAX || !schema.is_object() {
        return None;
    }
    let below = |schema: &Value| node(schema, schema["x-kubernetes-embedded-resource"] == true, depth + 1);
    let properties: Vec<(String, Node)> = super::fields(&schema["properties"])
        .filter_map(|(name, child)| Some((name.clone(), below(child)?)))
        .collect();
    let values = below(&schema["additionalProperties"]).map(Box::new);
    let items = below(&schema["items"]).map(Box::new);
    let own = list(&schema["x-kubernetes-validations"]);
    if own.is_empty() && properties.is_empty() && values.is_none() && items.is_none() {
        return None;
    }
    let kind = match own.is_empty() {
        true => Type::ANY,
        false => declared(schema, is_resource).map_or(Type::ANY, |declared| declared.kind),
    };
    let keys = (schema["x-kubernetes-list-type"] == "map")
        .then(|| super::texts(&schema["x-kubernetes-list-map-keys"]).map(str::to_owned).collect());
    Some(Node {
        rules: own.iter().map(|rule| compiled(rule, &kind, schema)).collect(),
        kind,
        type_name: text(&schema["type"]).to_owned(),
        properties,
        values,
        items,
        keys,
    })
}

fn compiled(rule: &Value, kind: &Type, schema: &Value) -> Rule {
    let has_optional_old = rule["optionalOldSelf"] == true;
    let environment = environment(kind, has_optional_old);
    let program = Program::compile(text(&rule["rule"]), &environment).map_err(|issues| issues.to_string());
    let message = text(&rule["messageExpression"]);
    Rule {
        uses_old: program.as_ref().is_ok_and(|program| program.uses("oldSelf")),
        program,
        message_program: Program::compile(message, &environment).ok().filter(|_| !message.is_empty()),
        expression: text(&rule["rule"]).trim().to_owned(),
        message: text(&rule["message"]).trim().to_owned(),
        reason: text(&rule["reason"]).to_owned(),
        field_path: field_path(text(&rule["fieldPath"]), schema).filter(|path| !path.is_empty()),
        has_optional_old,
    }
}
