//! The write path from a draft to the stored object: defaults, server-set metadata, admission, validation, generation
//! and field ownership. The same order for every kind and every verb that writes.

use serde_json::{Map, Value, json};

use crate::admission::{Operation, WriteAttributes, quota};
use crate::authz::RoleWrite;
use crate::call::Call;
use crate::engine::Engine;
use crate::environment;
use crate::http::options::WriteOptions;
use crate::registry::DEFINITIONS;
use crate::run_blocking::run_blocking;
use crate::storage::text;
use crate::verbs::definitions;
use crate::verbs::draft::{self, Draft, Ownership};
use crate::verbs::update::MODIFIED;
use apiextensions::{CustomKind, CustomVersion};
use apimachinery::error::{ApiError, FieldError};
use apimachinery::metadata;
use apimachinery::names::NameRule;
use merge::apply::{self, WriteContext};

/// What the server alone sets and a client's copy never changes.
const SYSTEM_FIELDS: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"];

impl Engine {
    /// The first state of a new object, as it is stored, and the warnings that came up.
    pub async fn before_create(
        &self,
        call: &Call,
        options: &WriteOptions,
        draft: Draft,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let Draft { mut object, mut warnings, ownership: mode } = draft;
        let api_version = call.resource.api_version();
        let ownership = self.ownership(call, options, &api_version);
        if mode == Ownership::Apply {
            object = apply::server_side_apply(None, &object, options.force, &ownership)?;
            draft::reduce(call, &mut object)?;
        }
        if !text(&object, "/metadata/resourceVersion").is_empty() {
            return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
        }
        metadata::match_namespace(metadata_of(&mut object), call.namespace.as_deref().unwrap_or_default())?;
        metadata::drop_empty(metadata_of(&mut object));
        if call.name.is_some() {
            object["metadata"]["name"] = call.name().into();
        }
        if mode != Ownership::Apply {
            // Clients do not set `managedFields` of a new object; the server does.
            metadata_of(&mut object).remove("managedFields");
        }
        self.set_system_fields(call, &mut object);
        fill_in(call, &mut object, None);
        warnings.extend(self.admit_valid(call, options.dry_run, None, &mut object)?);
        let write =
            WriteAttributes { call, operation: Operation::Create, dry_run: options.dry_run, old: None };
        warnings.extend(self.admission.mutate(&write, &mut object).await?);
        self.rbac.check_escalation(role_write(call), &object, None)?;
        // Fields that the server itself sets from here on have no owner.
        if mode == Ownership::Update && !call.identity.is_untracked {
            apply::track_update(None, &mut object, &ownership);
        }
        prepare_for_create(call, &mut object);
        self.allocate_addresses(call, &mut object, None);
        warnings.extend(check_valid(call, &object, None)?);
        canonicalize(call, &mut object);
        definitions::prepare(self, call, &mut object, None);
        warnings.extend(warnings_about(call, &object, None));
        warnings.extend(self.admission.validate(&write, &object).await?);
        Ok((self.conversion.as_stored(&call.resource, object).await?, warnings))
    }

    /// The next state of an object, as it is stored, and the warnings that came up.
    pub async fn before_update(
        &self,
        call: &Call,
        options: &WriteOptions,
        old: &Value,
        draft: Draft,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let Draft { mut object, mut warnings, ownership: mode } = draft;
        check_preconditions(call, old, &object)?;
        let api_version = call.resource.api_version();
        let ownership = self.ownership(call, options, &api_version);
        let owners = &object["metadata"]["managedFields"];
        let is_reset = apply::is_reset(owners, call.resource.custom.is_none());
        if !is_reset && !metadata::has_readable_owners(&object["metadata"]) {
            keep(&mut object["metadata"], &old["metadata"], "managedFields");
        }
        if mode == Ownership::Apply {
            object = apply::server_side_apply(Some(old), &object, options.force, &ownership)?;
            draft::reduce(call, &mut object)?;
        }
        metadata::match_namespace(metadata_of(&mut object), call.namespace.as_deref().unwrap_or_default())?;
        metadata::drop_empty(metadata_of(&mut object));
        restore_system_fields(old, &mut object);
        fill_in(call, &mut object, Some(old));
        warnings.extend(self.admit_valid(call, options.dry_run, Some(old), &mut object)?);
        let write =
            WriteAttributes { call, operation: Operation::Update, dry_run: options.dry_run, old: Some(old) };
        warnings.extend(self.admission.mutate(&write, &mut object).await?);
        self.rbac.check_escalation(role_write(call), &object, Some(old))?;
        if mode == Ownership::Update {
            apply::track_update(Some(old), &mut object, &ownership);
        }
        prepare_for_update(call, old, &mut object);
        self.allocate_addresses(call, &mut object, Some(old));
        warnings.extend(check_valid(call, &object, Some(old))?);
        canonicalize(call, &mut object);
        definitions::prepare(self, call, &mut object, Some(old));
        warnings.extend(warnings_about(call, &object, Some(old)));
        warnings.extend(self.admission.validate(&write, &object).await?);
        if generation_moves(call, old, &object) {
            let generation = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
            object["metadata"]["generation"] = generation.into();
        }
        apply::keep_times_of_noop(old, &mut object);
        Ok((self.conversion.as_stored(&call.resource, object).await?, warnings))
    }

    fn set_system_fields(&self, call: &Call, object: &mut Value) {
        let generated = text(object, "/metadata/generateName").to_owned();
        if text(object, "/metadata/name").is_empty() && !generated.is_empty() {
            let base = &generated[..generated.floor_char_boundary(58)];
            object["metadata"]["name"] = format!("{base}{}", environment::name_suffix(&self.random)).into();
        }
        let fields = metadata_of(object);
        for key in SYSTEM_FIELDS.into_iter().chain(["selfLink", "resourceVersion"]) {
            fields.remove(key);
        }
        fields.insert("uid".to_owned(), self.uid().into());
        fields.insert("creationTimestamp".to_owned(), self.timestamp().into());
        if has_generation(call) {
            fields.insert("generation".to_owned(), 1.into());
        }
    }

    /// Allocates the IP addresses and node ports that clients expect in a Service. There is no network behind them
    /// here, so they are drawn from Kubernetes' usual ranges and may collide.
    fn allocate_addresses(&self, call: &Call, object: &mut Value, old: Option<&Value>) {
        if call.resource.group.is_empty() && &*call.resource.kind == "Service" {
            let byte = |bits: u128| bits & 0xff;
            let address = || {
                let bits = (self.random)();
                format!("10.{}.{}.{}", 96 + (bits >> 16 & 0xf), byte(bits >> 8), byte(bits).clamp(1, 254))
            };
            let port = || u16::try_from(30_000 + (self.random)() % 2_768).ok();
            builtin::allocate_service(object, old, || Some(address()), port);
        }
    }

    /// Calls the admission hook for a write. What the schema refuses is refused by the schema, whatever the
    /// rules would have said about it.
    fn admit_valid(
        &self,
        call: &Call,
        dry_run: bool,
        old: Option<&Value>,
        object: &mut Value,
    ) -> Result<Vec<String>, ApiError> {
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        self.admission.admit(call, dry_run, operation, old, object).or_else(|refused| {
            if call.resource.custom.is_some() {
                check_valid(call, object, old)?;
            }
            Err(refused)
        })
    }

    fn ownership<'a>(
        &self,
        call: &'a Call,
        options: &'a WriteOptions,
        api_version: &'a str,
    ) -> WriteContext<'a> {
        let has_status = call.resource.has_subresource("status");
        WriteContext {
            manager: &options.field_manager,
            api_version,
            kind: &call.resource.kind,
            subresource: call.subresource(),
            now: (self.now)(),
            schema: &call.resource.schema,
            builtin: call.resource.custom.is_none(),
            reset: match call.resource.custom {
                Some(_) => apply::custom_reset_fields(call.subresource(), has_status),
                None => apply::reset_fields(&call.resource.kind, call.subresource(), has_status),
            },
        }
    }
}

fn role_write(call: &Call) -> RoleWrite<'_> {
    RoleWrite {
        identity: &call.identity,
        resource: &call.resource,
        namespace: call.namespace.as_deref().unwrap_or_default(),
        name: call.name(),
    }
}

/// The object's metadata; drafts always have one.
fn metadata_of(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"].as_object_mut().expect("it was just made an object")
}

fn check_preconditions(call: &Call, old: &Value, object: &Value) -> Result<(), ApiError> {
    let subject = call.resource.subject(call.name());
    let uid = text(object, "/metadata/uid");
    let old_uid = text(old, "/metadata/uid");
    if !uid.is_empty() && uid != old_uid {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {old_uid}");
        return Err(ApiError::conflict(subject, why));
    }
    let version = text(object, "/metadata/resourceVersion");
    match version.is_empty() || version == text(old, "/metadata/resourceVersion") {
        true => Ok(()),
        false => Err(ApiError::conflict(subject, MODIFIED)),
    }
}

fn restore_system_fields(old: &Value, object: &mut Value) {
    let fields = metadata_of(object);
    fields.remove("selfLink");
    metadata::keep_system_fields(fields, &old["metadata"]);
    for key in ["resourceVersion", "name", "namespace"] {
        match old["metadata"].get(key) {
            Some(value) => fields.insert(key.to_owned(), value.clone()),
            None => fields.remove(key),
        };
    }
}

/// Defaults, as the kind has them.
fn fill_in(call: &Call, object: &mut Value, old: Option<&Value>) {
    match &call.resource.custom {
        Some(_) => schema::apply_defaults(object, &call.resource.schema),
        None => {
            builtin::apply_defaults(&call.resource.group, &call.resource.kind, object);
            definitions::fill_in(call, object, old);
        }
    }
}

/// A client does not set the status of what it creates.
fn prepare_for_create(call: &Call, object: &mut Value) {
    match call.resource.custom_version() {
        None => builtin::prepare_for_create(&call.resource.group, &call.resource.kind, object),
        Some((_, version)) if version.has_status => {
            drop(object.as_object_mut().map(|fields| fields.remove("status")))
        }
        Some(_) => {}
    }
}

/// A request writes either the object or one part of it; the rest stays as it was.
fn prepare_for_update(call: &Call, old: &Value, object: &mut Value) {
    restore_system_fields(old, object);
    let (group, kind) = (&*call.resource.group, &*call.resource.kind);
    match (call.subresource(), call.resource.custom_version()) {
        ("" | "scale", None) => builtin::prepare_for_update(group, kind, object, old),
        ("" | "scale", Some((_, version))) if version.has_status => keep(object, old, "status"),
        ("" | "scale", Some(_)) => {}
        ("finalize", _) => keep(object, old, "status"),
        // A binding sets one field of the spec and one condition, and nothing a client wrote.
        ("binding", _) => {}
        (_, None) => builtin::prepare_for_status_update(group, kind, object, old),
        (_, Some(_)) => keep_all_but_status(old, object),
    }
}

/// The status is the new one, everything else the old one; field ownership is settled later. Most often everything
/// else is the same, and comparing costs less than copying.
fn keep_all_but_status(old: &Value, object: &mut Value) {
    let (Some(was), Some(fields)) = (old.as_object(), object.as_object_mut()) else { return };
    fields.retain(|key, _| key == "status" || was.contains_key(key));
    for (key, value) in was {
        match fields.get_mut(key) {
            _ if key == "status" => {}
            Some(field) if key == "metadata" => {
                let owners = field.as_object_mut().and_then(|metadata| metadata.remove("managedFields"));
                *field = value.clone();
                put(field, "managedFields", owners);
            }
            Some(field) if field == value => {}
            _ => drop(fields.insert(key.clone(), value.clone())),
        }
    }
}

/// Takes a field from another object, or takes it away where that has none.
fn keep(object: &mut Value, from: &Value, key: &str) {
    put(object, key, from.get(key).cloned());
}

fn put(object: &mut Value, key: &str, value: Option<Value>) {
    let Some(fields) = object.as_object_mut() else { return };
    match value {
        Some(value) => fields.insert(key.to_owned(), value),
        None => fields.remove(key),
    };
}

/// Refuses what is wrong; answers with what is wrong and forgiven, because it was so before.
fn check_valid(call: &Call, object: &Value, old: Option<&Value>) -> Result<Vec<String>, ApiError> {
    let resource = &call.resource;
    let plain = |errors: Vec<FieldError>| (errors, Vec::new());
    let (errors, forgiven) = match (resource.custom_version(), old, call.subresource()) {
        (Some((kind, version)), old, part) if version.rules.is_some() => {
            run_blocking(|| custom_errors(kind, version, object, old, part))
        }
        (Some((kind, version)), old, part) => custom_errors(kind, version, object, old, part),
        (None, _, _) if &*resource.table == DEFINITIONS => {
            run_blocking(|| plain(apiextensions::validate_crd(object, old)))
        }
        (None, _, _) => plain(builtin_errors(call, object, old)),
    };
    match errors.is_empty() {
        true => Ok(forgiven),
        false => Err(ApiError::invalid(resource.kind_subject(text(object, "/metadata/name")), &errors)),
    }
}

/// Numbers of custom objects are stored as Go would store them: `1.0` is `1`.
/// What is wrong with a custom object, and what is forgiven.
fn custom_errors(
    kind: &CustomKind,
    version: &CustomVersion,
    object: &Value,
    old: Option<&Value>,
    part: &str,
) -> (Vec<FieldError>, Vec<String>) {
    let verdict = match (old, part) {
        (None, _) => return (kind.validate_create(version, object), Vec::new()),
        (Some(old), "status") => kind.validate_status(version, object, old),
        (Some(old), _) => kind.validate_update(version, object, old),
    };
    (verdict.errors, verdict.warnings)
}

fn canonicalize(call: &Call, object: &mut Value) {
    if call.resource.custom.is_some() {
        apiextensions::CustomKind::canonicalize(object);
    }
}

/// What is accepted and still worth a warning.
fn warnings_about(call: &Call, object: &Value, old: Option<&Value>) -> Vec<String> {
    if &*call.resource.table == DEFINITIONS {
        return apiextensions::unknown_format_warnings(object, old);
    }
    if &*call.resource.table == quota::TABLE && call.subresource().is_empty() {
        return quota::warnings(object, old);
    }
    match call.resource.custom {
        Some(_) => {
            let before = &old.unwrap_or(&Value::Null)["metadata"];
            metadata::finalizer_warnings(&object["metadata"], before)
        }
        None => Vec::new(),
    }
}

fn builtin_errors(call: &Call, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let resource = &call.resource;
    let metadata = &object["metadata"];
    let errors = match old {
        None => {
            let rule = NameRule::of_kind(&resource.group, &resource.kind);
            metadata::validate_create(metadata, resource.namespaced, rule, "metadata")
        }
        Some(old) => metadata::validate_update(metadata, &old["metadata"], resource.namespaced, "metadata"),
    };
    let finalizers = metadata::validate_builtin_finalizers(metadata, "metadata");
    let own = match call.subresource() {
        "binding" => Vec::new(),
        _ => builtin::validate(&resource.group, &resource.kind, object, old),
    };
    errors.into_iter().chain(finalizers).chain(own).collect()
}

fn has_generation(call: &Call) -> bool {
    call.resource.custom.is_some() || builtin::has_generation(&call.resource.group, &call.resource.kind)
}

/// Generation counts what users want: everything outside metadata and status.
fn generation_moves(call: &Call, old: &Value, object: &Value) -> bool {
    if !matches!(call.subresource(), "" | "scale") {
        return false;
    }
    let Some((_, version)) = call.resource.custom_version() else {
        return builtin::is_new_generation(&call.resource.group, &call.resource.kind, object, old);
    };
    let counts = |key: &str| key != "metadata" && (key != "status" || !version.has_status);
    let (Some(old), Some(new)) = (old.as_object(), object.as_object()) else { return old != object };
    let old = old.iter().filter(|(key, _)| counts(key));
    !old.eq(new.iter().filter(|(key, _)| counts(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: Value, expected: &[&str]) {
        let old = json!({ "metadata": {
            "name": "n", "namespace": "default", "uid": "u", "resourceVersion": "5", "generation": 2,
            "creationTimestamp": "2024-01-01T00:00:00Z",
        } });
        let mut object = json!({ "metadata": change });
        restore_system_fields(&old, &mut object);
        let errors = metadata::validate_update(&object["metadata"], &old["metadata"], true, "metadata");
        assert_eq!(errors.iter().map(FieldError::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_update_restores_system_fields() {
        check(json!({}), &[]);
        check(json!({ "uid": "", "generation": 9, "creationTimestamp": null, "generateName": "n-" }), &[]);
        check(
            json!({ "deletionTimestamp": "2024-01-02T00:00:00Z" }),
            &["metadata.deletionTimestamp: Invalid value: \"2024-01-02T00:00:00Z\": field is immutable"],
        );
        check(
            json!({ "deletionGracePeriodSeconds": 5 }),
            &["metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable"],
        );
    }
}
