//! The query string, and the options Kubernetes takes from it.

use apimachinery::error::ApiError;
use apimachinery::gotext::quoted;

/// The decoded parameters of a query string, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

/// More parameters than any client sends.
const PARAMETERS_MAX: usize = 1_000;

impl Query {
    /// Reads the part behind the `?`. What is broken or beyond the limit counts as not there, as in Go.
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).take(PARAMETERS_MAX);
        let decoded = pairs.filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |part: &str| percent_decode(&part.replace('+', " "));
            Some((decode(key)?, decode(value)?))
        });
        Self(decoded.collect())
    }

    /// The first value of a parameter; an empty value counts as absent, as in Kubernetes.
    pub fn get(&self, key: &str) -> Option<&str> {
        let first = self.0.iter().find(|(name, _)| name == key);
        first.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Every value of a parameter that may stand several times.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Every parameter with its first value.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().rev().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// A switch: absent, `false` and `0` are off, everything else is on (as Kubernetes' conversion does).
    pub fn flag(&self, key: &str) -> bool {
        match self.get(key) {
            None => false,
            Some(text) => !text.eq_ignore_ascii_case("false") && text != "0",
        }
    }

    /// A whole number.
    pub fn number(&self, key: &str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.get(key) else { return Ok(None) };
        let parsed = text.parse().map_err(|error: std::num::ParseIntError| {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            let why = match error.kind() {
                PosOverflow | NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            ApiError::bad_request(format!("strconv.ParseInt: parsing {}: {why}", quoted(text)))
        });
        parsed.map(Some)
    }
}

/// Decodes `%XX`; `None` for broken escapes and for bytes that are no UTF-8.
pub fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let high = char::from(bytes.next()?).to_digit(16)?;
        let low = char::from(bytes.next()?).to_digit(16)?;
        decoded.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_decodes() {
        let query =
            Query::parse("labelSelector=a%3Db%2Cc&watch=true&dryRun=All&dryRun=x&limit=5&empty=&bad=%f");
        assert_eq!(query.get("labelSelector"), Some("a=b,c"));
        assert!(query.flag("watch"));
        assert!(!query.flag("empty"));
        assert_eq!(query.get("empty"), None);
        assert_eq!(query.all("dryRun").collect::<Vec<_>>(), ["All", "x"]);
        assert_eq!(query.number("limit"), Ok(Some(5)));
        assert_eq!(query.number("watch").unwrap_err().code, 400);
        assert_eq!(query.get("bad"), None);
        assert_eq!(Query::parse(&"a=b&".repeat(5_000)).all("a").count(), PARAMETERS_MAX);
    }
}
