//! Which generation of a policy each of its claimed templates follows. Pure.

use api::records::Pin;
use decide::binding::is_held;
use decide::readiness::{Unknown, unknown};
use decide::works::targets;
use decide::{Policy, Snapshot, Template};
use serde::{Deserialize, Serialize};

/// A template that a policy claims.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Follower {
    /// The template.
    pub template: String,
    /// What it follows, in words.
    pub follows: String,
    /// The generation of this very policy that it follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_generation: Option<i64>,
    /// It follows the policy as it is now.
    pub is_current: bool,
    /// Clusters to which nothing is written now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspended: Vec<String>,
    /// Clusters that do not answer, so whether they have it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownIn>,
}

/// A cluster that does not answer.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownIn {
    /// The cluster.
    pub cluster: String,
    /// Since when, and why.
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// All templates that a policy claims, by name.
pub fn followers(snapshot: &Snapshot, policy: &Policy) -> Vec<Follower> {
    let claimed = snapshot.templates.claimed(policy.id()).filter_map(|key| snapshot.templates.get(key));
    let mut all: Vec<Follower> = claimed.map(|template| follower(snapshot, policy, template)).collect();
    all.sort_by(|a, b| a.template.cmp(&b.template));
    all
}

/// How one template follows a policy that claims it.
pub fn follower(snapshot: &Snapshot, policy: &Policy, template: &Template) -> Follower {
    let binding = snapshot.bindings.get(&template.key.binding());
    let pin = binding.and_then(|binding| Pin::read(&binding.metadata));
    let own = pin.as_ref().filter(|pin| pin.policy.uid == policy.uid).map(|pin| pin.policy.generation);
    let follows = match (&pin, own) {
        (None, _) if binding.is_none() => "<nothing>".to_owned(),
        (None, _) | (Some(_), Some(0)) => "the state that Karmada left".to_owned(),
        (Some(_), Some(generation)) => format!("generation {generation}"),
        (Some(pin), None) => {
            let other = snapshot.policies.iter().find(|other| other.uid == pin.policy.uid);
            other.map_or_else(|| "a deleted policy".to_owned(), |other| other.key.to_string())
        }
    };
    let held = |binding: &std::sync::Arc<decide::Binding>| {
        let names = targets(&binding.spec).into_iter().map(|target| target.name);
        names.filter(|name| is_held(binding, name)).collect()
    };
    let targets = binding.map(|binding| targets(&binding.spec)).unwrap_or_default();
    let silent = snapshot
        .clusters
        .iter()
        .filter(|cluster| targets.iter().any(|target| target.name == cluster.metadata.name));
    let silent = silent.filter_map(|cluster| {
        Some(UnknownIn { cluster: cluster.metadata.name.clone(), unknown: unknown(cluster)? })
    });
    Follower {
        template: template.key.to_string(),
        follows,
        own_generation: own,
        is_current: binding.is_some_and(|binding| decide::binding::follows(binding, policy)),
        suspended: binding.map(held).unwrap_or_default(),
        unknown: silent.collect(),
    }
}
