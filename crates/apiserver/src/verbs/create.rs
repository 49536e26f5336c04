//! POST: creates an object.

use std::sync::Arc;

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
use apimachinery::error::{ApiError, Subject};

/// How often a generated name is tried anew when it is taken.
const GENERATED_NAMES_MAX: usize = 8;
/// How often a create that loses a race is checked again against the quotas of its namespace.
const QUOTA_CHECKS_MAX: usize = 16;

impl Engine {
    /// Creates the object in the body.
    pub async fn create(&self, sent: &Sent, call: &Call) -> Result<Answer, ApiError> {
        let options = WriteOptions::parse(&call.query, &call.user_agent, WriteKind::Create)?;
        let draft = Draft::read(call, sent, options.field_validation)?;
        let _definitions = self.definition_lock(call).await;
        self.create_draft(call, &options, draft).await
    }

    /// Creates what has been read; server-side apply comes here too when there is nothing yet.
    pub async fn create_draft(
        &self,
        call: &Call,
        options: &WriteOptions,
        draft: Draft,
    ) -> Result<Answer, ApiError> {
        call.audit_annotations.set_created_name(text(&draft.object, "/metadata/name"));
        self.check_namespace(call, intended_name(&draft.object))?;
        self.check_definition(call, text(&draft.object, "/metadata/name"))?;
        let generated = text(&draft.object, "/metadata/name").is_empty();
        for attempt in 1.. {
            let (object, warnings) = self.before_create(call, options, draft.clone()).await?;
            match self.insert(call, options, &object).await {
                Err(error)
                    if error.reason == "AlreadyExists" && generated && attempt < GENERATED_NAMES_MAX => {}
                Err(error) => return Err(error),
                Ok(bytes) => {
                    call.audit_annotations.set_created_name(text(&object, "/metadata/name"));
                    return Ok(Answer::stored(StatusCode::CREATED, bytes).with_warnings(warnings));
                }
            }
        }
        unreachable!("the loop above ends by itself")
    }

    async fn insert(&self, call: &Call, options: &WriteOptions, object: &Value) -> Result<Bytes, ApiError> {
        let name = text(object, "/metadata/name");
        let key: Arc<str> = call.resource.key(call.namespace.as_deref(), name).into();
        let exists = || ApiError::already_exists(call.resource.subject(name));
        let payload = stored::payload(object);
        self.storage.check(call, name, None, payload.bytes.len() + key.len())?;
        for _ in 0..QUOTA_CHECKS_MAX {
            let limits = self.quotas.check(call, name, None, &payload.bytes)?;
            if options.dry_run {
                return match self.store.get(&call.resource.table, &key) {
                    Some(_) => Err(exists()),
                    None => Ok(Bytes::from(object.to_string())),
                };
            }
            let (table, change) = (call.resource.table.clone(), Change::Put(payload.clone()));
            let write = Write { table, key: key.clone(), expect: Expect::Absent, limits, change };
            match self.store.write(write).await {
                Ok(revision) => {
                    self.after_commit(&call.resource, None, Some(object));
                    return Ok(payload.at(revision));
                }
                Err(WriteError::Conflict { .. }) => return Err(exists()),
                // Concurrent writes have used up the quota since it was read, or they failed and it is free again.
                Err(WriteError::LimitReached { .. }) => {}
                Err(error) => return Err(store_error(error)),
            }
        }
        Err(ApiError::conflict(call.resource.subject(name), "its quota is used up and freed again too often"))
    }

    /// NamespaceLifecycle: objects can be created only in a namespace that exists and is not terminating.
    fn check_namespace(&self, call: &Call, name: &str) -> Result<(), ApiError> {
        let Some(namespace) = call.namespace.as_deref() else { return Ok(()) };
        let subject = Subject { group: "", resource: "namespaces", name: namespace };
        let entry = self.store.get("/namespaces", namespace).ok_or_else(|| ApiError::not_found(subject))?;
        if stored::outline(&entry.value).metadata.deletion_timestamp.is_none() {
            return Ok(());
        }
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut error = ApiError::forbidden(call.resource.subject(name), why);
        error.details["causes"] = serde_json::json!([{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        }]);
        Err(error)
    }

    /// No object can be created of a kind whose definition is terminating.
    fn check_definition(&self, call: &Call, name: &str) -> Result<(), ApiError> {
        let definition = call.resource.custom.as_ref();
        match definition.is_some_and(|definition| self.work_queue.is_ending(&definition.name)) {
            true => {
                let why = "create not allowed while custom resource definition is terminating";
                Err(ApiError::forbidden(call.resource.subject(name), why))
            }
            false => Ok(()),
        }
    }
}

/// How an object is called before it has a name.
fn intended_name(object: &Value) -> &str {
    let given = [text(object, "/metadata/name"), text(object, "/metadata/generateName")];
    given.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown!")
}
