//! PATCH in its four kinds: JSON patch, merge patch, strategic merge patch and server-side apply.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Map, Value};

use crate::authz::{Action, Object};
use crate::call::{Call, Sent};
use crate::engine::Engine;
use crate::http::options::{WriteKind, WriteOptions};
use crate::registry::split_api_version;
use crate::run_blocking::run_blocking;
use crate::storage::text;
use crate::verbs::Answer;
use crate::verbs::draft::{Draft, type_name};
use crate::verbs::update::check_name;
use apimachinery::error::{ApiError, FieldError, Subject};
use apimachinery::gotext;
use merge::patch;

impl Engine {
    /// Changes the object as the patch in the body says.
    pub async fn patch(&self, sent: &Sent, call: &Call) -> Result<Answer, ApiError> {
        let media_type = sent.media_type.as_str();
        let kind = match media_type {
            "application/apply-patch+yaml" => WriteKind::Apply,
            _ => WriteKind::Patch,
        };
        let options = WriteOptions::parse(&call.query, &call.user_agent, kind)?;
        let _definitions = self.definition_lock(call).await;
        if kind == WriteKind::Apply {
            return self.apply(&sent.body, call, &options).await;
        }
        check_media_type(media_type, call)?;
        let patch = serde_json::from_slice(&sent.body)
            .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
        self.change(call, &options, |old| {
            let mut patched = apply_patch(media_type, call, old, &patch)?;
            Origin::of(media_type, &patch, &patched).check_types(call, &patched)?;
            let unchanged = take_unchanged_fields(media_type, call, &patch, &mut patched);
            let mut draft = Draft::from_value(call, patched, options.field_validation).map_err(|error| {
                // Errors quote the patched object. They are rare, so it is computed again for them instead of being
                // kept.
                match apply_patch(media_type, call, old, &patch) {
                    Ok(patched) => {
                        patch_error(call, &patched, Origin::of(media_type, &patch, &patched), error)
                    }
                    Err(error) => error,
                }
            })?;
            if let Some(fields) = draft.object.as_object_mut() {
                fields.extend(unchanged);
            }
            check_name(call, &draft.object)?;
            check_uid(call, old, &draft.object)?;
            Ok(draft)
        })
        .await
    }

    async fn apply(&self, body: &Bytes, call: &Call, options: &WriteOptions) -> Result<Answer, ApiError> {
        let draft = Draft::applied(call, body, options.field_validation)?;
        check_applied(call, &draft.object)?;
        let exists = self.store.get(&call.resource.table, &call.key()).is_some();
        if !exists && call.subresource.is_none() {
            self.rbac.authorize(&call.identity, &creation(call))?;
            let answer = self.create_draft(call, options, draft.clone()).await;
            // A concurrent create was faster: the apply is retried as an update.
            match answer {
                Err(error) if error.reason == "AlreadyExists" => {}
                answer => return answer,
            }
        }
        let answer = self.change(call, options, |_| Ok(draft.clone())).await?;
        Ok(Answer { status: StatusCode::OK, ..answer })
    }
}

/// Applying an object that does not exist creates it, so it needs the permission `create` beside `patch`.
fn creation(call: &Call) -> Action<'_> {
    let namespace = call.namespace.as_deref().unwrap_or_default();
    let (group, resource) = (&*call.resource.group, &*call.resource.plural);
    Action::on("create", Object { group, resource, subresource: "", namespace, name: call.name() })
}

/// Takes out the part of a custom object that a merge patch of its status leaves unchanged: it comes from the store
/// and goes back there, so it is not validated again, and in most objects it is the larger part.
fn take_unchanged_fields(
    media_type: &str,
    call: &Call,
    patch: &Value,
    patched: &mut Value,
) -> Map<String, Value> {
    let is_simple = media_type == "application/merge-patch+json" && call.resource.custom.is_some();
    match patched.as_object_mut().filter(|_| is_simple && call.subresource() == "status") {
        Some(fields) => {
            let is_read = |key: &str| matches!(key, "apiVersion" | "kind" | "metadata" | "status");
            let names = fields.keys().filter(|key| !is_read(key) && patch.get(key.as_str()).is_none());
            let names: Vec<String> = names.cloned().collect();
            names.iter().filter_map(|name| fields.remove_entry(name)).collect()
        }
        None => Map::new(),
    }
}

fn apply_patch(media_type: &str, call: &Call, old: &Value, body: &Value) -> Result<Value, ApiError> {
    match media_type {
        "application/json-patch+json" if is_costly(body) => run_blocking(|| patch::json_patch(old, body)),
        "application/json-patch+json" => patch::json_patch(old, body),
        "application/merge-patch+json" => patch::merge_patch(old, body),
        _ => patch::strategic_merge(old, body, &call.resource.schema),
    }
}

/// Whether a JSON patch may make much of little, or has much to do. Most have neither, and stepping aside for each
/// would cost more than it saves.
fn is_costly(patch: &Value) -> bool {
    const MANY_OPERATIONS: usize = 100;
    let operations = patch.as_array().map(Vec::as_slice).unwrap_or_default();
    operations.len() > MANY_OPERATIONS || operations.iter().any(|operation| operation["op"] == "copy")
}

/// What errors about a patched object quote.
#[derive(Debug, Clone, Copy)]
enum Origin<'a> {
    /// After a JSON patch or merge patch: the object that came out.
    Document(&'a Value),
    /// After a strategic merge: the patch.
    Strategic(&'a Value),
}

impl<'a> Origin<'a> {
    fn of(media_type: &str, patch: &'a Value, patched: &'a Value) -> Self {
        match media_type {
            "application/strategic-merge-patch+json" => Self::Strategic(patch),
            _ => Self::Document(patched),
        }
    }

    /// Strategic merge goes through a converter, which refuses wrong types in its own words.
    fn check_types(self, call: &Call, patched: &Value) -> Result<(), ApiError> {
        let (Self::Strategic(_), resource) = (self, &call.resource) else { return Ok(()) };
        let fault = schema::converter_fault(patched, &resource.schema, &resource.kind, type_name);
        fault.map_or(Ok(()), |fault| Err(self.refusal(&fault)))
    }

    fn refusal(self, fault: &str) -> ApiError {
        let shown = match self {
            Self::Document(object) => object.to_string(),
            Self::Strategic(patch) => gotext::plain(&patch::without_directives(patch)),
        };
        let no_subject = Subject { group: "", resource: "", name: "" };
        ApiError::invalid(no_subject, &[FieldError::invalid("patch", shown, fault)])
    }
}

/// What a patch made of the object is no object of its kind any more.
fn patch_error(call: &Call, patched: &Value, origin: Origin<'_>, error: ApiError) -> ApiError {
    if call.resource.custom.is_some() && !error.message.contains(" cannot be handled as a ") {
        return custom_patch_error(call, patched, error);
    }
    let fault =
        error.message.split_once(" cannot be handled as a ").and_then(|(_, rest)| rest.split_once(": "));
    origin.refusal(fault.map_or(error.message.as_str(), |(_, fault)| fault))
}

fn custom_patch_error(call: &Call, patched: &Value, error: ApiError) -> ApiError {
    let expected = call.resource.api_version();
    let api_version = text(patched, "/apiVersion");
    if error.code != 400 || api_version == expected {
        return error;
    }
    let fault = FieldError::invalid("apiVersion", api_version, format!("must be {expected}"));
    let (group, _) = split_api_version(api_version);
    let subject = Subject { group, resource: &call.resource.kind, name: call.name() };
    ApiError::invalid(subject, &[fault])
}

/// A patch that names another uid is a mistake and not, as in an update, a precondition.
fn check_uid(call: &Call, old: &Value, object: &Value) -> Result<(), ApiError> {
    let uid = text(object, "/metadata/uid");
    if uid.is_empty() || uid == text(old, "/metadata/uid") {
        return Ok(());
    }
    let error = FieldError::invalid("metadata.uid", uid, "field is immutable");
    Err(ApiError::invalid(call.resource.kind_subject(call.name()), &[error]))
}

fn check_media_type(media_type: &str, call: &Call) -> Result<(), ApiError> {
    match media_type {
        "application/json-patch+json" | "application/merge-patch+json" => Ok(()),
        "application/strategic-merge-patch+json" if call.resource.custom.is_none() => Ok(()),
        _ => {
            let accepted = match call.resource.custom {
                None => {
                    "application/json-patch+json, application/merge-patch+json, \
                     application/strategic-merge-patch+json, application/apply-patch+yaml"
                }
                Some(_) => {
                    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                }
            };
            Err(ApiError::unsupported_media_type(format!(
                "the body of the request was in an unknown format - accepted media types include: \
                 {accepted}"
            )))
        }
    }
}

/// What an applied configuration has to say about itself.
fn check_applied(call: &Call, applied: &Value) -> Result<(), ApiError> {
    let name = text(applied, "/metadata/name");
    if !name.is_empty() && name != call.name() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name()
        )));
    }
    match applied["metadata"].get("managedFields") {
        Some(fields) if !fields.is_null() => Err(ApiError::bad_request("metadata.managedFields must be nil")),
        _ => Ok(()),
    }
}
