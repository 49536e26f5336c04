//! Explanations with members that do not answer, and of templates that no policy claims.

use api::Work;
use decide::Gates;
use expect_test::expect;
use serde_json::json;

use super::story;
use crate::stage::{Stage, nginx, on};

fn healthy(cluster: &str) -> Work {
    let identifier =
        json!({ "ordinal": 0, "version": "v1", "kind": "Deployment", "resource": "", "name": "nginx" });
    serde_json::from_value(json!({
        "metadata": { "name": "nginx-1", "namespace": format!("karmada-es-{cluster}") },
        "spec": {},
        "status": {
            "conditions": [{ "type": "Applied", "status": "True", "reason": "", "message": "" }],
            "manifestStatuses": [{ "identifier": identifier, "health": "Healthy" }],
        },
    }))
    .expect("a Work")
}

#[test]
fn what_a_silent_member_has_is_unknown() {
    let mut stage = Stage::new();
    stage.policy("pp", json!({ "placement": on(&["member1", "member2", "member3"]) }));
    stage.nginx(2);
    stage.cluster_that_is("False", "member1", json!([]));
    stage.cluster_that_is("Unknown", "member3", json!([]));
    let works = [healthy("member1"), healthy("member2")];
    stage.check_onto(
        None,
        &works,
        &expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/pp claims it and still matches.
        In effect   generation 1 of PropagationPolicy default/pp, the newest
        Clusters    2 replicas in full to each cluster: member1 2, member2 2, member3 2.
          member1   chosen, 2 replicas; unknown since 2026-01-01T07:30:00Z: cluster is
                    not reachable; last reported: applied, healthy
          member2   chosen, 2 replicas; applied, healthy
          member3   chosen, 2 replicas; unknown since 2026-01-01T07:30:00Z: cluster is
                    not reachable
    "#]],
    );
    let story = story(&stage.snapshot, &nginx(), None, &works).expect("the template is there");
    let document = serde_json::to_value(&story).expect("JSON");
    let member = &document["members"]["member1"];
    let unknown = json!({ "since": "2026-01-01T07:30:00Z", "because": "cluster is not reachable" });
    assert_eq!((&member["unknown"], &member["health"]), (&unknown, &json!("Unknown")));
    assert_eq!(member["applied"], json!(null), "{member}");
    assert_eq!(member["lastKnown"], json!({ "applied": true, "health": "Healthy" }));
    assert_eq!(document["clusters"][2]["unknown"], unknown);
    assert_eq!(document["members"]["member2"], json!({ "applied": true, "health": "Healthy" }));
}

/// nginx runs in member1 and has lost its policy; another one matches.
fn orphaned() -> Stage {
    let mut stage = Stage::new();
    stage.snapshot.gates = Gates { static_policy: true, ..Gates::default() };
    stage.policy("first", json!({}));
    stage.nginx(2);
    stage.policy("second", json!({ "placement": on(&["member2"]) }));
    stage.delete("PropagationPolicy", "first");
    stage
}

#[test]
fn s4_a_template_without_a_policy_is_orphaned() {
    orphaned().check(&expect![[r#"
        Deployment default/nginx

        Policy      Its policy released it, and static policies wait until it changes
                    (S4).
          lost      PropagationPolicy default/second: static policies wait until the
                    template changes (S4)
        In effect   generation 1 of a deleted policy (uid uid-of-first)
        Orphaned    No policy claims the template, so what runs stays as it is (R2).
                    Then, by PropagationPolicy default/second: 2 replicas in full to
                    each cluster: member2 2.
                    Now: longshore reconcile deployment.apps/nginx -n default
        Clusters    Not scheduled, because no policy claims the binding, so it stays
                    where it is.
          member1   chosen, 2 replicas
          member2, member3
                    not chosen
    "#]]);
}

#[test]
fn a_reconcile_lets_the_policy_that_matches_take_an_orphan() {
    let mut stage = orphaned();
    let key = nginx();
    let template = stage.snapshot.templates.get(&key).expect("it is there");
    let mut annotations = template.annotations.clone();
    annotations.insert(api::records::RECONCILE.to_owned(), "now".to_owned());
    stage.put(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "nginx", "namespace": "default", "labels": template.labels, "annotations": annotations },
        "spec": { "replicas": 2, "template": { "spec": { "containers": [{ "name": "nginx", "image": "nginx" }] } } },
    }));
    stage.check(&expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/second claims it and still matches.
        In effect   generation 1 of PropagationPolicy default/second, the newest
        Clusters    2 replicas in full to each cluster: member2 2.
          member1, member3
                    not chosen: the placement does not select it
          member2   chosen, 2 replicas
    "#]]);
}
