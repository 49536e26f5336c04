//! Each kind of answer, as it is printed into a pipe of 80 columns.

use api::Work;
use decide::Gates;
use expect_test::{Expect, expect};
use serde_json::json;

use super::{shown, story};
use crate::stage::{Stage, all, nginx, on};
use crate::terminal_text::Paint;

mod placed;
mod unknown;

impl Stage {
    #[track_caller]
    fn check(&self, expected: &Expect) {
        self.check_onto(None, &[], expected);
    }

    #[track_caller]
    fn check_onto(&self, cluster: Option<&str>, works: &[Work], expected: &Expect) {
        let story = story(&self.snapshot, &nginx(), cluster, works).expect("the template is there");
        let read: decide::why::Why =
            serde_json::from_value(json!(story.why)).expect("what was written can be read");
        assert_eq!(read, story.why, "the control plane's answer says the same as one that is computed here");
        let text = shown::shown(&story, Paint::NONE);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "too wide:\n{text}");
        expected.assert_eq(&text);
    }
}

#[test]
fn won_by_priority() {
    let mut stage = Stage::new();
    stage.policy("a-low", json!({ "priority": 2 }));
    stage.policy("high", json!({ "priority": 5 }));
    stage.nginx(2);
    stage.check(&expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/high claims it and still matches.
          lost      PropagationPolicy default/a-low: its priority 2 is lower than 5
        In effect   generation 1 of PropagationPolicy default/high, the newest
        Clusters    2 replicas in full to each cluster: member1 2.
          member1   chosen, 2 replicas
          member2, member3
                    not chosen: the placement does not select it
    "#]]);
}

#[test]
fn won_by_specificity() {
    let mut stage = Stage::new();
    stage.policy("a-all", json!({ "resourceSelectors": all() }));
    stage.policy("by-name", json!({}));
    stage.nginx(2);
    stage.check(&expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/by-name claims it and still matches.
          lost      PropagationPolicy default/a-all: it matches by kind, which is less
                    exact than by name
        In effect   generation 1 of PropagationPolicy default/by-name, the newest
        Clusters    2 replicas in full to each cluster: member1 2.
          member1   chosen, 2 replicas
          member2, member3
                    not chosen: the placement does not select it
    "#]]);
}

#[test]
fn won_by_alphabet() {
    let mut stage = Stage::new();
    stage.policy("a", json!({}));
    stage.policy("b", json!({}));
    stage.nginx(2);
    stage.check(&expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/a claims it and still matches.
          lost      PropagationPolicy default/b: both match equally, and its name comes
                    later in the alphabet
        In effect   generation 1 of PropagationPolicy default/a, the newest
        Clusters    2 replicas in full to each cluster: member1 2.
          member1   chosen, 2 replicas
          member2, member3
                    not chosen: the placement does not select it
    "#]]);
}

#[test]
fn preempted() {
    let mut stage = Stage::new();
    stage.policy("low", json!({ "priority": 1 }));
    stage.nginx(2);
    stage.policy("meek", json!({ "priority": 9 }));
    stage.policy("bold", json!({ "priority": 5, "preemption": "Always", "placement": on(&["member2"]) }));
    stage.check(&expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/bold claims it and still matches.
                    It was taken from PropagationPolicy default/low by preemption.
          lost      PropagationPolicy default/meek: it ranks higher, but its preemption
                    is Never
          lost      PropagationPolicy default/low: its priority 1 is lower than 5
        In effect   generation 1 of PropagationPolicy default/bold, the newest
        Clusters    2 replicas in full to each cluster: member2 2.
          member1, member3
                    not chosen: the placement does not select it
          member2   chosen, 2 replicas
    "#]]);
}

#[test]
fn lazy_pending() {
    let mut stage = Stage::new();
    let lazy = |clusters: &[&str]| json!({ "activationPreference": "Lazy", "placement": on(clusters) });
    stage.policy("lazy", lazy(&["member1"]));
    stage.nginx(2);
    stage.policy_of_generation("lazy", 2, lazy(&["member1", "member2"]));
    stage.check(&expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/lazy claims it and still matches.
        In effect   generation 1 of PropagationPolicy default/lazy; the newest is 2
        Waits       PropagationPolicy default/lazy is lazy, so its generation 2 waits
                    until the template changes (L1); generation 1 stays in effect until
                    then.
                    Then: 2 replicas in full to each cluster: member1 2, member2 2.
                    Now: longshore reconcile deployment.apps/nginx -n default
        Clusters    2 replicas in full to each cluster: member1 2.
          member1   chosen, 2 replicas
          member2, member3
                    not chosen: the placement does not select it
    "#]]);
    stage.check_onto(
        Some("member2"),
        &[],
        &expect![[r#"
            Deployment default/nginx

            Policy      PropagationPolicy default/lazy claims it and still matches.
            In effect   generation 1 of PropagationPolicy default/lazy; the newest is 2
            Waits       PropagationPolicy default/lazy is lazy, so its generation 2 waits
                        until the template changes (L1); generation 1 stays in effect until
                        then.
                        Then: 2 replicas in full to each cluster: member1 2, member2 2.
                        Now: longshore reconcile deployment.apps/nginx -n default
            Clusters    2 replicas in full to each cluster: member1 2.
              member2   not chosen: the placement does not select it

            To get it onto member2 you would have to
              1. change the template or reconcile it, so that PropagationPolicy default/lazy
                 takes effect
        "#]],
    );
    stage.check_onto(
        Some("member3"),
        &[],
        &expect![[r#"
            Deployment default/nginx

            Policy      PropagationPolicy default/lazy claims it and still matches.
            In effect   generation 1 of PropagationPolicy default/lazy; the newest is 2
            Waits       PropagationPolicy default/lazy is lazy, so its generation 2 waits
                        until the template changes (L1); generation 1 stays in effect until
                        then.
                        Then: 2 replicas in full to each cluster: member1 2, member2 2.
                        Now: longshore reconcile deployment.apps/nginx -n default
            Clusters    2 replicas in full to each cluster: member1 2.
              member3   not chosen: the placement does not select it

            To get it onto member3 you would have to
              1. let the placement of PropagationPolicy default/lazy select the cluster
              2. change the template or reconcile it, so that PropagationPolicy default/lazy
                 takes effect
        "#]],
    );
    stage.nginx(3);
    stage.check(&expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/lazy claims it and still matches.
        In effect   generation 2 of PropagationPolicy default/lazy, the newest
        Clusters    3 replicas in full to each cluster: member1 3, member2 3.
          member1   chosen, 3 replicas
          member2   chosen, 3 replicas
          member3   not chosen: the placement does not select it
    "#]]);
}

#[test]
fn lazy_pending_from_the_beginning() {
    let mut stage = Stage::new();
    stage.nginx(2);
    stage.policy("lazy", json!({ "activationPreference": "Lazy" }));
    stage.check(&expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/lazy claims it and still matches.
        Waits       PropagationPolicy default/lazy is lazy, so its generation 1 waits
                    until the template changes (L1); nothing is propagated until then.
                    Then: 2 replicas in full to each cluster: member1 2.
                    Now: longshore reconcile deployment.apps/nginx -n default
        Clusters    none: it has no binding, so nothing is propagated.
    "#]]);
}

#[test]
fn static_pending() {
    let mut stage = Stage::new();
    stage.snapshot.gates = Gates { static_policy: true, ..Gates::default() };
    stage.policy("static", json!({}));
    stage.nginx(2);
    stage.policy("better", json!({ "priority": 5, "placement": on(&["member2"]) }));
    stage.policy_of_generation("static", 2, json!({ "placement": on(&["member3"]) }));
    stage.check(&expect![[r#"
        Deployment default/nginx

        Policy      PropagationPolicy default/static claims it and still matches.
          lost      PropagationPolicy default/better: it ranks higher, but static
                    policies choose anew only when the template changes (S2)
        In effect   generation 1 of PropagationPolicy default/static; the newest is 2
        Waits       Policies are static, so generation 2 of PropagationPolicy
                    default/static waits until the template changes (S2); generation 1
                    stays in effect until then.
                    Then, by PropagationPolicy default/better: 2 replicas in full to
                    each cluster: member2 2.
        Clusters    2 replicas in full to each cluster: member1 2.
          member1   chosen, 2 replicas
          member2, member3
                    not chosen: the placement does not select it
    "#]]);
}

#[test]
fn static_waiting_for_a_policy() {
    let mut stage = Stage::new();
    stage.snapshot.gates = Gates { static_policy: true, ..Gates::default() };
    stage.policy("static", json!({}));
    stage.nginx(2);
    stage.delete("PropagationPolicy", "static");
    stage.check(&expect![[r#"
        Deployment default/nginx

        Policy      Its policy released it, and static policies wait until it changes
                    (S4).
        In effect   generation 1 of a deleted policy (uid uid-of-static)
        Orphaned    No policy claims the template, so what runs stays as it is (R2).
        Clusters    Not scheduled, because no policy claims the binding, so it stays
                    where it is.
          member1   chosen, 2 replicas
          member2, member3
                    not chosen
    "#]]);
    stage.nginx(3);
    stage.check_onto(
        Some("member1"),
        &[],
        &expect![[r#"
            Deployment default/nginx

            Policy      No policy matches it.
            In effect   generation 1 of a deleted policy (uid uid-of-static); the template
                        was changed since
            Waits       It was changed while no policy matched it: the next policy that
                        matches acts at once (S3).
            Frozen      What members have stays as it is, because the template was changed
                        and no policy has taken the change over.
            Clusters    Not scheduled, because no policy claims the binding, so it stays
                        where it is.
              member1   chosen, 2 replicas

            To get it onto member1 you would have to
              1. create a policy that selects it
        "#]],
    );
}

#[test]
fn frozen() {
    let mut stage = Stage::new();
    stage.policy("gone", json!({}));
    stage.nginx(2);
    stage.delete("PropagationPolicy", "gone");
    stage.nginx(5);
    stage.check(&expect![[r#"
        Deployment default/nginx

        Policy      No policy matches it.
        In effect   generation 1 of a deleted policy (uid uid-of-gone); the template was
                    changed since
        Orphaned    No policy claims the template, so what runs stays as it is (R2).
        Frozen      What members have stays as it is, because the template was changed
                    and no policy has taken the change over.
        Clusters    Not scheduled, because no policy claims the binding, so it stays
                    where it is.
          member1   chosen, 2 replicas
          member2, member3
                    not chosen
    "#]]);
}
