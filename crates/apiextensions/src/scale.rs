//! The `/scale` subresource: a Scale read from and written to an object through JSONPaths, fixed for built-in kinds
//! and set by the definition for custom ones.

use serde_json::{Map, Value, json};

use super::text;
use apimachinery::error::{ApiError, FieldError};
use apimachinery::gotext;
use apimachinery::selector::LabelSelector;

/// Where an object keeps what a Scale shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// `.spec.replicas` or alike.
    pub spec_replicas: String,
    /// `.status.replicas` or alike.
    pub status_replicas: String,
    /// Where the selector is, as a text for custom kinds and as a LabelSelector for built-in ones.
    pub selector: Option<Selector>,
}

/// How an object keeps the selector of its pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// A selector already written as text.
    Text(String),
    /// A `metav1.LabelSelector`.
    Labels(String),
    /// A plain map of labels.
    Map(String),
}

impl ScalePaths {
    /// The paths of a built-in kind that can be scaled.
    pub fn of_builtin(group: &str, kind: &str) -> Option<Self> {
        let selector = String::from(".spec.selector");
        let selector = match (group, kind) {
            ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") => Selector::Labels(selector),
            ("", "ReplicationController") => Selector::Map(selector),
            _ => return None,
        };
        Some(Self {
            spec_replicas: String::from(".spec.replicas"),
            status_replicas: String::from(".status.replicas"),
            selector: Some(selector),
        })
    }

    /// The JSONPaths in `subresources.scale` of a definition.
    pub(super) fn of_subresource(scale: &Value) -> Option<Self> {
        let own = |key: &str| Some(text(&scale[key]).to_owned()).filter(|path| !path.is_empty());
        Some(Self {
            spec_replicas: own("specReplicasPath")?,
            status_replicas: own("statusReplicasPath")?,
            selector: own("labelSelectorPath").map(Selector::Text),
        })
    }

    /// What is wrong with the numbers and the selector that a custom object keeps for its Scale.
    pub(super) fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors: Vec<FieldError> = replicas_fault(object, &self.spec_replicas).into_iter().collect();
        errors.extend(self.validate_status(object));
        errors
    }

    /// As `validate`, without the part that users set.
    pub(super) fn validate_status(&self, object: &Value) -> Vec<FieldError> {
        let mut errors: Vec<FieldError> = replicas_fault(object, &self.status_replicas).into_iter().collect();
        if let Some(Selector::Text(path)) = &self.selector
            && let Err(fault) = text_at(object, path)
        {
            errors.push(FieldError::invalid(path.as_str(), "", fault));
        }
        errors
    }
}

fn replicas_fault(object: &Value, path: &str) -> Option<FieldError> {
    match number_at(object, path) {
        Err(fault) => Some(FieldError::invalid(path, 0, fault)),
        Ok(Some(number)) if number < 0 => {
            Some(FieldError::invalid(path, number, "should be a non-negative integer"))
        }
        Ok(Some(number)) if number > i64::from(i32::MAX) => {
            Some(FieldError::invalid(path, number, "should be less than or equal to 2147483647"))
        }
        Ok(_) => None,
    }
}

/// The Scale of an object.
pub fn read_scale(object: &Value, paths: &ScalePaths) -> Result<Value, ApiError> {
    let wrong = |fault: String| ApiError::internal(fault);
    let Some(wanted) = number_at(object, &paths.spec_replicas).map_err(wrong)? else {
        let path = &paths.spec_replicas;
        return Err(ApiError::internal(format!("the spec replicas field {path:?} does not exist")));
    };
    let actual = number_at(object, &paths.status_replicas).map_err(wrong)?.unwrap_or(0);
    let mut status = json!({ "replicas": actual });
    let selector = match &paths.selector {
        None => String::new(),
        Some(Selector::Text(path)) => text_at(object, path).map_err(wrong)?.to_owned(),
        Some(Selector::Labels(path)) => {
            let selector = at(object, path).unwrap_or(&Value::Null);
            LabelSelector::from_value(selector).map_err(wrong)?.to_string()
        }
        Some(Selector::Map(path)) => {
            LabelSelector::from_labels(at(object, path).unwrap_or(&Value::Null)).to_string()
        }
    };
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    let meta = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), object["metadata"].get(key)?.clone())));
    // Go leaves out a count of zero here, and only here.
    let spec = if wanted == 0 { json!({}) } else { json!({ "replicas": wanted }) };
    Ok(json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": Value::Object(meta.collect()),
        "spec": spec,
        "status": status,
    }))
}

/// Writes the count of a Scale into an object. A resourceVersion of the Scale becomes the object's, as the
/// precondition that it is.
pub fn write_scale(object: &mut Value, scale: &Value, paths: &ScalePaths) -> Result<(), ApiError> {
    let replicas = match &scale["spec"]["replicas"] {
        Value::Null => 0,
        value => value.as_i64().and_then(|wide| i32::try_from(wide).ok()).ok_or_else(|| {
            ApiError::bad_request(format!(
                "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal {value} into Go \
                 struct field ScaleSpec.spec.replicas of type int32"
            ))
        })?,
    };
    let mut parts: Vec<&str> = segments(&paths.spec_replicas).collect();
    let last = parts.pop().unwrap_or_default();
    let mut node = &mut *object;
    for part in parts {
        let fields = as_fields(node, &paths.spec_replicas)?;
        node = fields.entry(part).or_insert_with(|| json!({}));
    }
    as_fields(node, &paths.spec_replicas)?.insert(last.to_owned(), replicas.into());
    let version = text(&scale["metadata"]["resourceVersion"]);
    if !version.is_empty()
        && let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        meta.insert(String::from("resourceVersion"), version.into());
    }
    Ok(())
}

fn as_fields<'a>(node: &'a mut Value, path: &str) -> Result<&'a mut Map<String, Value>, ApiError> {
    let wrong = || {
        ApiError::internal(format!("value cannot be set because {path} is not a map[string]interface{{}}"))
    };
    node.as_object_mut().ok_or_else(wrong)
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.strip_prefix('.').unwrap_or(path).split('.')
}

fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    segments(path).try_fold(object, |node, name| node.get(name))
}

/// As `at`, but a value in the way that holds no fields is an error.
fn find<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let mut node = object;
    for (index, name) in segments(path).enumerate() {
        node = match node {
            Value::Null => return Ok(None),
            Value::Object(fields) => match fields.get(name) {
                Some(child) => child,
                None => return Ok(None),
            },
            other => {
                let walked: Vec<&str> = segments(path).take(index + 1).collect();
                let walked = format!(".{}", walked.join("."));
                return Err(accessor_fault(&walked, other, "map[string]interface{}"));
            }
        };
    }
    Ok(Some(node))
}

fn number_at(object: &Value, path: &str) -> Result<Option<i64>, String> {
    match find(object, path)? {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| accessor_fault(path, value, "int64")),
    }
}

fn text_at<'a>(object: &'a Value, path: &str) -> Result<&'a str, String> {
    match find(object, path)? {
        None => Ok(""),
        Some(value) => value.as_str().ok_or_else(|| accessor_fault(path, value, "string")),
    }
}

fn accessor_fault(path: &str, value: &Value, wanted: &str) -> String {
    let printed = gotext::plain(value);
    let kind = if value.is_null() { "<nil>" } else { gotext::type_name(value) };
    format!("{path} accessor error: {printed} is of the type {kind}, expected {wanted}")
}
