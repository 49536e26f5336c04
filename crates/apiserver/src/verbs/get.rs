//! GET on an object.

use http::StatusCode;

use crate::call::Call;
use crate::engine::Engine;
use crate::verbs::Answer;
use apimachinery::error::ApiError;

impl Engine {
    /// Reads the named object.
    pub async fn get(&self, call: &Call) -> Result<Answer, ApiError> {
        let entry = self.read(&call.resource, &call.key(), call.name())?;
        match call.resource.serves_as_stored(entry.revision) {
            true => Ok(Answer::stored(StatusCode::OK, entry.value)),
            false => Ok(Answer::served(self.conversion.served_entry(&call.resource, &entry).await?)),
        }
    }
}
