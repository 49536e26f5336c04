//! Expressions that would exhaust a server without bounds: each is refused by the parser, or stops by itself, soon.

use std::time::{Duration, Instant};

use super::{Self_, environment};
use crate::{Budget, Failure, Program, Type};

/// Compiles and evaluates within a time that a busy machine keeps too; without bounds it would take hours.
fn end(source: &str, object: &serde_json::Value) -> Result<String, Failure> {
    let begun = Instant::now();
    let environment = environment(Type::ANY);
    let outcome = match Program::compile(source, &environment) {
        Err(issues) => Ok(issues.to_string()),
        Ok(program) => {
            let budget = Budget::new(1_000_000);
            program.evaluate(&Self_(object, &Type::ANY), &budget).map(|value| super::shown(&value))
        }
    };
    assert!(begun.elapsed() < Duration::from_secs(60), "{} took {:?}", cut(source), begun.elapsed());
    outcome
}

fn cut(source: &str) -> &str {
    &source[..source.floor_char_boundary(80)]
}

#[test]
fn deep_expressions_are_refused() {
    let check = |source: String| {
        let told = end(&source, &serde_json::Value::Null).unwrap();
        assert!(told.contains("recursion limit exceeded"), "{}: {}", cut(&source), cut(&told));
    };
    for depth in [300, 10_000] {
        check(format!("{}1{}", "(".repeat(depth), ")".repeat(depth)));
        check(format!("{}1{}", "[".repeat(depth), "]".repeat(depth)));
        check(format!("{}{{1:1}}{}", "{1:".repeat(depth), "}".repeat(depth)));
        check(format!("1{}", "+1".repeat(depth)));
        check(format!("self{}", ".a".repeat(depth)));
        check(format!("self{}", "[0]".repeat(depth)));
        check(format!("{}1", "true?1:".repeat(depth)));
        check(format!("{}1{}", "int(".repeat(depth), ")".repeat(depth)));
    }
    let told = end(&"x".repeat(200_000), &serde_json::Value::Null).unwrap();
    assert!(told.contains("code point size exceeds limit"), "{}", cut(&told));
    assert_eq!(end(&format!("{}true", "!".repeat(50_000)), &serde_json::Value::Null).unwrap(), "true");
    let flat = format!("true{}", " && true".repeat(10_000));
    assert_eq!(end(&flat, &serde_json::Value::Null).unwrap(), "true");
}

#[test]
fn bombs_end_within_their_budget() {
    let object = serde_json::json!({ "list": vec![1; 1000], "text": "a".repeat(100_000) });
    let doubled = |times: usize, what: &str| format!("[{what}]{}", ".map(x, x + x)".repeat(times));
    for source in [
        "self.list.all(a, self.list.all(b, self.list.all(c, a == b && b == c)))".to_owned(),
        "self.list.map(a, self.list.map(b, self.list.map(c, c)))".to_owned(),
        "self.list.exists(a, self.list.exists(b, self.list.exists(c, false)))".to_owned(),
        doubled(60, "self.text"),
        doubled(60, "self.list"),
        doubled(60, "'abc'"),
        "lists.range(9223372036854775807)".to_owned(),
        "lists.range(100000000).size()".to_owned(),
        "self.text.replace('', self.text)".to_owned(),
        "self.text.split('').join(self.text)".to_owned(),
        "self.list.exists(x, self.text.matches('(a|aa)+$b'))".to_owned(),
        "self.list.all(x, self.text.contains(self.text))".to_owned(),
        "self.list.all(x, self.list == self.list.map(y, y))".to_owned(),
        "lists.range(2000).distinct()".to_owned(),
        "lists.range(5000).sort().size()".to_owned(),
        "sets.contains(lists.range(3000), lists.range(3000))".to_owned(),
        "self.list.map(x, self.text).join('').size() > 0".to_owned(),
        "self.list.all(x, '%s%s%s'.format([self.text, self.text, self.text]).size() > 0)".to_owned(),
    ] {
        assert_eq!(end(&source, &object), Err(Failure::Exhausted), "{}", cut(&source));
    }
}

#[test]
fn patterns_take_time_that_grows_with_the_text_only() {
    let object = serde_json::json!({ "text": "a".repeat(5_000) });
    assert_eq!(end("self.text.matches('^(a+)+$')", &object).unwrap(), "true");
    assert_eq!(end("self.text.matches('^(a|a?)+b$')", &object).unwrap(), "false");
}
