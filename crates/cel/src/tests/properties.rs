//! Property tests: nothing panics, cost stays below its estimate, and parsing is unambiguous.

use proptest::prelude::*;
use serde_json::Value as Json;

use super::{Self_, environment, kind};
use crate::{Budget, Program, Type};

fn schema() -> Type {
    kind(&serde_json::from_str(include_str!("schema.json")).unwrap())
}

/// Expressions that mostly make sense, made of parts that do.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("self.n".to_owned()),
        Just("self.gone".to_owned()),
        Just("self.list[1]".to_owned()),
        Just("self.list.sum()".to_owned()),
        Just("self.words.size()".to_owned()),
        Just("self.s.size()".to_owned()),
        Just("int(self.d)".to_owned()),
        (-3_i64..9).prop_map(|number| number.to_string()),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone(), "[-+*/%]")
                .prop_map(|(one, two, sign)| format!("({one} {sign} {two})")),
            (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("({one} > {two} ? {one} : {two})")),
            inner.clone().prop_map(|one| format!("self.list.map(x, x + {one}).max()")),
            inner.clone().prop_map(|one| format!("self.list.filter(x, x != {one}).size()")),
            inner.prop_map(|one| format!("(self.list.exists(x, x == {one}) ? 1 : 0)")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_text_makes_it_panic(source in "[-a-z0-9.,()\\[\\]{}?:'\"\\\\ !=<>&|+*/%]{0,60}") {
        let kind = schema();
        let object: Json = serde_json::from_str(include_str!("self.json")).unwrap();
        if let Ok(program) = Program::compile(&source, &environment(kind.clone())) {
            drop(program.evaluate(&Self_(&object, &kind), &Budget::new(10_000)));
        }
    }

    #[test]
    fn the_actual_cost_is_within_the_estimate(source in expression()) {
        let kind = schema();
        let object: Json = serde_json::from_str(include_str!("self.json")).unwrap();
        let program = Program::compile(&source, &environment(kind.clone()));
        let program = program.unwrap_or_else(|issues| panic!("{issues}"));
        let budget = Budget::new(u64::MAX);
        drop(program.evaluate(&Self_(&object, &kind), &budget));
        // Comparing numbers of outside counts for nothing in the estimate and for one when it is done.
        let most = program.cost_max().saturating_mul(2).saturating_add(10);
        prop_assert!(budget.spent() <= most, "{} cost {}, at most {}", source, budget.spent(), most);
    }

    #[test]
    fn strings_come_back_as_they_were(text in "\\PC{0,20}") {
        let quoted = format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));
        let program = Program::compile(&quoted, &environment(Type::ANY)).unwrap();
        let value = program.evaluate(&Self_(&Json::Null, &Type::ANY), &Budget::new(100)).unwrap();
        prop_assert_eq!(value.to_json(), Some(Json::from(text)));
    }

    #[test]
    fn numbers_are_added_as_numbers(one in any::<i64>(), two in any::<i64>()) {
        let source = format!("({one}) + ({two})");
        let program = Program::compile(&source, &environment(Type::ANY)).unwrap();
        let value = program.evaluate(&Self_(&Json::Null, &Type::ANY), &Budget::new(100));
        prop_assert_eq!(value.ok().and_then(|value| value.to_json()), one.checked_add(two).map(Json::from));
    }
}
