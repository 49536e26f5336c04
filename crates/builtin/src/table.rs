//! Table printing: `meta.k8s.io/v1` Table and PartialObjectMetadata for every kind. Must not know how objects are
//! stored or requests are parsed; ages are computed from the `now` it is given.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use apimachinery::error::ApiError;

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

    /// A whole Table, ready to be encoded. `metadata` is that of the list, or of the single object; a watch
    /// sends the column definitions in its first event only.
    pub fn table<'a>(
        &self,
        objects: impl IntoIterator<Item = &'a Value>,
        metadata: &'a Value,
        include: IncludeObject,
        with_columns: bool,
        now: Timestamp,
    ) -> Table<'a> {
        let rows = objects.into_iter().map(|object| {
            let Row { cells, conditions } = self.row(object, now);
            TableRow { cells, conditions, object: include.of(object) }
        });
        Table {
            kind: "Table",
            api_version: "meta.k8s.io/v1",
            metadata: ListMetadata::of(metadata),
            column_definitions: if with_columns { self.column_definitions() } else { Value::Null },
            rows: rows.collect(),
        }
    }
}

/// A `meta.k8s.io/v1` Table that borrows the objects of its rows: nothing is copied before it is encoded.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Table<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: ListMetadata<'a>,
    column_definitions: Value,
    rows: Vec<TableRow<'a>>,
}

#[derive(Debug, Serialize)]
struct TableRow<'a> {
    cells: Vec<Value>,
    #[serde(skip_serializing_if = "Value::is_null")]
    conditions: Value,
    object: RowObject<'a>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum RowObject<'a> {
    None,
    Metadata(PartialObjectMetadata<'a>),
    Object(&'a Value),
}

/// What a list may say about itself; a single object lends its resourceVersion.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a Value>,
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    next: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_item_count: Option<&'a Value>,
}

impl<'a> ListMetadata<'a> {
    fn of(metadata: &'a Value) -> Self {
        Self {
            resource_version: metadata.get("resourceVersion"),
            next: metadata.get("continue"),
            remaining_item_count: metadata.get("remainingItemCount"),
        }
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

    fn of(self, object: &Value) -> RowObject<'_> {
        match self {
            Self::None => RowObject::None,
            Self::Metadata => RowObject::Metadata(PartialObjectMetadata::of(object)),
            Self::Object => RowObject::Object(object),
        }
    }
}

/// An object reduced to its metadata, ready to be encoded.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartialObjectMetadata<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: &'a Value,
}

impl<'a> PartialObjectMetadata<'a> {
    /// Reduces an object.
    pub fn of(object: &'a Value) -> Self {
        Self {
            kind: "PartialObjectMetadata",
            api_version: "meta.k8s.io/v1",
            metadata: object.get("metadata").unwrap_or(&Value::Null),
        }
    }
}

/// A list of objects reduced to their metadata, ready to be encoded.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartialObjectMetadataList<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: ListMetadata<'a>,
    items: Vec<PartialObjectMetadata<'a>>,
}

impl<'a> PartialObjectMetadataList<'a> {
    /// Reduces objects; `metadata` is that of their list.
    pub fn of(objects: impl IntoIterator<Item = &'a Value>, metadata: &'a Value) -> Self {
        Self {
            kind: "PartialObjectMetadataList",
            api_version: "meta.k8s.io/v1",
            metadata: ListMetadata::of(metadata),
            items: objects.into_iter().map(PartialObjectMetadata::of).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
