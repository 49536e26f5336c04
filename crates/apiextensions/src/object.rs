//! One custom object: decoding, defaulting and validation against its kind.

use serde_json::Value;

use super::rules::Verdict;
use super::{CustomKind, CustomVersion, text};
use apimachinery::error::{ApiError, FieldError, FieldErrorKind};
use apimachinery::metadata;
use apimachinery::names::NameRule;
use schema::object_meta;
use schema::validate::{self, DEPTH_MAX};
use schema::{Schema, apply_defaults, decode_fault, prune, prune_nulls};

impl CustomKind {
    /// Refuses malformed metadata, drops what the schema does not know and fills in defaults. Answers with
    /// the paths of unknown fields, for `fieldValidation`.
    pub fn decode(&self, version: &CustomVersion, object: &mut Value) -> Result<Vec<String>, ApiError> {
        let embedded = || embedded_fault(object, &version.schema, 0).map(|fault| fault.to_string());
        let fault = metadata_fault(&object["metadata"]).or_else(embedded);
        if let Some(fault) = fault {
            let (kind, version) = (&self.names.kind, &version.name);
            return Err(ApiError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: {fault}"
            )));
        }
        let unknown = prune(object, &version.schema, true);
        prune_nulls(object, &version.schema);
        apply_defaults(object, &version.schema);
        Ok(unknown)
    }

    /// What an object becomes by being stored: whole floats turn into integers.
    pub fn canonicalize(object: &mut Value) {
        whole_numbers(object, 0);
    }

    /// Everything that is wrong with a new object.
    pub fn validate_create(&self, version: &CustomVersion, object: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_type(version, object);
        if !errors.is_empty() {
            return errors;
        }
        let meta = &object["metadata"];
        errors.extend(metadata::validate_create(meta, self.namespaced, NameRule::Subdomain, "metadata"));
        errors.extend(validate::validate_schema(object, None, &version.schema, ""));
        errors.extend(version.scale.iter().flat_map(|scale| scale.validate(object)));
        errors.extend(validate::validate_embedded(object, &version.schema, ""));
        errors.extend(validate::validate_lists(object, &version.schema, ""));
        version.validate_rules(object, None, errors).errors
    }

    /// Everything that is wrong with a changed object. Old faults of unchanged values are let through.
    pub fn validate_update(&self, version: &CustomVersion, object: &Value, old: &Value) -> Verdict {
        let mut errors =
            metadata::validate_update(&object["metadata"], &old["metadata"], self.namespaced, "metadata");
        let wrong_type = self.validate_type(version, object);
        if !wrong_type.is_empty() {
            errors.extend(wrong_type);
            return Verdict { errors, warnings: Vec::new() };
        }
        errors.extend(validate::validate_schema(object, Some(old), &version.schema, ""));
        errors.extend(version.scale.iter().flat_map(|scale| scale.validate(object)));
        errors.extend(validate::validate_embedded(object, &version.schema, ""));
        if validate::validate_lists(old, &version.schema, "").is_empty() {
            errors.extend(validate::validate_lists(object, &version.schema, ""));
        }
        version.validate_rules(object, Some(old), errors)
    }

    /// Everything that is wrong with a change of the status alone.
    pub fn validate_status(&self, version: &CustomVersion, object: &Value, old: &Value) -> Verdict {
        let mut errors =
            metadata::validate_update(&object["metadata"], &old["metadata"], self.namespaced, "metadata");
        errors.extend(self.validate_type(version, object));
        if let (Some(status), Some(schema)) = (object.get("status"), version.schema.properties.get("status"))
        {
            errors.extend(validate::validate_schema(status, old.get("status"), schema, "status"));
        }
        errors.extend(version.scale.iter().flat_map(|scale| scale.validate_status(object)));
        version.validate_rules(object, Some(old), errors)
    }

    fn validate_type(&self, version: &CustomVersion, object: &Value) -> Vec<FieldError> {
        let api_version = format!("{}/{}", self.group, version.name);
        [("kind", &self.names.kind), ("apiVersion", &api_version)]
            .into_iter()
            .filter(|(field, wanted)| text(&object[*field]) != wanted.as_str())
            .map(|(field, wanted)| {
                FieldError::invalid(field, text(&object[field]), format!("must be {wanted}"))
            })
            .collect()
    }
}

impl CustomVersion {
    /// Asks the rules of the definition, unless what is wrong already would make them fail for no reason of their
    /// own.
    fn validate_rules(&self, object: &Value, old: Option<&Value>, mut errors: Vec<FieldError>) -> Verdict {
        use FieldErrorKind::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
        let Some(rules) = &self.rules else { return Verdict { errors, warnings: Vec::new() } };
        let blocks = |error: &FieldError| {
            matches!(error.kind, NotSupported | Required | TooLong | TooMany | TypeInvalid)
        };
        match errors.iter().any(blocks) {
            true => {
                let detail = "some validation rules were not checked because the object was invalid; correct the \
                              existing errors to complete validation";
                errors.push(FieldError::invalid("<nil>", Value::Null, detail));
                Verdict { errors, warnings: Vec::new() }
            }
            false => {
                let judged = rules.judge(object, old);
                errors.extend(judged.errors);
                Verdict { errors, warnings: judged.warnings }
            }
        }
    }
}

/// Go writes a whole float without a fraction, and reads that as an integer.
fn whole_numbers(value: &mut Value, depth: usize) {
    if depth > DEPTH_MAX {
        return;
    }
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0);
            if let Some(float) = whole.filter(|float| float.abs() < 9.2e18) {
                *value = Value::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| whole_numbers(item, depth + 1)),
        Value::Object(fields) => fields.values_mut().for_each(|field| whole_numbers(field, depth + 1)),
        _ => {}
    }
}

fn metadata_fault(metadata: &Value) -> Option<String> {
    decode_fault(metadata, object_meta(), "ObjectMeta", "", |_| "")
}

/// Embedded resources are decoded as far as every object is the same: apiVersion, kind, metadata.
/// Paths are put together on the way back from a fault, since there is none nearly always.
fn embedded_fault(value: &Value, schema: &Schema, depth: usize) -> Option<FieldError> {
    if depth > DEPTH_MAX {
        return None;
    }
    let below = |value: &Value, schema: &Schema, place: &dyn Fn() -> String| {
        let fault = embedded_fault(value, schema, depth + 1)?;
        Some(FieldError { field: within(&place(), &fault.field), ..fault })
    };
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, field)| {
            let wrong = match name.as_str() {
                _ if !schema.embedded_resource => None,
                "apiVersion" | "kind" => (!field.is_string()).then(|| String::from("must be a string")),
                "metadata" => metadata_fault(field),
                _ => None,
            };
            if let Some(wrong) = wrong {
                return Some(FieldError::invalid(name.clone(), field.clone(), wrong));
            }
            match (schema.properties.get(name.as_str()), &schema.values) {
                (Some(schema), _) => below(field, schema, &|| name.clone()),
                (None, Some(schema)) => below(field, schema, &|| format!("[{name}]")),
                (None, None) => None,
            }
        }),
        Value::Array(items) => {
            let element = schema.items.as_ref()?;
            let mut all = items.iter().enumerate();
            all.find_map(|(index, item)| below(item, element, &|| format!("[{index}]")))
        }
        _ => None,
    }
}

/// The path of something below a place.
fn within(place: &str, below: &str) -> String {
    let joint = if below.is_empty() || below.starts_with('[') { "" } else { "." };
    format!("{place}{joint}{below}")
}
