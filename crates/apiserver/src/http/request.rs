//! Parses the path and query of a request into Kubernetes' request info. Must not know which resources exist.

use super::query::percent_decode;

/// Where a request points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `/api/V/…` or `/apis/G/V/…` with at least a resource.
    Resource(ResourcePath),
    /// Everything else, as decoded segments: `["apis", "apps"]`, `["healthz"]`, `[]` for `/`.
    Other(Vec<String>),
    /// An invalid path: bad escapes or empty segments.
    Malformed,
}

/// A resource, a collection of it, one object of it, or a part of one object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourcePath {
    /// API group, empty for core.
    pub group: String,
    /// API version, such as `v1`.
    pub version: String,
    /// Namespace, `None` for cluster-scoped paths and lists over all namespaces.
    pub namespace: Option<String>,
    /// Plural resource name.
    pub resource: String,
    /// Object name, `None` for collections.
    pub name: Option<String>,
    /// `status`, `scale`, …; deeper segments are joined by `/`.
    pub subresource: Option<String>,
}

impl Target {
    /// Reads the path of a URI.
    pub fn parse(path: &str) -> Self {
        let Some(segments) = segments(path) else { return Self::Malformed };
        let words: Vec<&str> = segments.iter().map(String::as_str).collect();
        let resource = match words.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => ResourcePath::parse("", version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => {
                ResourcePath::parse(group, version, rest)
            }
            _ => return Self::Other(segments),
        };
        Self::Resource(resource)
    }
}

impl ResourcePath {
    fn parse(group: &str, version: &str, rest: &[&str]) -> Self {
        let base = Self { group: group.to_owned(), version: version.to_owned(), ..Self::default() };
        match rest {
            // `/namespaces/x` and its own subresources are the Namespace itself, not something inside it.
            ["namespaces", name] => base.object("namespaces", name, &[]),
            ["namespaces", name, part @ ("status" | "finalize")] => base.object("namespaces", name, &[part]),
            ["namespaces", namespace, resource, inner @ ..] => {
                let base = Self { namespace: Some((*namespace).to_owned()), ..base };
                base.collection_or_object(resource, inner)
            }
            [resource, inner @ ..] => base.collection_or_object(resource, inner),
            [] => base,
        }
    }

    fn collection_or_object(self, resource: &str, inner: &[&str]) -> Self {
        match inner {
            [] => Self { resource: resource.to_owned(), ..self },
            [name, parts @ ..] => self.object(resource, name, parts),
        }
    }

    fn object(self, resource: &str, name: &str, parts: &[&str]) -> Self {
        Self {
            resource: resource.to_owned(),
            name: Some(name.to_owned()),
            subresource: (!parts.is_empty()).then(|| parts.join("/")),
            ..self
        }
    }
}

/// The decoded segments of a path. A trailing slash is forgiven, an empty segment inside is not.
fn segments(path: &str) -> Option<Vec<String>> {
    let trimmed = path.strip_prefix('/')?;
    let trimmed = trimmed.strip_suffix('/').unwrap_or(trimmed);
    if trimmed.is_empty() {
        return Some(Vec::new());
    }
    trimmed.split('/').map(|segment| percent_decode(segment).filter(|text| !text.is_empty())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: (&str, &str, Option<&str>, &str, Option<&str>, Option<&str>)) {
        let (group, version, namespace, resource, name, subresource) = expected;
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let expected = ResourcePath {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: owned(namespace),
            resource: resource.to_owned(),
            name: owned(name),
            subresource: owned(subresource),
        };
        assert_eq!(Target::parse(path), Target::Resource(expected), "{path}");
    }

    #[test]
    fn resource_paths() {
        check("/api/v1/pods", ("", "v1", None, "pods", None, None));
        check("/api/v1/namespaces", ("", "v1", None, "namespaces", None, None));
        check("/api/v1/namespaces/a", ("", "v1", None, "namespaces", Some("a"), None));
        check("/api/v1/namespaces/a/status", ("", "v1", None, "namespaces", Some("a"), Some("status")));
        check("/api/v1/namespaces/a/pods", ("", "v1", Some("a"), "pods", None, None));
        check("/api/v1/namespaces/a/pods/p/log", ("", "v1", Some("a"), "pods", Some("p"), Some("log")));
        check("/apis/apps/v1/deployments/", ("apps", "v1", None, "deployments", None, None));
        check("/api/v1/nodes/n%2Fx", ("", "v1", None, "nodes", Some("n/x"), None));
    }

    #[test]
    fn other_paths() {
        assert_eq!(Target::parse("/"), Target::Other(vec![]));
        assert_eq!(
            Target::parse("/apis/apps/v1"),
            Target::Other(vec!["apis".into(), "apps".into(), "v1".into()])
        );
        for path in ["", "api", "//api/v1/pods", "/api//v1/pods", "/api/v1/%zz", "/api/v1/%ff"] {
            assert_eq!(Target::parse(path), Target::Malformed, "{path}");
        }
    }
}
