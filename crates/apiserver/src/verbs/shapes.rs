//! Representations of objects: in full, as PartialObjectMetadata, or as a Table. All three are encoded from borrowed
//! objects.

use serde::Serialize;
use serde_json::{Value, json};

use crate::call::Call;
use crate::engine::Engine;
use crate::http::content::Shape;
use crate::run_blocking::run_blocking;
use apimachinery::error::ApiError;
use builtin::table::{IncludeObject, PartialObjectMetadata, PartialObjectMetadataList, Printer, Table};

impl Engine {
    /// One object in JSON.
    pub fn shaped_object(
        &self,
        call: &Call,
        object: &Value,
        with_columns: bool,
    ) -> Result<Vec<u8>, ApiError> {
        Ok(match call.accepted.shape {
            Shape::Object => encode(object),
            Shape::Metadata => encode(&PartialObjectMetadata::of(object)),
            Shape::Table => {
                encode(&self.table(call, std::slice::from_ref(object), &object["metadata"], with_columns)?)
            }
        })
    }

    /// A list in JSON.
    pub fn shaped_list(&self, call: &Call, objects: &[Value], metadata: &Value) -> Result<Vec<u8>, ApiError> {
        Ok(match call.accepted.shape {
            Shape::Object => encode(&json!({
                "kind": call.resource.list_kind,
                "apiVersion": call.resource.api_version(),
                "metadata": metadata,
                "items": objects,
            })),
            Shape::Metadata => encode(&PartialObjectMetadataList::of(objects, metadata)),
            Shape::Table => run_blocking(|| Ok(encode(&self.table(call, objects, metadata, true)?)))?,
        })
    }

    fn table<'a>(
        &self,
        call: &Call,
        objects: &'a [Value],
        metadata: &'a Value,
        with_columns: bool,
    ) -> Result<Table<'a>, ApiError> {
        let printer = match &call.resource.custom {
            Some(definition) => {
                let versions = definition.object["spec"]["versions"].as_array();
                let version =
                    versions.into_iter().flatten().find(|one| one["name"] == *call.resource.version);
                Printer::custom(version.map_or(&Value::Null, |version| &version["additionalPrinterColumns"]))
            }
            None => Printer::builtin(&call.resource.group, &call.resource.kind),
        };
        Ok(printer.table(objects, metadata, include_object(call)?, with_columns, (self.now)()))
    }
}

/// What rows carry beside their cells.
pub(crate) fn include_object(call: &Call) -> Result<IncludeObject, ApiError> {
    IncludeObject::parse(call.query.get("includeObject").unwrap_or_default())
}

fn encode(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect("JSON values always serialise into memory")
}
