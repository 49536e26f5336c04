//! Generates an object in which every field of a schema is filled.

use serde_json::{Map, Value, json};

/// A value for the schema; `round` chooses among the words of an enum.
pub fn sample(schema: &Value, round: usize) -> Value {
    if let Some(words) = schema["enum"].as_array() {
        return words[round % words.len()].clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!("100m");
    }
    match schema["type"].as_str() {
        Some("string") if schema["format"] == "date-time" => json!("2024-07-01T08:33:28Z"),
        Some("string") => json!("Sample"),
        Some("boolean") => json!(true),
        // Too large for 32 bits wherever the schema allows it, so that a small Rust type fails.
        Some("integer") if schema["format"] == "int32" => json!(i32::MAX),
        Some("integer") => json!(7_000_000_000_i64),
        Some("array") => json!([sample(&schema["items"], round), sample(&schema["items"], round + 1)]),
        Some("object") => object(schema, round),
        _ => json!({ "kept": [1, { "as": null }, "is"] }),
    }
}

fn object(schema: &Value, round: usize) -> Value {
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return json!({ "kept": { "as": ["is"] } });
    }
    if let Some(values) = schema.get("additionalProperties") {
        return json!({ "one": sample(values, round), "two": sample(values, round + 1) });
    }
    let fields = schema["properties"].as_object().cloned().unwrap_or_default();
    let filled: Map<_, _> = fields.iter().map(|(name, field)| (name.clone(), sample(field, round))).collect();
    Value::Object(filled)
}
