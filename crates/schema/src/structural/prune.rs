//! Pruning: drops from a custom object the fields that its schema does not know, and reports them. Must not validate
//! the values that stay.

use serde_json::{Map, Value};

use super::{DEPTH_MAX, Schema, child, default, object_meta, unknown};

/// Drops unknown fields and answers with their paths: those of `metadata` first, then the others, then
/// those in the metadata of embedded resources.
pub fn prune(value: &mut Value, schema: &Schema, is_resource_root: bool) -> Vec<String> {
    let mut pruner = Pruner::default();
    if is_resource_root && let Some(metadata) = value.get_mut("metadata") {
        prune_metadata(metadata, "metadata", &mut pruner.metadata);
    }
    pruner.value(value, Some(schema), "", is_resource_root, 0);
    pruner.dropped.sort();
    pruner.embedded.sort();
    [pruner.metadata, pruner.dropped, pruner.embedded].concat()
}

#[derive(Default)]
struct Pruner {
    metadata: Vec<String>,
    dropped: Vec<String>,
    embedded: Vec<String>,
}

const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

impl Pruner {
    /// Without a schema nothing inside is known.
    fn value(&mut self, value: &mut Value, schema: Option<&Schema>, path: &str, root: bool, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        match value {
            Value::Object(fields) => self.object(fields, schema, path, root, depth),
            Value::Array(items) => {
                let element = schema.and_then(|schema| schema.items.as_deref());
                // A list whose own fields are kept keeps those of its elements too, unless they have a schema.
                if element.is_none() && schema.is_some_and(|schema| schema.preserve_unknown) {
                    return;
                }
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(item, element, &format!("{path}[{index}]"), false, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn object(
        &mut self,
        fields: &mut Map<String, Value>,
        schema: Option<&Schema>,
        path: &str,
        root: bool,
        depth: usize,
    ) {
        let embedded = schema.is_some_and(|schema| schema.embedded_resource);
        let preserve = schema.is_some_and(|schema| schema.preserve_unknown);
        fields.retain(|name, field| {
            let path = child(path, name);
            if (embedded || root) && META_FIELDS.contains(&name.as_str()) {
                if name == "metadata" && !root {
                    prune_metadata(field, &path, &mut self.embedded);
                }
                return true;
            }
            let known = schema.and_then(|schema| default::field_schema(schema, name));
            match known {
                Some(schema) => self.value(field, Some(schema), &path, false, depth + 1),
                None if preserve => {}
                None => self.dropped.push(path),
            }
            known.is_some() || preserve
        });
    }
}

/// Metadata that is no object is left for the decoder to refuse.
fn prune_metadata(metadata: &mut Value, path: &str, dropped: &mut Vec<String>) {
    let unknown = unknown::drop_unknown(metadata, object_meta());
    dropped.extend(unknown.into_iter().map(|field| child(path, &field)));
}
