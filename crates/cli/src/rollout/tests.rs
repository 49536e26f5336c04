//! What is shown of who follows a policy, small and with hundreds of rows.

use api::records::Past;
use expect_test::{Expect, expect};
use plane::reports::followers;
use serde_json::json;

use super::{Generation, shown};
use crate::stage::{Stage, all, on};

const PRINTED: &str = "propagationpolicy.policy.karmada.io/pp";

#[track_caller]
fn check(stage: &Stage, show_all: bool, expected: &Expect) {
    let key = decide::PolicyKey { namespace: "default".to_owned(), name: "pp".to_owned() };
    let policy = stage.snapshot.policies.get(&key).expect("it was written");
    let text = shown::followers(PRINTED, policy.generation, &followers(&stage.snapshot, policy), show_all);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "too wide:\n{text}");
    expected.assert_eq(&text);
}

fn lazy(clusters: &[&str]) -> serde_json::Value {
    json!({ "activationPreference": "Lazy", "resourceSelectors": all(), "placement": on(clusters) })
}

#[test]
fn no_template_follows() {
    let mut stage = Stage::new();
    stage.policy("pp", lazy(&["member1"]));
    check(
        &stage,
        false,
        &expect![[r#"
        propagationpolicy.policy.karmada.io/pp is at generation 1: 0 of 0 templates
        follow it.
    "#]],
    );
}

#[test]
fn whether_a_silent_cluster_has_it_is_unknown() {
    let mut stage = Stage::new();
    stage.policy("pp", lazy(&["member1"]));
    stage.nginx(1);
    stage.cluster_that_is("False", "member1", json!([]));
    check(
        &stage,
        false,
        &expect![[r#"
        propagationpolicy.policy.karmada.io/pp is at generation 1: 1 of 1 templates
        follow it.

        TEMPLATE                   FOLLOWS        STATE
        Deployment default/nginx   generation 1   up to date, unknown in member1

        member1: unknown since 2026-01-01T07:30:00Z: cluster is not reachable
    "#]],
    );
}

#[test]
fn some_follow_and_some_wait() {
    let mut stage = Stage::new();
    stage.policy("pp", lazy(&["member1"]));
    stage.crowd(2);
    let mut spec = lazy(&["member1", "member2"]);
    spec["suspension"] = json!({ "dispatchingOnClusters": { "clusterNames": ["member2"] } });
    stage.policy_of_generation("pp", 2, spec);
    stage.nginx(1);
    check(
        &stage,
        false,
        &expect![[r#"
        propagationpolicy.policy.karmada.io/pp is at generation 2: 1 of 3 templates
        follow it.

        TEMPLATE                      FOLLOWS        STATE
        Deployment default/nginx      generation 2   up to date, suspended in member2
        Deployment default/web-0000   generation 1   waits for a change of the template
        Deployment default/web-0001   generation 1   waits for a change of the template
    "#]],
    );
}

#[test]
fn of_a_thousand_those_are_shown_that_wait() {
    let mut stage = Stage::new();
    stage.policy("pp", lazy(&["member1"]));
    stage.nginx(1);
    stage.policy_of_generation("pp", 2, lazy(&["member2"]));
    stage.crowd(1_000);
    check(
        &stage,
        false,
        &expect![[r#"
        propagationpolicy.policy.karmada.io/pp is at generation 2: 1000 of 1001
        templates follow it.

        TEMPLATE                      FOLLOWS        STATE
        Deployment default/nginx      generation 1   waits for a change of the template
        Deployment default/web-0000   generation 2   up to date
        Deployment default/web-0001   generation 2   up to date
        Deployment default/web-0002   generation 2   up to date
        Deployment default/web-0003   generation 2   up to date
        Deployment default/web-0004   generation 2   up to date
        Deployment default/web-0005   generation 2   up to date
        Deployment default/web-0006   generation 2   up to date
        Deployment default/web-0007   generation 2   up to date
        Deployment default/web-0008   generation 2   up to date
        Deployment default/web-0009   generation 2   up to date
        Deployment default/web-0010   generation 2   up to date
        Deployment default/web-0011   generation 2   up to date
        Deployment default/web-0012   generation 2   up to date
        Deployment default/web-0013   generation 2   up to date
        Deployment default/web-0014   generation 2   up to date
        Deployment default/web-0015   generation 2   up to date
        Deployment default/web-0016   generation 2   up to date
        Deployment default/web-0017   generation 2   up to date
        Deployment default/web-0018   generation 2   up to date
        and 981 more; --all shows each
    "#]],
    );
}

#[test]
fn generations_are_rows() {
    let past = |generation: i64, until: Option<&str>, cause: &str, templates: usize| Generation {
        past: Past {
            generation,
            until: until.map(|until| until.parse().expect("a moment")),
            cause: cause.to_owned(),
            spec: json!({}),
        },
        templates,
    };
    let all = [
        past(1, Some("2026-01-02T03:04:05Z"), "", 0),
        past(2, Some("2026-02-03T04:05:06Z"), "CHG-12: a second site, because the first one had no power", 3),
        past(3, None, "", 12),
    ];
    expect![[r#"
        propagationpolicy.policy.karmada.io/pp
        GENERATION   UNTIL                  TEMPLATES   CHANGE-CAUSE
        1            2026-01-02T03:04:05Z   0           <none>
        2            2026-02-03T04:05:06Z   3           CHG-12: a second site, because the first one had no power
        3            now                    12          <none>
    "#]].assert_eq(&shown::history(PRINTED, &all));
}
