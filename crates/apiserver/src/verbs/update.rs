//! PUT, and optimistic concurrency for every change of an existing object: it is computed from the newest state and
//! written only if that state is still the newest.

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use store::{Change, Expect, Write, WriteError};

use crate::call::{Call, Sent};
use crate::engine::Engine;
use crate::http::options::{WriteKind, WriteOptions};
use crate::storage::{store_error, stored, text};
use crate::verbs::Answer;
use crate::verbs::draft::Draft;
use apimachinery::error::{ApiError, FieldError};

/// What kube-apiserver says when an object is not in the state the client saw.
pub(crate) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

impl Engine {
    /// Replaces the object by the one in the body.
    pub async fn update(&self, sent: &Sent, call: &Call) -> Result<Answer, ApiError> {
        let options = WriteOptions::parse(&call.query, &call.user_agent, WriteKind::Update)?;
        let draft = Draft::read(call, sent, options.field_validation)?;
        check_name(call, &draft.object)?;
        let _definitions = self.definition_lock(call).await;
        self.change(call, &options, |_| {
            check_resource_version(call, &draft.object)?;
            Ok(draft.clone())
        })
        .await
    }

    /// Changes an existing object. `compute` gets the newest state in the served version and runs again after a
    /// conflict. A conflict means that another writer succeeded, so the writers as a whole always make progress. A
    /// change with a `resourceVersion` is refused if the newest state has another one.
    pub async fn change(
        &self,
        call: &Call,
        options: &WriteOptions,
        compute: impl Fn(&Value) -> Result<Draft, ApiError> + Sync,
    ) -> Result<Answer, ApiError> {
        loop {
            let entry = self.read(&call.resource, &call.key(), call.name())?;
            let old_stored = stored::parse(&entry.value);
            let served = match call.resource.serves_as_stored(entry.revision) {
                true => None,
                false => Some(self.conversion.served(&call.resource, old_stored.clone()).await?),
            };
            let old = served.as_ref().unwrap_or(&old_stored);
            let draft = compute(old)?;
            let (object, warnings) = self.before_update(call, options, old, draft).await?;
            if object == old_stored {
                return Ok(Answer::stored(StatusCode::OK, entry.value).with_warnings(warnings));
            }
            match self.replace(call, options, &entry, &old_stored, &object).await {
                Ok(bytes) => return Ok(Answer::stored(StatusCode::OK, bytes).with_warnings(warnings)),
                Err(error) if error.reason == "Conflict" => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes the next state over the one that was read, or takes the object away when this change
    /// removed the last thing that kept it.
    pub async fn replace(
        &self,
        call: &Call,
        options: &WriteOptions,
        entry: &store::Entry,
        old: &Value,
        object: &Value,
    ) -> Result<Bytes, ApiError> {
        let payload = stored::payload(object);
        let is_ending = object["metadata"]["deletionTimestamp"].is_string();
        let mut limits = Vec::new();
        if !is_ending {
            // Stored values have their revision in them, payloads do not.
            let revision_digits = entry.revision.max(1).ilog10() as usize + 1;
            let old_bytes = entry.value.len() - revision_digits;
            self.storage.check(call, call.name(), Some(old_bytes), payload.bytes.len())?;
            limits = self.quotas.check(call, call.name(), Some(&entry.value), &payload.bytes)?;
        }
        if options.dry_run {
            return Ok(Bytes::from(object.to_string()));
        }
        let gone = is_removable(object);
        let change = if gone { Change::Delete(stored::payload(old)) } else { Change::Put(payload.clone()) };
        let expect = Expect::Revision(entry.revision);
        let table = call.resource.table.clone();
        let write = Write { table, key: entry.key.clone(), expect, limits, change };
        match self.store.write(write).await {
            Ok(revision) => {
                self.after_commit(&call.resource, Some(old), (!gone).then_some(object));
                Ok(payload.at(revision))
            }
            // A quota that concurrent writes have used up since is checked again, as after a conflict.
            Err(WriteError::Conflict { .. } | WriteError::LimitReached { .. }) => {
                Err(ApiError::conflict(call.resource.subject(call.name()), MODIFIED))
            }
            Err(error) => Err(store_error(error)),
        }
    }
}

/// A custom object may be replaced only with the `resourceVersion` of its newest state.
fn check_resource_version(call: &Call, object: &Value) -> Result<(), ApiError> {
    let pinned = !text(object, "/metadata/resourceVersion").is_empty();
    if pinned || call.resource.custom.is_none() {
        return Ok(());
    }
    let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
    Err(ApiError::invalid(call.resource.subject(call.name()), &[error]))
}

/// An object of the body has to be the one of the path.
pub(crate) fn check_name(call: &Call, object: &Value) -> Result<(), ApiError> {
    let (name, wanted) = (text(object, "/metadata/name"), call.name());
    match name {
        _ if name == wanted => Ok(()),
        "" => Err(ApiError::bad_request(format!(
            "the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
        ))),
        _ => Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({wanted})"
        ))),
    }
}

/// Whether an object that is being deleted has nothing left that keeps it: no finalizers, no grace
/// period still running, and for namespaces no content (`spec.finalizers`).
pub(crate) fn is_removable(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let has_any = |list: &Value| list.as_array().is_some_and(|entries| !entries.is_empty());
    let waits = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) != 0;
    let is_held = has_any(&metadata["finalizers"])
        || (object["kind"] == "Namespace" && has_any(&object["spec"]["finalizers"]));
    !(metadata["deletionTimestamp"].is_null() || waits || is_held)
}
