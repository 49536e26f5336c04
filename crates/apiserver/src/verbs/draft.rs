//! From bytes to a draft: a body is read, has to be of the right kind, and loses what its schema does not
//! know, with the warning or refusal that the client chose.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

use crate::content;
use crate::error::ApiError;
use crate::options::FieldValidation;
use crate::schema;
use crate::verbs::Call;

/// An object as a client wants it, in the served version, reduced to fields that exist.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub object: Value,
    pub warnings: Vec<String>,
    pub ownership: Ownership,
}

/// Who comes to own the fields of a draft, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// The writer owns what it changes.
    Update,
    /// The draft is an applied configuration: the writer owns what it names, and conflicts are refused.
    Apply,
    /// The draft already says who owns what.
    Settled,
}

impl Draft {
    /// A changed copy of an object that was read from the store.
    pub fn changed(object: Value) -> Self {
        Self { object, warnings: Vec::new(), ownership: Ownership::Update }
    }

    /// Reads the body of a create or update.
    pub fn read(
        call: &Call,
        headers: &HeaderMap,
        body: &Bytes,
        validation: FieldValidation,
    ) -> Result<Self, ApiError> {
        let media_type = content::media_type(headers);
        let object = content::decode_object(media_type, body)?;
        let is_json = matches!(media_type, "" | "application/json" | "*/*");
        let duplicates = match is_json && validation != FieldValidation::Ignore {
            true => schema::duplicate_fields(body),
            false => Vec::new(),
        };
        Self::checked(call, object, duplicates, validation)
    }

    /// Takes an object that was computed, by a patch for example.
    pub fn from_value(call: &Call, object: Value, validation: FieldValidation) -> Result<Self, ApiError> {
        Self::checked(call, object, Vec::new(), validation)
    }

    /// Takes a configuration that is to be merged by field ownership.
    pub fn applied(call: &Call, object: Value, validation: FieldValidation) -> Result<Self, ApiError> {
        Ok(Self { ownership: Ownership::Apply, ..Self::checked(call, object, Vec::new(), validation)? })
    }

    fn checked(
        call: &Call,
        mut object: Value,
        duplicates: Vec<String>,
        validation: FieldValidation,
    ) -> Result<Self, ApiError> {
        check_kind(call, &mut object)?;
        let complaints = reduce(call, &mut object)?;
        let complaints = schema::strict_lines(&duplicates, &complaints);
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

/// Drops what the schema does not know and says what that was.
fn reduce(call: &Call, object: &mut Value) -> Result<Vec<String>, ApiError> {
    let resource = &call.resource;
    match resource.custom_version() {
        Some((kind, version)) => kind.decode(version, object),
        None => {
            let name_of = |index| {
                crate::kinds::name(index).and_then(|name| name.rsplit('.').next()).unwrap_or_default()
            };
            schema::decode_builtin(object, &resource.schema, &resource.kind, &resource.version, name_of)?;
            let unknown = schema::drop_unknown(object, &resource.schema);
            schema::drop_nulls(object, &resource.schema);
            Ok(unknown)
        }
    }
}

/// The body must be an object of the kind that the path names. What it leaves out is filled in.
fn check_kind(call: &Call, object: &mut Value) -> Result<(), ApiError> {
    let Some(fields) = object.as_object_mut() else {
        return Err(ApiError::bad_request("the body of the request must be a JSON object"));
    };
    let resource = &call.resource;
    let expected = resource.api_version();
    let given = |key: &str| fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(api_version) = given("apiVersion")
        && api_version != expected
    {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    if let Some(kind) = given("kind")
        && kind != &*resource.kind
    {
        return Err(ApiError::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {}: converting ({expected}, {kind}) to ({expected}, \
             {}): unknown conversion",
            resource.version, resource.kind, resource.kind
        )));
    }
    fields.insert("apiVersion".to_owned(), expected.into());
    fields.insert("kind".to_owned(), (&*resource.kind).into());
    if !fields.get("metadata").is_some_and(Value::is_object) {
        if fields.get("metadata").is_some_and(|metadata| !metadata.is_null()) {
            return Err(ApiError::bad_request("metadata must be an object"));
        }
        fields.insert("metadata".to_owned(), serde_json::json!({}));
    }
    Ok(())
}
