//! Decodes a request body into a draft: checks its kind and prunes fields that its schema does not know, with the
//! warning or error that `fieldValidation` asks for.

use serde_json::{Map, Value};

use crate::call::{Call, Sent};
use crate::http::content;
use crate::http::options::{FieldValidation, NOT_AN_OBJECT, not_registered};
use crate::registry::split_api_version;
use crate::storage::text;
use apimachinery::error::{ApiError, FieldError, Subject};
use schema::kinds;
use schema::protobuf;

/// An object as a client wants it, in the served version, reduced to fields that exist.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub object: Value,
    pub warnings: Vec<String>,
    pub ownership: Ownership,
}

/// How field ownership of a draft is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// The writer owns what it changes.
    Update,
    /// The draft is an applied configuration: the writer owns what it names, and conflicts are refused.
    Apply,
    /// The draft already has its `managedFields`.
    Settled,
}

impl Draft {
    /// A changed copy of an object that was read from the store.
    pub fn changed(object: Value) -> Self {
        Self { object, warnings: Vec::new(), ownership: Ownership::Update }
    }

    /// Reads the body of a create or update.
    pub fn read(call: &Call, sent: &Sent, validation: FieldValidation) -> Result<Self, ApiError> {
        let media_type = sent.media_type.as_str();
        let object = content::decode_object(media_type, &sent.body)
            .map_err(|error| unrecognized(call, &sent.body, error))?;
        let object = as_object(object).map_err(|error| unrecognized(call, &sent.body, error))?;
        let is_json = matches!(media_type, "" | "application/json" | "*/*");
        let yaml = || content::is_yaml(media_type).then(|| content::repeated_key(&sent.body)).flatten();
        let complain = |unknown: &[String]| match (is_json, validation) {
            (true, _) if call.resource.custom.is_none() => schema::strict_lines_in_order(&sent.body, unknown),
            (true, _) => schema::strict_lines(&schema::duplicate_fields(&sent.body), unknown),
            (false, FieldValidation::Strict) => {
                let repeated = yaml().map(|line| format!("yaml: unmarshal errors:\n  {line}"));
                repeated.into_iter().chain(schema::strict_lines(&[], unknown)).collect()
            }
            (false, _) => yaml().into_iter().chain(schema::strict_lines(&[], unknown)).collect(),
        };
        Self::checked(call, object, complain, validation)
    }

    /// Takes an object that was computed, by a patch for example.
    pub fn from_value(call: &Call, object: Value, validation: FieldValidation) -> Result<Self, ApiError> {
        Self::checked(call, object, |unknown| schema::strict_lines(&[], unknown), validation)
    }

    /// Reads a configuration that is to be merged by field ownership. It stays as it was sent, since what
    /// it names is what its manager owns; the merge refuses what the schema does not know.
    pub fn applied(call: &Call, body: &[u8], validation: FieldValidation) -> Result<Self, ApiError> {
        let mut object = content::decode_yaml(body)?;
        check_kind(call, &mut object)?;
        let repeated = match validation {
            FieldValidation::Ignore => None,
            FieldValidation::Warn | FieldValidation::Strict => content::repeated_key(body),
        };
        match repeated {
            Some(line) if validation == FieldValidation::Strict => Err(ApiError::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {line}"
            ))),
            line => Ok(Self { object, warnings: line.into_iter().collect(), ownership: Ownership::Apply }),
        }
    }

    fn checked(
        call: &Call,
        mut object: Value,
        complain: impl FnOnce(&[String]) -> Vec<String>,
        validation: FieldValidation,
    ) -> Result<Self, ApiError> {
        check_kind(call, &mut object)?;
        let unknown = reduce(call, &mut object)?;
        let complaints = match validation {
            FieldValidation::Ignore => Vec::new(),
            FieldValidation::Warn | FieldValidation::Strict => complain(&unknown),
        };
        match validation {
            FieldValidation::Strict if !complaints.is_empty() => {
                Err(schema::strict_error(&call.resource.kind, &call.resource.version, &complaints))
            }
            FieldValidation::Warn => Ok(Self { object, warnings: complaints, ownership: Ownership::Update }),
            FieldValidation::Strict | FieldValidation::Ignore => {
                Ok(Self { object, warnings: Vec::new(), ownership: Ownership::Update })
            }
        }
    }
}

/// Drops what the schema does not know and says what that was; drops what is empty.
pub(crate) fn reduce(call: &Call, object: &mut Value) -> Result<Vec<String>, ApiError> {
    let resource = &call.resource;
    match resource.custom_version() {
        Some((kind, version)) => {
            let unknown = kind.decode(version, object)?;
            protobuf::drop_empty_metadata(&mut object["metadata"]);
            Ok(unknown)
        }
        None => {
            schema::decode_builtin(object, &resource.schema, &resource.kind, &resource.version, type_name)?;
            let unknown = schema::drop_unknown(object, &resource.schema);
            schema::drop_nulls(object, &resource.schema);
            protobuf::drop_empty(&resource.api_version(), &resource.kind, object);
            Ok(unknown)
        }
    }
}

/// The Go name of a built-in definition.
pub(crate) fn type_name(index: u16) -> &'static str {
    kinds::name(index).and_then(|name| name.rsplit('.').next()).unwrap_or_default()
}

/// The error for a body whose format is not recognized; it quotes a part of it, as kube-apiserver does.
fn unrecognized(call: &Call, body: &[u8], error: ApiError) -> ApiError {
    const SHOWN_BYTES_MAX: usize = 30;
    if error.code != 400 {
        return error;
    }
    let shown = &body[..body.len().min(SHOWN_BYTES_MAX)];
    let mut summary = match shown.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > SHOWN_BYTES_MAX {
        summary.push_str(" ...");
    }
    let kind = &call.resource.kind;
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {error} ({summary})"
    ))
}

/// A body is an object that says its version and kind in texts, if it says them. Nothing is an empty object.
fn as_object(body: Value) -> Result<Value, ApiError> {
    let unreadable =
        || ApiError::bad_request(format!("couldn't get version/kind; json parse error: {NOT_AN_OBJECT}"));
    let fields = match body {
        Value::Null => Map::new(),
        Value::Object(fields) => fields,
        _ => return Err(unreadable()),
    };
    let readable = |key: &str| fields.get(key).is_none_or(|value| value.is_string() || value.is_null());
    if !readable("apiVersion") || !readable("kind") {
        return Err(unreadable());
    }
    match fields.get("apiVersion").and_then(Value::as_str) {
        Some(version) if version.matches('/').count() > 1 => {
            Err(ApiError::bad_request(format!("unexpected GroupVersion string: {version}")))
        }
        _ => Ok(Value::Object(fields)),
    }
}

/// The body must be an object of the kind that the path names. What it leaves out is filled in.
fn check_kind(call: &Call, object: &mut Value) -> Result<(), ApiError> {
    let resource = &call.resource;
    let expected = resource.api_version();
    let Some(fields) = object.as_object_mut() else {
        return Err(ApiError::bad_request(NOT_AN_OBJECT));
    };
    let given = |key: &str| fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let name = fields.get("metadata").map_or("", |metadata| text(metadata, "/name"));
    let api_version = given("apiVersion").unwrap_or(&expected);
    let kind = given("kind").unwrap_or(&resource.kind);
    if kind != &*resource.kind || api_version != expected {
        return Err(other_kind(call, api_version, kind, name));
    }
    fields.insert("apiVersion".to_owned(), expected.into());
    fields.insert("kind".to_owned(), (&*resource.kind).into());
    match fields.get("metadata") {
        Some(metadata) if !metadata.is_null() => Ok(()),
        _ => {
            fields.insert("metadata".to_owned(), Value::Object(Map::new()));
            Ok(())
        }
    }
}

/// What Kubernetes says about an object that is not of the kind of the path: it depends on whether it
/// knows the kind, and on whether one could become the other.
fn other_kind(call: &Call, api_version: &str, kind: &str, name: &str) -> ApiError {
    let resource = &call.resource;
    let expected = resource.api_version();
    let (group, version) = split_api_version(api_version);
    let single = kind.strip_suffix("List").unwrap_or(kind);
    let known = kinds::find(group, version, single).is_some() || (group.is_empty() && kind == "Status");
    if resource.custom.is_some() && kind != &*resource.kind {
        let error = FieldError::invalid("kind", kind, format!("must be {}", resource.kind));
        let subject = Subject { group, resource: kind, name };
        return ApiError::invalid(subject, &[error]);
    }
    if resource.custom.is_some() || known && kind == &*resource.kind {
        return ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        ));
    }
    let why = match known {
        true => {
            let package = resource.group.split('.').next().filter(|word| !word.is_empty()).unwrap_or("core");
            format!("converting ({version}.{kind}) to ({package}.{}): unknown conversion", resource.kind)
        }
        false => not_registered(kind, api_version),
    };
    ApiError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {}: {why}",
        resource.kind
    ))
}
