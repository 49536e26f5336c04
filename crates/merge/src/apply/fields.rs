//! The `fieldsV1` encoding of path sets: an object per path element, `{}` for a path, `.` for a path that has longer
//! ones below it.

use serde_json::{Map, Value};

use super::element::PathElement;
use super::set::{Node, PathSet};

impl PathSet {
    /// The `fieldsV1` of the set.
    pub fn into_fields(self) -> Map<String, Value> {
        let encoded = |node: Node| {
            let is_inner_member = node.member && !node.below.is_empty();
            let mut content = node.below.into_fields();
            if is_inner_member {
                content.insert(String::from("."), Value::Object(Map::new()));
            }
            (node.element.into_encoded(), Value::Object(content))
        };
        self.into_nodes().map(encoded).collect()
    }

    /// The set that a `fieldsV1` describes, or what is wrong with it.
    pub fn from_fields(fields: &Value) -> Result<Self, String> {
        let fields = match fields {
            Value::Object(fields) => fields,
            Value::Null => return Ok(Self::default()),
            other => return Err(format!("expected an object, got {other}")),
        };
        let mut set = Self::default();
        for (key, content) in fields.iter().filter(|(key, _)| *key != ".") {
            if let Some(element) = PathElement::decode(key)? {
                let below = Self::from_fields(content)?;
                let member = below.is_empty() || content.get(".").is_some();
                set.add(element, member, below);
            }
        }
        Ok(set)
    }
}
