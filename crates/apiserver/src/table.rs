//! Objects as rows: `meta.k8s.io/v1` Table and PartialObjectMetadata for every kind.
//! Must not know how objects are stored or requests are parsed; ages are computed from the `now` it is given.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::error::ApiError;

mod age;
mod cluster;
mod columns;
mod custom;
mod event;
mod network;
mod object;
mod pod;
mod scaling;
mod storage;
mod workload;

pub use age::human_duration;
use custom::CustomColumn;
use object::Object;

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: Cow<'static, str>,
    /// OpenAPI type of the cells.
    pub kind: Cow<'static, str>,
    /// OpenAPI format; `name` marks the identifying column.
    pub format: Cow<'static, str>,
    /// What the cells say.
    pub description: Cow<'static, str>,
    /// 0 is always shown, others only in wide output.
    pub priority: i64,
}

/// One row: its cells, and for finished Pods the condition that says so.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// One value for each column.
    pub cells: Vec<Value>,
    /// `conditions` of the row, null where there are none.
    pub conditions: Value,
}

/// How the objects of one kind become rows.
#[derive(Debug, Clone)]
pub struct Printer {
    columns: Vec<Column>,
    cells: Cells,
}

#[derive(Debug, Clone)]
enum Cells {
    Builtin(fn(&Object<'_>) -> Vec<Value>),
    Pod,
    Custom(Vec<CustomColumn>),
}

impl Printer {
    /// The printer of a built-in kind; kinds that Kubernetes has no printer for show name and creation time.
    pub fn builtin(group: &str, kind: &str) -> Self {
        if (group, kind) == ("", "Pod") {
            return Self {
                columns: columns::POD.iter().map(columns::Spec::column).collect(),
                cells: Cells::Pod,
            };
        }
        let (specs, cells) = columns::of(group, kind);
        Self { columns: specs.iter().map(columns::Spec::column).collect(), cells: Cells::Builtin(cells) }
    }

    /// The printer of a custom kind, from `additionalPrinterColumns` of one of its versions.
    pub fn custom(additional: &Value) -> Self {
        let (columns, cells) = custom::columns(additional);
        Self { columns, cells: Cells::Custom(cells) }
    }

    /// The columns of every row.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// One object as a row.
    pub fn row(&self, object: &Value, now: Timestamp) -> Row {
        let object = Object::new(object, now);
        match &self.cells {
            Cells::Builtin(cells) => Row { cells: cells(&object), conditions: Value::Null },
            Cells::Pod => Row { cells: pod::cells(&object), conditions: pod::conditions(&object) },
            Cells::Custom(columns) => Row { cells: custom::cells(columns, &object), conditions: Value::Null },
        }
    }

    /// The column definitions as they are sent.
    pub fn column_definitions(&self) -> Value {
        let definition = |column: &Column| {
            json!({
                "name": column.name,
                "type": column.kind,
                "format": column.format,
                "description": column.description,
                "priority": column.priority,
            })
        };
        self.columns.iter().map(definition).collect()
    }

    /// A whole Table. `metadata` is that of the list, or of the single object; a watch sends the column
    /// definitions in its first event only.
    pub fn table<'a>(
        &self,
        objects: impl IntoIterator<Item = &'a Value>,
        metadata: &Value,
        include: IncludeObject,
        with_columns: bool,
        now: Timestamp,
    ) -> Value {
        let columns = match with_columns {
            true => self.column_definitions(),
            false => Value::Null,
        };
        let rows: Vec<Value> =
            objects.into_iter().map(|object| self.row_value(object, include, now)).collect();
        json!({
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": list_metadata(metadata),
            "columnDefinitions": columns,
            "rows": rows,
        })
    }

    /// One row of a Table as it is sent.
    pub fn row_value(&self, object: &Value, include: IncludeObject, now: Timestamp) -> Value {
        let Row { cells, conditions } = self.row(object, now);
        let mut row = Map::new();
        row.insert(String::from("cells"), Value::Array(cells));
        if !conditions.is_null() {
            row.insert(String::from("conditions"), conditions);
        }
        row.insert(String::from("object"), include.of(object));
        Value::Object(row)
    }
}

/// `?includeObject=`: what a row carries beside its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// The metadata, as a PartialObjectMetadata.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

impl IncludeObject {
    /// Reads the query parameter; an empty one means `Metadata`.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be \
                 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }

    fn of(self, object: &Value) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Metadata => partial_object_metadata(object),
            Self::Object => object.clone(),
        }
    }
}

/// An object reduced to its metadata.
pub fn partial_object_metadata(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

/// A list of PartialObjectMetadata; `metadata` is that of the list.
pub fn partial_object_metadata_list<'a>(
    objects: impl IntoIterator<Item = &'a Value>,
    metadata: &Value,
) -> Value {
    let items: Vec<Value> = objects.into_iter().map(partial_object_metadata).collect();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_metadata(metadata),
        "items": items,
    })
}

/// What a list may say about itself; a single object lends its resourceVersion.
fn list_metadata(metadata: &Value) -> Value {
    let keys = ["resourceVersion", "continue", "remainingItemCount"];
    let entries = keys.into_iter().filter_map(|key| Some((key.to_owned(), metadata.get(key)?.clone())));
    Value::Object(entries.collect())
}

#[cfg(test)]
mod tests;
