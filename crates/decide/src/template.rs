//! A resource template as input of the decisions: its identity, its claim, the fields its user wrote. Knows no policy.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use api::interpreter::DependentObjectReference;
use api::labels::is_bookkeeping;
use api::records::{ClaimRecord, RECONCILE, WAITING};
use api::{ObjectMeta, Time, names};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::interpret::{self, Interpretation};
use crate::policy::{Moment, latest};

mod digest;
mod document;

pub use digest::digest;
use document::Document;

/// Which template. Keys are ordered by name first, because names differ most and large maps compare a lot;
/// who prints them sorts them otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateKey {
    /// Name.
    pub name: String,
    /// Empty for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Kind.
    pub kind: String,
    /// `group/version`.
    pub api_version: String,
}

impl TemplateKey {
    /// The template that a binding is about.
    pub fn of(binding: &api::Binding) -> Self {
        let resource = &binding.spec.resource;
        Self {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
            namespace: resource.namespace.clone(),
            name: resource.name.clone(),
        }
    }

    /// API group, empty for the core group.
    pub fn group(&self) -> &str {
        group(&self.api_version)
    }

    /// Namespace and name of its binding.
    pub fn binding(&self) -> BindingKey {
        BindingKey { namespace: self.namespace.clone(), name: names::binding_name(&self.kind, &self.name) }
    }
}

impl fmt::Display for TemplateKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(formatter, "{} {}", self.kind, self.name),
            namespace => write!(formatter, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// Which binding: empty `namespace` means a ClusterResourceBinding. Ordered by name first, like templates.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BindingKey {
    /// Name.
    pub name: String,
    /// Empty for cluster-scoped bindings.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// API group of an `apiVersion`, empty for the core group.
pub fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// An object that policies can propagate.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// What it is and how it is called; indexes and plans share it.
    pub key: Arc<TemplateKey>,
    /// Unique over time.
    pub uid: String,
    /// Changes with every write.
    pub resource_version: String,
    /// All labels, the user's and ours.
    pub labels: BTreeMap<String, String>,
    /// All annotations, the user's and ours.
    pub annotations: BTreeMap<String, String>,
    /// When its user last changed it.
    pub changed: Moment,
    /// Grows with every change of what is wanted; zero where the kind does not count them.
    pub generation: i64,
    /// Its deletion was asked for.
    pub deleting: bool,
    /// Digest of the user's part.
    pub digest: String,
    /// How many replicas it wants and what each needs, as its kind is built in.
    pub interpretation: Interpretation,
    /// What must go along, as its kind is built in.
    pub dependencies: Option<Vec<DependentObjectReference>>,
    /// The object without its labels and annotations, and without what it says about who owns its fields: that is
    /// most of it, and asked once.
    pub(crate) document: Document,
}

impl Template {
    /// Reads any object; none if it has no type or no name, or nests deeper than API servers allow.
    pub fn read(object: &Value) -> Option<Template> {
        let text = |name: &str| Some(object.get(name)?.as_str()?.to_owned());
        let fields = object.get("metadata")?.as_object()?;
        let owners = fields.get("managedFields").and_then(Value::as_array);
        // A field that is null is a field that is not there.
        let fields = fields.iter().filter(|(name, value)| *name != "managedFields" && !value.is_null());
        let fields = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
        let metadata: ObjectMeta = serde_json::from_value(Value::Object(fields)).ok()?;
        if metadata.name.is_empty() {
            return None;
        }
        Some(Template {
            key: Arc::new(TemplateKey {
                api_version: text("apiVersion")?,
                kind: text("kind")?,
                namespace: metadata.namespace,
                name: metadata.name,
            }),
            generation: metadata.generation,
            changed: Moment {
                second: changed(owners, metadata.creation_timestamp),
                version: metadata.resource_version.parse().unwrap_or(0),
            },
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            labels: metadata.labels,
            annotations: metadata.annotations,
            deleting: metadata.deletion_timestamp.is_some(),
            digest: digest(object),
            interpretation: interpret::interpretation(object),
            dependencies: interpret::dependencies(object),
            document: Document::of(object)?,
        })
    }

    /// The whole object, without what it says about who owns its fields.
    pub fn object(&self) -> Value {
        let mut object = self.document.read();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            put_map(metadata, "labels", &self.labels);
            put_map(metadata, "annotations", &self.annotations);
        }
        object
    }

    /// The same template, of which less is shown: its digest and its meaning stay those of the whole.
    #[must_use]
    pub fn showing(self, object: &Value) -> Option<Template> {
        let Template { annotations, document, .. } = Template::read(object)?;
        Some(Template { annotations, document, ..self })
    }

    /// How things stood when the policy in charge claimed it.
    pub fn claim_record(&self) -> Option<ClaimRecord> {
        serde_json::from_str(self.annotations.get(api::records::CLAIM)?).ok()
    }

    /// True when it is on the static waiting list (S3).
    pub fn is_waiting(&self) -> bool {
        self.annotations.contains_key(WAITING)
    }

    /// What `longshore reconcile` asked for last.
    pub fn reconcile(&self) -> &str {
        self.annotations.get(RECONCILE).map_or("", String::as_str)
    }

    /// The same template with other labels and annotations; the user's part must be the same.
    pub(crate) fn with_marks(
        &self,
        labels: BTreeMap<String, String>,
        annotations: BTreeMap<String, String>,
    ) -> Template {
        Template { labels, annotations, ..self.clone() }
    }
}

fn put_map(metadata: &mut Map<String, Value>, field: &str, map: &BTreeMap<String, String>) {
    if map.is_empty() {
        return;
    }
    let pairs = map.iter().map(|(key, value)| (key.clone(), Value::String(value.clone())));
    metadata.insert(field.to_owned(), Value::Object(pairs.collect()));
}

/// The last write that touched more than bookkeeping and status.
fn changed(owners: Option<&Vec<Value>>, created: Option<Time>) -> Option<Time> {
    latest(owners.into_iter().flatten().filter(|entry| owns_users_part(entry)), created)
}

fn owns_users_part(entry: &Value) -> bool {
    if entry.get("subresource").and_then(Value::as_str) == Some("status") {
        return false;
    }
    let Some(fields) = entry.get("fieldsV1").and_then(Value::as_object) else { return true };
    fields.iter().any(|(field, inner)| match field.as_str() {
        "f:status" => false,
        "f:metadata" => owns_users_metadata(inner),
        _ => true,
    })
}

fn owns_users_metadata(fields: &Value) -> bool {
    let Some(fields) = fields.as_object() else { return false };
    fields.iter().any(|(field, inner)| match field.as_str() {
        "f:labels" | "f:annotations" => inner.as_object().is_some_and(|keys| {
            keys.keys().filter_map(|key| key.strip_prefix("f:")).any(|key| !is_bookkeeping(key))
        }),
        _ => true,
    })
}

#[cfg(test)]
mod tests;
