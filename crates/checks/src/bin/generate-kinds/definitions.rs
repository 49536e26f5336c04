//! Collects the schema definitions of OpenAPI v3 documents and numbers them. A reference becomes a
//! number; a reference with siblings (a default, a patch strategy) becomes a derived definition, so
//! that no reference in the table carries anything but its number.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

/// All definitions: named ones first, sorted by name, then derived ones.
pub struct Definitions {
    names: Vec<String>,
    named: Vec<Value>,
    derived: Vec<Value>,
}

/// Reads the documents of these group versions.
pub fn read(directory: &Path, served: &[(&str, &str)]) -> Result<Definitions> {
    let mut sources = BTreeMap::new();
    for (group, version) in served {
        let file = format!("{}_openapi.json", crate::file_stem(group, version));
        let document = crate::read_json(&directory.join(file))?;
        let schemas = document["components"]["schemas"].as_object().context("no components.schemas")?;
        for (name, schema) in schemas {
            sources.insert(name.clone(), schema.clone());
        }
    }
    Definitions::number(sources)
}

impl Definitions {
    fn number(sources: BTreeMap<String, Value>) -> Result<Self> {
        let names: Vec<String> = sources.keys().cloned().collect();
        let mut definitions = Self { names, named: Vec::new(), derived: Vec::new() };
        for source in sources.into_values() {
            let schema = definitions.compact(source)?;
            definitions.named.push(schema);
        }
        ensure!(definitions.names.len() + definitions.derived.len() < usize::from(u16::MAX));
        Ok(definitions)
    }

    /// The place of a named definition.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.names.binary_search_by(|other| other.as_str().cmp(name)).ok()
    }

    /// The place of the definition that says it is this kind.
    pub fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<usize> {
        let wanted = json!({ "group": group, "version": version, "kind": kind });
        let has = |schema: &Value| gvks(schema).is_some_and(|all| all.contains(&wanted));
        self.named.iter().position(has)
    }

    /// Every group, version and kind a definition stands for, with its name.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, &Value)> {
        let all = self.names.iter().zip(&self.named);
        all.flat_map(|(name, schema)| gvks(schema).into_iter().flatten().map(|gvk| (name.as_str(), gvk)))
    }

    /// One line per definition: its name, empty for derived ones, a tab, and its schema.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let named = self.names.iter().zip(&self.named).map(|(name, schema)| format!("{name}\t{schema}"));
        named.chain(self.derived.iter().map(|schema| format!("\t{schema}")))
    }

    fn compact(&mut self, source: Value) -> Result<Value> {
        let Value::Object(mut fields) = source else { return Ok(source) };
        fields.remove("description");
        if let Some(target) = referenced(&mut fields)? {
            return self.reference(&target, fields);
        }
        for key in ["items", "additionalProperties"] {
            if let Some(child) = fields.get_mut(key) {
                *child = self.compact(child.take())?;
            }
        }
        for child in fields.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
            *child.1 = self.compact(child.1.take())?;
        }
        Ok(Value::Object(fields))
    }

    fn reference(&mut self, target: &str, mut siblings: Map<String, Value>) -> Result<Value> {
        let base = self.index(target).with_context(|| format!("{target} is not defined"))?;
        if siblings.is_empty() {
            return Ok(json!({ "$ref": base }));
        }
        siblings.insert("$ref".into(), json!(base));
        let derived = Value::Object(siblings);
        let place = self.derived.iter().position(|other| *other == derived).unwrap_or_else(|| {
            self.derived.push(derived);
            self.derived.len() - 1
        });
        Ok(json!({ "$ref": self.names.len() + place }))
    }
}

/// Takes the one reference out of `$ref` or of an `allOf` that holds nothing else.
fn referenced(fields: &mut Map<String, Value>) -> Result<Option<String>> {
    let reference = match fields.remove("allOf") {
        Some(all) => {
            ensure!(all.as_array().is_some_and(|all| all.len() == 1), "allOf is more than a reference");
            all[0]["$ref"].clone()
        }
        None => fields.remove("$ref").unwrap_or_default(),
    };
    Ok(reference.as_str().map(|text| text.trim_start_matches("#/components/schemas/").to_owned()))
}

fn gvks(schema: &Value) -> Option<&Vec<Value>> {
    schema["x-kubernetes-group-version-kind"].as_array()
}
