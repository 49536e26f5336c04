//! What plans look like in a pipe, on 80 columns: one template, many kinds of things, and hundreds of rows.

use std::sync::Arc;

use decide::activation::{Follows, HoldWhy};
use decide::plan::{Action, ClusterPlan, FieldChange, TemplatePlan, Totals};
use decide::{PolicyKey, TemplateKey};
use expect_test::{Expect, expect};

use super::*;

fn policy(name: &str) -> PolicyKey {
    PolicyKey { namespace: "default".to_owned(), name: name.to_owned() }
}

fn template(kind: &str, name: &str) -> TemplatePlan {
    TemplatePlan {
        template: Arc::new(TemplateKey {
            api_version: "apps/v1".to_owned(),
            kind: kind.to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        }),
        claim: None,
        held: None,
        clusters: Arc::default(),
        fields: Arc::default(),
        nowhere: false,
        why: "PropagationPolicy default/web claims it and still matches; the policy acts at once".into(),
    }
}

fn moves(kind: &str, name: &str, changes: &[(&str, Action, bool)]) -> TemplatePlan {
    let change = |(cluster, action, suspended): &(&str, Action, bool)| {
        ((*cluster).to_owned(), ClusterPlan::of(*action, *suspended))
    };
    TemplatePlan { clusters: Arc::new(changes.iter().map(change).collect()), ..template(kind, name) }
}

fn plan(templates: Vec<TemplatePlan>, totals: Totals) -> Plan {
    let totals = Totals { templates: templates.len(), ..totals };
    let named = |one: TemplatePlan| (one.template.to_string(), one);
    Plan { templates: templates.into_iter().map(named).collect(), totals }
}

#[track_caller]
fn check(plan: &Plan, detailed: bool, expected: Expect) {
    let text = shown(plan, &[], detailed, Paint::NONE);
    let wide = text.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "it does not fit");
    expected.assert_eq(&text);
}

#[test]
fn nothing_is_said_in_one_line() {
    check(
        &Plan::default(),
        false,
        expect![[r#"
        Plan: nothing changes.
    "#]],
    );
}

fn everything() -> Vec<TemplatePlan> {
    let create = Action::Create { replicas: 2 };
    let held = HoldWhy::Lazy { policy: policy("web"), generation: 3, follows: Follows::Nothing };
    let by = || policy("web");
    vec![
        TemplatePlan {
            claim: Some(ClaimChange::Claimed { by: by() }),
            ..moves("Deployment", "a", &[("m1", create, false), ("m2", create, false), ("m3", create, true)])
        },
        moves("Deployment", "b", &[("m1", Action::Delete { replicas: 1 }, false), ("m2", create, false)]),
        moves(
            "Deployment",
            "c",
            &[("m1", Action::Scale { from: 1, to: 4 }, false), ("m2", Action::Update, true)],
        ),
        moves("ConfigMap", "d", &[("m1", Action::Delete { replicas: 0 }, false)]),
        moves("Deployment", "e", &[("m1", Action::Suspend, true), ("m2", Action::Resume, false)]),
        TemplatePlan {
            claim: Some(ClaimChange::Preempted { from: policy("old"), by: by() }),
            held: Some(held),
            ..template("Deployment", "f")
        },
        TemplatePlan {
            claim: Some(ClaimChange::Handed { from: policy("old"), to: by() }),
            ..template("Deployment", "g")
        },
        TemplatePlan { claim: Some(ClaimChange::Released { from: by() }), ..template("Deployment", "h") },
    ]
}

#[test]
fn everything_that_can_happen_has_its_mark() {
    let totals =
        Totals { claimed: 1, handed: 1, preempted: 1, moved: 1, held: 1, created: 4, ..Totals::default() };
    check(
        &plan(everything(), totals),
        false,
        expect![[r#"
            Plan: 8 templates, 1 claimed, 1 handed over, 1 preempted, 1 moved, 1 waiting, 4
            to create.

            CLUSTER   CREATE   DELETE   SCALE   UPDATE   SUSPEND   RESUME
            m1        1        2        1       0        1         0
            m2        2        0        0       1        0         1
            m3        1        0        0       0        0         0

            - ConfigMap shop/d
                - m1: delete
                  because PropagationPolicy default/web claims it and still matches; the
                  policy acts at once

            + Deployment shop/a
                = claimed by PropagationPolicy default/web
                + m1, m2: create with 2 replicas
                ! m3: create with 2 replicas, held back until it is resumed
                  because PropagationPolicy default/web claims it and still matches; the
                  policy acts at once

            ~ Deployment shop/b
                + m2: create with 2 replicas
                - m1: then delete with 1 replica
                  because PropagationPolicy default/web claims it and still matches; the
                  policy acts at once

            ~ Deployment shop/c
                ~ m1: scale from 1 to 4 replicas
                ! m2: update, held back until it is resumed
                  because PropagationPolicy default/web claims it and still matches; the
                  policy acts at once

            ~ Deployment shop/e
                ~ m2: resume
                ! m1: suspend
                  because PropagationPolicy default/web claims it and still matches; the
                  policy acts at once

            ! Deployment shop/f
                ! taken from PropagationPolicy default/old by PropagationPolicy default/web
                ! waits: PropagationPolicy default/web is lazy, so its generation 3 waits
                  until the template changes (L1); nothing is propagated until then

            = Deployment shop/g
                = handed from PropagationPolicy default/old to PropagationPolicy default/web
                  because PropagationPolicy default/web claims it and still matches; the
                  policy acts at once

            = Deployment shop/h
                = released by PropagationPolicy default/web
                  because PropagationPolicy default/web claims it and still matches; the
                  policy acts at once
        "#]],
    );
}

fn many() -> Plan {
    let clusters: Vec<String> = (1..=30).map(|number| format!("cluster-{number:02}")).collect();
    let changes: Vec<(&str, Action, bool)> =
        clusters.iter().map(|cluster| (cluster.as_str(), Action::Create { replicas: 1 }, false)).collect();
    let web = (0..400).map(|number| moves("Deployment", &format!("web-{number:03}"), &changes));
    let old = (0..3).map(|number| moves("Job", &format!("old-{number}"), &[("m1", Action::Update, false)]));
    let templates: Vec<TemplatePlan> = web.chain(old).collect();
    plan(templates, Totals { created: 12_000, updated: 3, ..Totals::default() })
}

#[test]
fn hundreds_to_which_the_same_happens_are_one_block() {
    check(
        &many(),
        false,
        expect![[r#"
            Plan: 403 templates, 12000 to create, 3 to update.

            CLUSTER      CREATE   UPDATE
            cluster-01   400      0
            cluster-02   400      0
            cluster-03   400      0
            cluster-04   400      0
            cluster-05   400      0
            cluster-06   400      0
            cluster-07   400      0
            cluster-08   400      0
            cluster-09   400      0
            cluster-10   400      0
            cluster-11   400      0
            cluster-12   400      0
            and 19 more; -o json has each

            + 400 × Deployment: shop/web-000, shop/web-001, shop/web-002, shop/web-003,
              shop/web-004, shop/web-005 and 394 more
                + cluster-01, cluster-02, cluster-03, cluster-04, cluster-05, cluster-06 and
                  24 more: create with 1 replica
                  because PropagationPolicy default/web claims it and still matches; the
                  policy acts at once

            ~ 3 × Job: shop/old-0, shop/old-1, shop/old-2
                ~ m1: update
                  because PropagationPolicy default/web claims it and still matches; the
                  policy acts at once
        "#]],
    );
}

#[test]
fn in_detail_each_is_shown() {
    let text = shown(&many(), &[], true, Paint::NONE);
    assert!(text.lines().filter(|line| line.starts_with("+ Deployment shop/web-")).count() == 400);
    assert!(text.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn hundreds_to_which_different_things_happen_are_not_all_shown() {
    let scale = Action::Scale { from: 1, to: 2 };
    let templates = (0..1_000).map(|number| {
        moves("Deployment", &format!("web-{number:03}"), &[(&format!("m{number:03}"), scale, false)])
    });
    let plan = plan(templates.collect(), Totals { scaled: 1_000, ..Totals::default() });
    let text = shown(&plan, &[], false, Paint::NONE);
    assert_eq!(text.lines().filter(|line| line.starts_with("~ ")).count(), GROUPS_MAX);
    let end = text.lines().rev().take(5).collect::<Vec<_>>();
    expect![[r#"
        and 970 more templates; --detailed shows each

              policy acts at once
              because PropagationPolicy default/web claims it and still matches; the
            ~ m029: scale from 1 to 2 replicas"#]]
    .assert_eq(&end.join("\n"));
}

#[test]
fn what_else_there_is_to_say_comes_last() {
    let notes =
        ["Templates that it selects belong to other policies: ClusterPropagationPolicy usual (12)."
            .to_owned()];
    expect![[r#"
        Plan: nothing changes.

        Note: Templates that it selects belong to other policies:
              ClusterPropagationPolicy usual (12).
    "#]]
    .assert_eq(&shown(&Plan::default(), &notes, false, Paint::NONE));
}

#[test]
fn replicas_do_not_keep_templates_apart_and_what_replaces_comes_first() {
    let moved = |name: &str, replicas: i32| {
        let (create, delete) = (Action::Create { replicas }, Action::Delete { replicas });
        moves("Deployment", name, &[("m1", delete, false), ("m2", create, false)])
    };
    let scaled = |name: &str, from: i32| {
        moves("Deployment", name, &[("m1", Action::Scale { from, to: 2 * from }, false)])
    };
    let templates = vec![moved("a", 1), moved("b", 2), moved("c", 3), scaled("d", 1), scaled("e", 4)];
    let totals = Totals { moved: 3, created: 3, deleted: 3, scaled: 2, ..Totals::default() };
    check(
        &plan(templates, totals),
        false,
        expect![[r#"
        Plan: 5 templates, 3 moved, 3 to create, 3 to delete, 2 to scale.

        CLUSTER   CREATE   DELETE   SCALE
        m1        0        3        2
        m2        3        0        0

        ~ 3 × Deployment: shop/a, shop/b, shop/c
            + m2: create with 1..3 replicas
            - m1: then delete with 1..3 replicas
              because PropagationPolicy default/web claims it and still matches; the
              policy acts at once

        ~ 2 × Deployment: shop/d, shop/e
            ~ m1: scale from 1..4 to 2..8 replicas
              because PropagationPolicy default/web claims it and still matches; the
              policy acts at once
    "#]],
    );
}

#[test]
fn fields_that_an_update_changes_are_shown() {
    let change = |number: usize| FieldChange {
        path: format!("spec.template.spec.containers[web].env[v{number}].value"),
        from: Some("\"old\"".to_owned()),
        to: Some("\"new\"".to_owned()),
    };
    let updated = |name: &str, fields: usize| TemplatePlan {
        fields: Arc::new((0..fields).map(change).collect()),
        ..moves("Deployment", name, &[("m1", Action::Update, false)])
    };
    let templates = vec![updated("a", 1), updated("b", 1), updated("c", 7)];
    let plan = plan(templates, Totals { updated: 3, ..Totals::default() });
    check(
        &plan,
        false,
        expect![[r#"
        Plan: 3 templates, 3 to update.

        ~ 2 × Deployment: shop/a, shop/b
            ~ m1: update
                spec.template.spec.containers[web].env[v0].value: "old" → "new"
              because PropagationPolicy default/web claims it and still matches; the
              policy acts at once

        ~ Deployment shop/c
            ~ m1: update
                spec.template.spec.containers[web].env[v0].value: "old" → "new"
                spec.template.spec.containers[web].env[v1].value: "old" → "new"
                spec.template.spec.containers[web].env[v2].value: "old" → "new"
                spec.template.spec.containers[web].env[v3].value: "old" → "new"
                spec.template.spec.containers[web].env[v4].value: "old" → "new"
                and 2 more fields; --detailed shows each
              because PropagationPolicy default/web claims it and still matches; the
              policy acts at once
    "#]],
    );
}

#[test]
fn what_would_run_nowhere_is_said_loudly() {
    let lost = TemplatePlan {
        nowhere: true,
        ..moves("Deployment", "a", &[("m1", Action::Delete { replicas: 2 }, false)])
    };
    check(
        &plan(vec![lost], Totals { deleted: 1, nowhere: 1, ..Totals::default() }),
        false,
        expect![[r#"
        Plan: 1 template, 1 to delete, 1 to run NOWHERE.

        - Deployment shop/a
            - m1: delete with 2 replicas
            - WOULD RUN NOWHERE
              because PropagationPolicy default/web claims it and still matches; the
              policy acts at once
    "#]],
    );
}
