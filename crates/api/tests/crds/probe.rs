//! A deserializer that records which fields a type knows although the value does not have them. Given an object in
//! which every field of the schema is filled, it finds fields that the schema lacks.

use std::cell::RefCell;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value};

/// One value, where it stands, and where findings go.
#[derive(Clone)]
pub struct Probe<'a> {
    pub value: Value,
    pub path: String,
    pub missing: &'a RefCell<Vec<String>>,
}

impl<'a> Probe<'a> {
    fn child(&self, name: &str, value: Value) -> Probe<'a> {
        Probe { value, path: format!("{}.{name}", self.path), missing: self.missing }
    }
}

impl<'de, 'a> IntoDeserializer<'de, Error> for Probe<'a> {
    type Deserializer = Probe<'a>;

    fn into_deserializer(self) -> Probe<'a> {
        self
    }
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value.clone() {
            Value::Array(items) => {
                let items = items.into_iter().map(|item| self.child("[]", item));
                visitor.visit_seq(SeqDeserializer::new(items))
            }
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, value)| {
                    let child = self.child(&name, value);
                    (name, child)
                });
                visitor.visit_map(MapDeserializer::new(fields))
            }
            scalar => scalar.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let known = fields.iter().filter(|field| self.value.get(field).is_none());
        self.missing.borrow_mut().extend(known.map(|field| format!("{}.{field}", self.path)));
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.value.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}
