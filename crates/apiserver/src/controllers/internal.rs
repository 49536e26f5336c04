//! Requests that the controllers make to their own server, through the same verbs as client requests.

use std::sync::Arc;

use serde_json::Value;

use crate::audit::AuditAnnotations;
use crate::authn::{CONTROLLERS, Identity};
use crate::call::Call;
use crate::engine::Engine;
use crate::http::Query;
use crate::http::content::{Accepted, Language, Shape};
use crate::http::options::{DeleteOptions, FieldValidation, WriteOptions};
use crate::registry::Resource;
use crate::verbs::Draft;
use apimachinery::error::ApiError;

impl Engine {
    /// A call on one object (or, without a name, on a collection).
    pub fn internal_call(&self, resource: &Arc<Resource>, namespace: &str, name: &str) -> Call {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Call {
            resource: resource.clone(),
            namespace: some(namespace),
            name: some(name),
            subresource: None,
            query: Query::default(),
            accepted: Accepted { language: Language::Json, shape: Shape::Object, plain: true, gzip: false },
            identity: Identity::internal(CONTROLLERS),
            user_agent: CONTROLLERS.to_owned(),
            command: String::new(),
            audit_annotations: AuditAnnotations::default(),
        }
    }

    /// Creates an object unless one of its name is there.
    pub async fn ensure(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        object: Value,
    ) -> Result<(), ApiError> {
        let call = self.internal_call(resource, namespace, "");
        let draft = Draft::from_value(&call, object, FieldValidation::Ignore)?;
        match self.create_draft(&call, &internal_options(), draft).await {
            Err(error) if error.reason != "AlreadyExists" => Err(error),
            _ => Ok(()),
        }
    }

    /// Changes an object through a function; one that is gone is left alone.
    pub async fn internal_change(
        &self,
        call: &Call,
        change: impl Fn(&mut Value) + Sync,
    ) -> Result<(), ApiError> {
        let options = internal_options();
        let changed = self.change(call, &options, |old| {
            let mut object = old.clone();
            change(&mut object);
            Ok(Draft::changed(object))
        });
        ignore_not_found(changed.await.map(drop))
    }

    /// Deletes an object; one that is gone is left alone.
    pub async fn internal_delete(&self, call: &Call, options: &DeleteOptions) -> Result<(), ApiError> {
        ignore_not_found(self.delete_with(call, options).await.map(drop))
    }
}

fn internal_options() -> WriteOptions {
    WriteOptions {
        dry_run: false,
        field_manager: CONTROLLERS.to_owned(),
        field_validation: FieldValidation::Ignore,
        force: false,
    }
}

fn ignore_not_found(result: Result<(), ApiError>) -> Result<(), ApiError> {
    match result {
        Err(error) if error.reason == "NotFound" => Ok(()),
        result => result,
    }
}
