//! JSON pointers (RFC 6901), and the three JSON Patch operations (RFC 6902) that overriders use.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most steps a pointer may take; deeper documents are refused elsewhere too.
const STEPS_MAX: usize = 100;

/// The way from the root of a document to one of its values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JsonPointer(Vec<String>);

/// Why a pointer leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PointerError {
    /// The text is not a JSON pointer.
    Malformed {
        /// The text.
        text: String,
    },
    /// Nothing is there.
    Missing {
        /// The pointer.
        pointer: String,
    },
    /// The value it goes through is neither object nor list, or the step is no index of the list.
    NoSuchStep {
        /// The pointer.
        pointer: String,
        /// The step.
        step: String,
    },
}

impl fmt::Display for PointerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PointerError::Malformed { text } => {
                write!(formatter, "{text:?} is not a JSON pointer: write /a/b/0, with ~1 for / and ~0 for ~")
            }
            PointerError::Missing { pointer } => write!(formatter, "there is nothing at {pointer}"),
            PointerError::NoSuchStep { pointer, step } => {
                write!(formatter, "{pointer} cannot go through {step:?}")
            }
        }
    }
}

impl FromStr for JsonPointer {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<JsonPointer, PointerError> {
        let malformed = || PointerError::Malformed { text: text.to_owned() };
        if text.is_empty() {
            return Ok(JsonPointer(Vec::new()));
        }
        let steps = text.strip_prefix('/').ok_or_else(malformed)?;
        if steps.split('/').count() > STEPS_MAX {
            return Err(malformed());
        }
        steps.split('/').map(unescape).collect::<Option<_>>().map(JsonPointer).ok_or_else(malformed)
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|step| write!(formatter, "/{}", step.replace('~', "~0").replace('/', "~1")))
    }
}

impl JsonPointer {
    /// The fields and indices that it goes through, unescaped; none for the whole document.
    pub fn steps(&self) -> &[String] {
        &self.0
    }

    /// The value it leads to.
    pub fn get<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(document, |value, step| match value {
            Value::Object(fields) => fields.get(step),
            Value::Array(items) => items.get(index(step)?),
            _ => None,
        })
    }

    /// The value it leads to, to change it.
    pub fn get_mut<'a>(&self, document: &'a mut Value) -> Option<&'a mut Value> {
        self.0.iter().try_fold(document, |value, step| match value {
            Value::Object(fields) => fields.get_mut(step),
            Value::Array(items) => items.get_mut(index(step)?),
            _ => None,
        })
    }

    /// RFC 6902 `add`: sets a field, or inserts into a list (`-` is its end).
    pub fn add(&self, document: &mut Value, new: Value) -> Result<(), PointerError> {
        let Some((last, parent)) = self.parent(document)? else {
            *document = new;
            return Ok(());
        };
        match parent {
            Value::Object(fields) => drop(fields.insert(last.to_owned(), new)),
            Value::Array(items) if last == "-" => items.push(new),
            Value::Array(items) => {
                let at = index(last).filter(|at| *at <= items.len()).ok_or_else(|| self.no_step(last))?;
                items.insert(at, new);
            }
            _ => return Err(self.no_step(last)),
        }
        Ok(())
    }

    /// RFC 6902 `replace`: what is there must exist.
    pub fn replace(&self, document: &mut Value, new: Value) -> Result<(), PointerError> {
        *self.get_mut(document).ok_or_else(|| self.missing())? = new;
        Ok(())
    }

    /// RFC 6902 `remove`: what is there must exist.
    pub fn remove(&self, document: &mut Value) -> Result<(), PointerError> {
        let Some((last, parent)) = self.parent(document)? else {
            *document = Value::Null;
            return Ok(());
        };
        let removed = match parent {
            Value::Object(fields) => fields.remove(last),
            Value::Array(items) => index(last).filter(|at| *at < items.len()).map(|at| items.remove(at)),
            _ => None,
        };
        removed.map(drop).ok_or_else(|| self.missing())
    }

    /// The last step and what it is taken in; none for the whole document.
    fn parent<'a, 'd>(
        &'a self,
        document: &'d mut Value,
    ) -> Result<Option<(&'a str, &'d mut Value)>, PointerError> {
        let Some((last, before)) = self.0.split_last() else { return Ok(None) };
        let parent = JsonPointer(before.to_vec()).get_mut(document).ok_or_else(|| self.missing())?;
        Ok(Some((last, parent)))
    }

    fn missing(&self) -> PointerError {
        PointerError::Missing { pointer: self.to_string() }
    }

    fn no_step(&self, step: &str) -> PointerError {
        PointerError::NoSuchStep { pointer: self.to_string(), step: step.to_owned() }
    }
}

/// An index of a list: digits without a leading zero.
fn index(step: &str) -> Option<usize> {
    let digits = step.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || step.len() > 1 && step.starts_with('0') { None } else { step.parse().ok() }
}

fn unescape(step: &str) -> Option<String> {
    let mut plain = String::with_capacity(step.len());
    let mut characters = step.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '~' => match characters.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            other => other,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn pointer(text: &str) -> JsonPointer {
        text.parse().expect(text)
    }

    #[test]
    fn pointers_lead_where_rfc_6901_says() {
        let document = json!({"foo": ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, "k\"l": 6});
        for (text, expected) in [
            ("/foo/0", Some(json!("bar"))),
            ("/", Some(json!(0))),
            ("/a~1b", Some(json!(1))),
            ("/m~0n", Some(json!(8))),
            ("/k\"l", Some(json!(6))),
            ("", Some(document.clone())),
            ("/foo/00", None),
            ("/foo/2", None),
            ("/foo/-", None),
            ("/foo/0/x", None),
            ("/nothing", None),
        ] {
            assert_eq!(pointer(text).get(&document).cloned(), expected, "{text}");
        }
        for text in ["foo", "/~", "/~2", "/a~"] {
            assert!(text.parse::<JsonPointer>().is_err(), "{text}");
        }
    }

    #[test]
    fn changes_do_what_rfc_6902_says() {
        let mut document = json!({"list": [1, 2], "map": {"a": 1}});
        pointer("/list/1").add(&mut document, json!(9)).expect("insert");
        pointer("/list/-").add(&mut document, json!(3)).expect("append");
        pointer("/map/b").add(&mut document, json!(2)).expect("set");
        pointer("/map/a").replace(&mut document, json!(0)).expect("replace");
        pointer("/list/0").remove(&mut document).expect("remove");
        assert_eq!(document, json!({"list": [9, 2, 3], "map": {"a": 0, "b": 2}}));
        let before = document.clone();
        assert!(pointer("/list/9").add(&mut document, json!(1)).is_err());
        assert!(pointer("/no/thing").add(&mut document, json!(1)).is_err());
        assert!(pointer("/map/a/x").add(&mut document, json!(1)).is_err());
        assert!(pointer("/map/x").replace(&mut document, json!(1)).is_err());
        assert!(pointer("/map/x").remove(&mut document).is_err());
        assert!(pointer("/list/9").remove(&mut document).is_err());
        assert_eq!(document, before, "an error changes nothing");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn reading_never_panics_and_round_trips(text in "(/[a-z0-9~/-]{0,5}){0,6}|\\PC{0,12}") {
            if let Ok(pointer) = text.parse::<JsonPointer>() {
                prop_assert_eq!(pointer.to_string(), text);
            }
        }

        #[test]
        fn every_step_can_be_written(steps in prop::collection::vec("[a~/0-9]{0,4}", 0..5)) {
            let pointer = JsonPointer(steps);
            prop_assert_eq!(pointer.to_string().parse::<JsonPointer>(), Ok(pointer));
        }
    }
}
