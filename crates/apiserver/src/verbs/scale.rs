//! The `scale` subresource, and the two actions on pods that are written as subresources.

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::call::{Call, Sent};
use crate::engine::Engine;
use crate::http::options::{DeleteOptions, WriteKind, WriteOptions};
use crate::http::{Query, content};
use crate::storage::text;
use crate::verbs::Answer;
use crate::verbs::draft::{Draft, Ownership};
use apiextensions::{ScalePaths, read_scale, write_scale};
use apimachinery::error::{ApiError, Subject};
use merge::apply::{WriteContext, managed_fields_after_scale, managed_fields_of_scale, server_side_apply};
use merge::patch;
use schema::kinds;

impl Engine {
    /// Reads or changes how many replicas an object asks for.
    pub async fn scale(&self, sent: &Sent, call: &Call) -> Result<Answer, ApiError> {
        let paths = scale_paths(call).ok_or_else(ApiError::no_such_path)?;
        let media_type = sent.media_type.as_str();
        if sent.method == Method::GET {
            let entry = self.read(&call.resource, &call.key(), call.name())?;
            let object = self.conversion.served_entry(&call.resource, &entry).await?;
            return Ok(Answer::document(StatusCode::OK, read_scale(&object, &paths)?));
        }
        let kind = match (&sent.method, media_type) {
            (&Method::PUT, _) => WriteKind::Update,
            (&Method::PATCH, "application/apply-patch+yaml") => WriteKind::Apply,
            (&Method::PATCH, _) => WriteKind::Patch,
            _ => return Err(ApiError::method_not_allowed()),
        };
        let options = WriteOptions::parse(&call.query, &call.user_agent, kind)?;
        let change = |old: &Value| match kind {
            WriteKind::Apply => self.applied_scale(call, &options, &paths, old, &sent.body),
            WriteKind::Update => scaled(old, &content::decode_object(media_type, &sent.body)?, &paths),
            _ => scaled(old, &patched_scale(media_type, &read_scale(old, &paths)?, &sent.body)?, &paths),
        };
        let answer = self.change(call, &options, change).await?;
        let answer = self.in_served_version(call, answer).await?;
        answer.try_map_object(|object| read_scale(&object, &paths))
    }

    /// Server-side apply of a Scale: who owns the replicas of the object decides.
    fn applied_scale(
        &self,
        call: &Call,
        options: &WriteOptions,
        paths: &ScalePaths,
        old: &Value,
        body: &Bytes,
    ) -> Result<Draft, ApiError> {
        let replicas: Vec<&str> = paths.spec_replicas.split('.').filter(|word| !word.is_empty()).collect();
        let mut live = read_scale(old, paths)?;
        live["metadata"]["managedFields"] = managed_fields_of_scale(old, &replicas).unwrap_or_default();
        let context = WriteContext {
            manager: &options.field_manager,
            api_version: "autoscaling/v1",
            kind: "Scale",
            subresource: "scale",
            now: (self.now)(),
            schema: kinds::definition_named("io.k8s.api.autoscaling.v1.Scale")
                .unwrap_or(&call.resource.schema),
            builtin: true,
            reset: &[&["status"]],
        };
        let scale = server_side_apply(Some(&live), &content::decode_yaml(body)?, options.force, &context)?;
        let mut draft = scaled(old, &scale, paths)?;
        let owners = managed_fields_after_scale(old, &scale, &replicas, &call.resource.api_version());
        draft.object["metadata"]["managedFields"] = owners.unwrap_or_default();
        Ok(Draft { ownership: Ownership::Settled, ..draft })
    }

    /// Deletes a pod on behalf of an Eviction.
    pub async fn evict(&self, sent: &Sent, call: &Call) -> Result<Answer, ApiError> {
        let eviction = content::decode_object(&sent.media_type, &sent.body)?;
        let write = WriteOptions::parse(&call.query, &call.user_agent, WriteKind::Create)?;
        let options = DeleteOptions::parse(&eviction["deleteOptions"], &Query::default())?;
        let options = DeleteOptions { dry_run: options.dry_run || write.dry_run, ..options };
        self.delete_with(&Call { subresource: None, ..call.clone() }, &options).await?;
        let status =
            json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
        Ok(Answer::document(StatusCode::CREATED, status))
    }

    /// Puts a pod on the node that a Binding names.
    pub async fn bind(&self, sent: &Sent, call: &Call) -> Result<Answer, ApiError> {
        let binding = content::decode_object(&sent.media_type, &sent.body)?;
        let node = text(&binding, "/target/name").to_owned();
        if node.is_empty() {
            return Err(ApiError::bad_request("the binding names no target node"));
        }
        let options = WriteOptions::parse(&call.query, &call.user_agent, WriteKind::Create)?;
        self.change(call, &options, |old| {
            if let Some(why) = not_bindable(old) {
                let subject = Subject { group: "", resource: "pods/binding", name: call.name() };
                return Err(ApiError::conflict(subject, why));
            }
            let mut object = old.clone();
            object["spec"]["nodeName"] = node.as_str().into();
            set_scheduled(&mut object, &self.timestamp());
            Ok(Draft::changed(object))
        })
        .await?;
        let status =
            json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
        Ok(Answer::document(StatusCode::CREATED, status))
    }
}

/// Why a pod cannot be put on a node.
fn not_bindable(pod: &Value) -> Option<String> {
    let (name, node) = (text(pod, "/metadata/name"), text(pod, "/spec/nodeName"));
    if pod["metadata"]["deletionTimestamp"].is_string() {
        return Some(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    if !node.is_empty() {
        return Some(format!("pod {name} is already assigned to node {node:?}"));
    }
    let gated = pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    gated.then(|| format!("pod {name} has non-empty .spec.schedulingGates"))
}

fn set_scheduled(pod: &mut Value, now: &str) {
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let mut conditions: Vec<Value> =
        conditions.into_iter().filter(|one| one["type"] != "PodScheduled").collect();
    conditions.push(json!({ "type": "PodScheduled", "status": "True", "lastTransitionTime": now }));
    pod["status"]["conditions"] = conditions.into();
}

fn scale_paths(call: &Call) -> Option<ScalePaths> {
    match call.resource.custom_version() {
        Some((_, version)) => version.scale.clone(),
        None => ScalePaths::of_builtin(&call.resource.group, &call.resource.kind),
    }
}

fn scaled(old: &Value, scale: &Value, paths: &ScalePaths) -> Result<Draft, ApiError> {
    let mut object = old.clone();
    write_scale(&mut object, scale, paths)?;
    Ok(Draft::changed(object))
}

fn patched_scale(media_type: &str, current: &Value, body: &Bytes) -> Result<Value, ApiError> {
    let change = content::decode_yaml(body)?;
    match media_type {
        "application/json-patch+json" => patch::json_patch(current, &change),
        // A Scale has no lists, so a strategic merge is a merge.
        "application/merge-patch+json" | "application/strategic-merge-patch+json" => {
            patch::merge_patch(current, &change)
        }
        other => Err(ApiError::unsupported_media_type(format!("{other:?} is no patch of a Scale"))),
    }
}
