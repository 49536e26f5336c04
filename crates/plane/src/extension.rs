//! The aggregated API `longshore.io/v1alpha1`: plans, explanations and status reports, computed from the informer cache
//! and filtered by the caller's permissions. Nothing of it is stored.

use std::sync::Arc;

use apimachinery::error::{ApiError, Subject};
use apiserver::extension::{Computed, Extension, PodQuery, Request};
use decide::plan::Plan;
use decide::snapshot::Interpreters;
use decide::why::{steps, why};
use decide::{Snapshot, TemplateKey};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::policy_impact::PolicyImpact;
use crate::reports::{self, Explanation, Onto};

mod deliveries;
mod plans;
mod pods;
mod rights;

pub use deliveries::DELIVERY_REVIEW_TEMPLATES_MAX;
use rights::Rights;

/// The API group.
pub const GROUP: &str = "longshore.io";
/// The API version.
pub const VERSION: &str = "v1alpha1";
/// Group and version.
pub const API_VERSION: &str = "longshore.io/v1alpha1";

/// What changes would do: `create` with the changes, answered with the plan.
pub const PLANS: &str = "plans";
/// Why a template is where it is: `get` by `PLURAL.GROUP:NAME`.
pub const EXPLANATIONS: &str = "explanations";
/// How things stand: `get` by the name of the report, `status`, `templates` or `copies`.
pub const REPORTS: &str = "reports";

/// The delivery progress of templates: `create` with their names, answered with what is pending.
pub const DELIVERY_REVIEWS: &str = "deliveryreviews";

const RESOURCES: &[Computed] = &[
    Computed { plural: PLANS, singular: "plan", kind: "Plan", verbs: &["create"] },
    Computed { plural: EXPLANATIONS, singular: "explanation", kind: "Explanation", verbs: &["get"] },
    Computed { plural: REPORTS, singular: "report", kind: "Report", verbs: &["get"] },
    Computed {
        plural: DELIVERY_REVIEWS,
        singular: "deliveryreview",
        kind: "DeliveryReview",
        verbs: &["create"],
    },
];

/// What changes would do, as far as the caller may read.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    /// What happens to which templates.
    pub plan: Plan,
    /// How many more templates are concerned, which the caller may not read.
    #[serde(default)]
    pub hidden: usize,
    /// What else there is to say about the policies among the changes.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Feature gates that are not at their default.
    #[serde(default)]
    pub gates: Vec<String>,
}

/// The name by which an explanation is asked for.
pub fn explanation_name(group: &str, plural: &str, name: &str) -> String {
    match group {
        "" => format!("{plural}:{name}"),
        group => format!("{plural}.{group}:{name}"),
    }
}

/// The group, answered from what the outlook sees. `gates` are the feature gates that are not at their default.
pub fn extension(
    policy_impact: PolicyImpact,
    gates: Vec<String>,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
) -> Extension {
    let (seen, clock) = (policy_impact.clone(), now.clone());
    let pods = move |query: &PodQuery<'_>| pods::elsewhere(seen.known(clock()).as_ref(), query);
    let answer = move |request: &Request<'_>| {
        let snapshot = policy_impact.known(now()).ok_or_else(|| {
            ApiError::unavailable(
                "the control plane has just started and its informers have not synced yet; try again in a \
                 moment",
            )
        })?;
        let rights = Rights::new(request);
        let status = match request.resource {
            PLANS => json!(plans::planned(request, &rights, &snapshot, &gates)?),
            EXPLANATIONS => json!(explanation(request, &rights, &snapshot)?),
            REPORTS => report(request, &rights, &snapshot, &gates)?,
            DELIVERY_REVIEWS => json!(deliveries::reviewed(request, &rights, snapshot)?),
            _ => return Err(ApiError::no_such_path()),
        };
        Ok(document(request, status))
    };
    let (answer, pods) = (Arc::new(answer), Arc::new(pods));
    Extension { group: GROUP, version: VERSION, resources: RESOURCES, answer, pods }
}

fn document(request: &Request<'_>, status: Value) -> Value {
    let kind = RESOURCES.iter().find(|known| known.plural == request.resource).map(|known| known.kind);
    let mut metadata = json!({});
    for (key, text) in [("name", request.name), ("namespace", request.namespace)] {
        if !text.is_empty() {
            metadata[key] = text.into();
        }
    }
    json!({ "apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "status": status })
}

fn explanation(
    request: &Request<'_>,
    rights: &Rights<'_>,
    whole: &Snapshot,
) -> Result<Explanation, ApiError> {
    let asked = || {
        ApiError::bad_request(
            "an explanation is asked for by PLURAL.GROUP:NAME, such as deployments.apps:web or services:web",
        )
    };
    let (resource, name) =
        request.name.split_once(':').filter(|(_, name)| !name.is_empty()).ok_or_else(asked)?;
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    let missing = || ApiError::not_found(Subject { group, resource: plural, name });
    if !request.caller.may("get", group, plural, request.namespace) {
        return Err(request.caller.refusal("get", group, plural, request.namespace, name));
    }
    let (api_version, kind) = request.caller.kind(group, plural).ok_or_else(missing)?;
    let key =
        TemplateKey { api_version, kind, namespace: request.namespace.to_owned(), name: name.to_owned() };
    let seen = rights.seen(whole, None);
    let why = why(&seen, &key, Interpreters::BUILT_IN).ok_or_else(missing)?;
    let onto = request.query.get("cluster").map(|cluster| Onto {
        cluster: (*cluster).to_owned(),
        steps: steps(&seen, &key, cluster, Interpreters::BUILT_IN).unwrap_or_default(),
    });
    let binding = seen.bindings.get(&key.binding());
    let members = binding.map(|binding| reports::reported(binding, &seen.clusters)).unwrap_or_default();
    Ok(Explanation { why: rights.why(why), members, onto })
}

fn report(
    request: &Request<'_>,
    rights: &Rights<'_>,
    whole: &Snapshot,
    gates: &[String],
) -> Result<Value, ApiError> {
    let within = Some(request.namespace).filter(|namespace| !namespace.is_empty());
    let seen = rights.seen(whole, within);
    match request.name {
        "status" => Ok(json!(status(rights, whole, &seen, gates))),
        "templates" => Ok(json!(reports::templates(&seen))),
        "copies" => Ok(json!(reports::copies(&seen))),
        name => Err(ApiError::not_found(Subject { group: GROUP, resource: REPORTS, name })),
    }
}

/// The state of what is seen. A policy that the caller may read counts all of its templates, as its own status does.
fn status(rights: &Rights<'_>, whole: &Snapshot, seen: &Snapshot, gates: &[String]) -> reports::Report {
    let mut report = reports::report(seen, String::new(), gates.to_vec());
    let counted = reports::policies(whole, |policy| rights.sees_policy(policy));
    for own in counted {
        let same = |one: &&mut reports::PolicyReport| one.namespace == own.namespace && one.name == own.name;
        if let Some(one) = report.policies.iter_mut().find(same) {
            *one = own;
        }
    }
    if !rights.sees_clusters() {
        // The names of clusters and whether they answer are no secret; what they are like is.
        for cluster in &mut report.clusters {
            cluster.version.clear();
            cluster.taints.clear();
            cluster.hidden = true;
        }
    }
    report
}
