//! Objects as people name them: `Deployment nginx`, `Deployment shop/web`, `Cluster member1`.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// The namespace of namespaced objects that name none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// An object, by kind and name. The group is needed only where two kinds have the same name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Reference {
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// The group, from `Kind.group`.
    pub group: Option<String>,
    /// The namespace, if one is named.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

/// A text that names no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an object; write `Kind name` or `Kind namespace/name`, such as `Deployment shop/web`")]
pub struct Unreadable(String);

impl Reference {
    /// The namespace, or the one that is meant when none is named.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }
}

impl FromStr for Reference {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        let unreadable = || Unreadable(text.to_owned());
        let mut words = text.split_whitespace();
        let (kind, name) = words.next().zip(words.next()).ok_or_else(unreadable)?;
        if words.next().is_some() {
            return Err(unreadable());
        }
        let (kind, group) = match kind.split_once('.') {
            Some((kind, group)) => (kind, Some(group.to_owned())),
            None => (kind, None),
        };
        let (namespace, name) = match name.split_once('/') {
            Some((namespace, name)) => (Some(namespace.to_owned()), name),
            None => (None, name),
        };
        if kind.is_empty() || name.is_empty() || name.contains('/') {
            return Err(unreadable());
        }
        Ok(Self { kind: kind.to_owned(), group, namespace, name: name.to_owned() })
    }
}

impl TryFrom<String> for Reference {
    type Error = Unreadable;

    fn try_from(text: String) -> Result<Self, Unreadable> {
        text.parse()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.kind)?;
        if let Some(group) = &self.group {
            write!(formatter, ".{group}")?;
        }
        formatter.write_str(" ")?;
        if let Some(namespace) = &self.namespace {
            write!(formatter, "{namespace}/")?;
        }
        formatter.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, readable: bool) {
        match text.parse::<Reference>() {
            Ok(reference) => assert!(readable && reference.to_string() == text, "{text}: {reference:?}"),
            Err(error) => assert!(!readable && error.to_string().contains(text), "{error}"),
        }
    }

    #[test]
    fn objects_are_named_by_kind_and_name() {
        check("Deployment nginx", true);
        check("Deployment shop/web", true);
        check("Workload.example.io shop/web", true);
        check("Deployment", false);
        check("Deployment a b", false);
        check("Deployment shop/", false);
        check("Deployment a/b/c", false);
    }
}
