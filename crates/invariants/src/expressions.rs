//! CEL expressions, and the document they are about: refused, or evaluated within their cost budget.

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::{Activation, Budget, Environment, Hooks, Program, Type, Value};

use crate::{json, lines};

struct Only<'a>(&'a serde_json::Value, &'a Type);

impl<'a> Activation<'a> for Only<'a> {
    fn variable(&self, name: &str) -> Option<Value<'a>> {
        (name == "self").then(|| Value::of(self.0, self.1))
    }
}

pub fn invariant(input: &[u8]) {
    let Some([document, source]) = lines(input) else { return };
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
    let document = json(document).unwrap_or_default();
    let first = program.evaluate(&Only(&document, &kind), &Budget::new(10_000));
    let again = program.evaluate(&Only(&document, &kind), &Budget::new(10_000));
    assert_eq!(first.is_ok(), again.is_ok(), "{source}");
}
