//! Round trip: whatever a type accepts, it serializes in a form that it parses as the same value again.

use api::kinds::Kind;
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

/// What comes of an odd value in a sample of the kind, if the type reads it at all, is read as the same thing again.
#[track_caller]
fn check(kind: &Kind, round: usize, steps: &[usize], odd: Value) {
    let schemas = schemas(&api::crd::crds());
    let (_, _, schema) = schemas
        .iter()
        .find(|(name, version, _)| name == kind.kind && version == kind.version)
        .expect("every kind has a schema");
    let mut value = sample(schema, round);
    put(&mut value, steps, odd);
    if let Ok(once) = through_type(kind.kind, value) {
        let twice = through_type(kind.kind, once.clone()).expect("the type reads what it wrote");
        assert_eq!(twice, once);
    }
}

#[test]
fn a_condition_that_says_nothing_is_read_again() {
    let rollout = api::kinds::ALL.iter().find(|kind| kind.kind == "RolloutPolicy").expect("it is a kind");
    let (status, conditions) = (4, 0);
    check(rollout, 0, &[status, conditions, 0], json!({}));
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
        check(&api::kinds::ALL[kind], round, &steps, odd);
    }
}
