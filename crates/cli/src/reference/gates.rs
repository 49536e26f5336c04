//! The reference of feature gates: every name that `--feature-gates` takes.

use controllers::gates::{FeatureGates, parse};
use expect_test::expect_file;

const HEAD: &str = "\
# Feature gates

`--feature-gates Name=true,Name=false` of `longshore up` and `longshore controllers`. The names are Karmada's. A gate that
cannot be set is accepted with the value it has, so that a command line of Karmada can be taken over.

Generated from the code: `UPDATE_EXPECT=1 cargo test -p cli --bin longshore reference`

| gate | value | can be set | what it does when it is on |
|---|---|---|---|
";

/// What each gate is for.
const ABOUT: [(&str, &str); 15] = [
    ("ControllerPriorityQueue", "what a policy sets off is queued behind what users do"),
    ("CustomizedClusterResourceModeling", "Clusters may have resource models"),
    ("Failover", "NoExecute taints evict, and ClusterTaintPolicies act: C8"),
    ("FederatedQuotaEnforcement", "FederatedResourceQuotas are enforced"),
    (
        "GracefulEviction",
        "a copy that is evicted stays until its successor is healthy, or its grace period ends",
    ),
    ("MultiClusterService", "services across clusters"),
    ("MultiplePodTemplatesScheduling", "bindings carry the components of a workload"),
    ("PriorityBasedScheduling", "bindings carry a priority in the scheduler's queue"),
    ("PropagateDeps", "`propagateDeps` takes dependencies along"),
    ("PropagationPolicyPreemption", "`preemption: Always` acts: P1"),
    ("ResourceQuotaEstimate", "quotas of members count when room is estimated"),
    ("SchedulingOvercommitProtection", "replicas that were just placed count when room is estimated"),
    ("StatefulFailoverInjection", "a failover takes labels along that were read from the old copy's status"),
    ("StaticPolicy", "no edit of a policy touches what is already propagated: S1 to S5"),
    ("WorkloadAffinity", "bindings carry the groups of workloads that stay together or apart"),
];

/// Every name that is understood, as the refusal of another one lists them.
fn known() -> Vec<String> {
    let refusal = parse("?=true").expect_err("there is no such gate").to_string();
    let (_, names) = refusal.split_once("known are ").expect("the refusal lists them");
    names.split(", ").map(str::to_owned).collect()
}

#[test]
fn every_gate_is_in_the_reference() {
    assert_eq!(known(), ABOUT.map(|(name, _)| name), "every gate, and no other, says what it is for");
    let defaults = FeatureGates::default().to_map();
    let mut text = HEAD.to_owned();
    for (name, about) in ABOUT {
        let is_on = parse(&format!("{name}=true")).is_ok();
        let fixed = || (if is_on { "true" } else { "false" }, "no");
        let (value, can_be_set) = defaults.get(name).map_or_else(fixed, |value| (value.as_str(), "yes"));
        text += &format!("| `{name}` | {value} | {can_be_set} | {about} |\n");
    }
    expect_file!["../../../../docs/reference/feature-gates.md"].assert_eq(&text);
}
