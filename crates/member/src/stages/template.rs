//! The status that a stage writes: plain values with expressions in them.
//!
//! A text may hold `$(now)`, `$(/path/in/the/object)`, `$(./path/in/the/item)` and `$(address A.B.C.0/N)`,
//! an address that follows from the object's uid. A text that is one expression takes the expression's
//! type. `{ each: /path, as: X }` makes a list with X for each item at the path.

use std::net::Ipv4Addr;

use serde_json::{Map, Value};

use crate::hash;

/// How deep a template may be nested.
const DEPTH_MAX: usize = 50;

/// What a template can speak of besides the object.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The time, as objects carry it.
    pub now: &'a str,
}

#[derive(Clone, Copy)]
struct Context<'a> {
    scene: &'a Scene<'a>,
    object: &'a Value,
    item: &'a Value,
}

/// Says what is wrong with a template.
pub fn check(template: &Value) -> Result<(), String> {
    check_at(template, 0)
}

fn check_at(template: &Value, depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!("a status is nested at most {DEPTH_MAX} levels deep"));
    }
    match template {
        Value::String(text) => pieces(text)?.iter().try_for_each(|piece| match piece {
            Piece::Text(_) => Ok(()),
            Piece::Expression(expression) => check_expression(expression),
        }),
        Value::Array(items) => items.iter().try_for_each(|item| check_at(item, depth + 1)),
        Value::Object(fields) => fields.values().try_for_each(|value| check_at(value, depth + 1)),
        _ => Ok(()),
    }
}

fn check_expression(expression: &str) -> Result<(), String> {
    let known = match expression.strip_prefix("address ") {
        Some(network) => parse_network(network).is_some(),
        None => expression == "now" || expression.starts_with('/') || expression.starts_with("./"),
    };
    known.then_some(()).ok_or_else(|| {
        format!("$({expression}) is none of $(now), $(/path), $(./path) and $(address A.B.C.D/N)")
    })
}

/// The value that a checked template gives for an object.
pub fn render(template: &Value, object: &Value, scene: &Scene<'_>) -> Value {
    render_in(template, Context { scene, object, item: &Value::Null })
}

fn render_in(template: &Value, context: Context<'_>) -> Value {
    match template {
        Value::String(text) => render_text(text, context),
        Value::Array(items) => items.iter().map(|item| render_in(item, context)).collect(),
        Value::Object(fields) => match (fields.get("each"), fields.get("as"), fields.len()) {
            (Some(Value::String(path)), Some(template), 2) => render_each(path, template, context),
            _ => fields.iter().map(|(key, value)| (key.clone(), render_in(value, context))).collect(),
        },
        plain => plain.clone(),
    }
}

/// Null where there is nothing to go through, so that the field stays away.
fn render_each(path: &str, template: &Value, context: Context<'_>) -> Value {
    let items = context.object.pointer(path).and_then(Value::as_array).filter(|items| !items.is_empty());
    items.map_or(Value::Null, |items| {
        items.iter().map(|item| render_in(template, Context { item, ..context })).collect()
    })
}

enum Piece<'a> {
    Text(&'a str),
    Expression(&'a str),
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("$(") {
        let (expression, behind) =
            after.split_once(')').ok_or_else(|| format!("an expression does not end: {text:?}"))?;
        pieces.extend((!before.is_empty()).then_some(Piece::Text(before)));
        pieces.push(Piece::Expression(expression));
        rest = behind;
    }
    pieces.extend((!rest.is_empty()).then_some(Piece::Text(rest)));
    Ok(pieces)
}

fn render_text(text: &str, context: Context<'_>) -> Value {
    let pieces = pieces(text).unwrap_or_default();
    if let [Piece::Expression(expression)] = pieces.as_slice() {
        return evaluate(expression, context);
    }
    let mut rendered = String::with_capacity(text.len());
    for piece in pieces {
        match piece {
            Piece::Text(text) => rendered.push_str(text),
            Piece::Expression(expression) => match evaluate(expression, context) {
                Value::String(text) => rendered.push_str(&text),
                Value::Null => {}
                other => rendered.push_str(&other.to_string()),
            },
        }
    }
    rendered.into()
}

fn evaluate(expression: &str, context: Context<'_>) -> Value {
    let found = |value: &Value, path: &str| value.pointer(path).cloned().unwrap_or(Value::Null);
    match (expression, expression.strip_prefix("address ")) {
        ("now", _) => context.scene.now.into(),
        (_, Some(network)) => address(network, &context.object["metadata"]["uid"]),
        (path, _) if path.starts_with('/') => found(context.object, path),
        (path, _) => found(context.item, path.strip_prefix('.').unwrap_or(path)),
    }
}

/// An address of the network that follows from a uid; neither the first nor the last one.
fn address(network: &str, uid: &Value) -> Value {
    let Some((first, size)) = parse_network(network) else { return Value::Null };
    let place = hash::number(&[uid.as_str().unwrap_or_default()]) % (size - 2) + 1;
    let place = u32::try_from(place).expect("the network has at most 2^32 addresses");
    Ipv4Addr::from(u32::from(first).wrapping_add(place)).to_string().into()
}

/// The first address of `A.B.C.D/N` and how many there are.
fn parse_network(text: &str) -> Option<(Ipv4Addr, u64)> {
    let (first, bits) = text.split_once('/')?;
    let bits = bits.parse::<u32>().ok().filter(|bits| *bits <= 30)?;
    Some((first.parse().ok()?, 1_u64 << (32 - bits)))
}

/// Merges a patch into a value: objects field by field, null takes away, everything else replaces.
/// Templates are nested at most fifty levels deep, so this ends.
pub fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else { return *value = patch.clone() };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Some(fields) = value.as_object_mut() else { return };
    for (key, change) in changes {
        match change {
            Value::Null => drop(fields.remove(key)),
            change => merge(fields.entry(key.clone()).or_insert(Value::Null), change),
        }
    }
}
