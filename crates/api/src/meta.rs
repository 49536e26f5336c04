//! TypeMeta, ObjectMeta and conditions, which every object has. Knows no kind.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::kinds::Kind;
use crate::{Time, is_default};

/// An object of any kind in this crate; twin kinds share one type and differ in `kind`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(bound(
    serialize = "Spec: Serialize, Status: Serialize + Default + PartialEq",
    deserialize = "Spec: Deserialize<'de> + Default, Status: Deserialize<'de> + Default"
))]
pub struct Object<Spec, Status = NoStatus> {
    /// `group/version`.
    #[serde(default)]
    pub api_version: String,
    /// The kind's name, for example `PropagationPolicy`.
    #[serde(default)]
    pub kind: String,
    /// Name, labels, annotations and what the API server keeps.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What is wanted.
    #[serde(default)]
    pub spec: Spec,
    /// What is.
    #[serde(default, skip_serializing_if = "is_default")]
    pub status: Status,
}

impl<Spec: Default, Status: Default> Object<Spec, Status> {
    /// An empty object of this kind; `namespace` is empty for cluster-scoped kinds.
    pub fn new(kind: &Kind, namespace: &str, name: &str) -> Self {
        Object {
            api_version: kind.api_version(),
            kind: kind.kind.to_owned(),
            metadata: ObjectMeta {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                ..ObjectMeta::default()
            },
            ..Object::default()
        }
    }
}

/// The status of kinds that have none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoStatus {}

/// Kubernetes' object metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectMeta {
    /// Unique within the kind and namespace.
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    /// Prefix from which the API server makes a name.
    #[serde(skip_serializing_if = "is_default")]
    pub generate_name: String,
    /// Empty for cluster-scoped kinds.
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
    /// Unique over time and space.
    #[serde(skip_serializing_if = "is_default")]
    pub uid: String,
    /// Changes with every write.
    #[serde(skip_serializing_if = "is_default")]
    pub resource_version: String,
    /// Grows with every change of what is wanted.
    #[serde(skip_serializing_if = "is_default")]
    pub generation: i64,
    /// When the object was created.
    #[serde(skip_serializing_if = "is_default")]
    pub creation_timestamp: Option<Time>,
    /// When its deletion was asked for.
    #[serde(skip_serializing_if = "is_default")]
    pub deletion_timestamp: Option<Time>,
    /// How long it may still take to end.
    #[serde(skip_serializing_if = "is_default")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// For selecting.
    #[serde(skip_serializing_if = "is_default")]
    pub labels: BTreeMap<String, String>,
    /// For remembering.
    #[serde(skip_serializing_if = "is_default")]
    pub annotations: BTreeMap<String, String>,
    /// Who must let go before the object vanishes.
    #[serde(skip_serializing_if = "is_default")]
    pub finalizers: Vec<String>,
    /// Objects whose end is the end of this one.
    #[serde(skip_serializing_if = "is_default")]
    pub owner_references: Vec<OwnerReference>,
    /// Which field manager owns which field.
    #[serde(skip_serializing_if = "is_default")]
    pub managed_fields: Vec<Unread>,
}

/// JSON that is carried along as text: much of every object is of no interest to who reads it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Unread(Box<RawValue>);

impl Unread {
    /// Parses the fields that the caller's type has.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }
}

impl PartialEq for Unread {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for Unread {}

/// JSON that is kept as text, a quarter of the memory of the parsed tree. It is serialized here, no matter which client
/// wrote the original, so that equal values have equal text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(Box<str>);

impl Text {
    /// What it says.
    pub fn read(&self) -> Value {
        serde_json::from_str(&self.0).expect("it was written from a value")
    }
}

impl From<Value> for Text {
    fn from(value: Value) -> Self {
        Self(value.to_string().into())
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.read().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

impl ObjectMeta {
    /// The label's value, empty when it is not set: Karmada treats both alike.
    pub fn label(&self, key: &str) -> &str {
        self.labels.get(key).map_or("", String::as_str)
    }

    /// The annotation's value, empty when it is not set: Karmada treats both alike.
    pub fn annotation(&self, key: &str) -> &str {
        self.annotations.get(key).map_or("", String::as_str)
    }
}

/// A reference to an object that owns this one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerReference {
    /// `group/version` of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// Uid of the owner.
    pub uid: String,
    /// True for the one owner that manages the object.
    #[serde(skip_serializing_if = "is_default")]
    pub controller: Option<bool>,
    /// True when foreground deletion of the owner waits for this object.
    #[serde(skip_serializing_if = "is_default")]
    pub block_owner_deletion: Option<bool>,
}

/// One observed aspect of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// Which aspect.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Generation the observation belongs to.
    #[serde(skip_serializing_if = "is_default")]
    pub observed_generation: i64,
    /// When `status` last changed.
    pub last_transition_time: Option<Time>,
    /// Why, for programs.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// The status is unknown.
    #[default]
    Unknown,
}

impl ConditionStatus {
    /// The word that stands in objects.
    pub fn as_str(self) -> &'static str {
        match self {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { ConditionStatus::True } else { ConditionStatus::False }
    }
}
