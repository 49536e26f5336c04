//! Patches against the answers of kube-apiserver 1.35, and laws that hold for every patch.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use apimachinery::recorded::change;
use schema::Schema;

/// Patches that a real kube-apiserver 1.35 answered, with its answers.
const RECORDED: &str = include_str!("../../testdata/patch.json");

#[test]
fn patches_give_what_kubernetes_gave() {
    let recorded: Value = serde_json::from_str(RECORDED).unwrap();
    let schemas: Vec<(String, Schema)> = recorded["schemas"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(kind, schema)| (kind.clone(), Schema::from_openapi(schema)))
        .collect();
    let cases = recorded["cases"].as_array().unwrap();
    assert!(cases.len() > 100);
    for case in cases {
        let (_, schema) = schemas.iter().find(|(kind, _)| case["kind"] == **kind).unwrap();
        let live = &recorded["live"][case["kind"].as_str().unwrap()];
        check(case, live, schema);
    }
}

fn check(case: &Value, live: &Value, schema: &Schema) {
    let patch = &case["patch"];
    let result = match case["type"].as_str().unwrap() {
        "json" => json_patch(live, patch),
        "merge" => merge_patch(live, patch),
        _ => strategic_merge(live, patch, schema),
    };
    match result {
        Ok(object) => {
            let mut expected = live.clone();
            change(&mut expected, case.get("changed").unwrap_or_else(|| panic!("{case} passed")));
            assert_eq!(stored(&object), stored(&expected), "{patch}");
        }
        Err(error) => {
            let answer = json!([error.code, error.reason, error.message]);
            assert_eq!(answer, json!([case["code"], case["reason"], case["message"]]), "{patch}");
        }
    }
}

/// The server drops empty fields and fills in `replicas`; so does this.
fn stored(object: &Value) -> Value {
    let mut object = without_empty(object);
    if object["kind"] == "Deployment" && object["spec"].get("replicas").is_none() {
        object["spec"]["replicas"] = 1.into();
    }
    object
}

fn without_empty(value: &Value) -> Value {
    let is_empty = |value: &Value| *value == json!({}) || *value == json!([]);
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), without_empty(value)));
            fields.filter(|(_, value)| !is_empty(value)).collect()
        }
        Value::Array(items) => items.iter().map(without_empty).collect(),
        scalar => scalar.clone(),
    }
}

#[test]
fn the_first_segment_of_a_json_pointer_is_not_looked_at() {
    let patch = json!([{ "op": "add", "path": "spec/c", "value": 3 }]);
    assert_eq!(json_patch(&json!({ "spec": {} }), &patch), Ok(json!({ "spec": {}, "c": 3 })));
}

#[test]
fn too_many_operations_are_refused() {
    let operations = vec![json!({ "op": "test", "path": "/a", "value": 1 }); 10_001];
    let error = json_patch(&json!({ "a": 1 }), &operations.into()).unwrap_err();
    assert_eq!(error.code, 413);
    assert!(error.message.ends_with("maximum operations in a JSON patch is 10000, got 10001"));
}

#[test]
fn copies_that_multiply_memory_are_refused() {
    let doubling: Vec<Value> =
        (0..64).map(|step| json!({ "op": "copy", "from": "/a", "path": format!("/a/x{step}") })).collect();
    let object = json!({ "a": { "text": "some text" } });
    assert_eq!(json_patch(&object, &doubling.into()).unwrap_err().code, 422);
}

#[test]
fn patches_that_nest_without_end_are_refused() {
    let deeper = [
        json!({ "op": "add", "path": "/b", "value": {} }),
        json!({ "op": "move", "from": "/a", "path": "/b/a" }),
        json!({ "op": "move", "from": "/b", "path": "/a" }),
    ];
    for rounds in [200, 3_000] {
        let operations: Vec<Value> = deeper.iter().cloned().cycle().take(3 * rounds).collect();
        assert_eq!(json_patch(&json!({ "a": {} }), &operations.into()).unwrap_err().code, 422);
    }
    let mut nested = json!({});
    for _ in 0..150 {
        nested = json!({ "a": nested });
    }
    assert_eq!(merge_patch(&json!({}), &nested).unwrap_err().code, 422);
    assert_eq!(strategic_merge(&nested, &nested, &Schema::default()).unwrap_err().code, 422);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..3).prop_map(Value::from),
        "[ab$/~]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let names = prop_oneof![
            4 => "[abc]".prop_map(String::from),
            1 => Just(String::from("$patch")),
            1 => Just(String::from("$retainKeys")),
            1 => Just(String::from("$setElementOrder/a")),
            1 => Just(String::from("$deleteFromPrimitiveList/b")),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names, inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn merging_schema() -> Schema {
    let leaf = json!({ "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "a" });
    let mut schema = json!({});
    for _ in 0..4 {
        let mut keyed = leaf.clone();
        keyed["items"] = schema.clone();
        let scalars = json!({ "x-kubernetes-patch-strategy": "merge" });
        schema = json!({ "properties": { "a": keyed, "b": scalars, "c": schema } });
    }
    Schema::from_openapi(&schema)
}

#[test]
fn directives_are_used_up_by_the_merge() {
    let patch = json!({ "spec": {
        "$setElementOrder/containers": [{ "name": "a" }], "containers": [{ "name": "a" }],
        "strategy": { "$retainKeys": ["type"], "type": "Recreate" }, "$patch": "merge",
    }});
    assert_eq!(without_directives(&patch), json!({ "spec": { "strategy": { "type": "Recreate" } } }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_patch_panics(object in any_json(), patch in any_json()) {
        let _ = merge_patch(&object, &patch);
        let _ = json_patch(&object, &patch);
        let _ = strategic_merge(&object, &patch, &merging_schema());
    }

    #[test]
    fn a_merge_patch_holds_twice(object in any_json(), patch in any_json()) {
        if let Ok(once) = merge_patch(&object, &patch) {
            prop_assert_eq!(&merge_patch(&once, &patch).unwrap(), &once);
        }
    }

    #[test]
    fn an_empty_patch_changes_nothing(object in any_json().prop_filter("object", Value::is_object)) {
        prop_assert_eq!(&merge_patch(&object, &json!({})).unwrap(), &object);
        prop_assert_eq!(&strategic_merge(&object, &json!({}), &merging_schema()).unwrap(), &object);
        prop_assert_eq!(&json_patch(&object, &json!([])).unwrap(), &object);
    }

    #[test]
    fn json_patch_can_add_back_what_it_removed(
        object in any_json().prop_filter("object", |object| object.as_object().is_some_and(|o| !o.is_empty()))
    ) {
        let (name, value) = object.as_object().unwrap().iter().next().unwrap();
        let path = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let removed = json_patch(&object, &json!([{ "op": "remove", "path": &path }])).unwrap();
        prop_assert!(removed.get(name).is_none());
        let added = json!([{ "op": "add", "path": &path, "value": value }]);
        prop_assert_eq!(&json_patch(&removed, &added).unwrap(), &object);
    }
}
