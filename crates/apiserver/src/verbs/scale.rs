//! The `scale` subresource, and the two actions on pods that are written as subresources.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};

use crate::content;
use crate::crd::{ScalePaths, read_scale, write_scale};
use crate::engine::{Engine, text};
use crate::error::ApiError;
use crate::options::{DeleteOptions, WriteOptions};
use crate::patch;
use crate::stored;
use crate::verbs::draft::Draft;
use crate::verbs::{Answer, Call};

impl Engine {
    /// Reads or changes how many replicas an object asks for.
    pub async fn scale(
        &self,
        method: &Method,
        headers: &HeaderMap,
        body: &Bytes,
        call: &Call,
    ) -> Result<Answer, ApiError> {
        let paths = scale_paths(call).ok_or_else(ApiError::no_such_path)?;
        let options = WriteOptions::parse(&call.query, &call.user_agent)?;
        let media_type = content::media_type(headers);
        if *method == Method::GET {
            let entry = self.read(&call.resource, &call.key(), call.name())?;
            let object = call.resource.serve(stored::parse(&entry.value));
            return Ok(Answer::document(StatusCode::OK, read_scale(&object, &paths)?));
        }
        let wanted = |old: &Value| match *method {
            Method::PUT => content::decode_object(media_type, body),
            Method::PATCH => patched_scale(media_type, &read_scale(old, &paths)?, body),
            _ => Err(ApiError::method_not_allowed()),
        };
        let change = |old: &Value| {
            let mut object = old.clone();
            write_scale(&mut object, &wanted(old)?, &paths)?;
            Ok(Draft { object, warnings: Vec::new(), applied: false })
        };
        let answer = self.change(call, &options, change).await?;
        answer.try_map_object(|object| read_scale(&call.resource.serve(object), &paths))
    }

    /// Deletes a pod on behalf of an Eviction.
    pub async fn evict(&self, headers: &HeaderMap, body: &Bytes, call: &Call) -> Result<Answer, ApiError> {
        let eviction = content::decode_object(content::media_type(headers), body)?;
        let options = DeleteOptions::parse(&eviction["deleteOptions"], &call.query)?;
        self.delete_with(&Call { subresource: None, ..call.clone() }, &options).await?;
        let status =
            json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
        Ok(Answer::document(StatusCode::CREATED, status))
    }

    /// Puts a pod on the node that a Binding names.
    pub async fn bind(&self, headers: &HeaderMap, body: &Bytes, call: &Call) -> Result<Answer, ApiError> {
        let binding = content::decode_object(content::media_type(headers), body)?;
        let node = text(&binding, "/target/name").to_owned();
        if node.is_empty() {
            return Err(ApiError::bad_request("the binding names no target node"));
        }
        let options = WriteOptions::parse(&call.query, &call.user_agent)?;
        let whole = Call { subresource: None, ..call.clone() };
        self.change(&whole, &options, |old| {
            let current = text(old, "/spec/nodeName");
            if !current.is_empty() && current != node {
                let why = format!("pod {} is already assigned to node {current:?}", call.name());
                return Err(ApiError::conflict(call.resource.subject(call.name()), why));
            }
            let mut object = old.clone();
            object["spec"]["nodeName"] = node.as_str().into();
            Ok(Draft { object, warnings: Vec::new(), applied: false })
        })
        .await?;
        let status =
            json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
        Ok(Answer::document(StatusCode::CREATED, status))
    }
}

fn scale_paths(call: &Call) -> Option<ScalePaths> {
    match call.resource.custom_version() {
        Some((_, version)) => version.scale.clone(),
        None => ScalePaths::of_builtin(&call.resource.group, &call.resource.kind),
    }
}

fn patched_scale(media_type: &str, current: &Value, body: &Bytes) -> Result<Value, ApiError> {
    let change = content::decode_yaml(body)?;
    match media_type {
        "application/json-patch+json" => patch::json_patch(current, &change),
        // A Scale has no lists, so every other kind of patch is a merge.
        "application/merge-patch+json"
        | "application/strategic-merge-patch+json"
        | "application/apply-patch+yaml" => patch::merge_patch(current, &change),
        other => Err(ApiError::unsupported_media_type(format!("{other:?} is no patch of a Scale"))),
    }
}
