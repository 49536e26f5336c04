//! Reads an OpenAPI v3 schema as CustomResourceDefinitions write it. Trusts that the CRD was validated
//! and takes what it knows; must not reject anything.

use std::sync::Arc;

use serde_json::Value;

use super::{ListType, PatchStrategy, Rules, Schema, SchemaRef, Type};

impl Schema {
    /// The schema that `openAPIV3Schema` (or any part of it) describes.
    pub fn from_openapi(source: &Value) -> Self {
        let text = |key: &str| source[key].as_str().map(Box::from);
        let flag = |key: &str| source[key].as_bool().unwrap_or(false);
        Self {
            kind: Type::from_openapi(source["type"].as_str()),
            format: text("format"),
            properties: properties(&source["properties"]),
            required: texts(&source["required"]),
            values: match &source["additionalProperties"] {
                Value::Bool(true) => Some(Schema::default().into()),
                Value::Object(_) => Some(child(&source["additionalProperties"])),
                _ => None,
            },
            items: source["items"].is_object().then(|| child(&source["items"])),
            nullable: flag("nullable"),
            default: source.get("default").filter(|value| !value.is_null()).cloned(),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded_resource: flag("x-kubernetes-embedded-resource"),
            int_or_string: flag("x-kubernetes-int-or-string") || source["format"] == "int-or-string",
            list: match source["x-kubernetes-list-type"].as_str() {
                Some("set") => ListType::Set,
                Some("map") => ListType::Map(texts(&source["x-kubernetes-list-map-keys"])),
                _ => ListType::Atomic,
            },
            atomic_map: source["x-kubernetes-map-type"] == "atomic",
            patch: PatchStrategy::from_openapi(source),
            rules: Rules::from_openapi(source),
        }
    }
}

impl Type {
    fn from_openapi(name: Option<&str>) -> Self {
        match name {
            Some("object") => Self::Object,
            Some("array") => Self::Array,
            Some("string") => Self::String,
            Some("integer") => Self::Integer,
            Some("number") => Self::Number,
            Some("boolean") => Self::Boolean,
            _ => Self::Any,
        }
    }
}

impl PatchStrategy {
    fn from_openapi(source: &Value) -> Self {
        let strategy = source["x-kubernetes-patch-strategy"].as_str().unwrap_or_default();
        let says = |word: &str| strategy.split(',').any(|other| other == word);
        Self {
            merge: says("merge"),
            retain_keys: says("retainKeys"),
            replace: says("replace"),
            merge_key: source["x-kubernetes-patch-merge-key"].as_str().map(Box::from),
        }
    }
}

impl Rules {
    fn from_openapi(source: &Value) -> Option<Box<Self>> {
        let number = |key: &str| source[key].as_f64();
        let count = |key: &str| source[key].as_u64();
        let flag = |key: &str| source[key].as_bool().unwrap_or(false);
        let rules = Self {
            one_of_values: source["enum"].as_array().cloned().unwrap_or_default(),
            pattern: source["pattern"].as_str().map(Box::from),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            minimum: number("minimum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            maximum: number("maximum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            unique_items: flag("uniqueItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            all_of: schemas(&source["allOf"]),
            any_of: schemas(&source["anyOf"]),
            one_of: schemas(&source["oneOf"]),
            not: source["not"].is_object().then(|| Box::new(Schema::from_openapi(&source["not"]))),
        };
        (rules != Self::default()).then(|| Box::new(rules))
    }
}

fn child(source: &Value) -> SchemaRef {
    SchemaRef::Inline(Arc::new(Schema::from_openapi(source)))
}

fn properties(source: &Value) -> std::collections::BTreeMap<Box<str>, SchemaRef> {
    let fields = source.as_object().into_iter().flatten();
    fields.map(|(name, schema)| (Box::from(name.as_str()), child(schema))).collect()
}

fn texts(source: &Value) -> Vec<Box<str>> {
    source.as_array().into_iter().flatten().filter_map(Value::as_str).map(Box::from).collect()
}

fn schemas(source: &Value) -> Vec<Schema> {
    source.as_array().into_iter().flatten().map(Schema::from_openapi).collect()
}
