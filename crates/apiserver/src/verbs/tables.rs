//! Tables for kubectl: the printer of a resource over some objects.

use serde_json::Value;

use crate::content::Shape;
use crate::engine::Engine;
use crate::error::ApiError;
use crate::table::{IncludeObject, Printer};
use crate::verbs::Call;

impl Engine {
    /// The objects as a Table, with what the client wants beside the cells.
    pub fn table(
        &self,
        call: &Call,
        objects: &[Value],
        metadata: &Value,
        with_columns: bool,
    ) -> Result<Value, ApiError> {
        if call.accepted.shape != Shape::Table {
            return Ok(Value::Null);
        }
        let include = IncludeObject::parse(call.query.get("includeObject").unwrap_or_default())?;
        let printer = match &call.resource.custom {
            Some(definition) => {
                let versions = definition.object["spec"]["versions"].as_array();
                let version =
                    versions.into_iter().flatten().find(|one| one["name"] == *call.resource.version);
                Printer::custom(version.map_or(&Value::Null, |version| &version["additionalPrinterColumns"]))
            }
            None => Printer::builtin(&call.resource.group, &call.resource.kind),
        };
        Ok(printer.table(objects, metadata, include, with_columns, (self.now)()))
    }
}
