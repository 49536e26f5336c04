//! Applies one set of overriders to an object: images, commands, arguments, labels, annotations, documents inside
//! fields, and any field by JSON pointer, in this order.

use std::fmt;

use api::override_policy::{
    CommandArgsOverrider, FieldOverrider, FieldPatch, ImageOverrider, LabelAnnotationOverrider,
    OverriderOperator, Overriders,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::document::{read_yaml, write_yaml};
use crate::fields::{at, map, text};
use crate::image::Image;
use crate::json_pointer::{JsonPointer, PointerError};
use crate::template::TemplateKey;

/// Why an overrider could not act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub enum Problem {
    /// A path leads nowhere.
    Path {
        /// Why.
        error: PointerError,
    },
    /// The value is no text.
    NotText {
        /// Where it is.
        path: String,
    },
    /// The text is no image name.
    NotAnImage {
        /// Why.
        error: String,
    },
    /// The object would become another one (M3).
    Identity {
        /// The field that says so.
        path: String,
        /// What the template has there.
        template: String,
        /// What the object would have there.
        found: String,
    },
    /// What has to be a map would be something else.
    NotAMap {
        /// Where it is; empty for the whole object.
        path: String,
    },
    /// The text is no JSON or YAML document.
    NotADocument {
        /// Where it is.
        path: String,
        /// Why.
        error: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Path { error } => error.fmt(formatter),
            Problem::NotText { path } => write!(formatter, "the value at {path} is not a text"),
            Problem::NotAnImage { error } => formatter.write_str(error),
            Problem::Identity { path, template, found } => write!(
                formatter,
                "it would change {path} from {template:?} to {found:?}, and an override cannot make another object \
                 of its template"
            ),
            Problem::NotAMap { path } => write!(formatter, "it would leave no map at {path:?}"),
            Problem::NotADocument { path, error } => {
                write!(formatter, "the text at {path} cannot be read: {error}")
            }
        }
    }
}

impl From<PointerError> for Problem {
    fn from(error: PointerError) -> Problem {
        Problem::Path { error }
    }
}

/// Changes an object; it may be half changed when there is a problem, so the caller drops it then.
pub(super) fn change(object: &mut Value, overriders: &Overriders) -> Result<(), Problem> {
    overriders.image_overrider.iter().try_for_each(|overrider| change_images(object, overrider))?;
    overriders.command_overrider.iter().for_each(|overrider| change_words(object, "command", overrider));
    overriders.args_overrider.iter().for_each(|overrider| change_words(object, "args", overrider));
    overriders.labels_overrider.iter().for_each(|overrider| change_pairs(object, "labels", overrider));
    overriders
        .annotations_overrider
        .iter()
        .for_each(|overrider| change_pairs(object, "annotations", overrider));
    overriders.field_overrider.iter().try_for_each(|overrider| change_field(object, overrider))?;
    overriders
        .plaintext
        .iter()
        .try_for_each(|overrider| patch(object, &overrider.path, overrider.operator, &overrider.value))
}

/// Whether an object is still the one that its template says (M3), and can carry the marks of the control plane.
pub(super) fn keep_identity(object: &Value, key: &TemplateKey) -> Result<(), Problem> {
    let is_map = |path: &str| object.pointer(path).is_some_and(Value::is_object);
    let is_missing = |path: &str| object.pointer(path).is_none_or(Value::is_null);
    let required = ["", "/metadata"].into_iter().find(|path| !is_map(path));
    let optional = ["/metadata/labels", "/metadata/annotations"];
    let broken = required.or_else(|| optional.into_iter().find(|path| !is_map(path) && !is_missing(path)));
    if let Some(path) = broken {
        return Err(Problem::NotAMap { path: path.to_owned() });
    }
    let parts = [
        ("/apiVersion", &key.api_version),
        ("/kind", &key.kind),
        ("/metadata/namespace", &key.namespace),
        ("/metadata/name", &key.name),
    ];
    for (path, template) in parts {
        let found = object.pointer(path).filter(|value| !value.is_null());
        let found = found.map_or_else(String::new, |value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        if found != *template {
            return Err(Problem::Identity { path: path.to_owned(), template: template.clone(), found });
        }
    }
    Ok(())
}

/// Where kinds that image, command and args overriders understand keep their containers.
fn containers(object: &Value) -> Option<&'static [&'static str]> {
    match text(object, &["kind"]) {
        "Pod" => Some(&["spec", "containers"]),
        "ReplicaSet" | "Deployment" | "DaemonSet" | "StatefulSet" | "Job" => {
            Some(&["spec", "template", "spec", "containers"])
        }
        _ => None,
    }
}

fn change_images(object: &mut Value, overrider: &ImageOverrider) -> Result<(), Problem> {
    if let Some(predicate) = &overrider.predicate {
        let pointer: JsonPointer = predicate.path.parse()?;
        let missing = || PointerError::Missing { pointer: predicate.path.clone() };
        return change_image(pointer.get_mut(object).ok_or_else(missing)?, &predicate.path, overrider);
    }
    let Some(path) = containers(object) else { return Ok(()) };
    for (index, container) in list_mut(object, path).iter_mut().enumerate() {
        let place = format!("/{}/{index}/image", path.join("/"));
        let image = container.get_mut("image").ok_or(Problem::NotText { path: place.clone() })?;
        change_image(image, &place, overrider)?;
    }
    Ok(())
}

fn change_image(value: &mut Value, path: &str, overrider: &ImageOverrider) -> Result<(), Problem> {
    let text = value.as_str().ok_or_else(|| Problem::NotText { path: path.to_owned() })?;
    let mut image: Image = text
        .parse()
        .map_err(|error: crate::image::NotAnImage| Problem::NotAnImage { error: error.to_string() })?;
    image.change(overrider.component, overrider.operator, &overrider.value);
    *value = image.to_string().into();
    Ok(())
}

fn list_mut<'a>(object: &'a mut Value, path: &[&str]) -> &'a mut [Value] {
    let list = path.iter().try_fold(object, |value, field| value.get_mut(field));
    list.and_then(Value::as_array_mut).map_or(&mut [], Vec::as_mut_slice)
}

/// Changes the words of the containers with the name; other containers and kinds are left alone.
fn change_words(object: &mut Value, field: &str, overrider: &CommandArgsOverrider) {
    let Some(path) = containers(object) else { return };
    for container in list_mut(object, path) {
        if text(container, &["name"]) != overrider.container_name {
            continue;
        }
        let words = at(container, &[field]).and_then(Value::as_array).cloned().unwrap_or_default();
        let listed = |word: &Value| overrider.value.iter().any(|value| word.as_str() == Some(value));
        let words: Vec<Value> = match overrider.operator {
            OverriderOperator::Add => {
                words.into_iter().chain(overrider.value.iter().cloned().map(Value::from)).collect()
            }
            OverriderOperator::Remove => words.into_iter().filter(|word| !listed(word)).collect(),
            OverriderOperator::Replace => words,
        };
        if let Some(fields) = container.as_object_mut() {
            fields.insert(field.to_owned(), words.into());
        }
    }
}

/// `add` sets a pair whether or not it is there; the others act only on what is there.
fn change_pairs(object: &mut Value, field: &str, overrider: &LabelAnnotationOverrider) {
    let adds = overrider.operator == OverriderOperator::Add;
    if !adds && at(object, &["metadata", field]).is_none() {
        return;
    }
    let Some(pairs) = map(object, &["metadata", field]) else { return };
    for (key, value) in &overrider.value {
        match overrider.operator {
            OverriderOperator::Remove => drop(pairs.remove(key)),
            OverriderOperator::Replace if !pairs.contains_key(key) => {}
            _ => drop(pairs.insert(key.clone(), value.as_str().into())),
        }
    }
}

/// Changes a document that is kept as text in a field; JSON and YAML are written in their shortest form.
fn change_field(object: &mut Value, overrider: &FieldOverrider) -> Result<(), Problem> {
    let pointer: JsonPointer = overrider.field_path.parse()?;
    let path = &overrider.field_path;
    let field = pointer.get_mut(object).ok_or_else(|| PointerError::Missing { pointer: path.clone() })?;
    let text = field.as_str().ok_or_else(|| Problem::NotText { path: path.clone() })?;
    let unreadable = |error: String| Problem::NotADocument { path: path.clone(), error };
    if !overrider.yaml.is_empty() {
        let mut document = read_yaml(text).map_err(unreadable)?;
        change_document(&mut document, &overrider.yaml)?;
        let added = overrider.yaml.iter().map(|change| change.value.to_string().len()).sum();
        *field = write_yaml(&document, text, added).map_err(unreadable)?.into();
    } else if !overrider.json.is_empty() {
        let mut document: Value =
            serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        change_document(&mut document, &overrider.json)?;
        *field = document.to_string().into();
    }
    Ok(())
}

fn change_document(document: &mut Value, patches: &[FieldPatch]) -> Result<(), Problem> {
    patches.iter().try_for_each(|change| patch(document, &change.sub_path, change.operator, &change.value))
}

fn patch(
    document: &mut Value,
    path: &str,
    operator: OverriderOperator,
    value: &Value,
) -> Result<(), Problem> {
    let pointer: JsonPointer = path.parse()?;
    match operator {
        OverriderOperator::Add => pointer.add(document, value.clone())?,
        OverriderOperator::Replace => pointer.replace(document, value.clone())?,
        OverriderOperator::Remove => pointer.remove(document)?,
    }
    Ok(())
}
