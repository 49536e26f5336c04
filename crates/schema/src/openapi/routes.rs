//! Which paths and operations a kind has, in no dialect: both documents are written from this list.

use serde_json::Value;

use super::components::{DELETE_OPTIONS, STATUS};
use super::published::{Published, PublishedSubresource};
use crate::kinds;

/// One path with its operations.
pub(super) struct Route<'a> {
    pub(super) path: String,
    pub(super) operations: Vec<Operation<'a>>,
}

impl Route<'_> {
    /// The path's entry in a document: how a name in the path, `?pretty` and an operation are written
    /// depends on the dialect.
    pub(super) fn item(
        &self,
        in_path: impl Fn(&str) -> Value,
        pretty: Value,
        rendered: impl Fn(&Operation<'_>) -> Value,
    ) -> Value {
        let names = ["name", "namespace"].into_iter();
        let names = names.filter(|name| self.path.contains(&format!("{{{name}}}")));
        let parameters: Vec<Value> = names.map(in_path).chain([pretty]).collect();
        let operations = self.operations.iter().map(|one| (one.method.to_owned(), rendered(one)));
        operations.chain([("parameters".to_owned(), parameters.into())]).collect()
    }
}

/// One method of a path.
pub(super) struct Operation<'a> {
    pub(super) method: &'static str,
    /// `x-kubernetes-action`.
    pub(super) action: &'static str,
    pub(super) id: String,
    /// `x-kubernetes-group-version-kind`: group, version and kind.
    pub(super) gvk: (&'a str, &'a str, &'a str),
    /// Query parameters: name and type.
    pub(super) parameters: &'static [(&'static str, &'static str)],
    pub(super) body: Body,
    /// The component of a good answer.
    pub(super) answer: String,
    /// The codes of good answers.
    pub(super) codes: &'static [&'static str],
}

/// What a request carries.
pub(super) enum Body {
    Nothing,
    /// An object of this component, which must be there.
    Object(String),
    /// Options of this component, which may be left out.
    Options(&'static str),
    /// A patch of one of these media types.
    Patch(&'static [&'static str]),
}

type Parameters = &'static [(&'static str, &'static str)];

const LIST: Parameters = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const WRITE: Parameters = &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const PATCH: Parameters =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")];
const DELETE: Parameters = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
const DELETE_COLLECTION: Parameters = &[
    ("continue", "string"),
    ("dryRun", "string"),
    ("fieldSelector", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
];

const BUILTIN_PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];
const CUSTOM_PATCHES: &[&str] =
    &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];

/// The paths of a kind.
pub(super) fn routes<'a>(kind: &'a Published<'a>) -> Vec<Route<'a>> {
    let base = match kind.group {
        "" => format!("/api/{}", kind.version),
        group => format!("/apis/{group}/{}", kind.version),
    };
    let place = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{base}{place}/{}", kind.plural);
    let mut routes = vec![
        Route { operations: collection_operations(kind), path: collection.clone() },
        Route { operations: item_operations(kind), path: format!("{collection}/{{name}}") },
    ];
    if kind.namespaced && kind.verbs.contains(&"list") {
        let mut everywhere = operation(kind, "list", None);
        everywhere.id = format!("list{}{}ForAllNamespaces", prefix(kind), kind.kind);
        routes.push(Route { path: format!("{base}/{}", kind.plural), operations: vec![everywhere] });
    }
    // Connect subresources (exec, proxy, …) are skipped: they have no kind.
    for subresource in kind.subresources.iter().filter(|sub| component(kind, Some(sub)).is_some()) {
        let path = format!("{collection}/{{name}}/{}", subresource.name);
        let verbs = ["get", "create", "update", "patch", "delete"];
        let verbs = verbs.into_iter().filter(|verb| subresource.verbs.contains(verb));
        let operations = verbs.map(|verb| operation(kind, verb, Some(subresource))).collect();
        routes.push(Route { path, operations });
    }
    routes.retain(|route| !route.operations.is_empty());
    routes
}

fn collection_operations<'a>(kind: &'a Published<'a>) -> Vec<Operation<'a>> {
    let verbs = ["list", "create", "deletecollection"].into_iter().filter(|verb| kind.verbs.contains(verb));
    verbs.map(|verb| operation(kind, verb, None)).collect()
}

fn item_operations<'a>(kind: &'a Published<'a>) -> Vec<Operation<'a>> {
    let verbs = ["get", "update", "patch", "delete"].into_iter().filter(|verb| kind.verbs.contains(verb));
    verbs.map(|verb| operation(kind, verb, None)).collect()
}

fn operation<'a>(
    kind: &'a Published<'a>,
    verb: &str,
    subresource: Option<&'a PublishedSubresource<'a>>,
) -> Operation<'a> {
    let object = component(kind, subresource).unwrap_or_default();
    let body = || Body::Object(object.clone());
    let patches = if kind.is_custom() { CUSTOM_PATCHES } else { BUILTIN_PATCHES };
    let status = STATUS.to_owned();
    let list = kind.list_component().unwrap_or_default();
    let options = Body::Options(DELETE_OPTIONS);
    type Parts =
        (&'static str, &'static str, &'static str, Parameters, Body, String, &'static [&'static str]);
    let (method, action, word, parameters, body, answer, codes): Parts = match verb {
        "list" => ("get", "list", "list", LIST, Body::Nothing, list, &["200"]),
        "create" => ("post", "post", "create", WRITE, body(), object.clone(), &["200", "201", "202"]),
        "update" => ("put", "put", "replace", WRITE, body(), object.clone(), &["200", "201"]),
        "patch" => ("patch", "patch", "patch", PATCH, Body::Patch(patches), object, &["200", "201"]),
        "delete" => ("delete", "delete", "delete", DELETE, options, status, &["200", "202"]),
        "deletecollection" => {
            ("delete", "deletecollection", "delete", DELETE_COLLECTION, options, status, &["200"])
        }
        _ => ("get", "get", "read", &[], Body::Nothing, object, &["200"]),
    };
    let id = operation_id(kind, verb, word, subresource);
    Operation { method, action, id, gvk: spoken(kind, subresource), parameters, body, answer, codes }
}

/// The kind that an operation is filed under. Subresources of custom kinds stay with their kind, as in
/// Kubernetes.
fn spoken<'a>(
    kind: &'a Published<'a>,
    subresource: Option<&'a PublishedSubresource<'a>>,
) -> (&'a str, &'a str, &'a str) {
    match subresource {
        Some(sub) if !kind.is_custom() => (sub.group, sub.version, sub.kind),
        _ => (kind.group, kind.version, kind.kind),
    }
}

fn component(kind: &Published<'_>, subresource: Option<&PublishedSubresource<'_>>) -> Option<String> {
    match subresource {
        Some(sub) if sub.group != kind.group || sub.kind != kind.kind => {
            sub.schema.and_then(kinds::name).map(str::to_owned)
        }
        _ => Some(kind.component()),
    }
}

fn operation_id(
    kind: &Published<'_>,
    verb: &str,
    word: &str,
    subresource: Option<&PublishedSubresource<'_>>,
) -> String {
    let collection = if verb == "deletecollection" { "Collection" } else { "" };
    let namespaced = if kind.namespaced { "Namespaced" } else { "" };
    let suffix = subresource.map(|sub| capitalized(sub.name)).unwrap_or_default();
    format!("{word}{}{collection}{namespaced}{}{suffix}", prefix(kind), kind.kind)
}

/// The group version in operation ids, such as `AppsV1` or `CoreV1`.
fn prefix(kind: &Published<'_>) -> String {
    let group = kind.group.trim_end_matches(".k8s.io");
    let group: String = match group {
        "" => "Core".to_owned(),
        group => group.split('.').map(capitalized).collect(),
    };
    format!("{group}{}", capitalized(kind.version))
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
