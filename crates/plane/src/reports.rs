//! Reports about a control plane, as values: its state, the followers of a policy, the state of templates and of their
//! copies in members. Computed from a `Snapshot`, by commands and by the control plane itself. Pure.

use std::collections::BTreeMap;

use decide::why::{Step, Why};
use decide::{PolicyKey, Snapshot, TemplateKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod delivery;
mod followers;
mod standing;
mod status;
mod stuck;
mod unknown;

pub use delivery::{Delivery, deliveries, reported};
pub use followers::{Follower, follower, followers};
pub use standing::{Standing, standing};
pub use status::{ClusterReport, PolicyReport, Report, policies, report, taint};
pub use stuck::{Stuck, stuck};
pub use unknown::{UnknownReport, unknown};

/// Why a template is where it is, and what became of it there.
#[derive(Debug, Serialize, Deserialize)]
pub struct Explanation {
    /// What the decisions say.
    pub why: Why,
    /// What became of it in each member, by cluster.
    pub members: BTreeMap<String, Delivery>,
    /// What would have to be done, where one cluster is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onto: Option<Onto>,
}

/// The way onto one cluster.
#[derive(Debug, Serialize, Deserialize)]
pub struct Onto {
    /// The cluster.
    pub cluster: String,
    /// What to do, in this order.
    pub steps: Vec<Step>,
}

/// How one template gets on with its policy.
#[derive(Debug, Serialize, Deserialize)]
pub struct TemplateReport {
    /// The template.
    pub template: TemplateKey,
    /// Its labels, and what else a selector of `longshore reconcile` may ask for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// How it stands to its policy.
    pub standing: Standing,
    /// The policy that claims it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<PolicyKey>,
    /// What it follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follower: Option<Follower>,
}

/// One copy of a template in one member, as its binding reports it.
#[derive(Debug, Serialize, Deserialize)]
pub struct CopyReport {
    /// The template.
    pub template: TemplateKey,
    /// The cluster.
    pub cluster: String,
    /// What became of it there.
    pub delivery: Delivery,
    /// The status that was collected there.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub status: Value,
}

/// Annotations that a selector may ask for: the name of a policy may be longer than a label may be.
const CLAIMS: [&str; 3] = [
    api::annotations::CLUSTER_PROPAGATION_POLICY_NAME,
    api::annotations::PROPAGATION_POLICY_NAME,
    api::annotations::PROPAGATION_POLICY_NAMESPACE,
];

/// The state of every template of a snapshot, by name.
pub fn templates(snapshot: &Snapshot) -> Vec<TemplateReport> {
    let owners: BTreeMap<&TemplateKey, _> = snapshot
        .policies
        .iter()
        .flat_map(|policy| snapshot.templates.claimed(policy.id()).map(move |key| (&**key, policy)))
        .collect();
    let one = |template: &std::sync::Arc<decide::Template>| {
        let owner = owners.get(&*template.key);
        let claims = CLAIMS
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), template.annotations.get(*key)?.clone())));
        TemplateReport {
            template: TemplateKey::clone(&template.key),
            labels: template
                .labels
                .iter()
                .map(|(key, value)| (key.clone(), value.clone()))
                .chain(claims)
                .collect(),
            standing: standing(snapshot, &template.key),
            owner: owner.map(|policy| policy.key.clone()),
            follower: owner.map(|policy| follower(snapshot, policy, template)),
        }
    };
    let mut all: Vec<TemplateReport> = snapshot.templates.iter().map(one).collect();
    all.sort_by(|a, b| a.template.cmp(&b.template));
    all
}

/// Every copy of every template of a snapshot.
pub fn copies(snapshot: &Snapshot) -> Vec<CopyReport> {
    let mut all = Vec::new();
    for binding in snapshot.bindings.values() {
        let template = TemplateKey::of(binding);
        let mut collected: BTreeMap<&str, Value> = BTreeMap::new();
        for item in &binding.status.aggregated_status {
            let status = item.status.as_ref().and_then(|status| serde_json::to_value(status).ok());
            collected.insert(&item.cluster_name, status.unwrap_or_default());
        }
        all.extend(reported(binding, &snapshot.clusters).into_iter().map(|(cluster, delivery)| CopyReport {
            template: template.clone(),
            status: collected.get(cluster.as_str()).cloned().unwrap_or_default(),
            cluster,
            delivery,
        }));
    }
    all.sort_by(|a, b| (&a.template, &a.cluster).cmp(&(&b.template, &b.cluster)));
    all
}
