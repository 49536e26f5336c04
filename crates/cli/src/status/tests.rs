//! What the state of a system looks like in a pipe and on 80 columns, small and with hundreds of rows.

use std::sync::Arc;

use expect_test::{Expect, expect};
use plane::reports::report;
use serde_json::json;

use super::shown::shown;
use crate::stage::{Stage, all, on};
use crate::terminal_text::Paint;

#[track_caller]
fn check(stage: &Stage, all: bool, expected: &Expect) {
    let report = report(&stage.snapshot, "longshore".to_owned(), vec!["StaticPolicy=true".to_owned()]);
    let text = shown(&report, all, Paint::NONE);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "too wide:\n{text}");
    expected.assert_eq(&text);
}

#[test]
fn an_empty_system() {
    check(
        &Stage::default(),
        false,
        &expect![[r#"
        Control plane: context longshore, feature gates StaticPolicy=true

        No cluster has joined.

        There is no policy.

        Nothing is stuck.
    "#]],
    );
}

#[test]
fn a_small_system_is_shown_whole() {
    let mut stage = Stage::new();
    stage.cluster("member3", json!([{ "key": "gpu", "value": "only", "effect": "NoSchedule" }]));
    stage.policy("web", json!({ "placement": on(&["member3"]), "priority": 7 }));
    stage.policy("lazy", json!({ "activationPreference": "Lazy", "resourceSelectors": all() }));
    stage.nginx(2);
    check(
        &stage,
        false,
        &expect![[r#"
            Control plane: context longshore, feature gates StaticPolicy=true

            CLUSTER   READY   VERSION   TAINTS
            member1   True    v1.35.4   <none>
            member2   True    v1.35.4   <none>
            member3   True    v1.35.4   gpu=only:NoSchedule

            KIND   POLICY         ACTIVATION   PRIORITY   CLAIMED   PENDING   SUSPENDED
            pp     default/lazy   Lazy         0          0         0         0
            pp     default/web    <none>       7          1         0         0

            Nothing is stuck.
        "#]],
    );
}

fn crowded() -> Stage {
    let mut stage = Stage::default();
    for number in 0..200 {
        let taint = json!([{ "key": "gpu", "value": "only", "effect": "NoSchedule" }]);
        let taints = if number % 80 == 7 { taint } else { json!([]) };
        let ready = if number % 90 == 80 { "False" } else { "True" };
        stage.cluster_that_is(ready, &format!("member{number:03}"), taints);
    }
    for number in 0..100 {
        let selector =
            json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": format!("web-{number:04}") });
        let suspension = if number % 50 == 3 { json!({ "dispatching": true }) } else { json!(null) };
        stage.policy(
            &format!("policy{number:03}"),
            json!({ "resourceSelectors": [selector], "placement": on(&["member000"]), "suspension": suspension }),
        );
    }
    stage.crowd(100);
    let failed = json!({
        "clusterName": "member000", "applied": false,
        "appliedMessage": "the object was there before, and the policy says conflictResolution: Abort",
    });
    for binding in Arc::make_mut(&mut stage.snapshot.bindings).values_mut() {
        let item = serde_json::from_value(failed.clone()).expect("a member's answer");
        Arc::make_mut(binding).status.aggregated_status.push(item);
    }
    stage
}

#[test]
fn of_a_large_system_the_numbers_are_shown_and_what_is_striking() {
    check(
        &crowded(),
        false,
        &expect![[r#"
            Control plane: context longshore, feature gates StaticPolicy=true

            200 clusters, of which 2 are not ready and 3 have taints; `longshore status
            --all` shows each.
            CLUSTER     READY                              VERSION   TAINTS
            member007   True                               v1.35.4   gpu=only:NoSchedule
            member080   False since 2026-01-01T07:30:00Z   v1.35.4   <none>
            member087   True                               v1.35.4   gpu=only:NoSchedule
            member167   True                               v1.35.4   gpu=only:NoSchedule
            member170   False since 2026-01-01T07:30:00Z   v1.35.4   <none>

            100 policies claim 100 templates, of which 0 are pending and 2 suspended;
            `longshore status --all` shows each.
            KIND   POLICY              ACTIVATION   PRIORITY   CLAIMED   PENDING   SUSPENDED
            pp     default/policy003   <none>       0          1         0         1
            pp     default/policy053   <none>       0          1         0         1

            Stuck:
              100 templates: not applied in member000: the object was there before, and the
              policy says conflictResolution: Abort
                Deployment default/web-0000, Deployment default/web-0001, Deployment
                default/web-0002, Deployment default/web-0003, Deployment default/web-0004,
                Deployment default/web-0005 and 94 more
            `longshore why KIND/NAME` explains each.
        "#]],
    );
}

#[test]
fn all_of_it_is_shown_to_who_wants_it() {
    let report = report(&crowded().snapshot, "longshore".to_owned(), Vec::new());
    let text = shown(&report, true, Paint::NONE);
    assert_eq!(text.lines().filter(|line| line.starts_with("member")).count(), 200);
    assert_eq!(text.lines().filter(|line| line.starts_with("pp ")).count(), 100);
    assert_eq!(text.matches("default/web-").count(), 100);
    assert!(!text.contains(" more;") && !text.lines().any(|line| line.starts_with("and ")), "{text}");
}

#[test]
fn what_is_not_known_is_called_unknown() {
    let mut stage = Stage::new();
    stage.policy("web", json!({ "placement": on(&["member1", "member2"]), "resourceSelectors": all() }));
    stage.nginx(2);
    stage.crowd(1);
    stage.cluster_that_is("False", "member1", json!([]));
    for binding in Arc::make_mut(&mut stage.snapshot.bindings).values_mut() {
        let item = json!({ "clusterName": "member1", "applied": true, "health": "Unhealthy" });
        let item = serde_json::from_value(item).expect("a member's answer");
        Arc::make_mut(binding).status.aggregated_status.push(item);
    }
    check(
        &stage,
        false,
        &expect![[r#"
        Control plane: context longshore, feature gates StaticPolicy=true

        CLUSTER   READY                              VERSION   TAINTS
        member1   False since 2026-01-01T07:30:00Z   v1.35.4   <none>
        member2   True                               v1.35.4   <none>
        member3   True                               v1.35.4   <none>

        KIND   POLICY        ACTIVATION   PRIORITY   CLAIMED   PENDING   SUSPENDED
        pp     default/web   <none>       0          2         0         0

        Unknown:
          2 templates in member1: unknown since 2026-01-01T07:30:00Z: cluster is not
          reachable
            Deployment default/nginx, Deployment default/web-0000

        As far as is known, nothing is stuck.
    "#]],
    );
    let document =
        serde_json::to_value(report(&stage.snapshot, "longshore".to_owned(), Vec::new())).expect("JSON");
    let expected = json!([{
        "cluster": "member1", "since": "2026-01-01T07:30:00Z", "because": "cluster is not reachable",
        "templates": ["Deployment default/nginx", "Deployment default/web-0000"],
    }]);
    assert_eq!(document["unknown"], expected);
    assert_eq!(document["clusters"][0]["since"], "2026-01-01T07:30:00Z");
}

#[test]
fn s4_what_runs_without_a_policy_is_shown() {
    let mut stage = Stage::new();
    stage.snapshot.gates = decide::Gates { static_policy: true, ..decide::Gates::default() };
    stage.policy("web", json!({ "resourceSelectors": all() }));
    stage.nginx(2);
    stage.crowd(1);
    stage.policy("other", json!({}));
    stage.delete("PropagationPolicy", "web");
    check(
        &stage,
        false,
        &expect![[r#"
            Control plane: context longshore, feature gates StaticPolicy=true

            CLUSTER   READY   VERSION   TAINTS
            member1   True    v1.35.4   <none>
            member2   True    v1.35.4   <none>
            member3   True    v1.35.4   <none>

            KIND   POLICY          ACTIVATION   PRIORITY   CLAIMED   PENDING   SUSPENDED
            pp     default/other   <none>       0          0         0         0

            Orphaned: no policy claims these templates; their copies stay as they are.
              1 template: a policy matches; it acts after the next change or `longshore
              reconcile`
                Deployment default/nginx
              1 template: no policy matches
                Deployment default/web-0000

            Nothing is stuck.
        "#]],
    );
    let document =
        serde_json::to_value(report(&stage.snapshot, "longshore".to_owned(), Vec::new())).expect("JSON");
    assert_eq!(document["orphaned"][0]["template"]["name"], "nginx");
    assert_eq!(document["orphaned"][0]["wouldFollow"], json!({ "namespace": "default", "name": "other" }));
    assert_eq!(document["orphaned"][1]["clusters"], json!(["member1"]));
}

#[test]
fn m5_a_binding_that_admission_refuses_to_change_is_stuck() {
    let mut stage = Stage::new();
    stage.policy("web", json!({}));
    stage.nginx(2);
    for binding in Arc::make_mut(&mut stage.snapshot.bindings).values_mut() {
        let (key, list) = (api::annotations::DEPENDENCIES.to_owned(), "{".to_owned());
        Arc::make_mut(binding).metadata.annotations.insert(key, list);
    }
    let report = report(&stage.snapshot, "longshore".to_owned(), Vec::new());
    let [stuck] = report.stuck.as_slice() else { panic!("{:?}", report.stuck) };
    assert_eq!(stuck.what, "Deployment default/nginx");
    assert!(stuck.why.starts_with("its binding cannot be changed: metadata.annotations["), "{}", stuck.why);
    assert!(stuck.why.contains("is no JSON list of references"), "{}", stuck.why);
}
