//! A resource quantity as text. Its arithmetic belongs to `decide`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

/// Amounts by resource name, for example `cpu` and `memory`.
pub type ResourceList = BTreeMap<String, Quantity>;

/// An amount in Kubernetes' notation such as `500m` or `2Gi`; not yet judged.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Quantity(pub String);

impl Quantity {
    /// The notation as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Quantity(text.to_owned())
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    /// Accepts a bare number too, because `cpu: 2` is how people write it.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Quantity(text)),
            Value::Number(number) => Ok(Quantity(number.to_string())),
            other => Err(de::Error::custom(format!("a quantity is a string or a number, not {other}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_numbers_are_quantities() {
        for (json, expected) in [("\"100m\"", "100m"), ("2", "2"), ("0.5", "0.5"), ("\"1e3\"", "1e3")] {
            let quantity: Quantity = serde_json::from_str(json).expect(json);
            assert_eq!(quantity.as_str(), expected);
        }
        assert!(serde_json::from_str::<Quantity>("true").is_err());
    }
}
