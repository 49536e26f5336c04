//! The precedence of policies, the claim records, and the sentences that explain them.

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::claim::record::record;

fn template() -> Template {
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "nginx", "namespace": "default", "uid": "u", "labels": {"app": "nginx"}},
    });
    Template::read(&object).unwrap()
}

fn policy(namespace: &str, name: &str, selector: serde_json::Value, rest: serde_json::Value) -> Policy {
    let kind = if namespace.is_empty() { "ClusterPropagationPolicy" } else { "PropagationPolicy" };
    let mut spec = rest;
    spec["resourceSelectors"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    spec["resourceSelectors"][0].as_object_mut().unwrap().extend(selector.as_object().unwrap().clone());
    let object = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{name}"), "generation": 1},
        "spec": spec,
    });
    Policy::from(&serde_json::from_value::<api::PropagationPolicy>(object).unwrap())
}

fn policies(list: Vec<Policy>) -> Policies {
    let mut policies = Policies::default();
    list.into_iter().for_each(|policy| drop(policies.insert(policy)));
    policies
}

const FRESH: Past = Past { bound: false, changed: true, waiting: false, asked: false };

fn check(list: Vec<Policy>, gates: Gates, claimed_by: Option<&Policy>, expected: Expect) {
    let mut template = template();
    if let Some(owner) = claimed_by {
        let mut marks =
            record::Marks { labels: template.labels.clone(), annotations: template.annotations.clone() };
        marks.claim(owner);
        template = template.with_marks(marks.labels, marks.annotations);
    }
    let claim = claim(&template, FRESH, &policies(list), &gates);
    expected.assert_eq(&claim.why().to_string());
}

#[test]
fn the_ranking_explains_itself() {
    let all = |name: &str, rest| policy("default", name, json!({}), rest);
    let cluster = |name: &str, rest| policy("", name, json!({"name": "nginx"}), rest);
    let none = json!({});
    check(vec![], Gates::default(), None, expect!["no policy matches it"]);
    check(
        vec![all("a", none.clone())],
        Gates::default(),
        None,
        expect!["PropagationPolicy default/a is the only policy that matches it"],
    );
    check(
        vec![all("a", none.clone()), cluster("b", json!({"priority": 9}))],
        Gates::default(),
        None,
        expect![
            "PropagationPolicy default/a goes before ClusterPropagationPolicy b: a PropagationPolicy goes before a ClusterPropagationPolicy"
        ],
    );
    check(
        vec![all("a", none.clone()), all("b", json!({"priority": 1}))],
        Gates::default(),
        None,
        expect![
            "PropagationPolicy default/b goes before PropagationPolicy default/a: priority 1 is higher than 0"
        ],
    );
    check(
        vec![all("a", none.clone()), policy("default", "b", json!({"labelSelector": {}}), none.clone())],
        Gates::default(),
        None,
        expect![
            "PropagationPolicy default/b goes before PropagationPolicy default/a: it matches by label and the other by kind"
        ],
    );
    check(
        vec![all("b", none.clone()), all("a", none)],
        Gates::default(),
        None,
        expect![
            "PropagationPolicy default/a goes before PropagationPolicy default/b: both match equally, and \
             its name comes first in the alphabet"
        ],
    );
}

#[test]
fn what_is_left_out_is_for_no_policy() {
    let all = policy("", "all", json!({}), json!({}));
    for (namespaces, kinds) in [("def.*", ""), ("", "apps/v1/Deployment")] {
        let skipped = crate::SkippedResources::read(namespaces, kinds).expect("readable");
        let gates = Gates { skipped, ..Gates::default() };
        check(
            vec![all.clone()],
            gates.clone(),
            None,
            expect!["the control plane is configured to skip its namespace or kind, so no policy claims it"],
        );
        let taker =
            policy("", "taker", json!({"name": "nginx"}), json!({"preemption": "Always", "priority": 1}));
        check(
            vec![all.clone(), taker],
            gates,
            Some(&all),
            expect![
                "ClusterPropagationPolicy all claims it and still matches; ClusterPropagationPolicy taker \
                 ranks higher but the control plane is configured to skip its namespace or kind"
            ],
        );
    }
}

#[test]
fn p1_p2_p4_preemption_explains_itself() {
    let owner = policy("", "owner", json!({}), json!({}));
    let contest = |taker: Policy, gates: Gates, expected: Expect| {
        check(vec![owner.clone(), taker], gates, Some(&owner), expected);
    };
    let always = |priority: i32| json!({"preemption": "Always", "priority": priority});
    let on = Gates::default;
    contest(
        policy("", "taker", json!({"namespace": "def*"}), always(1)),
        on(),
        expect![
            "ClusterPropagationPolicy taker takes it from ClusterPropagationPolicy owner: priority 1 is higher than 0 (P2)"
        ],
    );
    contest(
        policy("default", "taker", json!({}), always(-9)),
        on(),
        expect![
            "PropagationPolicy default/taker takes it from ClusterPropagationPolicy owner: a PropagationPolicy goes before a ClusterPropagationPolicy (P2)"
        ],
    );
    contest(
        policy("", "taker", json!({}), always(1)),
        on(),
        expect![
            "ClusterPropagationPolicy owner claims it and still matches; ClusterPropagationPolicy taker \
             ranks higher but only a selector with a name or a namespace can take a template over, and none \
             of its selectors does (P4)"
        ],
    );
    contest(
        policy(
            "",
            "taker",
            json!({"name": "nginx", "labelSelector": {"matchLabels": {"app": "x"}}}),
            always(1),
        ),
        on(),
        expect![
            "ClusterPropagationPolicy owner claims it and still matches; ClusterPropagationPolicy taker \
             ranks higher but only a selector with a name or a namespace can take a template over, and none \
             of its selectors does (P4)"
        ],
    );
    contest(
        policy("", "taker", json!({"name": "nginx"}), always(0)),
        on(),
        expect![
            "ClusterPropagationPolicy owner claims it and still matches; ClusterPropagationPolicy taker ranks higher but its priority is not strictly higher (P2)"
        ],
    );
    contest(
        policy("", "taker", json!({"name": "nginx"}), json!({"priority": 1})),
        on(),
        expect![
            "ClusterPropagationPolicy owner claims it and still matches; ClusterPropagationPolicy taker ranks higher but its preemption is Never"
        ],
    );
    contest(
        policy("", "taker", json!({"name": "nginx"}), always(1)),
        Gates { preemption: false, ..on() },
        expect![
            "ClusterPropagationPolicy owner claims it and still matches; ClusterPropagationPolicy taker ranks higher but the feature gate PropagationPolicyPreemption is off (P1)"
        ],
    );
}

#[test]
fn a_template_that_something_else_took_over_is_left_alone() {
    let object = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "a", "namespace": "b", "labels": {"resourcetemplate.karmada.io/claimed-by": "MultiClusterService"}},
    });
    let template = Template::read(&object).unwrap();
    let claim = claim(&template, FRESH, &Policies::default(), &Gates::default());
    assert!(matches!(claim, Claim::Foreign(_)));
    assert_eq!(claim.why().to_string(), "MultiClusterService took it over, so policies ignore it");
}

/// C7: Karmada's claim without our records is read as what Karmada meant by it.
#[test]
fn c7_a_claim_of_karmadas_is_kept_and_waits_if_karmada_waited() {
    let lazy = policy("default", "lazy", json!({}), json!({"activationPreference": "Lazy"}));
    let mut marks = record::Marks { labels: template().labels, annotations: template().annotations };
    marks.claim(&lazy);
    let template = template().with_marks(marks.labels, marks.annotations);
    let claim = claim(&template, FRESH, &policies(vec![lazy]), &Gates::default());
    assert!(matches!(claim, Claim::Kept(..)));
    assert!(
        record(&template, None, None, &claim).unwrap().template_first,
        "claimed without binding: it waits"
    );
    let binding = api::Binding::default();
    assert!(!record(&template, None, Some(&Bound::of(&binding)), &claim).unwrap().template_first);
}

#[test]
fn a_policy_of_the_same_name_is_another_policy() {
    let old = policy("default", "pp", json!({}), json!({}));
    let new = Policy { uid: "another".into(), ..old.clone() };
    let mark = ClaimMark { policy: old.key.clone(), id: old.id().to_owned() };
    assert!(mark.is_of(&old) && !mark.is_of(&new));
}

#[test]
fn the_reason_is_json_too() {
    let claim = claim(
        &template(),
        FRESH,
        &policies(vec![policy("default", "pp", json!({}), json!({"priority": 3}))]),
        &Gates::default(),
    );
    expect![[r#"{"reason":"best","policy":{"namespace":"default","name":"pp"},"tieBreak":"only","candidates":[{"policy":{"namespace":"default","name":"pp"},"priority":3,"matched":"all","preempts":false}]}"#]]
        .assert_eq(&serde_json::to_string(claim.why()).unwrap());
}
