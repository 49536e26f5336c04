//! The conditions of a stage: a path in the object, and the value expected there.

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

/// How deep a path may lead.
const DEPTH_MAX: usize = 50;

/// One question to an object.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Written")]
pub struct Condition {
    path: Vec<String>,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    /// One of the values is this.
    Is(Value),
    /// None of the values is this.
    IsNot(Value),
    /// There is a value, or there is none.
    Exists(bool),
    /// One of the values is a text that looks like this.
    Like(Regex),
    /// None of the values is a text that looks like this.
    Unlike(Regex),
}

/// A condition as it is written: a place and one test.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    at: String,
    is: Option<Value>,
    is_not: Option<Value>,
    exists: Option<bool>,
    like: Option<String>,
    unlike: Option<String>,
}

impl TryFrom<Written> for Condition {
    type Error = String;

    fn try_from(written: Written) -> Result<Condition, String> {
        let Written { at, is, is_not, exists, like, unlike } = written;
        let regex = |text: String| Regex::new(&text).map_err(|error| error.to_string());
        let test = match (is, is_not, exists, like, unlike) {
            (Some(value), None, None, None, None) => Test::Is(value),
            (None, Some(value), None, None, None) => Test::IsNot(value),
            (None, None, Some(wanted), None, None) => Test::Exists(wanted),
            (None, None, None, Some(text), None) => Test::Like(regex(text)?),
            (None, None, None, None, Some(text)) => Test::Unlike(regex(text)?),
            _ => return Err(format!("{at}: say exactly one of is, isNot, exists, like and unlike")),
        };
        Ok(Condition { path: path(&at)?, test })
    }
}

impl Condition {
    /// Whether it holds for an object.
    pub fn holds(&self, object: &Value) -> bool {
        let any = |test: &dyn Fn(&Value) -> bool| any_at(object, &self.path, test);
        let looks = |regex: &Regex, value: &Value| value.as_str().is_some_and(|text| regex.is_match(text));
        match &self.test {
            Test::Is(wanted) => any(&|value| value == wanted),
            Test::IsNot(unwanted) => !any(&|value| value == unwanted),
            Test::Exists(wanted) => any(&|value| !value.is_null()) == *wanted,
            Test::Like(regex) => any(&|value| looks(regex, value)),
            Test::Unlike(regex) => !any(&|value| looks(regex, value)),
        }
    }
}

/// The steps of a path such as `/spec/containers/*/image`.
pub fn path(text: &str) -> Result<Vec<String>, String> {
    let steps = text.strip_prefix('/').ok_or_else(|| format!("a path begins with a slash: {text:?}"))?;
    let steps: Vec<String> =
        steps.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    match steps.len() > DEPTH_MAX {
        true => Err(format!("a path has at most {DEPTH_MAX} steps: {text:?}")),
        false => Ok(steps),
    }
}

fn any_at(value: &Value, path: &[String], test: &dyn Fn(&Value) -> bool) -> bool {
    let Some((step, rest)) = path.split_first() else { return test(value) };
    match (step.as_str(), value) {
        ("*", Value::Array(items)) => items.iter().any(|item| any_at(item, rest, test)),
        ("*", Value::Object(fields)) => fields.values().any(|item| any_at(item, rest, test)),
        (step, Value::Object(fields)) => fields.get(step).is_some_and(|item| any_at(item, rest, test)),
        (step, Value::Array(items)) => {
            let item = step.parse::<usize>().ok().and_then(|place| items.get(place));
            item.is_some_and(|item| any_at(item, rest, test))
        }
        _ => false,
    }
}
