//! Expressions (CEL): whatever is written is refused or evaluated, within its budget, and nothing panics.
#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::{Activation, Budget, Environment, Hooks, Program, Type, Value};
use libfuzzer_sys::fuzz_target;

struct Only<'a>(&'a serde_json::Value, &'a Type);

impl<'a> Activation<'a> for Only<'a> {
    fn variable(&self, name: &str) -> Option<Value<'a>> {
        (name == "self").then(|| Value::of(self.0, self.1))
    }
}

fuzz_target!(|input: (&str, &str)| {
    let (source, document) = input;
    let kind = Type::ANY;
    let hooks = Hooks {
        pattern: |text| {
            let built = regex::RegexBuilder::new(text).size_limit(1 << 18).dfa_size_limit(1 << 18).build();
            built.map(Arc::new).map_err(|error| error.to_string())
        },
        quantity: |text| text.parse::<i64>().ok().map(i128::from),
        format: |_, text| Some(if text.is_empty() { Vec::new() } else { vec![text.to_owned()] }),
    };
    let variables = BTreeMap::from([("self".to_owned(), kind.clone())]);
    let Ok(program) = Program::compile(source, &Environment { variables, hooks }) else { return };
    let document = serde_json::from_str(document).unwrap_or_default();
    let budget = Budget::new(10_000);
    let _ = program.evaluate(&Only(&document, &kind), &budget);
});
