//! DELETE: removes an object at once, or marks it as terminating until its finalizers, its grace period and
//! (foreground deletion) its dependents allow removal.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use jiff::ToSpan;
use serde_json::{Value, json};
use store::{Change, Expect, Write, WriteError};

use crate::admission::{Operation, WriteAttributes};
use crate::call::{Call, Sent};
use crate::engine::Engine;
use crate::http::content;
use crate::http::options::{DeleteOptions, Propagation};
use crate::storage::{store_error, stored, text};
use crate::verbs::Answer;
use crate::verbs::update::is_removable;
use apimachinery::error::ApiError;

/// Keeps an object until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer that keeps an object until its dependents have been orphaned.
pub(crate) const ORPHAN: &str = "orphan";

impl Engine {
    /// Deletes the named object.
    pub async fn delete(&self, sent: &Sent, call: &Call) -> Result<Answer, ApiError> {
        let options = delete_options(sent, call)?;
        let _definitions = self.definition_lock(call).await;
        self.delete_with(call, &options).await
    }

    /// Deletes the named object with options that are already read.
    pub async fn delete_with(&self, call: &Call, options: &DeleteOptions) -> Result<Answer, ApiError> {
        // As with every change: an object that moved is looked at again, and so is what the request says of its state.
        loop {
            let entry = self.read(&call.resource, &call.key(), call.name())?;
            let old = stored::parse(&entry.value);
            check_preconditions(call, &old, options)?;
            check_deletable(call)?;
            let mut seen = self.conversion.served_entry(&call.resource, &entry).await?;
            let before = seen.clone();
            let warnings =
                self.admission.admit(call, options.dry_run, Operation::Delete, Some(&before), &mut seen)?;
            let write = WriteAttributes {
                call,
                operation: Operation::Delete,
                dry_run: options.dry_run,
                old: Some(&before),
            };
            let mut warnings = warnings;
            warnings.extend(self.admission.mutate(&write, &mut seen).await?);
            warnings.extend(self.admission.validate(&write, &seen).await?);
            let next = self.begin_deletion(call, &old, options);
            if next == old && !is_removable(&next) {
                return Ok(Answer::stored(StatusCode::OK, entry.value).with_warnings(warnings));
            }
            match self.remove_or_mark(call, options, &entry, &old, &next).await {
                Ok(answer) => return Ok(answer.with_warnings(warnings)),
                Err(WriteError::Conflict { .. }) => {}
                Err(error) => return Err(store_error(error)),
            }
        }
    }

    async fn remove_or_mark(
        &self,
        call: &Call,
        options: &DeleteOptions,
        entry: &store::Entry,
        old: &Value,
        next: &Value,
    ) -> Result<Answer, WriteError> {
        let gone = is_removable(next);
        let payload = stored::payload(next);
        let mut bytes = Bytes::from(next.to_string());
        if !options.dry_run {
            // The DELETED event shows the last state, without the deletion metadata of an object that is removed at
            // once.
            let change =
                if gone { Change::Delete(stored::payload(old)) } else { Change::Put(payload.clone()) };
            let expect = Expect::Revision(entry.revision);
            let (table, key) = (call.resource.table.clone(), entry.key.clone());
            let write = Write { table, key, expect, limits: Vec::new(), change };
            let revision = self.store.write(write).await?;
            bytes = payload.at(revision);
            self.after_commit(&call.resource, Some(old), (!gone).then_some(next));
        }
        match gone {
            true => Ok(Answer::document(StatusCode::OK, deleted_status(call, old))),
            false => Ok(Answer::stored(StatusCode::OK, bytes)),
        }
    }

    /// The object with everything that its deletion asks for: finalizers for dependents, the time of
    /// deletion, and the next generation.
    fn begin_deletion(&self, call: &Call, old: &Value, options: &DeleteOptions) -> Value {
        let mut next = old.clone();
        set_dependents_finalizer(&mut next, options.propagation);
        let grace = grace_seconds(call, old, options);
        let metadata = &mut next["metadata"];
        let marked = metadata["deletionTimestamp"].is_string();
        let shorter = metadata["deletionGracePeriodSeconds"].as_i64().is_some_and(|running| grace < running);
        if !marked || shorter {
            let due = (self.now)().checked_add(grace.seconds()).unwrap_or_else(|_| (self.now)());
            metadata["deletionTimestamp"] = due.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
            metadata["deletionGracePeriodSeconds"] = grace.into();
        }
        if !marked && let Some(generation) = metadata["generation"].as_i64() {
            metadata["generation"] = (generation + 1).into();
        }
        if call.resource.group.is_empty() && &*call.resource.kind == "Namespace" {
            next["status"]["phase"] = "Terminating".into();
        }
        crate::verbs::definitions::mark_terminating(self, call, &mut next);
        next
    }

    /// Deletes everything that a list with the same selectors would show.
    pub async fn delete_collection(self: &Arc<Self>, sent: &Sent, call: &Call) -> Result<Answer, ApiError> {
        let options = delete_options(sent, call)?;
        let entries = self.select_all(call).await?;
        let _definitions = self.definition_lock(call).await;
        let mut deleted = Vec::with_capacity(entries.len());
        for entry in entries {
            let outline = stored::outline(&entry.value).metadata;
            let namespace = (!outline.namespace.is_empty()).then_some(outline.namespace);
            let one = Call::on_object(call, namespace, outline.name);
            match self.delete_with(&one, &options).await {
                Ok(_) => deleted.push(entry),
                // A concurrent delete was faster; the object is gone, as requested.
                Err(error) if error.reason == "NotFound" => {}
                Err(error) => return Err(error),
            }
        }
        let items = self.conversion.served_entries(&call.resource, &deleted).await?;
        let list = json!({
            "kind": call.resource.list_kind,
            "apiVersion": call.resource.api_version(),
            "metadata": { "resourceVersion": self.store.revision().to_string() },
            "items": items,
        });
        Ok(Answer::document(StatusCode::OK, list))
    }
}

pub(crate) fn delete_options(sent: &Sent, call: &Call) -> Result<DeleteOptions, ApiError> {
    let body = match sent.body.is_empty() {
        true => Value::Null,
        false => content::decode_object(&sent.media_type, &sent.body)?,
    };
    DeleteOptions::parse(&body, &call.query)
}

fn check_preconditions(call: &Call, old: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
    let subject = call.resource.kind_subject(call.name());
    let differs =
        |wanted: &Option<String>, actual: &str| wanted.as_deref().is_some_and(|wanted| wanted != actual);
    let uid = text(old, "/metadata/uid");
    if differs(&options.uid, uid) {
        let wanted = options.uid.as_deref().unwrap_or_default();
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). \
             The object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict(subject, why));
    }
    let version = text(old, "/metadata/resourceVersion");
    if differs(&options.resource_version, version) {
        let wanted = options.resource_version.as_deref().unwrap_or_default();
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
             ({version}). The object might have been modified"
        );
        return Err(ApiError::conflict(subject, why));
    }
    Ok(())
}

/// The namespaces that everything relies on stay.
fn check_deletable(call: &Call) -> Result<(), ApiError> {
    let lasting = ["default", "kube-public", "kube-system"];
    match &*call.resource.table == "/namespaces" && lasting.contains(&call.name()) {
        true => {
            Err(ApiError::forbidden(call.resource.subject(call.name()), "this namespace may not be deleted"))
        }
        false => Ok(()),
    }
}

/// Only pods that a node runs get time to end; everything else goes when nothing keeps it.
fn grace_seconds(call: &Call, old: &Value, options: &DeleteOptions) -> i64 {
    let is_pod = call.resource.group.is_empty() && &*call.resource.kind == "Pod";
    let runs = !text(old, "/spec/nodeName").is_empty()
        && !matches!(text(old, "/status/phase"), "Succeeded" | "Failed");
    if !is_pod || !runs {
        return 0;
    }
    let own = old["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    options.grace_period_seconds.unwrap_or(own).max(0)
}

fn set_dependents_finalizer(object: &mut Value, propagation: Option<Propagation>) {
    let Some(propagation) = propagation else { return };
    let current = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let others = current.into_iter().filter(|entry| *entry != FOREGROUND && *entry != ORPHAN);
    let mut finalizers: Vec<Value> = others.collect();
    match propagation {
        Propagation::Background => {}
        Propagation::Foreground => finalizers.push(FOREGROUND.into()),
        Propagation::Orphan => finalizers.push(ORPHAN.into()),
    }
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    match finalizers.is_empty() {
        true => drop(metadata.remove("finalizers")),
        false => drop(metadata.insert("finalizers".to_owned(), finalizers.into())),
    }
}

fn deleted_status(call: &Call, old: &Value) -> Value {
    let mut details =
        json!({ "name": call.name(), "kind": call.resource.plural, "uid": text(old, "/metadata/uid") });
    if !call.resource.group.is_empty() {
        details["group"] = (&*call.resource.group).into();
    }
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}
