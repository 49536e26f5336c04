//! Property tests with random schemas and values, and adversarial inputs.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::*;
use schema::validate::{validate_embedded, validate_lists, validate_schema};
use schema::{Schema, apply_defaults, prune, prune_nulls, unknown_fields};

/// How much is wrong with a value, in the light of an old one. Lists that were wrong before are not judged again.
fn faults(value: &Value, old: Option<&Value>, schema: &Schema) -> usize {
    let ratcheted = old.is_some_and(|old| !validate_lists(old, schema, "").is_empty());
    let lists = if ratcheted { 0 } else { validate_lists(value, schema, "").len() };
    validate_schema(value, old, schema, "").len() + validate_embedded(value, schema, "").len() + lists
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5_i64..5).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "apiVersion", "kind", "metadata"]).prop_map(str::to_owned)
}

/// Schemas with every word that matters, sensible or not.
fn schema() -> impl Strategy<Value = Value> {
    let words = prop::collection::vec(
        prop::sample::select(vec![
            ("minLength", json!(1)),
            ("maxLength", json!(2)),
            ("pattern", json!("^a")),
            ("pattern", json!("[")),
            ("minimum", json!(-1)),
            ("maximum", json!(2.5)),
            ("multipleOf", json!(0)),
            ("multipleOf", json!(0.5)),
            ("minItems", json!(1)),
            ("maxItems", json!(1)),
            ("uniqueItems", json!(true)),
            ("enum", json!(["a", 1])),
            ("nullable", json!(true)),
            ("format", json!("date-time")),
            ("format", json!("ipv4")),
            ("default", json!({ "a": "x" })),
            ("default", json!("a")),
            ("default", json!([null])),
            ("required", json!(["a"])),
            ("x-kubernetes-preserve-unknown-fields", json!(true)),
            ("x-kubernetes-embedded-resource", json!(true)),
            ("x-kubernetes-int-or-string", json!(true)),
            ("x-kubernetes-list-type", json!("set")),
            ("x-kubernetes-list-type", json!("map")),
            ("x-kubernetes-list-map-keys", json!(["a"])),
        ])
        .prop_map(|(key, value)| (key.to_owned(), value)),
        0..4,
    );
    let kind = prop::sample::select(vec!["object", "array", "string", "integer", "number", "boolean", ""]);
    let node = (kind, words).prop_map(|(kind, words)| {
        let mut node = Map::from_iter(words);
        node.insert(String::from("type"), kind.into());
        Value::Object(node)
    });
    node.clone().prop_recursive(3, 16, 3, move |inner| {
        let fields = prop::collection::btree_map(name(), inner.clone(), 0..3);
        (node.clone(), fields, prop::option::of(inner.clone()), prop::option::of(inner.clone()), inner)
            .prop_map(|(mut node, fields, items, values, other)| {
                let parts = [
                    ("properties", Some(Value::Object(Map::from_iter(fields)))),
                    ("items", items),
                    ("additionalProperties", values.clone()),
                    ("anyOf", values.map(|value| json!([value, other]))),
                ];
                for (key, part) in parts {
                    if let Some(part) = part {
                        node[key] = part;
                    }
                }
                node
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn pruning_twice_is_pruning_once(source in schema(), mut value in value(), root in any::<bool>()) {
        let schema = Schema::from_openapi(&source);
        prune(&mut value, &schema, root);
        let once = value.clone();
        prop_assert_eq!(prune(&mut value, &schema, root), Vec::<String>::new());
        prop_assert_eq!(&value, &once);
        if !root {
            prop_assert_eq!(unknown_outside_metadata(&value, &schema), Vec::<String>::new());
        }
    }

    #[test]
    fn defaulting_twice_is_defaulting_once(source in schema(), mut value in value()) {
        let schema = Schema::from_openapi(&source);
        prune_nulls(&mut value, &schema);
        apply_defaults(&mut value, &schema);
        let once = value.clone();
        apply_defaults(&mut value, &schema);
        prop_assert_eq!(value, once);
    }

    #[test]
    fn validation_answers_for_anything(source in schema(), value in value(), old in value()) {
        let schema = Schema::from_openapi(&source);
        let fresh = faults(&value, None, &schema);
        prop_assert!(faults(&value, Some(&old), &schema) <= fresh + 1);
        prop_assert_eq!(schema::validate::validate_schema(&value, Some(&value), &schema, ""), vec![]);
    }

    #[test]
    fn definitions_are_answered_for_anything(source in schema(), odd in value()) {
        let mut crd = super::definition(&source);
        let judged = validate_crd(&crd, None).is_empty();
        prop_assert!(compile(&crd).is_ok());
        prop_assert!(judged || !validate_crd(&crd, Some(&odd)).is_empty());
        for mut odd in [odd.clone(), json!({ "spec": odd, "status": odd, "metadata": odd })] {
            default_crd(&mut odd);
            keep_status(&mut odd, None);
            accept_names(&mut odd, [&crd].into_iter(), "now");
            establish(&mut odd, "now");
            prop_assert!(!validate_crd(&odd, None).is_empty());
            prop_assert!(compile(&odd).is_err());
        }
        accept_names(&mut crd, [&odd].into_iter(), "now");
        prop_assert!(establish(&mut crd, "now"));
    }

    #[test]
    fn patterns_of_any_kind_are_answered(source in r"[\[\]\^\-\\(){}?*+|a-d0-3,:<>PQEpdwx.&~]{0,12}", text in "[a-d0-3]{0,4}") {
        let schema = Schema::from_openapi(&json!({ "type": "string", "pattern": source }));
        faults(&text.into(), None, &schema);
    }
}

/// The metadata of embedded resources is pruned by another schema than the one at hand.
fn unknown_outside_metadata(value: &Value, schema: &Schema) -> Vec<String> {
    let mut found = unknown_fields(value, schema);
    let meta = |part: &str| ["apiVersion", "kind", "metadata"].contains(&part);
    found.retain(|path| !path.split(['.', '[']).any(meta));
    found
}

fn nested(depth: usize, wrap: impl Fn(Value) -> Value, core: Value) -> Value {
    (0..depth).fold(core, |inner, _| wrap(inner))
}

/// Four times deeper than the JSON reader allows, on the small stack of a test.
#[test]
fn deep_nesting_is_survived() {
    let mut value = nested(300, |inner| json!({ "a": [inner] }), json!(1));
    let schema = Schema::from_openapi(&nested(
        60,
        |inner| json!({ "type": "object", "properties": { "a": { "type": "array", "items": inner } } }),
        json!({ "x-kubernetes-preserve-unknown-fields": true }),
    ));
    faults(&value, None, &schema);
    prune(&mut value, &schema, true);
    apply_defaults(&mut value, &schema);
    prune_nulls(&mut value, &schema);
}

#[test]
fn a_deep_schema_is_refused() {
    let deep = nested(
        80,
        |inner| json!({ "type": "object", "properties": { "a": inner } }),
        json!({ "type": "string" }),
    );
    let errors = super::lines(&validate_crd(&super::definition(&deep), None));
    assert_eq!(errors, ["spec.validation.openAPIV3Schema: Invalid value: \"\": nested too deeply"]);
}

#[test]
fn a_huge_pattern_is_refused() {
    let schema = json!({ "type": "string", "pattern": "(((a{1,1000}){1,1000}){1,1000})" });
    let errors = super::lines(&validate_crd(&super::definition(&schema), None));
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].ends_with("isn't: error parsing regexp: expression too large"), "{errors:?}");
}
