//! Finds duplicate keys in a JSON text. A parsed object no longer shows them: the last key won.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::REPORTED_MAX;
use crate::structural::child;

/// The paths of keys that stand twice, each once, in the order of the document. Stops where the text stops
/// being JSON.
pub fn duplicate_fields(raw: &[u8]) -> Vec<String> {
    faults_in_order(raw, &[]).into_iter().map(|(_, path)| path).collect()
}

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It stands twice.
    Duplicate,
    /// The schema does not have it.
    Unknown,
}

/// The paths of keys that stand twice and of those that are unknown, each once, in the order of the document.
pub fn faults_in_order(raw: &[u8], unknown: &[String]) -> Vec<(Fault, String)> {
    let mut found = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(raw);
    let scan = Scan { path: "", unknown, found: &mut found };
    // A text that is no JSON is refused by the parser proper; here it only ends the search.
    let _ended_early = scan.deserialize(&mut reader).is_err();
    found
}

struct Scan<'a> {
    path: &'a str,
    unknown: &'a [String],
    found: &'a mut Vec<(Fault, String)>,
}

impl Scan<'_> {
    fn note(&mut self, fault: Fault, path: &str) {
        if self.found.len() < REPORTED_MAX && !self.found.iter().any(|(_, other)| other == path) {
            self.found.push((fault, path.to_owned()));
        }
    }
}

impl<'de> DeserializeSeed<'de> for Scan<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scan<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let path = child(self.path, &key);
            if seen.contains(&key) {
                self.note(Fault::Duplicate, &path);
            }
            if self.unknown.contains(&path) {
                self.note(Fault::Unknown, &path);
            }
            map.next_value_seed(Scan { path: &path, unknown: self.unknown, found: self.found })?;
            seen.insert(key);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        loop {
            let path = format!("{}[{index}]", self.path);
            if items
                .next_element_seed(Scan { path: &path, unknown: self.unknown, found: self.found })?
                .is_none()
            {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
