//! Whatever a type accepts, it writes in a form that it reads as the same thing again.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::agreement::through_type;
use super::sample::sample;
use super::schemas;

/// Puts `value` somewhere into `target`, at a place that `steps` leads to.
fn put(target: &mut Value, steps: &[usize], value: Value) {
    let Some((step, rest)) = steps.split_first() else {
        *target = value;
        return;
    };
    match target {
        Value::Object(fields) if !fields.is_empty() => {
            let index = step % fields.len();
            let field = fields.values_mut().nth(index).expect("within bounds");
            put(field, rest, value);
        }
        Value::Array(items) if !items.is_empty() => {
            let index = step % items.len();
            put(&mut items[index], rest, value);
        }
        leaf => *leaf = value,
    }
}

fn odd_values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!("")),
        Just(json!({})),
        Just(json!([])),
        Just(json!(false)),
        Just(json!(1.5)),
        any::<i64>().prop_map(|number| json!(number)),
        any::<u64>().prop_map(|number| json!(number)),
        ".{0,8}".prop_map(|text| json!(text)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn reading_what_was_written_changes_nothing(
        kind in 0..api::kinds::ALL.len(),
        round in 0_usize..5,
        steps in prop::collection::vec(any::<usize>(), 1..7),
        odd in odd_values(),
    ) {
        let kind = &api::kinds::ALL[kind];
        let schemas = schemas(&api::crd::crds());
        let (_, _, schema) = schemas
            .iter()
            .find(|(name, version, _)| name == kind.kind && version == kind.version)
            .expect("every kind has a schema");
        let mut value = sample(schema, round);
        put(&mut value, &steps, odd);
        if let Ok(once) = through_type(kind.kind, value) {
            let twice = through_type(kind.kind, once.clone()).expect("the type reads what it wrote");
            prop_assert_eq!(twice, once);
        }
    }
}
