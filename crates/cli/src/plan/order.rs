//! The order of objects in one file: a template that comes before its policy may be claimed by another policy that is
//! there already. Says so, and puts policies first where the order is ours. Pure.

use anyhow::Result;
use api::kinds::POLICY_GROUP;
use decide::Snapshot;
use decide::claim::claim_on;
use decide::plan::{ClaimChange, Plan};
use decide::snapshot::{Change, Interpreters};
use serde_json::Value;

use super::request::{Request, Verb};

/// The objects with namespaces and kinds first, then policies, then everything else, each in their order.
pub fn policies_first(mut manifests: Vec<Value>) -> Vec<Value> {
    manifests.sort_by_key(rank);
    manifests
}

fn rank(object: &Value) -> u8 {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    rank_of(text("apiVersion"), text("kind"))
}

fn rank_of(api_version: &str, kind: &str) -> u8 {
    let group = api_version.split_once('/').map(|(group, _)| group);
    match kind {
        "Namespace" | "CustomResourceDefinition" => 0,
        _ if group == Some(POLICY_GROUP) => 1,
        _ => 2,
    }
}

/// Where a request belongs in that order; deletions come last.
pub fn request_rank(request: &Request) -> u8 {
    match request.verb {
        Verb::Delete => 3,
        Verb::Create | Verb::Patch => rank_of(&request.api_version, &request.kind),
    }
}

/// One sentence for each template that another policy claims if the changes are made one after the other, as kubectl
/// makes them, because its own policy comes later in the files.
pub fn late_policies(snapshot: &Snapshot, changes: &[Change], planned: &Plan) -> Result<Vec<String>> {
    let rank_of = |change: &Change| match change {
        Change::Put(object) => rank(object),
        Change::Delete { .. } => 3,
    };
    if changes.is_sorted_by_key(rank_of) {
        return Ok(Vec::new());
    }
    let mut then = snapshot.clone();
    for change in changes {
        let touched = then.apply(change)?;
        then.settle(&touched, Interpreters::BUILT_IN);
    }
    let late = planned.templates.values().filter_map(|one| {
        let own = match &one.claim {
            Some(ClaimChange::Claimed { by } | ClaimChange::Preempted { by, .. }) => by,
            Some(ClaimChange::Handed { to, .. }) => to,
            Some(ClaimChange::Released { .. }) | None => return None,
        };
        let template = then.templates.get(&one.template)?;
        let first = claim_on(&template.labels, &template.annotations)?.policy;
        (first != *own).then(|| {
            format!(
                "With `kubectl apply`, {first} would claim {}, because {own} comes later in the files. To \
                 let {own} claim it: put the policy first, or use `longshore apply -f`, which applies \
                 policies first.",
                one.template
            )
        })
    });
    Ok(late.collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use decide::plan::plan;
    use serde_json::json;

    use super::*;
    use crate::stage::{Stage, all, on};

    #[test]
    fn policies_go_before_what_they_select() {
        let object = |version: &str, kind: &str| json!({ "apiVersion": version, "kind": kind });
        let sorted = policies_first(vec![
            object("apps/v1", "Deployment"),
            object("policy.karmada.io/v1alpha1", "PropagationPolicy"),
            object("v1", "Namespace"),
            object("v1", "ConfigMap"),
        ]);
        let kinds: Vec<&str> = sorted.iter().filter_map(|object| object["kind"].as_str()).collect();
        assert_eq!(kinds, ["Namespace", "PropagationPolicy", "Deployment", "ConfigMap"]);
    }

    #[test]
    fn a_policy_behind_its_template_is_explained() {
        let mut stage = Stage::new();
        stage.policy("base", json!({ "resourceSelectors": all() }));
        let template = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "nginx", "namespace": "default", "uid": "n", "generation": 1, "creationTimestamp": "2026-02-01T00:00:00Z" },
            "spec": { "replicas": 1, "template": { "spec": {} } },
        });
        let own = json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": { "name": "own", "namespace": "default", "uid": "o", "generation": 1, "creationTimestamp": "2026-02-01T00:00:00Z" },
            "spec": {
                "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx" }],
                "placement": on(&["member2"]),
            },
        });
        let put = |object: &Value| Change::Put(Arc::new(object.clone()));
        let said = |changes: &[Change]| {
            let planned = plan(&stage.snapshot, changes, Interpreters::BUILT_IN).expect("a plan");
            late_policies(&stage.snapshot, changes, &planned).expect("a plan")
        };
        assert_eq!(said(&[put(&own), put(&template)]), Vec::<String>::new());
        assert_eq!(
            said(&[put(&template), put(&own)]),
            [
                "With `kubectl apply`, PropagationPolicy default/base would claim Deployment default/nginx, because \
              PropagationPolicy default/own comes later in the files. To let PropagationPolicy default/own \
              claim it: put the policy first, or use `longshore apply -f`, which applies policies first."
            ]
        );
    }
}
