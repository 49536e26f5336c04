//! A propagation policy of either scope, as input of the decisions. Knows no other policy.

use std::fmt;

use api::records::PolicyMark;
use api::{PropagationPolicy, PropagationSpec, Scope, Time, annotations, kinds, labels};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::Budget;

/// Which policy: empty `namespace` means a ClusterPropagationPolicy.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PolicyKey {
    /// Empty for cluster-scoped policies.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl PolicyKey {
    /// The key of an object that is a propagation policy; none if it is something else.
    pub fn of_object(object: &Value) -> Option<Self> {
        let is_policy =
            |kind: &api::Kind| object["kind"] == kind.kind && object["apiVersion"] == kind.api_version();
        [kinds::PROPAGATION_POLICY, kinds::CLUSTER_PROPAGATION_POLICY].iter().any(is_policy).then(|| {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            Self { namespace: text("namespace"), name: text("name") }
        })
    }

    /// Where the policy lives.
    pub fn scope(&self) -> Scope {
        if self.namespace.is_empty() { Scope::Cluster } else { Scope::Namespaced }
    }
}

impl fmt::Display for PolicyKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scope() {
            Scope::Namespaced => write!(formatter, "PropagationPolicy {}/{}", self.namespace, self.name),
            Scope::Cluster => write!(formatter, "ClusterPropagationPolicy {}", self.name),
        }
    }
}

/// PropagationPolicy and ClusterPropagationPolicy in one.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Where it lives and how it is called.
    pub key: PolicyKey,
    /// Unique over time.
    pub uid: String,
    /// Version of the spec.
    pub generation: i64,
    /// What claims carry; see [`Policy::id`].
    pub permanent_id: String,
    /// Since when it selects what it selects: the last moment its selectors may have changed.
    pub selects_since: Moment,
    /// Its deletion was asked for, so it claims nothing any more.
    pub deleting: bool,
    /// How much one act may do to the templates that it claims.
    pub budget: Budget,
    /// What it says, with the canonical names of the suspension only (U1).
    pub spec: PropagationSpec,
}

impl Policy {
    /// Where it lives.
    pub fn scope(&self) -> Scope {
        self.key.scope()
    }

    /// What templates and bindings carry as the mark of this policy.
    pub fn id(&self) -> &str {
        if self.permanent_id.is_empty() { &self.uid } else { &self.permanent_id }
    }

    /// The policy as it is now, for the records.
    pub fn mark(&self) -> PolicyMark {
        PolicyMark { uid: self.uid.clone(), generation: self.generation }
    }
}

impl From<&PropagationPolicy> for Policy {
    fn from(object: &PropagationPolicy) -> Self {
        let metadata = &object.metadata;
        let cluster_scoped = object.kind == kinds::CLUSTER_PROPAGATION_POLICY.kind;
        let (namespace, id_label) = if cluster_scoped {
            (String::new(), labels::CLUSTER_PROPAGATION_POLICY_PERMANENT_ID)
        } else {
            (metadata.namespace.clone(), labels::PROPAGATION_POLICY_PERMANENT_ID)
        };
        let mut spec = object.spec.clone();
        if let Some(suspension) = &mut spec.suspension {
            suspension.normalise();
        }
        let owners: Vec<Value> =
            metadata.managed_fields.iter().filter_map(|entry| entry.read().ok()).collect();
        let edited = owners.iter().filter(|entry| owns_selectors(entry));
        Policy {
            key: PolicyKey { namespace, name: metadata.name.clone() },
            uid: metadata.uid.clone(),
            generation: metadata.generation,
            permanent_id: metadata.label(id_label).to_owned(),
            selects_since: Moment {
                second: latest(edited, metadata.creation_timestamp),
                version: metadata.resource_version.parse().unwrap_or(0),
            },
            deleting: metadata.deletion_timestamp.is_some(),
            budget: Budget::on(&metadata.annotations),
            spec,
        }
    }
}

/// When something last changed, as the API server stamped it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Whole seconds: this is all that objects carry.
    pub second: Option<Time>,
    /// The object's resource version, which orders what happened inside one second.
    pub version: u64,
}

/// The latest stamp among entries of `managedFields`, or else when the object was created.
pub(crate) fn latest<'v>(entries: impl Iterator<Item = &'v Value>, created: Option<Time>) -> Option<Time> {
    entries.filter_map(|entry| entry.get("time")?.as_str()?.parse().ok()).max().max(created)
}

fn owns_selectors(entry: &Value) -> bool {
    let Some(spec) = entry.pointer("/fieldsV1/f:spec") else { return false };
    spec.get("f:resourceSelectors").is_some() || spec.get("f:excludeResourceSelectors").is_some()
}

/// The claim labels and annotations that say "this policy", in Karmada's words (C7).
pub(crate) fn claim_marks(policy: &Policy) -> ClaimMarks {
    match policy.scope() {
        Scope::Namespaced => ClaimMarks {
            label: (labels::PROPAGATION_POLICY_PERMANENT_ID, policy.id().to_owned()),
            annotations: vec![
                (annotations::PROPAGATION_POLICY_NAMESPACE, policy.key.namespace.clone()),
                (annotations::PROPAGATION_POLICY_NAME, policy.key.name.clone()),
            ],
        },
        Scope::Cluster => ClaimMarks {
            label: (labels::CLUSTER_PROPAGATION_POLICY_PERMANENT_ID, policy.id().to_owned()),
            annotations: vec![(annotations::CLUSTER_PROPAGATION_POLICY_NAME, policy.key.name.clone())],
        },
    }
}

/// What a claim puts on an object.
pub(crate) struct ClaimMarks {
    pub label: (&'static str, String),
    pub annotations: Vec<(&'static str, String)>,
}
