//! Columns of custom kinds: `additionalPrinterColumns`, or the age where there are none.
//! Must not know any built-in kind.

use std::borrow::Cow;

use serde_json::Value;

use super::object::{Object, integer, text};
use super::{Column, age, columns};
use apimachinery::jsonpath::JsonPath;

/// One additional column, ready to be asked.
#[derive(Debug, Clone)]
pub(super) struct CustomColumn {
    path: JsonPath,
    kind: Box<str>,
}

/// The columns of a custom kind. A path that cannot be read ends them, as in kube-apiserver.
pub(super) fn columns(additional: &Value) -> (Vec<Column>, Vec<CustomColumn>) {
    let mut columns = vec![columns::NAME.column()];
    let mut cells = Vec::new();
    let defined = additional.as_array().filter(|defined| !defined.is_empty());
    let Some(defined) = defined else {
        columns.push(columns::CUSTOM_AGE.column());
        cells.extend(custom(".metadata.creationTimestamp", "date"));
        return (columns, cells);
    };
    for column in defined {
        let Some(cell) = custom(text(column, "jsonPath"), text(column, "type")) else { break };
        cells.push(cell);
        columns.push(definition(column));
    }
    (columns, cells)
}

pub(super) fn cells(columns: &[CustomColumn], object: &Object<'_>) -> Vec<Value> {
    let name = Value::from(object.name());
    let rest = columns.iter().map(|column| column.cell(object));
    std::iter::once(name).chain(rest).collect()
}

fn custom(path: &str, kind: &str) -> Option<CustomColumn> {
    Some(CustomColumn { path: JsonPath::parse(path).ok()?, kind: kind.into() })
}

fn definition(column: &Value) -> Column {
    let owned = |field: &str| Cow::Owned(text(column, field).to_owned());
    let description = match text(column, "description") {
        "" => {
            let path = text(column, "jsonPath");
            Cow::Owned(format!("Custom resource definition column (in JSONPath format): {path}"))
        }
        _ => owned("description"),
    };
    Column {
        name: owned("name"),
        kind: owned("type"),
        format: owned("format"),
        description,
        priority: integer(column, "priority"),
    }
}

impl CustomColumn {
    /// A value of another type than the column's is no cell.
    fn cell(&self, object: &Object<'_>) -> Value {
        let Some(value) = self.path.first(object.value) else { return Value::Null };
        match (&*self.kind, value) {
            ("string", value) => printed(value).into(),
            ("integer", Value::Number(number)) => whole(number),
            ("number", Value::Number(number)) => number.as_f64().into(),
            ("boolean", Value::Bool(flag)) => (*flag).into(),
            ("date", Value::String(_)) => match age::read(value) {
                Some(_) => age::since(value, object.now).into(),
                None => "<invalid>".into(),
            },
            _ => Value::Null,
        }
    }
}

fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn whole(number: &serde_json::Number) -> Value {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole.into(),
        // A cut-off fraction, as Kubernetes does it; the cast saturates.
        (None, Some(float)) => (float as i64).into(),
        (None, None) => Value::Null,
    }
}
