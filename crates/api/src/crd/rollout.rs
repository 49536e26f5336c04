//! Schema of the rollout policies.

use super::parts::conditions;
use super::schema::{int32, int64, object};
use super::selectors::{exclude_resource_selectors, required_selectors, suspension};
use super::staged::rollout_strategy;
use super::{Version, age, column, flag};

pub(super) const ABOUT: &str = "Suspends the delivery of single templates of its own namespace, or lets \
                                their changes spread in stages, without an edit of the policy that claims \
                                them. A template is suspended in a cluster when its policy or any rollout \
                                policy says so; deleting the rollout policy resumes delivery.";

pub(super) const ABOUT_CLUSTER_SCOPED: &str = "Suspends the delivery of single templates of all namespaces, \
                                               and of kinds without namespaces, or lets their changes spread \
                                               in stages, without an edit of the policy that claims them. A \
                                               template is suspended in a cluster when its policy or any \
                                               rollout policy says so; deleting the rollout policy resumes \
                                               delivery.";

pub(super) fn rollout() -> Version {
    let spec = object([
        (
            "excludeResourceSelectors",
            exclude_resource_selectors(
                "A template that becomes excluded is no longer suspended by this policy.",
            ),
        ),
        ("resourceSelectors", required_selectors()),
        ("rolloutStrategy", rollout_strategy()),
        ("suspension", suspension()),
    ]);
    let status = object([
        (
            "observedGeneration",
            int64().about("Generation of the policy that the rest of the status is about."),
        ),
        ("suspended", int32().about("How many templates this policy suspends.")),
        ("conditions", conditions().keyed_by("type").about("What else there is to say about the policy.")),
    ]);
    Version::stored("v1alpha1", spec, "Which templates are suspended, and where, or change in stages.")
        .status(status, "What became of the policy. Longshore's controllers do not fill it in.")
        .columns([
            flag("SUSPENDED", ".spec.suspension.dispatching"),
            column("CLUSTERS", ".spec.suspension.dispatchingOnClusters.clusterNames"),
            age(),
        ])
}
