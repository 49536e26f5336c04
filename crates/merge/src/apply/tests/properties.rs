//! What holds for every set of paths and for every sequence of writes by several managers.

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::element::PathElement;
use super::super::set::{Node, PathSet};
use super::super::*;

/// A kind with one of everything: granular and atomic maps, sets, keyed lists, free fields.
fn schema() -> Schema {
    let string = json!({ "type": "string" });
    let keyed = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": { "type": "object", "properties": { "name": string, "value": string } },
    });
    let spec = json!({
        "type": "object",
        "properties": {
            "text": string,
            "map": { "type": "object", "additionalProperties": string },
            "whole": { "type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": string },
            "set": { "type": "array", "x-kubernetes-list-type": "set", "items": string },
            "list": { "type": "array", "items": string },
            "keyed": keyed,
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        },
    });
    Schema::from_openapi(&json!({ "type": "object", "properties": { "spec": spec } }))
}

fn write<'a>(manager: &'a str, schema: &'a Schema, second: i64) -> WriteContext<'a> {
    WriteContext {
        manager,
        api_version: "v1",
        kind: "Thing",
        subresource: "",
        now: Timestamp::from_second(second).unwrap(),
        schema,
        builtin: false,
        reset: &[],
    }
}

fn letters() -> impl Strategy<Value = Value> {
    "[xy]".prop_map(Value::from)
}

fn map() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[ab]", letters(), 1..3)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

fn list() -> impl Strategy<Value = Value> {
    prop::collection::btree_set("[abc]", 1..4)
        .prop_map(|set| set.into_iter().map(Value::from).collect::<Vec<_>>())
        .prop_shuffle()
        .prop_map(Value::from)
}

fn keyed() -> impl Strategy<Value = Value> {
    let element = |(name, value): (String, Option<String>)| match value {
        Some(value) => json!({ "name": name, "value": value }),
        None => json!({ "name": name }),
    };
    prop::collection::btree_map("[abc]", prop::option::of("[xy]"), 1..4)
        .prop_map(move |map| map.into_iter().map(element).collect::<Vec<_>>())
        .prop_shuffle()
        .prop_map(Value::from)
}

/// Configurations without empty containers, which Kubernetes turns into null when it empties them.
fn thing() -> impl Strategy<Value = Value> {
    let fields = (
        prop::option::of(letters()),
        prop::option::of(map()),
        prop::option::of(map()),
        prop::option::of(list()),
        prop::option::of(list()),
        prop::option::of(keyed()),
        prop::option::of(map()),
    );
    fields.prop_map(|(text, map, whole, set, list, keyed, free)| {
        let names = ["text", "map", "whole", "set", "list", "keyed", "free"];
        let values = [text, map, whole, set, list, keyed, free];
        let spec: Map<String, Value> = names
            .into_iter()
            .zip(values)
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect();
        json!({ "apiVersion": "v1", "kind": "Thing", "metadata": { "name": "a" }, "spec": spec })
    })
}

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        4 => "[a-c]".prop_map(|name| PathElement::field(&name)),
        1 => (0i64..3).prop_map(PathElement::Index),
        1 => (0i64..3).prop_map(|value| PathElement::Item(value.into())),
        1 => "[\"a]".prop_map(|text| PathElement::Item(text.into())),
        1 => "[ab<]".prop_map(|text| PathElement::Key(Box::new([("name".into(), text.into())]))),
    ]
}

fn path_set() -> impl Strategy<Value = PathSet> {
    let leaf = Just(PathSet::default());
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop::collection::vec((element(), any::<bool>(), inner), 0..5).prop_map(|nodes| {
            nodes.into_iter().map(|(element, member, below)| Node { element, member, below }).collect()
        })
    })
}

fn union(left: &PathSet, right: &PathSet) -> PathSet {
    let mut union = left.clone();
    union.merge(right.clone());
    union
}

fn difference(left: &PathSet, right: &PathSet) -> PathSet {
    let mut difference = left.clone();
    difference.subtract(right);
    difference
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn sets_obey_their_algebra(a in path_set(), b in path_set(), c in path_set()) {
        prop_assert_eq!(union(&a, &b), union(&b, &a));
        prop_assert_eq!(union(&union(&a, &b), &c), union(&a, &union(&b, &c)));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(union(&difference(&a, &b), &a.intersection(&b)), a.clone());
        prop_assert_eq!(difference(&difference(&a, &b), &c), difference(&a, &union(&b, &c)));
        prop_assert!(difference(&a, &a).is_empty());
        prop_assert!(a.intersection(&b).is_subset(&a) && a.is_subset(&union(&a, &b)));
        prop_assert_eq!(a.is_subset(&b), difference(&a, &b).is_empty());
        let mut below = a.clone();
        below.subtract_below(&b);
        prop_assert!(below.is_subset(&difference(&a, &b)));
    }

    #[test]
    fn sets_survive_being_written(set in path_set()) {
        let fields = Value::Object(set.clone().into_fields());
        prop_assert_eq!(PathSet::from_fields(&fields), Ok(set));
    }

    #[test]
    fn no_fields_panic(text in "\\PC{0,12}", content in prop_oneof![Just(json!({})), Just(json!([1])), Just(json!({ ".": {} }))]) {
        let fields = json!({ text: content });
        if let Ok(set) = PathSet::from_fields(&fields) {
            prop_assert_eq!(PathSet::from_fields(&Value::Object(set.clone().into_fields())), Ok(set));
        }
    }

    #[test]
    fn ownership_of_a_new_object_is_its_difference_from_nothing(object in thing(), builtin in any::<bool>()) {
        let schema = schema();
        let write = WriteContext { builtin, ..write("m", &schema, 0) };
        let mut created = object.clone();
        track_update(None, &mut created, &write);
        let mut expected = write.compare(write.shape().for_stored(), &json!({}), &object).into_changed();
        expected.subtract(Shape::unownable());
        let fields = created["metadata"]["managedFields"][0]["fieldsV1"].as_object().cloned();
        prop_assert_eq!(fields.unwrap_or_default(), expected.into_fields());
    }

    #[test]
    fn writing_the_same_again_is_no_write(first in thing(), second in thing()) {
        let schema = schema();
        let mut live = first;
        track_update(None, &mut live, &write("one", &schema, 1));
        let mut next = second;
        track_update(Some(&live), &mut next, &write("two", &schema, 2));
        let mut again = next.clone();
        track_update(Some(&next), &mut again, &write("three", &schema, 3));
        prop_assert_eq!(&again, &next);
        take_managed_fields(&mut again);
        track_update(Some(&next), &mut again, &write("three", &schema, 3));
        prop_assert_eq!(again, next);
    }

    #[test]
    fn applying_the_same_again_is_no_write(first in thing(), config in thing()) {
        let schema = schema();
        let mut live = first;
        track_update(None, &mut live, &write("one", &schema, 1));
        let once = server_side_apply(Some(&live), &config, true, &write("two", &schema, 2)).unwrap();
        let twice = server_side_apply(Some(&once), &config, false, &write("two", &schema, 3)).unwrap();
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn applied_fields_are_in_the_result(first in thing(), config in thing()) {
        let schema = schema();
        let mut live = first;
        track_update(None, &mut live, &write("one", &schema, 1));
        let applied = server_side_apply(Some(&live), &config, true, &write("two", &schema, 2)).unwrap();
        let shape = Shape::of_object(&schema, false);
        let difference = Comparison::of_objects(shape, &config, &applied);
        prop_assert!(difference.removed.is_empty() && difference.modified.is_empty());
    }

    #[test]
    fn a_conflict_is_another_owner_with_another_value(first in thing(), config in thing()) {
        let schema = schema();
        let live = server_side_apply(None, &first, false, &write("one", &schema, 1)).unwrap();
        let shape = Shape::of_object(&schema, false);
        let merged = merge::merged(shape, &live, &config);
        let changes = !Comparison::of_objects(shape, &first, &merged).modified.is_empty();
        let result = server_side_apply(Some(&live), &config, false, &write("two", &schema, 2));
        prop_assert_eq!(result.is_err(), changes);
        if let Err(error) = result {
            prop_assert_eq!(error.code, 409);
            prop_assert!(error.message.contains("\"one\""));
        }
        prop_assert!(server_side_apply(Some(&live), &config, true, &write("two", &schema, 2)).is_ok());
    }

    #[test]
    fn an_applier_that_drops_a_field_leaves_fields_of_others(first in thing(), config in thing()) {
        let schema = schema();
        let live = server_side_apply(None, &first, false, &write("one", &schema, 1)).unwrap();
        let Ok(both) = server_side_apply(Some(&live), &config, false, &write("two", &schema, 2)) else {
            return Ok(());
        };
        let nothing = json!({ "apiVersion": "v1", "kind": "Thing", "metadata": { "name": "a" } });
        let mut left = server_side_apply(Some(&both), &nothing, false, &write("two", &schema, 3)).unwrap();
        let mut expected = live;
        if first["spec"] == json!({}) {
            // An empty spec was never anyone's: what was put into it goes with it.
            left["spec"] = json!({});
        }
        for list in ["set", "keyed"] {
            // The order of elements is the order in which they were last applied.
            for object in [&mut left, &mut expected] {
                if let Some(items) = object["spec"].get_mut(list).and_then(Value::as_array_mut) {
                    items.sort_by_key(Value::to_string);
                }
            }
        }
        prop_assert_eq!(left, expected);
    }
}
