//! Table tests for selectors and exclusions.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn key() -> TemplateKey {
    TemplateKey {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: "user1-a".into(),
        name: "nginx".into(),
    }
}

fn labels() -> BTreeMap<String, String> {
    [("app", "nginx"), ("tier", "web")].map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

fn selector(rest: Value) -> ResourceSelector {
    let mut whole = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
    whole.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

fn check(rest: Value, expected: Option<Specificity>) {
    assert_eq!(specificity(&selector(rest.clone()), &key(), &labels()), expected, "{rest}");
}

#[test]
fn b4_selectors_match_by_kind_label_or_name() {
    use Specificity::{All, Labels, Name};
    check(json!({}), Some(All));
    check(json!({"kind": "StatefulSet"}), None);
    check(json!({"apiVersion": "apps/v1beta1"}), None);
    check(json!({"namespace": "user1-a"}), Some(All));
    check(json!({"namespace": "user1-*"}), Some(All));
    check(json!({"namespace": "user2-*,user1-a"}), Some(All));
    check(json!({"namespace": "user2-*"}), None);
    check(json!({"namespace": "*"}), None);
    check(json!({"name": "nginx"}), Some(Name));
    check(json!({"name": "other"}), None);
    check(json!({"name": "nginx", "labelSelector": {"matchLabels": {"app": "other"}}}), Some(Name));
    check(json!({"labelSelector": {}}), Some(Labels));
    check(json!({"labelSelector": {"matchLabels": {"app": "nginx"}}}), Some(Labels));
    check(json!({"labelSelector": {"matchLabels": {"app": "nginx", "tier": "db"}}}), None);
}

#[test]
fn every_operator_of_label_selectors() {
    let check = |operator: &str, key: &str, values: &[&str], expected: bool| {
        let wanted: LabelSelector = serde_json::from_value(
            json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}),
        )
        .unwrap();
        assert_eq!(labels_match(&wanted, &labels()), expected, "{key} {operator} {values:?}");
    };
    check("In", "app", &["nginx", "x"], true);
    check("In", "app", &["x"], false);
    check("In", "app", &[], false);
    check("In", "none", &["nginx"], false);
    check("NotIn", "app", &["x"], true);
    check("NotIn", "app", &["nginx"], false);
    check("NotIn", "none", &["nginx"], true);
    check("NotIn", "none", &[], false);
    check("Exists", "app", &[], true);
    check("Exists", "none", &[], false);
    check("DoesNotExist", "none", &[], true);
    check("DoesNotExist", "app", &[], false);
    check("Gt", "app", &["1"], false);
    check("Near", "app", &["1"], false);
}

#[test]
fn b2_both_forms_of_exclusion_beat_every_selector() {
    let check = |exclude: Value, expected: bool| {
        let inner = [selector(json!({"name": "nginx"})), selector(json!({"exclude": exclude}))];
        assert_eq!(is_excluded(&inner, &[], &key(), &labels()), expected, "inner {exclude}");
        let mut outer = exclude.clone();
        outer["apiVersion"] = "apps/v1".into();
        outer["kind"] = "Deployment".into();
        let outer: ExcludeResourceSelector = serde_json::from_value(outer).unwrap();
        let by_name = [selector(json!({"name": "nginx"}))];
        assert_eq!(
            is_excluded(&by_name, std::slice::from_ref(&outer), &key(), &labels()),
            expected,
            "{exclude}"
        );
        assert_eq!(best_match(&by_name, &[outer], &key(), &labels()).is_none(), expected, "{exclude}");
    };
    check(json!({"namespace": "user1-*"}), true);
    check(json!({"namespace": "user2-*"}), false);
    check(json!({"namespace": "user1-*", "name": "nginx"}), true);
    check(json!({"namespace": "user1-*", "name": "other"}), false);
    check(json!({"name": "nginx"}), true);
    check(json!({"namespace": "user1-*", "labelSelector": {"matchLabels": {"app": "nginx"}}}), true);
    check(json!({"namespace": "user1-*", "labelSelector": {"matchLabels": {"app": "x"}}}), false);
    check(json!({}), false);
    let other_kind: ExcludeResourceSelector =
        serde_json::from_value(json!({"apiVersion": "apps/v1", "kind": "Job", "name": "nginx"})).unwrap();
    assert!(!is_excluded(&[], &[other_kind], &key(), &labels()));
}

prop_compose! {
    fn any_requirement()(key in "[ab]", operator in "In|NotIn|Exists|DoesNotExist|Gt|Odd", values in prop::collection::vec("[xy]", 0..3)) -> Value {
        json!({"key": key, "operator": operator, "values": values})
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// The index looks templates up by the pivot, so a match without it would be lost.
    #[test]
    fn what_a_selector_matches_has_its_pivot(
        pairs in prop::collection::btree_map("[ab]", "[xy]", 0..2),
        expressions in prop::collection::vec(any_requirement(), 0..3),
        labels in prop::collection::btree_map("[ab]", "[xy]", 0..3),
    ) {
        let wanted: LabelSelector =
            serde_json::from_value(json!({"matchLabels": pairs, "matchExpressions": expressions})).unwrap();
        if labels_match(&wanted, &labels) {
            let has_it = match pivot(&wanted) {
                Pivot::Pairs(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
                Pivot::Key(key) => labels.contains_key(key),
                Pivot::Nothing => true,
            };
            prop_assert!(has_it);
        }
    }

    /// `NotIn` is the opposite of `In`, `DoesNotExist` of `Exists`.
    #[test]
    fn opposite_operators_have_opposite_answers(key in "[ab]", values in prop::collection::vec("[xy]", 1..3), labels in prop::collection::btree_map("[ab]", "[xy]", 0..3)) {
        let holds = |operator: Operator, values: &[String]| {
            requirement_holds(&Requirement { key: key.clone(), operator, values: values.to_vec() }, &labels)
        };
        prop_assert_ne!(holds(Operator::In, &values), holds(Operator::NotIn, &values));
        prop_assert_ne!(holds(Operator::Exists, &[]), holds(Operator::DoesNotExist, &[]));
    }
}
