//! Explanations of where a template runs and what suspends it.

use api::Work;
use expect_test::expect;
use serde_json::json;

use crate::stage::{Stage, all, on};

#[test]
fn suspended_by_policy() {
    let mut stage = Stage::new();
    stage.policy("pp", json!({ "suspension": { "dispatching": true } }));
    stage.nginx(2);
    stage.check_onto(
        Some("member1"),
        &[],
        &expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/pp claims it and still matches.
        In effect   generation 1 of PropagationPolicy default/pp, the newest
        Suspended   everywhere, by PropagationPolicy default/pp
        Clusters    2 replicas in full to each cluster: member1 2.
          member1   chosen, 2 replicas; suspended

        To get it onto member1 you would have to
          1. resume it: it is suspended everywhere, by PropagationPolicy default/pp
    "#]],
    );
}

#[test]
fn suspended_by_rollout_policy() {
    let mut stage = Stage::new();
    stage.policy("pp", json!({ "placement": on(&["member1", "member2"]) }));
    stage.nginx(2);
    stage.put(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "RolloutPolicy",
        "metadata": { "name": "hold", "namespace": "default" },
        "spec": {
            "resourceSelectors": all(),
            "suspension": { "dispatchingOnClusters": { "clusterNames": ["member2"] } },
        },
    }));
    stage.check(&expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/pp claims it and still matches.
        In effect   generation 1 of PropagationPolicy default/pp, the newest
        Suspended   in member2, by RolloutPolicy default/hold
        Clusters    2 replicas in full to each cluster: member1 2, member2 2.
          member1   chosen, 2 replicas
          member2   chosen, 2 replicas; suspended
          member3   not chosen: the placement does not select it
    "#]]);
}

#[test]
fn no_cluster_fits_because_of_a_taint() {
    let mut stage = Stage::new();
    let taint = json!([{ "key": "gpu", "value": "only", "effect": "NoSchedule" }]);
    stage.cluster("member1", taint);
    stage.policy("pp", json!({}));
    stage.nginx(2);
    stage.check_onto(
        Some("member1"),
        &[],
        &expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/pp claims it and still matches.
        In effect   generation 1 of PropagationPolicy default/pp, the newest
        Clusters    Nowhere: 0/3 clusters are available: 1 cluster(s) had untolerated
                    taint {gpu=only:NoSchedule}, 2 cluster(s) did not match the
                    placement cluster affinity constraint.
          member1   not chosen: its taint gpu=only:NoSchedule is not tolerated

        To get it onto member1 you would have to
          1. remove the taint gpu:NoSchedule from the cluster, or tolerate it in the
             placement of PropagationPolicy default/pp
    "#]],
    );
    stage.check(&expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/pp claims it and still matches.
        In effect   generation 1 of PropagationPolicy default/pp, the newest
        Clusters    Nowhere: 0/3 clusters are available: 1 cluster(s) had untolerated
                    taint {gpu=only:NoSchedule}, 2 cluster(s) did not match the
                    placement cluster affinity constraint.
          member1   not chosen: its taint gpu=only:NoSchedule is not tolerated
          member2, member3
                    not chosen: the placement does not select it
    "#]]);
}

#[test]
fn a_cluster_is_excluded() {
    let mut stage = Stage::new();
    stage.policy("pp", json!({ "placement": { "clusterAffinity": { "exclude": ["member2"] } } }));
    stage.nginx(2);
    stage.check_onto(
        Some("member2"),
        &[],
        &expect![[r#"
            Deployment default/nginx

            Policy      PropagationPolicy default/pp claims it and still matches.
            In effect   generation 1 of PropagationPolicy default/pp, the newest
            Clusters    2 replicas in full to each cluster: member1 2, member3 2.
              member2   not chosen: the placement excludes it

            To get it onto member2 you would have to
              1. remove the cluster from `exclude` in the placement of PropagationPolicy
                 default/pp
        "#]],
    );
}

#[test]
fn the_template_is_excluded() {
    let mut stage = Stage::new();
    let excluded = json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx" }]);
    stage.policy("pp", json!({ "resourceSelectors": all(), "excludeResourceSelectors": excluded }));
    let other = json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" }]);
    stage.policy("web", json!({ "resourceSelectors": other }));
    stage.nginx(2);
    stage.check_onto(
        Some("member1"),
        &[],
        &expect![[r#"
            Deployment default/nginx

            Policy      No policy matches it.
              no match  PropagationPolicy default/pp excludes it
              no match  PropagationPolicy default/web selects another name
            Clusters    none: it has no binding, so nothing is propagated.

            To get it onto member1 you would have to
              1. remove it from the exclusions of PropagationPolicy default/pp, which
                 excludes it, or create a policy that selects it
        "#]],
    );
}

#[test]
fn waiting_for_a_dependent_override() {
    let mut stage = Stage::new();
    stage.policy("pp", json!({ "dependentOverrides": ["limits", "images"] }));
    stage.nginx(2);
    stage.check_onto(
        Some("member1"),
        &[],
        &expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/pp claims it and still matches.
        Waits       PropagationPolicy default/pp waits for override policies that do not
                    exist yet: limits, images.
        Clusters    none: it has no binding, so nothing is propagated.

        To get it onto member1 you would have to
          1. create the override policies that its policy waits for: limits, images
    "#]],
    );
}

#[test]
fn overrides_and_what_members_say() {
    let mut stage = Stage::new();
    stage.policy("pp", json!({ "placement": on(&["member1", "member2"]) }));
    stage.nginx(2);
    stage.put(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
        "metadata": { "name": "images", "namespace": "default" },
        "spec": { "overrideRules": [{
            "targetCluster": { "clusterNames": ["member2"] },
            "overriders": { "plaintext": [{ "path": "/spec/paused", "operator": "add", "value": true }] },
        }] },
    }));
    let work = |cluster: &str, applied: &str, message: &str, health: &str| -> Work {
        let metadata = json!({ "name": "nginx-1", "namespace": format!("karmada-es-{cluster}") });
        let identifier =
            json!({ "ordinal": 0, "version": "v1", "kind": "Deployment", "resource": "", "name": "nginx" });
        let applied = json!({ "type": "Applied", "status": applied, "reason": "", "message": message });
        let status = json!({
            "conditions": [applied],
            "manifestStatuses": [{ "identifier": identifier, "health": health }],
        });
        serde_json::from_value(json!({ "metadata": metadata, "spec": {}, "status": status })).expect("a Work")
    };
    let refused = "resource(kind=Deployment, default/nginx) already exists in the cluster and is not managed";
    let works = [work("member1", "True", "", "Healthy"), work("member2", "False", refused, "Unknown")];
    stage.check_onto(
        None,
        &works,
        &expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/pp claims it and still matches.
        In effect   generation 1 of PropagationPolicy default/pp, the newest
        Clusters    2 replicas in full to each cluster: member1 2, member2 2.
          member1   chosen, 2 replicas; applied, healthy
          member2   chosen, 2 replicas; changed by OverridePolicy default/images; not
                    applied (resource(kind=Deployment, default/nginx) already exists in
                    the cluster and is not managed)
          member3   not chosen: the placement does not select it
    "#]],
    );
}

#[test]
fn hundreds_of_clusters_still_fit_on_a_screen() {
    let mut stage = Stage::new();
    for number in 4..300 {
        stage.cluster(&format!("member{number}"), json!([]));
    }
    stage.policy("pp", json!({}));
    stage.nginx(2);
    stage.check(&expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/pp claims it and still matches.
        In effect   generation 1 of PropagationPolicy default/pp, the newest
        Clusters    2 replicas in full to each cluster: member1 2.
          member1   chosen, 2 replicas
          member10, member100, member101, member102, member103 and 293 more
                    not chosen: the placement does not select it
    "#]]);
}

#[test]
fn no_policy_selects_it() {
    let mut stage = Stage::new();
    stage.nginx(2);
    stage.check_onto(
        Some("member9"),
        &[],
        &expect![[r#"
        Deployment default/nginx

        Policy      No policy matches it.
        Clusters    none: it has no binding, so nothing is propagated.

        To get it onto member9 you would have to
          1. join the cluster: no Cluster has that name
    "#]],
    );
    stage.check_onto(
        Some("member1"),
        &[],
        &expect![[r#"
        Deployment default/nginx

        Policy      No policy matches it.
        Clusters    none: it has no binding, so nothing is propagated.

        To get it onto member1 you would have to
          1. create a policy that selects it
    "#]],
    );
}

#[test]
fn hundreds_of_clusters_and_policies_fit_on_a_screen() {
    let mut stage = Stage::new();
    let names: Vec<String> = (0..200).map(|number| format!("cluster-{number:03}")).collect();
    names.iter().for_each(|name| stage.cluster(name, json!([])));
    let chosen: Vec<&str> = names.iter().take(150).map(String::as_str).collect();
    for number in 0..30 {
        stage.policy(&format!("pp-{number:02}"), json!({ "placement": on(&chosen), "priority": number }));
    }
    stage.nginx(1);
    stage.check(&expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/pp-29 claims it and still matches.
          lost      PropagationPolicy default/pp-28: its priority 28 is lower than 29
          lost      PropagationPolicy default/pp-27: its priority 27 is lower than 29
          lost      PropagationPolicy default/pp-26: its priority 26 is lower than 29
          lost      PropagationPolicy default/pp-25: its priority 25 is lower than 29
          lost      PropagationPolicy default/pp-24: its priority 24 is lower than 29
          lost      PropagationPolicy default/pp-23: its priority 23 is lower than 29
          lost      PropagationPolicy default/pp-22: its priority 22 is lower than 29
          lost      PropagationPolicy default/pp-21: its priority 21 is lower than 29
                    and 21 more (-o yaml names them)
        In effect   generation 1 of PropagationPolicy default/pp-29, the newest
        Clusters    1 replica in full to each cluster: cluster-000 1, cluster-001 1,
                    cluster-002 1, cluster-003 1, cluster-004 1, cluster-005 1,
                    cluster-006 1, cluster-007 1, cluster-008 1, cluster-009 1 and 140
                    more.
          cluster-000, cluster-001, cluster-002, cluster-003, cluster-004 and 145 more
                    chosen, 1 replica
          cluster-150, cluster-151, cluster-152, cluster-153, cluster-154 and 48 more
                    not chosen: the placement does not select it
    "#]]);
}
