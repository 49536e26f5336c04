//! The schemas of a document: what its kinds are, and every definition that those name, in either
//! dialect of OpenAPI.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::custom;
use super::published::{Published, SchemaSource};
use crate::kinds;

/// Definitions that every resource speaks, beside its own.
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// Which OpenAPI a document is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

impl Dialect {
    /// A reference to a component.
    pub(super) fn reference(self, name: &str) -> Value {
        match self {
            Self::V2 => json!({ "$ref": format!("#/definitions/{name}") }),
            Self::V3 => json!({ "$ref": format!("#/components/schemas/{name}") }),
        }
    }
}

/// The components of a document that publishes these kinds.
pub(super) fn components<'a>(
    kinds: impl Iterator<Item = &'a Published<'a>>,
    dialect: Dialect,
) -> Map<String, Value> {
    let mut components = Components { dialect, done: BTreeMap::new(), wanted: Vec::new() };
    for name in [STATUS, PATCH, DELETE_OPTIONS] {
        components.want_named(name);
    }
    for kind in kinds {
        components.add_kind(kind);
    }
    components.finish()
}

/// Collects components and remembers which built-in definitions they name.
pub(super) struct Components {
    pub(super) dialect: Dialect,
    done: BTreeMap<String, Value>,
    wanted: Vec<u16>,
}

impl Components {
    fn add_kind(&mut self, kind: &Published<'_>) {
        match kind.schema {
            SchemaSource::Builtin(index) => {
                self.wanted.push(index);
                kind.list_component().iter().for_each(|name| self.want_named(name));
            }
            SchemaSource::Custom(source) => {
                let object = custom::object(kind, source, self);
                self.done.insert(kind.component(), object);
                if let Some(name) = kind.list_component() {
                    let list = custom::list(kind, self);
                    self.done.insert(name, list);
                }
            }
        }
        self.wanted.extend(kind.subresources.iter().filter_map(|sub| sub.schema));
    }

    /// A reference to a built-in definition, which thereby becomes a component.
    pub(super) fn refer(&mut self, name: &str) -> Value {
        self.want_named(name);
        self.dialect.reference(name)
    }

    fn want_named(&mut self, name: &str) {
        self.wanted.extend(kinds::index_named(name));
    }

    fn finish(mut self) -> Map<String, Value> {
        while let Some(index) = self.wanted.pop() {
            let Some(name) = kinds::name(index) else { continue };
            if self.done.contains_key(name) {
                continue;
            }
            // Marked before it is written, because a definition may name itself.
            self.done.insert(name.to_owned(), Value::Null);
            let mut schema = self.builtin(kinds::source(index));
            if name == custom::OBJECT_META {
                custom::explain(&mut schema);
            }
            self.done.insert(name.to_owned(), schema);
        }
        self.done.into_iter().collect()
    }

    /// A built-in schema with names for places. Built-in schemas are as deep as the generator found
    /// them: four levels at most.
    fn builtin(&mut self, source: Value) -> Value {
        let Value::Object(mut fields) = source else { return source };
        if let Some(index) =
            fields.get("$ref").and_then(Value::as_u64).and_then(|index| u16::try_from(index).ok())
        {
            return self.reference(index, fields);
        }
        for key in ["items", "additionalProperties"] {
            if let Some(child) = fields.get_mut(key) {
                *child = self.builtin(child.take());
            }
        }
        for (_, child) in fields.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
            *child = self.builtin(child.take());
        }
        if self.dialect == Dialect::V2 {
            fields.remove("default");
            // Swagger has no alternatives: what may be a string or a number is called a string.
            if fields.remove("oneOf").is_some() {
                fields.insert("type".into(), "string".into());
            }
        }
        Value::Object(fields)
    }

    fn reference(&mut self, index: u16, mut siblings: Map<String, Value>) -> Value {
        let Some(name) = kinds::name(index) else {
            // A derived definition: the reference it is made of, and what stands beside it.
            return self.builtin(kinds::source(index));
        };
        self.wanted.push(index);
        siblings.remove("$ref");
        let target = self.dialect.reference(name);
        match self.dialect {
            Dialect::V3 if !siblings.is_empty() => {
                siblings.insert("allOf".into(), json!([target]));
            }
            _ => {
                siblings.remove("default");
                siblings.insert("$ref".into(), target["$ref"].clone());
            }
        }
        Value::Object(siblings)
    }
}
