//! The YAML of the five proposals works as printed: it fits the schemas and survives the types.
//! Two things are not YAML for a server but for a reader: proposal 002 shows a binding's metadata only,
//! proposal 003 shortens a manifest to `xxx`. Proposal 004's `namespace: *` is quoted, because a bare
//! star is no YAML.

use serde_json::{Value, json};

#[path = "proposals/conformance.rs"]
mod conformance;

/// The documents of a proposal, checked one by one; returns them as the types write them.
fn check(yaml: &str, documents: usize) -> Vec<Value> {
    let printed: Vec<Value> = serde_saphyr::from_multiple(yaml).expect("YAML");
    assert_eq!(printed.len(), documents);
    printed.into_iter().map(through_type).collect()
}

fn through_type(printed: Value) -> Value {
    conformance::check(&printed);
    let written = match printed["kind"].as_str().expect("kind") {
        "PropagationPolicy" | "ClusterPropagationPolicy" => round_trip::<api::PropagationPolicy>(&printed),
        "RolloutPolicy" => round_trip::<api::RolloutPolicy>(&printed),
        "ResourceBinding" => round_trip::<api::Binding>(&printed),
        "Work" => round_trip::<api::Work>(&printed),
        other => panic!("no type for {other}"),
    };
    let mut expected = printed;
    if expected.get("spec").is_none() {
        expected["spec"] = json!({ "resource": { "apiVersion": "", "kind": "", "name": "" } });
    }
    assert_eq!(written, expected);
    written
}

fn round_trip<T: serde::de::DeserializeOwned + serde::Serialize>(value: &Value) -> Value {
    let typed: T = serde_json::from_value(value.clone()).expect("the type accepts it");
    serde_json::to_value(typed).expect("and writes it")
}

#[test]
fn proposal_000() {
    check(include_str!("proposals/000-static-policy.yaml"), 3);
}

#[test]
fn proposal_001() {
    let documents = check(include_str!("proposals/001-lazy-activation.yaml"), 1);
    let policy: api::PropagationPolicy = serde_json::from_value(documents[0].clone()).expect("a policy");
    assert!(policy.spec.is_lazy());
    assert_eq!(policy.spec.priority(), 0);
}

#[test]
fn proposal_002() {
    let documents = check(include_str!("proposals/002-priority-and-preemption.yaml"), 7);
    let preempting = documents.last().expect("documents").clone();
    let policy: api::PropagationPolicy = serde_json::from_value(preempting).expect("a policy");
    assert_eq!((policy.spec.priority(), policy.spec.preemption()), (3, api::propagation::Preemption::Always));
}

#[test]
fn proposal_003() {
    let documents = check(include_str!("proposals/003-dispatch-suspension.yaml"), 8);
    let suspensions: Vec<Value> = documents.iter().filter_map(canonical_suspension).collect();
    let on = |names: &[&str]| json!({ "dispatchingOnClusters": { "clusterNames": names } });
    let all = json!({ "dispatching": true });
    let once = [all, on(&["member2", "member3"]), on(&["member3"])];
    assert_eq!(suspensions, [once.clone(), once].concat(), "the policy's three, then the rollout policy's");
}

/// What the printed suspension says in Karmada's words (U1).
fn canonical_suspension(document: &Value) -> Option<Value> {
    let mut suspension: api::Suspension =
        serde_json::from_value(document["spec"].get("suspension")?.clone()).expect("a suspension");
    suspension.normalise();
    Some(serde_json::to_value(suspension).expect("JSON"))
}

#[test]
fn proposal_004() {
    let documents = check(include_str!("proposals/004-batch-policy-change.yaml"), 10);
    let excluding =
        |field: &str| documents.iter().filter(|document| document.pointer(field).is_some()).count();
    assert_eq!(excluding("/spec/resourceSelectors/0/exclude"), 1);
    assert_eq!(excluding("/spec/excludeResourceSelectors"), 1);
}
