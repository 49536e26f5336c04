//! Equality and order of values. Comparing charges for every element it looks at.

use std::cmp::Ordering;

use super::{List, Map, Value};
use crate::budget::{Budget, Failure};

impl Value<'_> {
    /// Whether two values are equal; numbers are compared across their types, others are never equal to
    /// those of another type.
    pub(crate) fn equals(&self, other: &Value<'_>, budget: &Budget) -> Result<bool, Failure> {
        budget.work(1)?;
        Ok(match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(one), Value::Bool(two)) => one == two,
            (Value::String(one), Value::String(two)) => **one == **two,
            (Value::Bytes(one), Value::Bytes(two)) => one == two,
            (Value::Duration(one), Value::Duration(two)) => one == two,
            (Value::Timestamp(one), Value::Timestamp(two)) => one == two,
            (Value::Type(one), Value::Type(two)) => one == two,
            (Value::Quantity(one), Value::Quantity(two)) => one == two,
            (Value::Url(one), Value::Url(two)) => one == two,
            (Value::Ip(one), Value::Ip(two)) => one == two,
            (Value::Cidr(one, bits), Value::Cidr(two, bits2)) => (one, bits) == (two, bits2),
            (Value::Semver(one), Value::Semver(two)) => one == two,
            (Value::Format(one), Value::Format(two)) => one == two,
            (Value::AccessCheck(one), Value::AccessCheck(two)) => one == two,
            (Value::Decision(one), Value::Decision(two)) => one == two,
            (Value::Optional(None), Value::Optional(None)) => true,
            (Value::Optional(Some(one)), Value::Optional(Some(two))) => one.equals(two, budget)?,
            (Value::List(one), Value::List(two)) => one.equals(two, budget)?,
            (Value::Map(one), Value::Map(two)) => one.equals(two, budget)?,
            (one, two) => one.number_order(two).is_some_and(Ordering::is_eq),
        })
    }

    fn number_order(&self, other: &Value<'_>) -> Option<Ordering> {
        match (self.whole(), other.whole(), self.float(), other.float()) {
            (Some(one), Some(two), _, _) => Some(one.cmp(&two)),
            (_, _, Some(one), Some(two)) => one.partial_cmp(&two),
            _ => None,
        }
    }

    fn whole(&self) -> Option<i128> {
        match self {
            Value::Int(number) => Some(i128::from(*number)),
            Value::Uint(number) => Some(i128::from(*number)),
            _ => None,
        }
    }

    fn float(&self) -> Option<f64> {
        match self {
            Value::Double(number) => Some(*number),
            other => other.whole().map(|number| number as f64),
        }
    }

    /// Which of two values comes first, where that is a question.
    pub(crate) fn order(&self, other: &Value<'_>) -> Result<Option<Ordering>, Failure> {
        match (self, other) {
            (Value::Bool(one), Value::Bool(two)) => Ok(Some(one.cmp(two))),
            (Value::String(one), Value::String(two)) => Ok(Some((**one).cmp(&**two))),
            (Value::Bytes(one), Value::Bytes(two)) => Ok(Some(one.cmp(two))),
            (Value::Duration(one), Value::Duration(two)) => Ok(Some(one.cmp(two))),
            (Value::Timestamp(one), Value::Timestamp(two)) => Ok(Some(one.cmp(two))),
            (one, two) => match (one.float(), two.float()) {
                (Some(_), Some(_)) => Ok(one.number_order(two)),
                _ => Err(Failure::no_overload()),
            },
        }
    }
}

impl List<'_> {
    fn equals(&self, other: &List<'_>, budget: &Budget) -> Result<bool, Failure> {
        if self.len() != other.len() {
            return Ok(false);
        }
        for (one, two) in self.iter().zip(other.iter()) {
            if !one.equals(&two, budget)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Map<'_> {
    fn equals(&self, other: &Map<'_>, budget: &Budget) -> Result<bool, Failure> {
        if self.len() != other.len() {
            return Ok(false);
        }
        for key in self.keys() {
            budget.work(1)?;
            let Some(key) = super::Key::of(&key) else { return Ok(false) };
            let equal = match (self.get(&key), other.get(&key)) {
                (Some(one), Some(two)) => one.equals(&two, budget)?,
                _ => false,
            };
            if !equal {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
