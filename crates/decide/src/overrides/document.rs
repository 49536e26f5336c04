//! Reads YAML documents that are kept as text in fields. A few aliases can repeat a document a million times, so what is
//! read is counted and the reader stops when it becomes much larger than the text.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A document may be this many times larger than its text. Without aliases, none is twice as large.
const GROWTH_MAX: usize = 8;
/// What a short text may become in any case.
const SIZE_FREE_BYTES: usize = 4096;
/// Deeper documents are refused: each level indents every line below it when the document is written again.
const DEPTH_MAX: usize = 64;

/// Reads a text that the template's owner wrote.
pub(super) fn read_yaml(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_depth: DEPTH_MAX },
    };
    let left = Cell::new(size_max(text));
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        Bounded(&left).deserialize(deserializer)
    });
    read.map_err(|error| error.to_string())
}

/// Writes a changed document, unless it would be much larger than the text it was read from and what was put into it.
pub(super) fn write_yaml(document: &Value, text: &str, added: usize) -> Result<String, String> {
    let written = serde_saphyr::to_string(document).map_err(|error| error.to_string())?;
    let most = size_max(text) + GROWTH_MAX * added;
    if written.len() > most {
        return Err(format!("it would be written as {} bytes, and {most} are allowed", written.len()));
    }
    Ok(written)
}

fn size_max(text: &str) -> usize {
    SIZE_FREE_BYTES + GROWTH_MAX * text.len()
}

/// Builds a value, and counts one for each node and the bytes of each text.
#[derive(Clone, Copy)]
struct Bounded<'a>(&'a Cell<usize>);

impl Bounded<'_> {
    fn count<E: serde::de::Error>(self, size: usize) -> Result<(), E> {
        let left = self.0.get().checked_sub(size + 1);
        left.map(|left| self.0.set(left))
            .ok_or_else(|| E::custom("its aliases make it much larger than its text"))
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a document")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.count(0).map(|()| value.into())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.count(0).map(|()| value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.count(0).map(|()| value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.count(0).map(|()| value.into())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.count(value.len()).map(|()| value.into())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.count(0).map(|()| Value::Null)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.count(0)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.count(0)?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.count(key.len())?;
            let value = entries.next_value_seed(self)?;
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_are_read_as_before() {
        let text = "a: &a [1, -2, 1.5, true, ~, x]\nb: *a\n3: {c: '4'}\n";
        let list = json!([1, -2, 1.5, true, null, "x"]);
        assert_eq!(read_yaml(text), Ok(json!({ "a": list, "b": list, "3": { "c": "4" } })));
    }

    #[test]
    fn aliases_that_repeat_without_end_are_refused() {
        let mut nodes = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..4 {
            nodes += &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(","));
        }
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(10_000), vec!["*a"; 1_000].join(","));
        for text in [nodes, long] {
            let refused = read_yaml(&text).expect_err("it would be a thousand times as large");
            assert!(refused.contains("much larger than its text"), "{refused}");
        }
    }

    #[test]
    fn depth_is_bounded_because_every_level_is_indented() {
        let nested = |depth: usize| format!("{}{}", "{a: ".repeat(depth), "}".repeat(depth));
        assert!(read_yaml(&nested(40)).is_ok());
        assert!(read_yaml(&nested(100)).is_err());
        assert!(write_yaml(&json!(["x".repeat(10_000)]), "", 0).is_err());
    }
}
