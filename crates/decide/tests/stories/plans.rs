//! The output of `plan` and `why`.

use std::sync::Arc;

use decide::plan::{Plan, plan};
use decide::policy_status::template_counts;
use decide::snapshot::{Change, Interpreters};
use decide::why::why;
use decide::{PolicyKey, TemplateKey};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::story::{Story, Way};
use crate::words;

fn after(steps: &str) -> Story {
    let mut story = Story::new(Way::Plain);
    steps.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(|line| story.step(line));
    story.tick();
    story
}

fn put(story: &Story, line: &str) -> Change {
    let parts: Vec<&str> = line.split_whitespace().collect();
    let object = match parts[0] {
        "policy" => serde_json::to_value(story.stored(words::policy("default", &parts[1..]))),
        "cluster-policy" => serde_json::to_value(story.stored(words::policy("", &parts[1..]))),
        "rollout" => serde_json::to_value(words::rollout(&parts[1..])),
        _ => panic!("no such change: {line}"),
    };
    Change::Put(Arc::new(object.expect("it is JSON")))
}

fn delete(kind: &str, namespace: &str, name: &str) -> Change {
    let api_version = if kind == "Deployment" { "apps/v1" } else { "policy.karmada.io/v1alpha1" };
    Change::Delete {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: namespace.into(),
        name: name.into(),
    }
}

fn check(story: &Story, changes: &[Change], expected: Expect) -> Plan {
    let planned = plan(&story.snapshot, changes, Interpreters::BUILT_IN).expect("the changes can be read");
    expected.assert_eq(&planned.to_string());
    planned
}

#[test]
fn a_new_policy_takes_a_team_from_the_default() {
    let story = after(
        "cluster-policy cpp-default selects all on m1,m2
         deployment user1-a/nginx replicas 2
         deployment user2-a/nginx replicas 2",
    );
    let change = put(&story, "cluster-policy cpp-custom selects all in user1-* on m2,m3 priority 3 always");
    check(
        &story,
        &[change],
        expect![[r#"
        Deployment user1-a/nginx: taken from ClusterPropagationPolicy cpp-default by ClusterPropagationPolicy cpp-custom
          m1: delete with 2 replicas, after it is applied in m3
          m3: create with 2 replicas
          because ClusterPropagationPolicy cpp-custom takes it from ClusterPropagationPolicy cpp-default: priority 3 is higher than 0 (P2); the policy acts at once
        Plan: 1 template, 1 preempted, 1 moved, 1 to create, 1 to delete."#]],
    );
}

#[test]
fn a_lazy_edit_waits_and_says_so() {
    let story = after("policy pp selects nginx on m1 lazy\n deployment nginx");
    let planned = check(
        &story,
        &[put(&story, "policy pp selects nginx on m2 lazy")],
        expect![[r#"
        Deployment default/nginx
          waits: PropagationPolicy default/pp is lazy, so its generation 2 waits until the template changes (L1); generation 1 stays in effect until then
        Plan: 1 template, 1 waiting."#]],
    );
    assert_eq!(planned.totals.held, 1);
    let at_once = check(
        &story,
        &[put(&story, "policy pp selects nginx on m2")],
        expect![[r#"
        Deployment default/nginx
          m1: delete with 1 replicas, after it is applied in m2
          m2: create with 1 replicas
          because PropagationPolicy default/pp claims it and still matches; the policy acts at once
        Plan: 1 template, 1 moved, 1 to create, 1 to delete."#]],
    );
    assert_eq!(at_once.totals.moved, 1);
}

#[test]
fn deleting_a_policy_releases_and_deleting_a_template_deletes() {
    let story = after("policy pp selects nginx on m1\n deployment nginx replicas 3");
    check(
        &story,
        &[delete("PropagationPolicy", "default", "pp")],
        expect![[r#"
        Deployment default/nginx: released by PropagationPolicy default/pp
          because no policy matches it; no policy claims the template, so what runs stays as it is (R2)
        Plan: 1 template, 1 released."#]],
    );
    check(
        &story,
        &[delete("Deployment", "default", "nginx")],
        expect![[r#"
        Deployment default/nginx: released by PropagationPolicy default/pp
          m1: delete with 3 replicas
          because the template is deleted
        Plan: 1 template, 1 released, 1 to delete."#]],
    );
}

#[test]
fn a_brake_and_two_changes_made_together() {
    let story = after("policy pp selects nginx on m1,m2\n deployment nginx");
    check(
        &story,
        &[put(&story, "rollout rp selects nginx suspend m2")],
        expect![[r#"
        Deployment default/nginx
          m2: suspend
          because PropagationPolicy default/pp claims it and still matches; the policy acts at once
        Plan: 1 template, 1 to suspend."#]],
    );
    let together =
        [put(&story, "rollout rp selects nginx suspend m3"), put(&story, "policy pp selects nginx on m1,m3")];
    check(
        &story,
        &together,
        expect![[r#"
        Deployment default/nginx
          m2: delete with 1 replicas, after it is applied in m3 (held: m3 is suspended or not ready)
          m3: create with 1 replicas (suspended: not before it is resumed)
          because PropagationPolicy default/pp claims it and still matches; the policy acts at once
        Plan: 1 template, 1 moved, 1 to create, 1 to delete."#]],
    );
    check(&story, &[put(&story, "policy pp selects nginx on m1,m2")], expect!["Plan: nothing changes."]);
}

/// Members receive what overrides make of a template.
#[test]
fn an_override_updates_what_it_changes() {
    let story = after("policy pp selects nginx on m1\n deployment nginx");
    let override_of = |paused: bool| {
        let object = json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
            "metadata": {"name": "op", "namespace": "default"},
            "spec": {"overrideRules": [{"overriders": {"plaintext": [{"path": "/spec/paused", "operator": "add", "value": paused}]}}]},
        });
        Change::Put(Arc::new(object))
    };
    let changed = plan(&story.snapshot, &[override_of(true)], Interpreters::BUILT_IN).expect("readable");
    assert_eq!((changed.totals.updated, changed.totals.templates), (1, 1));
    let mut snapshot = story.snapshot.clone();
    snapshot.apply(&override_of(true)).expect("readable");
    let again = plan(&snapshot, &[override_of(true)], Interpreters::BUILT_IN).expect("readable");
    assert!(again.is_empty(), "the same override again is no news");
    let other = plan(&snapshot, &[override_of(false)], Interpreters::BUILT_IN).expect("readable");
    assert_eq!(other.totals.updated, 1);
}

#[test]
fn a_change_that_cannot_be_read_is_an_error() {
    let story = after("");
    let broken = Change::Put(Arc::new(
        json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "spec": 7}),
    ));
    let error = plan(&story.snapshot, &[broken], Interpreters::BUILT_IN).expect_err("no policy").to_string();
    assert!(error.starts_with("read PropagationPolicy ?:"), "{error}");
}

fn nginx() -> TemplateKey {
    words::template_key("nginx").expect("a template")
}

#[test]
fn why_tells_everything_about_a_template() {
    let story = after(
        "policy pp1 selects nginx on m1 lazy suspend m1
         deployment nginx
         policy pp2 selects other on m2
         policy pp3 selects all on m3 leaves-out nginx
         policy-in elsewhere pp4 selects all on m4
         policy pp5 selects app=web on m4
         cluster-policy cpp selects nginx on m5 priority 9 always
         policy pp1 selects nginx on m2 lazy suspend m1",
    );
    let answer = why(&story.snapshot, &nginx(), Interpreters::BUILT_IN).expect("there is one");
    expect![
        "Deployment default/nginx: PropagationPolicy default/pp1 claims it and still matches; \
         PropagationPolicy default/pp1 is lazy, so its generation 2 waits until the template changes \
         (L1); generation 1 stays in effect until then; nothing is written to m1 while it is suspended. \
         Scheduled because the placement changed: 1 replica in full to each cluster: m1 1."
    ]
    .assert_eq(&answer.to_string());
    let bystanders: Vec<String> = answer.bystanders.iter().map(ToString::to_string).collect();
    expect![[r#"
        PropagationPolicy default/pp2 selects another name
        PropagationPolicy default/pp3 excludes it
        PropagationPolicy default/pp5 selects other labels
        PropagationPolicy elsewhere/pp4 selects other namespaces"#]]
    .assert_eq(&bystanders.join("\n"));
    let json = serde_json::to_value(&answer).expect("JSON");
    assert_eq!(json["claim"]["blocked"], Value::Null);
    assert_eq!(json["activation"]["why"]["reason"], "lazy");
    assert_eq!(json["activation"]["why"]["follows"]["itself"]["generation"], 1);
}

#[test]
fn the_counts_of_a_policy() {
    let story = after(
        "policy pp1 selects all on m1 lazy
         deployment nginx
         deployment other
         policy pp1 selects all on m2 lazy suspend m9
         edit other
         policy pp2 selects other on m3 priority 1 always",
    );
    let counts = |name: &str| {
        let key = PolicyKey { namespace: "default".into(), name: name.into() };
        template_counts(story.snapshot.policies.get(&key).expect("there is one"), &story.snapshot)
    };
    let (first, second) = (counts("pp1"), counts("pp2"));
    assert_eq!((first.claimed, first.up_to_date, first.pending_activation), (1, 0, 1));
    assert_eq!((first.suspended, first.preempted_by, first.preempted_from), (1, 1, 0));
    assert_eq!((second.claimed, second.up_to_date, second.preempted_from), (1, 1, 1));
}
