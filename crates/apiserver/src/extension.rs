//! Computed resources, comparable to an aggregated API server in the same process: the embedding process passes in
//! one function that answers requests for a group. The server authenticates, authorizes, limits and routes these
//! requests; it must not know what is computed.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::Value;
use store::Store;
use tokio::sync::Semaphore;

use crate::authn::Identity;
use crate::authz::{Action, Object, Rbac};
pub use crate::registry::Computed;
use crate::registry::{ComputedGroup, Registry, Resource};
use apimachinery::error::ApiError;

/// Concurrency limit of computed requests, for all users together.
const IN_FLIGHT: usize = 4;

/// A group of resources that are computed when they are asked for and never stored.
#[derive(Clone)]
pub struct Extension {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// What it serves.
    pub resources: &'static [Computed],
    /// Answers requests.
    pub answer: Handler,
    /// Says where the pods run that a kubectl command looks for.
    pub pods: PodsElsewhere,
}

impl Extension {
    /// What it adds to the resources that are served.
    pub(crate) fn resources(&self) -> ComputedGroup {
        ComputedGroup { group: self.group, version: self.version, resources: self.resources }
    }
}

/// Returns the message for a kubectl command that looks for pods where none run.
pub type PodsElsewhere = Arc<dyn Fn(&PodQuery<'_>) -> String + Send + Sync>;

/// What a kubectl command looks for.
#[derive(Debug, Clone, Copy)]
pub struct PodQuery<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The labels that the pods should have.
    pub selector: &'a str,
    /// The command, such as `kubectl logs`.
    pub command: &'a str,
}

/// Answers a request with a document, or refuses it.
pub type Handler = Arc<dyn Fn(&Request<'_>) -> Result<Value, ApiError> + Send + Sync>;

/// A request for a computed resource that its sender may make.
pub struct Request<'a> {
    /// `create` or `get`.
    pub verb: &'static str,
    /// The name of the resource in paths.
    pub resource: &'a str,
    /// The namespace, empty for the whole cluster.
    pub namespace: &'a str,
    /// The name, empty on `create`.
    pub name: &'a str,
    /// Parameters of the query; of a repeated one the first.
    pub query: BTreeMap<&'a str, &'a str>,
    /// What was sent, null on `get`.
    pub body: Value,
    /// The requesting user.
    pub caller: Caller<'a>,
    /// Stored objects.
    pub stored: Stored<'a>,
}

/// Reads stored objects without authorisation: the extension has to cut its answer down to what the caller may read.
#[derive(Clone, Copy)]
pub struct Stored<'a> {
    pub(crate) store: &'a Store,
    pub(crate) registry: &'a ArcSwap<Registry>,
}

impl Stored<'_> {
    /// Whether the object exists.
    pub fn has(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> bool {
        self.entry(api_version, kind, namespace, name).is_some()
    }

    /// An object; none if it does not exist, or if its stored version needs a conversion.
    pub fn object(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let (resource, entry) = self.entry(api_version, kind, namespace, name)?;
        let is_readable = resource.serves_as_stored(entry.revision);
        is_readable.then(|| serde_json::from_slice(&entry.value).ok())?
    }

    /// Every object of a kind that needs no conversion, in one namespace or, if that is empty, in all.
    pub fn objects(&self, api_version: &str, kind: &str, namespace: &str) -> Vec<Value> {
        let registry = self.registry.load();
        let Some(resource) = registry.by_kind(api_version, kind) else { return Vec::new() };
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let range = store::Range { prefix: &prefix, ..store::Range::default() };
        let Ok(page) = self.store.range(&resource.table, range) else { return Vec::new() };
        page.entries.iter().filter_map(|entry| serde_json::from_slice(&entry.value).ok()).collect()
    }

    fn entry(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Option<(Arc<Resource>, store::Entry)> {
        let registry = self.registry.load();
        let resource = registry.by_kind(api_version, kind)?;
        let entry = self.store.get(&resource.table, &resource.key(Some(namespace), name))?;
        Some((Arc::clone(resource), entry))
    }
}

/// The requesting user, and what they may do.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    pub(crate) rbac: &'a Rbac,
    pub(crate) registry: &'a ArcSwap<Registry>,
    pub(crate) identity: &'a Identity,
}

impl Caller<'_> {
    /// Whether a role lets them do this to any object of a resource; an empty namespace is the cluster.
    pub fn may(&self, verb: &str, group: &str, resource: &str, namespace: &str) -> bool {
        let object = Object { group, resource, namespace, ..Object::default() };
        self.rbac.decide(self.identity, &Action::on(verb, object)).is_some()
    }

    /// The refusal of something that they may not do to an object.
    pub fn refusal(&self, verb: &str, group: &str, resource: &str, namespace: &str, name: &str) -> ApiError {
        let object = Object { group, resource, namespace, name, subresource: "" };
        Action::on(verb, object).refusal(self.identity)
    }

    /// The name in paths of a kind, and whether it is namespaced; none if the server does not serve it.
    pub fn resource(&self, api_version: &str, kind: &str) -> Option<(String, bool)> {
        let registry = self.registry.load();
        let found = registry.by_kind(api_version, kind)?;
        Some((found.plural.as_ref().to_owned(), found.namespaced))
    }

    /// The kind behind the name that a resource has in paths, with its apiVersion; the preferred version of the group.
    pub fn kind(&self, group: &str, plural: &str) -> Option<(String, String)> {
        let registry = self.registry.load();
        let version =
            registry.group(group)?.versions().iter().find(|one| one.resources.contains_key(plural))?;
        let found = version.resources.get(plural)?;
        Some((found.api_version(), found.kind.as_ref().to_owned()))
    }
}

/// An extension as the server keeps it.
pub(crate) struct Served {
    pub extension: Extension,
    /// The concurrency limit of computed requests.
    pub in_flight: Semaphore,
}

impl From<Extension> for Served {
    fn from(extension: Extension) -> Self {
        Self { extension, in_flight: Semaphore::new(IN_FLIGHT) }
    }
}
