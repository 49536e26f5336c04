//! Request options of writes, deletes, lists and watches: `CreateOptions`, `DeleteOptions`, `ListOptions` and their
//! kin.

use serde_json::Value;

use super::Query;
use apimachinery::error::{ApiError, FieldError, Subject};
use merge::patch::unclassified;

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
    /// The field manager of this request.
    pub field_manager: String,
    /// What happens to unknown fields.
    pub field_validation: FieldValidation,
    /// Server-side apply takes fields from other managers.
    pub force: bool,
}

const MANAGER_BYTES_MAX: usize = 128;

/// Which write takes the options: decides how they are called in errors, and what they may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// `CreateOptions`
    Create,
    /// `UpdateOptions`
    Update,
    /// `PatchOptions` of every patch but server-side apply.
    Patch,
    /// `PatchOptions` of server-side apply.
    Apply,
}

impl WriteKind {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Patch | Self::Apply => "PatchOptions",
        }
    }
}

impl WriteOptions {
    /// Reads the query; `user_agent` names the manager where the query does not.
    pub fn parse(query: &Query, user_agent: &str, kind: WriteKind) -> Result<Self, ApiError> {
        let given = query.get("fieldManager");
        let force = query.get("force").map(|_| query.flag("force"));
        let mut errors = match (kind, given, force) {
            (WriteKind::Apply, None, _) => {
                vec![FieldError::required("fieldManager", "is required for apply patch")]
            }
            (WriteKind::Patch, _, Some(_)) => {
                vec![FieldError::forbidden("force", "may not be specified for non-apply patch")]
            }
            _ => Vec::new(),
        };
        errors.extend(manager_errors(given.unwrap_or_default()));
        let dry_runs: Vec<&str> = query.all("dryRun").collect();
        errors.extend(dry_run_error(&dry_runs));
        let validation = query.get("fieldValidation");
        errors.extend(validation.and_then(validation_error));
        refuse(kind.name(), &errors)?;
        Ok(Self {
            dry_run: dry_runs.contains(&"All"),
            field_manager: manager(given, user_agent),
            field_validation: match validation {
                Some("Ignore") => FieldValidation::Ignore,
                Some("Strict") => FieldValidation::Strict,
                _ => FieldValidation::Warn,
            },
            force: force.unwrap_or_default(),
        })
    }
}

/// The manager that was named, or else the first word of the client's name.
fn manager(given: Option<&str>, user_agent: &str) -> String {
    let name = given.unwrap_or_else(|| user_agent.split('/').next().unwrap_or_default());
    let mut name: String = name.chars().filter(|letter| !letter.is_control()).collect();
    name.truncate(name.floor_char_boundary(MANAGER_BYTES_MAX));
    if name.is_empty() { "unknown".to_owned() } else { name }
}

fn manager_errors(manager: &str) -> Vec<FieldError> {
    let long = manager.len() > MANAGER_BYTES_MAX;
    let hidden = manager.char_indices().filter(|(_, letter)| letter.is_control());
    let hidden = hidden.map(|(position, letter)| {
        let why = format!("invalid character U+{:04X} (at position {position})", u32::from(letter));
        FieldError::invalid("fieldManager", manager, why)
    });
    long.then(|| FieldError::too_long("fieldManager", MANAGER_BYTES_MAX)).into_iter().chain(hidden).collect()
}

fn dry_run_error(values: &[&str]) -> Option<FieldError> {
    let wrong = values.iter().any(|value| *value != "All");
    wrong.then(|| FieldError::not_supported("dryRun", values.to_vec(), &["All"]))
}

fn validation_error(value: &str) -> Option<FieldError> {
    let allowed = ["", "Ignore", "Strict", "Warn"];
    (!allowed.contains(&value)).then(|| FieldError::not_supported("fieldValidation", value, &allowed))
}

fn refuse(kind: &str, errors: &[FieldError]) -> Result<(), ApiError> {
    let subject = Subject { group: "meta.k8s.io", resource: kind, name: "" };
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid(subject, errors)) }
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
    /// Reads the body (null when there was none); without a body the query says it.
    pub fn parse(body: &Value, query: &Query) -> Result<Self, ApiError> {
        let nothing = Query::default();
        let query = if body.is_null() { query } else { &nothing };
        if !body.is_null() {
            check_is_delete_options(body)?;
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let policy =
            text(&body["propagationPolicy"]).or_else(|| query.get("propagationPolicy").map(str::to_owned));
        let orphan = body["orphanDependents"]
            .as_bool()
            .or_else(|| query.get("orphanDependents").map(|_| query.flag("orphanDependents")));
        let dry_runs = body["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let dry_runs: Vec<&str> = dry_runs.chain(query.all("dryRun")).collect();
        let grace = match body["gracePeriodSeconds"].as_i64() {
            Some(seconds) => Some(seconds),
            None => query.number("gracePeriodSeconds")?,
        };
        let mut errors = propagation_errors(policy.as_deref(), orphan);
        errors.extend(dry_run_error(&dry_runs));
        refuse("DeleteOptions", &errors)?;
        let preconditions = &body["preconditions"];
        Ok(Self {
            dry_run: !dry_runs.is_empty(),
            grace_period_seconds: grace,
            propagation: propagation(policy.as_deref(), orphan),
            uid: text(&preconditions["uid"]),
            resource_version: text(&preconditions["resourceVersion"]),
        })
    }
}

/// What a decoder of DeleteOptions would refuse.
fn check_is_delete_options(body: &Value) -> Result<(), ApiError> {
    let Some(fields) = body.as_object() else {
        return Err(ApiError::bad_request(format!(
            "couldn't get version/kind; json parse error: {}",
            NOT_AN_OBJECT
        )));
    };
    let word = |key: &str| fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (version, kind) = (word("apiVersion").unwrap_or("v1"), word("kind").unwrap_or("DeleteOptions"));
    if kind != "DeleteOptions" {
        return Err(ApiError::bad_request(not_registered(kind, version)));
    }
    let schema = schema::kinds::definition_named(DELETE_OPTIONS).expect("every kind's delete takes them");
    let fault = schema::decode_fault(body, schema, "DeleteOptions", "", |_| "");
    fault.map_or(Ok(()), |fault| Err(ApiError::bad_request(fault)))
}

const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// What Go's decoder says about a document that is not an object.
pub(crate) const NOT_AN_OBJECT: &str = "json: cannot unmarshal the document into an object";

/// What Kubernetes says about a kind it does not have.
pub(crate) fn not_registered(kind: &str, api_version: &str) -> String {
    let scheme = "pkg/api/legacyscheme/scheme.go:30";
    format!("no kind {kind:?} is registered for version {api_version:?} in scheme {scheme:?}")
}

fn propagation_errors(policy: Option<&str>, orphan: Option<bool>) -> Vec<FieldError> {
    const ALLOWED: [&str; 4] = ["Foreground", "Background", "Orphan", "nil"];
    let Some(policy) = policy else { return Vec::new() };
    let mut errors = Vec::new();
    if orphan.is_some() {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid("propagationPolicy", policy, why));
    }
    if !ALLOWED[..3].contains(&policy) {
        errors.push(FieldError::not_supported("propagationPolicy", policy, &ALLOWED));
    }
    errors
}

fn propagation(policy: Option<&str>, orphan: Option<bool>) -> Option<Propagation> {
    match (policy, orphan) {
        (Some("Foreground"), _) => Some(Propagation::Foreground),
        (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
        (Some(_), _) | (None, Some(false)) => Some(Propagation::Background),
        (None, None) => None,
    }
}

/// Refuses options of a list or watch that contradict each other.
pub fn check_list_options(query: &Query, watch: bool) -> Result<(), ApiError> {
    query.number("limit")?;
    query.number("timeoutSeconds")?;
    let matching = query.get("resourceVersionMatch").unwrap_or_default();
    let initial = query.get("sendInitialEvents").is_some();
    let continues = query.get("continue").is_some();
    let errors = match watch {
        true => watch_option_errors(matching, initial, continues),
        false => list_option_errors(matching, initial, continues, query.get("resourceVersion")),
    };
    refuse("ListOptions", &errors)
}

const MATCH: &str = "resourceVersionMatch";

fn list_option_errors(
    matching: &str,
    initial: bool,
    continues: bool,
    version: Option<&str>,
) -> Vec<FieldError> {
    let matches = !matching.is_empty();
    let mut errors = Vec::new();
    if matches && version.is_none() {
        let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
        errors.push(FieldError::forbidden(MATCH, why));
    }
    if matches && continues {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        errors.push(FieldError::forbidden(MATCH, why));
    }
    if matches && !["Exact", "NotOlderThan"].contains(&matching) {
        errors.push(FieldError::not_supported(MATCH, matching, &["Exact", "NotOlderThan", ""]));
    }
    if matching == "Exact" && version == Some("0") {
        let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
        errors.push(FieldError::forbidden(MATCH, why));
    }
    if initial {
        errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    errors
}

fn watch_option_errors(matching: &str, initial: bool, continues: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let matches = !matching.is_empty();
    if initial && matching != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden(MATCH, why));
    }
    if matches && !initial {
        let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        errors.push(FieldError::forbidden(MATCH, why));
    }
    if matches && matching != "NotOlderThan" {
        errors.push(FieldError::not_supported(MATCH, matching, &["NotOlderThan"]));
    }
    if matches && continues {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        errors.push(FieldError::forbidden(MATCH, why));
    }
    errors
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
                // kube-apiserver has a class of error for this one only where it lists.
                unclassified(FieldError::invalid("resourceVersion", text, detail).to_string())
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn write(query: &str) -> Result<WriteOptions, ApiError> {
        let query = Query::parse(query);
        WriteOptions::parse(&query, "kubectl/v1.35.0 (linux/amd64)", WriteKind::Create)
    }

    #[test]
    fn write_options() {
        let plain = write("").unwrap();
        assert_eq!(plain.field_manager, "kubectl");
        assert_eq!(plain.field_validation, FieldValidation::Warn);
        assert!(write("dryRun=All").unwrap().dry_run);
        assert_eq!(write("dryRun=yes").unwrap_err().code, 422);
        assert_eq!(write("fieldValidation=Loud").unwrap_err().code, 422);
        assert_eq!(write(&format!("fieldManager={}", "a".repeat(129))).unwrap_err().code, 422);
        assert_eq!(write("fieldManager=%07").unwrap_err().code, 422);
    }

    #[test]
    fn delete_options() {
        let parse = |body: Value, query: &str| DeleteOptions::parse(&body, &Query::parse(query));
        let body = json!({ "kind": "DeleteOptions", "propagationPolicy": "Foreground", "preconditions": { "uid": "u" } });
        let options = parse(body, "").unwrap();
        assert_eq!(options.propagation, Some(Propagation::Foreground));
        assert_eq!(options.uid.as_deref(), Some("u"));
        assert_eq!(parse(Value::Null, "gracePeriodSeconds=5").unwrap().grace_period_seconds, Some(5));
        assert_eq!(parse(json!({ "gracePeriodSeconds": "5" }), "").unwrap_err().code, 400);
        assert_eq!(
            parse(Value::Null, "orphanDependents=true").unwrap().propagation,
            Some(Propagation::Orphan)
        );
        assert_eq!(parse(json!({ "propagationPolicy": "Never" }), "").unwrap_err().code, 422);
        assert_eq!(parse(json!({ "kind": "Pod" }), "").unwrap_err().code, 400);
        assert_eq!(parse(json!([]), "").unwrap_err().code, 400);
    }
}
