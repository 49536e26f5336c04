//! Timestamps in objects: RFC 3339, UTC. Reads no clock.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An RFC 3339 moment; what was read with a fraction is written with it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Timestamp);

impl Time {
    /// The moment as a point on the time line.
    pub fn timestamp(self) -> Timestamp {
        self.0
    }
}

impl From<Timestamp> for Time {
    /// Cuts off the fraction of a second, because Kubernetes stamps objects with whole seconds.
    fn from(timestamp: Timestamp) -> Self {
        let second = timestamp.as_second() - i64::from(timestamp.subsec_nanosecond() < 0);
        Time(Timestamp::from_second(second).unwrap_or(timestamp))
    }
}

impl FromStr for Time {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        text.parse().map(Time)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| de::Error::custom(format!("{text:?} is no RFC 3339 time: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let time: Time = text.parse().expect(text);
        assert_eq!(time.to_string(), expected, "{text}");
    }

    #[test]
    fn what_was_read_is_written_again() {
        check("2024-07-01T08:33:28Z", "2024-07-01T08:33:28Z");
        check("2024-07-01T08:33:28.123456Z", "2024-07-01T08:33:28.123456Z");
        check("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z");
        check("2024-07-01T10:33:28+02:00", "2024-07-01T08:33:28Z");
    }

    #[test]
    fn a_stamp_has_whole_seconds() {
        for (text, expected) in [
            ("2024-07-01T08:33:28.999Z", "2024-07-01T08:33:28Z"),
            ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59Z"),
        ] {
            let timestamp: Timestamp = text.parse().expect(text);
            assert_eq!(Time::from(timestamp).to_string(), expected);
        }
    }

    #[test]
    fn no_time_is_an_error_that_shows_the_text() {
        let error = serde_json::from_str::<Time>("\"yesterday\"").expect_err("not a time");
        assert!(error.to_string().contains("yesterday"), "{error}");
    }
}
