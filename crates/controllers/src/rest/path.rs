//! Request paths. Segments and queries are percent-encoded here and nowhere else: a [`Path`] cannot be made of
//! formatted text, so a name never becomes another path, a query or another object.

use std::fmt;

use api::kinds::Kind;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Error;

/// A path on an API server, with its query.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    path: String,
    query: String,
    /// A segment that no object can have and that would mean another path: nothing is sent.
    impossible: bool,
}

impl Path {
    /// A path that stands in the code as it is.
    pub fn fixed(path: &'static str) -> Self {
        Self { path: path.to_owned(), query: String::new(), impossible: false }
    }

    /// The discovery document (APIResourceList) of an API version.
    pub fn of_version(api_version: &str) -> Self {
        match api_version.split_once('/') {
            None => Self::fixed("/api").below(api_version),
            Some((group, version)) => Self::fixed("/apis").below(group).below(version),
        }
    }

    /// The path one segment further, whatever the segment says.
    #[must_use]
    pub fn below(&self, segment: &str) -> Self {
        let Self { path, query, impossible } = self;
        // Clients do not percent-encode dots, and an empty name would mean the whole collection.
        let impossible = *impossible || matches!(segment, "" | "." | "..");
        Self { path: format!("{path}/{}", encoded(segment)), query: query.clone(), impossible }
    }

    /// The same path with one more parameter in its query.
    #[must_use]
    pub fn with(&self, parameter: &'static str, value: &str) -> Self {
        let separator = if self.query.is_empty() { '?' } else { '&' };
        let query = format!("{}{separator}{parameter}={}", self.query, encoded(value));
        Self { query, ..self.clone() }
    }

    /// What stands in the request.
    pub fn target(&self) -> Result<String, Error> {
        match self.impossible {
            false => Ok(format!("{}{}", self.path, self.query)),
            true => Err(Error::Refused {
                action: format!("use the path {}", self.path),
                code: 400,
                message: "a name is empty, \".\" or \"..\"".to_owned(),
            }),
        }
    }
}

/// The path without its query.
impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.path)
    }
}

/// The path of a collection; its objects are one segment below.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Collection(Path);

impl Collection {
    /// The collection of a resource; an empty namespace is the cluster, or all namespaces.
    pub fn new(api_version: &str, plural: &str, namespace: &str) -> Self {
        let version = Path::of_version(api_version);
        Self(match namespace {
            "" => version.below(plural),
            namespace => version.below("namespaces").below(namespace).below(plural),
        })
    }

    /// The collection of one of Karmada's kinds.
    pub fn of(kind: &Kind, namespace: &str) -> Self {
        Self::new(&kind.api_version(), kind.plural, namespace)
    }

    /// The path of the collection itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of one object.
    pub fn object(&self, name: &str) -> Path {
        self.0.below(name)
    }
}

impl fmt::Display for Collection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Serialize for Collection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Reads only what a collection was written as, for plans that were saved.
impl<'de> Deserialize<'de> for Collection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = String::deserialize(deserializer)?;
        let segments = path.strip_prefix("/api/").or_else(|| path.strip_prefix("/apis/"));
        let is_written = |segment: &str| {
            !matches!(segment, "" | "." | "..") && segment.bytes().all(|byte| is_plain(byte) || byte == b'%')
        };
        if !segments.is_some_and(|segments| segments.split('/').all(is_written)) {
            return Err(D::Error::custom(format!("{path:?} is no path of a collection")));
        }
        Ok(Self(Path { path, query: String::new(), impossible: false }))
    }
}

/// Everything but letters, digits and `-._~:` as `%` and two digits. A colon is part of many names of roles and means
/// nothing in a segment or a query.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match is_plain(byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &Path) -> String {
        path.target().expect("a path that can be sent")
    }

    #[test]
    fn paths_are_kubernetes_paths() {
        let check = |api_version, plural, namespace, expected: &str| {
            assert_eq!(target(&Collection::new(api_version, plural, namespace).object("a")), expected);
        };
        check("v1", "nodes", "", "/api/v1/nodes/a");
        check("v1", "pods", "default", "/api/v1/namespaces/default/pods/a");
        check("apps/v1", "deployments", "default", "/apis/apps/v1/namespaces/default/deployments/a");
        let roles = Collection::new("rbac.authorization.k8s.io/v1", "clusterroles", "");
        let path = roles.object("system:node").below("status");
        assert_eq!(target(&path), "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node/status");
        let list = roles.path().with("labelSelector", "a.b/c=d,e!=f").with("limit", "5");
        assert_eq!(
            target(&list),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles?labelSelector=a.b%2Fc%3Dd%2Ce%21%3Df&limit=5"
        );
        assert_eq!(list.to_string(), "/apis/rbac.authorization.k8s.io/v1/clusterroles");
    }

    #[test]
    fn m3_no_name_leaves_its_segment() {
        let hostile = [
            "kube-system?x=",
            "a/b",
            "a%2Fb",
            "a#b",
            "a b",
            "ä€",
            "a&b=c",
            "a\r\nHost: x",
            "..%2f",
            "a/../b",
            "\0",
            ";x",
            "%",
        ];
        for name in hostile {
            let places = [
                Collection::new("apps/v1", "deployments", name).object("x"),
                Collection::new("apps/v1", "deployments", "x").object(name),
                Collection::new("apps/v1", name, "x").object("x"),
                Collection::new(&format!("apps/{name}"), "deployments", "x").object("x"),
                Path::fixed("/apis/apps/v1/namespaces/x/deployments/x").with("a", name),
            ];
            for place in places {
                let uri: http::Uri = target(&place).parse().expect("a request target");
                assert_eq!(uri.path().matches('/').count(), 7, "{name:?}: {uri}");
                assert_eq!(
                    uri.query().map_or(0, |query| query.matches(['=', '&']).count() - 1),
                    0,
                    "{name:?}: {uri}"
                );
                assert!(
                    uri.path().bytes().all(|byte| byte.is_ascii_graphic() && !b"#?;".contains(&byte)),
                    "{uri}"
                );
            }
        }
        let group = Collection::new("a?b/v1", "pods", "").object("x");
        assert_eq!(target(&group), "/apis/a%3Fb/v1/pods/x");
    }

    #[test]
    fn a_collection_is_read_as_it_was_written() {
        let read = |text: &str| serde_json::from_value::<Collection>(text.into());
        let collection = Collection::new("apps/v1", "deployments", "a?b");
        assert_eq!(read(&collection.to_string()).expect("as it was written"), collection);
        for text in
            ["", "/api/v1/pods?x=y", "/apis/apps/v1/../v2", "/api/v1/", "pods", "/readyz", "/api/v1/a b"]
        {
            assert!(read(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn m3_a_path_that_would_mean_another_is_not_sent() {
        for name in ["", ".", ".."] {
            let place = Collection::new("v1", "secrets", "team-a").object(name);
            assert!(matches!(place.target(), Err(Error::Refused { code: 400, .. })), "{name:?}");
            assert!(Collection::new("v1", name, "team-a").object("x").target().is_err(), "{name:?}");
        }
    }
}
