//! What a client may ask for along with a request: options of writes, deletes, lists and watches.

use serde_json::Value;

use crate::error::{ApiError, FieldError, Subject};
use crate::request::Query;

/// What happens to fields that the schema does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValidation {
    /// Dropped without a word.
    Ignore,
    /// Dropped with a warning; the default.
    Warn,
    /// The request is refused.
    Strict,
}

/// Options of create, update and patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteOptions {
    /// Everything but the write happens.
    pub dry_run: bool,
    /// Who owns the fields that this request sets.
    pub field_manager: String,
    /// Whether the client named the manager itself; server-side apply insists on it.
    pub manager_given: bool,
    /// What happens to unknown fields.
    pub field_validation: FieldValidation,
    /// Server-side apply takes fields from other managers.
    pub force: bool,
}

const MANAGER_BYTES_MAX: usize = 128;

impl WriteOptions {
    /// Reads the query; `user_agent` names the manager where the query does not.
    pub fn parse(query: &Query, user_agent: &str) -> Result<Self, ApiError> {
        let given = query.get("fieldManager");
        let manager = given.unwrap_or_else(|| user_agent.split('/').next().unwrap_or_default());
        if manager.len() > MANAGER_BYTES_MAX && given.is_some() {
            let error = FieldError::too_long("fieldManager", MANAGER_BYTES_MAX);
            return Err(invalid_options("PatchOptions", error));
        }
        if manager.chars().any(char::is_control) {
            let error =
                FieldError::invalid("fieldManager", manager, "should only contain printable characters");
            return Err(invalid_options("PatchOptions", error));
        }
        let mut manager = manager.to_owned();
        manager.truncate(manager.floor_char_boundary(MANAGER_BYTES_MAX));
        Ok(Self {
            dry_run: dry_run(query.all("dryRun"))?,
            field_manager: if manager.is_empty() { "unknown".to_owned() } else { manager },
            manager_given: given.is_some(),
            field_validation: field_validation(query.get("fieldValidation"))?,
            force: query.flag("force"),
        })
    }
}

fn dry_run<'a>(values: impl Iterator<Item = &'a str>) -> Result<bool, ApiError> {
    let mut on = false;
    for value in values.filter(|value| !value.is_empty()) {
        if value != "All" {
            let error = FieldError::not_supported("dryRun", value, &["All"]);
            return Err(invalid_options("CreateOptions", error));
        }
        on = true;
    }
    Ok(on)
}

fn field_validation(value: Option<&str>) -> Result<FieldValidation, ApiError> {
    match value {
        None | Some("Warn") => Ok(FieldValidation::Warn),
        Some("Ignore") => Ok(FieldValidation::Ignore),
        Some("Strict") => Ok(FieldValidation::Strict),
        Some(other) => {
            let allowed = ["", "Ignore", "Strict", "Warn"];
            Err(invalid_options(
                "CreateOptions",
                FieldError::not_supported("fieldValidation", other, &allowed),
            ))
        }
    }
}

fn invalid_options(kind: &str, error: FieldError) -> ApiError {
    let subject = Subject { group: "meta.k8s.io", resource: kind, name: "" };
    ApiError::invalid(subject, &[error])
}

/// What happens to the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// The object goes at once, its dependents afterwards.
    Background,
    /// The object goes when its dependents are gone.
    Foreground,
    /// The dependents stay and lose their owner.
    Orphan,
}

/// Options of a delete, from the body or the query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeleteOptions {
    /// Everything but the write happens.
    pub dry_run: bool,
    /// Seconds the object gets before it goes.
    pub grace_period_seconds: Option<i64>,
    /// What happens to dependents, where the client says.
    pub propagation: Option<Propagation>,
    /// Only an object with this uid is deleted.
    pub uid: Option<String>,
    /// Only an object at this resourceVersion is deleted.
    pub resource_version: Option<String>,
}

impl DeleteOptions {
    /// Reads the body (null when there was none); what it leaves open comes from the query.
    pub fn parse(body: &Value, query: &Query) -> Result<Self, ApiError> {
        if !body.is_null() {
            check_is_delete_options(body)?;
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let policy =
            text(&body["propagationPolicy"]).or_else(|| query.get("propagationPolicy").map(str::to_owned));
        let orphan = body["orphanDependents"]
            .as_bool()
            .or_else(|| query.get("orphanDependents").map(|v| v != "false"));
        let dry_runs = body["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let preconditions = &body["preconditions"];
        let grace = body["gracePeriodSeconds"].as_i64();
        Ok(Self {
            dry_run: dry_run(dry_runs.chain(query.all("dryRun")))?,
            grace_period_seconds: match grace {
                Some(seconds) => Some(seconds),
                None => query.number("gracePeriodSeconds")?,
            },
            propagation: propagation(policy.as_deref(), orphan)?,
            uid: text(&preconditions["uid"]),
            resource_version: text(&preconditions["resourceVersion"]),
        })
    }
}

fn check_is_delete_options(body: &Value) -> Result<(), ApiError> {
    let kind = body["kind"].as_str().unwrap_or("DeleteOptions");
    match body.is_object() && kind == "DeleteOptions" {
        true => Ok(()),
        false => {
            Err(ApiError::bad_request(format!("the body of a delete must be DeleteOptions, not {kind}")))
        }
    }
}

fn propagation(policy: Option<&str>, orphan: Option<bool>) -> Result<Option<Propagation>, ApiError> {
    match (policy, orphan) {
        (Some(_), Some(_)) => Err(invalid_options(
            "DeleteOptions",
            FieldError::invalid(
                "propagationPolicy",
                policy.unwrap_or_default(),
                "orphanDependents and deletionPropagation cannot be both set",
            ),
        )),
        (None, None) => Ok(None),
        (None, Some(orphan)) => Ok(Some(if orphan { Propagation::Orphan } else { Propagation::Background })),
        (Some("Background"), None) => Ok(Some(Propagation::Background)),
        (Some("Foreground"), None) => Ok(Some(Propagation::Foreground)),
        (Some("Orphan"), None) => Ok(Some(Propagation::Orphan)),
        (Some(other), None) => {
            let allowed = ["Background", "Foreground", "Orphan"];
            Err(invalid_options(
                "DeleteOptions",
                FieldError::not_supported("propagationPolicy", other, &allowed),
            ))
        }
    }
}

/// Where a list or watch starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The newest state.
    Newest,
    /// Any state will do (`resourceVersion=0`).
    Any,
    /// A revision.
    At(u64),
}

impl Start {
    /// Reads `resourceVersion`.
    pub fn parse(query: &Query) -> Result<Self, ApiError> {
        match query.get("resourceVersion") {
            None => Ok(Self::Newest),
            Some("0") => Ok(Self::Any),
            Some(text) => text.parse().map(Self::At).map_err(|_| {
                let detail = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
                let error = FieldError::invalid("resourceVersion", text, detail);
                ApiError::bad_request(error.to_string())
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn write(query: &str) -> Result<WriteOptions, ApiError> {
        WriteOptions::parse(&Query::parse(query).unwrap(), "kubectl/v1.35.0 (linux/amd64)")
    }

    #[test]
    fn write_options() {
        let plain = write("").unwrap();
        assert_eq!((plain.field_manager.as_str(), plain.manager_given), ("kubectl", false));
        assert_eq!(plain.field_validation, FieldValidation::Warn);
        assert!(write("dryRun=All").unwrap().dry_run);
        assert_eq!(write("dryRun=yes").unwrap_err().code, 422);
        assert_eq!(write("fieldValidation=Loud").unwrap_err().code, 422);
        assert_eq!(write(&format!("fieldManager={}", "a".repeat(129))).unwrap_err().code, 422);
        assert_eq!(write("fieldManager=%07").unwrap_err().code, 422);
    }

    #[test]
    fn delete_options() {
        let parse = |body: Value, query: &str| DeleteOptions::parse(&body, &Query::parse(query).unwrap());
        let body = json!({ "kind": "DeleteOptions", "propagationPolicy": "Foreground", "preconditions": { "uid": "u" } });
        let options = parse(body, "gracePeriodSeconds=5").unwrap();
        assert_eq!(options.propagation, Some(Propagation::Foreground));
        assert_eq!((options.uid.as_deref(), options.grace_period_seconds), (Some("u"), Some(5)));
        assert_eq!(
            parse(Value::Null, "orphanDependents=true").unwrap().propagation,
            Some(Propagation::Orphan)
        );
        assert_eq!(parse(json!({ "propagationPolicy": "Never" }), "").unwrap_err().code, 422);
        assert_eq!(parse(json!({ "kind": "Pod" }), "").unwrap_err().code, 400);
        assert_eq!(parse(json!([]), "").unwrap_err().code, 400);
    }
}
