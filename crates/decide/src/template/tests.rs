//! What counts as a user change and what does not; when a template last changed.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn nginx() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "nginx", "namespace": "default", "uid": "u", "resourceVersion": "5", "generation": 1,
            "creationTimestamp": "2024-01-01T00:00:00Z", "labels": {"app": "nginx"},
        },
        "spec": {"replicas": 2},
        "status": {"replicas": 0},
    })
}

/// Whether setting one field is a user change.
fn check(pointer: &str, field: &str, value: Value, expected: bool) {
    let (before, mut after) = (nginx(), nginx());
    let parent = after.pointer_mut(pointer).expect(pointer).as_object_mut().expect("a map");
    parent.insert(field.to_owned(), value);
    assert_eq!(digest(&before) != digest(&after), expected, "{pointer}/{field}");
}

#[test]
fn r1_a_user_change_is_everything_but_bookkeeping() {
    check("", "status", json!({"replicas": 7}), false);
    check("/metadata", "managedFields", json!([{"manager": "x"}]), false);
    check("/metadata", "resourceVersion", json!("9"), false);
    check("/metadata", "generation", json!(2), false);
    check("/metadata", "annotations", json!({}), false);
    check("/metadata", "annotations", json!({"foo.karmada.io/bar": "x"}), false);
    check("/metadata", "annotations", json!({"longshore.io/pin": "{}"}), false);
    check("/metadata/labels", "propagationpolicy.karmada.io/permanent-id", json!("x"), false);
    check("/metadata/labels", "namespace.karmada.io/skip-auto-propagation", json!("true"), true);
    check("/metadata/labels", "karmada.io/managed", json!("true"), true);
    check("/metadata/labels", "refresh-time", json!("1"), true);
    check("/metadata", "annotations", json!({"x": "y"}), true);
    check("/metadata", "finalizers", json!(["a/b"]), true);
    check("/metadata", "ownerReferences", json!([{}]), true);
    check("/metadata", "deletionTimestamp", json!("2024-01-01T00:00:00Z"), true);
    check("/spec", "replicas", json!(3), true);
    check("", "data", json!({}), true);
}

#[test]
fn r1_the_digest_never_changes_its_mind() {
    expect_test::expect!["ceadb2996f43698390c57a62ab052517"].assert_eq(&digest(&nginx()));
}

#[test]
fn r3_the_last_user_change_is_the_latest_write_of_the_users_part() {
    let mut object = nginx();
    object["metadata"]["managedFields"] = json!([
        {"time": "2024-01-02T00:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        {"time": "2024-01-03T00:00:00Z", "subresource": "status", "fieldsV1": {"f:spec": {}}},
        {"time": "2024-01-04T00:00:00Z", "fieldsV1": {"f:status": {}}},
        {"time": "2024-01-05T00:00:00Z", "fieldsV1": {"f:metadata": {"f:annotations": {".": {}, "f:longshore.io/claim": {}}}}},
    ]);
    let template = Template::read(&object).expect("a template");
    assert_eq!(template.changed.second, "2024-01-02T00:00:00Z".parse().ok());
    assert_eq!(template.changed.version, 5);
}

#[test]
fn an_object_without_type_or_name_is_no_template() {
    for object in [json!({}), json!(7), json!({"kind": "A", "apiVersion": "v1", "metadata": {}})] {
        assert_eq!(Template::read(&object), None);
    }
}

#[test]
fn a_field_that_is_null_is_not_there() {
    let mut object = nginx();
    object["metadata"]["annotations"] = Value::Null;
    let template = Template::read(&object).expect("a template");
    assert_eq!(template.digest, digest(&nginx()));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z.{}\"]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{0,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn equal_specs_and_only_those_have_equal_digests(left in any_json(), right in any_json()) {
        let digest_of = |spec: &Value| digest(&json!({"spec": spec}));
        prop_assert_eq!(digest_of(&left) == digest_of(&right), left == right);
    }

    #[test]
    fn no_json_at_all_makes_it_fail(object in any_json()) {
        digest(&object);
        Template::read(&object);
    }
}
