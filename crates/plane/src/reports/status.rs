//! The status of a control plane and its members, as values. Counted from templates and bindings themselves, so it is
//! also correct where no controller writes the status of policies. Pure.

use api::cluster::READY;
use api::{Cluster, ConditionStatus, Time};
use decide::orphans::{Orphan, orphans};
use decide::policy_status::template_counts;
use decide::snapshot::Interpreters;
use decide::{Policy, PolicyKey, Snapshot, conditions, readiness};
use serde::{Deserialize, Serialize};

use super::stuck::{Stuck, stuck};
use super::unknown::{UnknownReport, unknown};

/// The whole system.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Report {
    /// The context that leads to it.
    pub context: String,
    /// What the API server says is wrong with itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// What the API server will refuse soon.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Feature gates that are not at their default.
    pub feature_gates: Vec<String>,
    /// By name.
    pub clusters: Vec<ClusterReport>,
    /// Those for all namespaces first.
    pub policies: Vec<PolicyReport>,
    /// By name.
    pub stuck: Vec<Stuck>,
    /// Clusters that do not answer, and which templates they have as far as is known.
    pub unknown: Vec<UnknownReport>,
    /// Templates that run although no policy claims them, by name.
    pub orphaned: Vec<Orphan>,
}

/// How a cluster is.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterReport {
    /// Name.
    pub name: String,
    /// `True`, `False` or `Unknown`.
    pub ready: String,
    /// Since when it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// The version of its Kubernetes.
    pub version: String,
    /// Its taints as kubectl writes them.
    pub taints: Vec<String>,
    /// The caller may not read clusters, so version and taints are left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

/// How a policy gets on.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PolicyReport {
    /// The short name of its kind.
    pub kind: String,
    /// Empty for those of all namespaces.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
    /// It waits for changes of its templates.
    pub lazy: bool,
    /// Priority.
    pub priority: i64,
    /// How many templates it has.
    pub claimed: i64,
    /// How many of those follow older rules.
    pub pending: i64,
    /// How many are held back somewhere.
    pub suspended: i64,
}

/// Looks at everything.
pub fn report(snapshot: &Snapshot, context: String, feature_gates: Vec<String>) -> Report {
    let mut clusters: Vec<ClusterReport> = snapshot.clusters.iter().map(cluster).collect();
    clusters.sort_by(|a, b| a.name.cmp(&b.name));
    let policies = policies(snapshot, |_| true);
    let (stuck, unknown, orphaned) =
        (stuck(snapshot), unknown(snapshot), orphans(snapshot, Interpreters::BUILT_IN));
    // What the API server says of itself is for the caller to ask.
    let (problems, warnings) = (Vec::new(), Vec::new());
    Report { context, problems, warnings, feature_gates, clusters, policies, stuck, unknown, orphaned }
}

/// How some policies get on, those for all namespaces first.
pub fn policies(snapshot: &Snapshot, is_meant: impl Fn(&PolicyKey) -> bool) -> Vec<PolicyReport> {
    let meant = snapshot.policies.iter().filter(|one| is_meant(&one.key));
    let mut policies: Vec<PolicyReport> = meant.map(|one| policy(snapshot, one)).collect();
    policies.sort_by(|a, b| (&a.kind, &a.namespace, &a.name).cmp(&(&b.kind, &b.namespace, &b.name)));
    policies
}

fn cluster(cluster: &Cluster) -> ClusterReport {
    let ready = match conditions::status(&cluster.status.conditions, READY) {
        Some(ConditionStatus::True) => "True",
        Some(ConditionStatus::False) => "False",
        Some(ConditionStatus::Unknown) | None => "Unknown",
    };
    ClusterReport {
        name: cluster.metadata.name.clone(),
        ready: ready.to_owned(),
        since: readiness::unknown(cluster).and_then(|unknown| unknown.since),
        version: cluster.status.kubernetes_version.clone(),
        taints: cluster.spec.taints.iter().map(taint).collect(),
        hidden: false,
    }
}

/// A taint as kubectl writes it.
pub fn taint(taint: &api::Taint) -> String {
    match taint.value.as_str() {
        "" => format!("{}:{}", taint.key, taint.effect),
        value => format!("{}={value}:{}", taint.key, taint.effect),
    }
}

fn policy(snapshot: &Snapshot, policy: &Policy) -> PolicyReport {
    let counts = template_counts(policy, snapshot);
    PolicyReport {
        kind: if policy.key.namespace.is_empty() { "cpp" } else { "pp" }.to_owned(),
        namespace: policy.key.namespace.clone(),
        name: policy.key.name.clone(),
        lazy: policy.spec.is_lazy(),
        priority: policy.spec.priority().into(),
        claimed: counts.claimed.into(),
        pending: counts.pending_activation.into(),
        suspended: counts.suspended.into(),
    }
}
