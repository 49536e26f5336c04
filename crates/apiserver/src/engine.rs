//! The engine: the store, the registry and the hooks of the embedding process, shared by every request. Verbs are in
//! their own files; this one holds what they share.

use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use serde_json::Value;
use store::Store;
use tokio_util::sync::CancellationToken;

use crate::admission::Admission;
use crate::admission_policies::Policies;
use crate::authz::Rbac;
use crate::controllers::ServerControllers;
use crate::extension::{Extension, Served};
use crate::flowcontrol::FairQueue;
use crate::metrics::Metrics;
use crate::openapi_cache::OpenApiCache;
use crate::quotas::Quotas;
use crate::registry::{Definition, Registry, Resource};
use crate::security::Security;
use crate::storage_limits::StorageRefusals;
use crate::supervision::Supervision;
use crate::webhooks::Webhooks;
use apimachinery::error::{ApiError, Subject};

/// What a server is made of. Everything that is not a function of requests is handed in, so that a
/// simulation can run on its own clock and its own identifiers.
pub struct Config {
    /// Where objects live.
    pub store: Store,
    /// The wall clock.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// A fresh random number for uids and generated names.
    pub random: Arc<dyn Fn() -> u128 + Send + Sync>,
    /// What may be written, and what is filled in.
    pub admission: Admission,
    /// The certificate authority that clients inside a cluster would trust, in PEM.
    pub root_ca: String,
}

/// The parts of a running server that every request sees.
pub(crate) struct Engine {
    pub store: Store,
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    pub random: Arc<dyn Fn() -> u128 + Send + Sync>,
    pub admission: Admission,
    pub root_ca: String,
    pub registry: ArcSwap<Registry>,
    /// The custom kinds behind the registry, by the name of their definition.
    pub custom: std::sync::Mutex<std::collections::BTreeMap<String, Arc<Definition>>>,
    /// Held while a definition is written: whether its names are free depends on all the others.
    pub definition_writes: tokio::sync::Mutex<()>,
    pub controllers: ServerControllers,
    /// Resources that are computed.
    pub extension: Option<Served>,
    pub openapi: OpenApiCache,
    pub metrics: Metrics,
    /// Authentication.
    pub security: Security,
    /// Authorization: roles and bindings.
    pub rbac: Rbac,
    /// Admission webhooks.
    pub webhooks: Webhooks,
    /// What has to hold for writes.
    pub policies: Policies,
    /// How many objects namespaces may have.
    pub quotas: Quotas,
    /// Whether writes are refused because too much is stored.
    pub storage_refusals: StorageRefusals,
    /// The fair queue of requests.
    pub turns: FairQueue,
    /// Where the server listens, once it does.
    pub advertised: std::sync::OnceLock<std::net::SocketAddr>,
    /// What becomes of panics.
    pub supervision: Supervision,
    /// Ends every watch.
    pub shutdown: CancellationToken,
}

impl Engine {
    pub fn new(config: Config, security: Security, extension: Option<Extension>) -> Arc<Self> {
        let custom = crate::verbs::definitions::load(&config.store);
        let registry = Registry::new(custom.values(), extension.as_ref());
        let rbac = Rbac::load(&config.store);
        let webhooks = Webhooks::load(&config.store);
        let policies = Policies::load(&config.store);
        let quotas = Quotas::load(&config.store);
        Arc::new(Self {
            store: config.store,
            now: config.now,
            random: config.random,
            admission: config.admission,
            root_ca: config.root_ca,
            registry: ArcSwap::from_pointee(registry),
            custom: std::sync::Mutex::new(custom),
            definition_writes: tokio::sync::Mutex::new(()),
            controllers: ServerControllers::default(),
            extension: extension.map(Served::from),
            openapi: OpenApiCache::default(),
            metrics: Metrics::default(),
            webhooks,
            policies,
            quotas,
            storage_refusals: StorageRefusals::default(),
            turns: FairQueue::new(security.limits),
            security,
            rbac,
            advertised: std::sync::OnceLock::new(),
            supervision: Supervision::default(),
            shutdown: CancellationToken::new(),
        })
    }

    /// The time as objects carry it: whole seconds, UTC.
    pub fn timestamp(&self) -> String {
        (self.now)().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// A version 4 UUID.
    pub fn uid(&self) -> String {
        let bits = (self.random)();
        let bits = bits & !(0xf << 76) | (0x4 << 76);
        let bits = bits & !(0x3 << 62) | (0x2 << 62);
        let hex = format!("{bits:032x}");
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// The five characters behind a `generateName`, from Kubernetes' alphabet without vowels.
    pub fn name_suffix(&self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut bits = (self.random)();
        let mut suffix = String::with_capacity(5);
        for _ in 0..5 {
            suffix.push(char::from(ALPHABET[(bits % ALPHABET.len() as u128) as usize]));
            bits /= ALPHABET.len() as u128;
        }
        suffix
    }

    /// The newest state of an object, or the 404 that names it.
    pub fn read(&self, resource: &Resource, key: &str, name: &str) -> Result<store::Entry, ApiError> {
        self.store.get(&resource.table, key).ok_or_else(|| ApiError::not_found(resource.subject(name)))
    }

    /// The resource behind a path, or the 404 of a path that nothing serves.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Result<Arc<Resource>, ApiError> {
        self.registry.load().resource(group, version, plural).cloned().ok_or_else(ApiError::no_such_path)
    }
}

impl Resource {
    /// How errors name an object of this resource.
    pub fn subject<'a>(&'a self, name: &'a str) -> Subject<'a> {
        Subject { group: &self.group, resource: &self.plural, name }
    }

    /// How `Invalid` errors name an object of this resource: by kind.
    pub fn kind_subject<'a>(&'a self, name: &'a str) -> Subject<'a> {
        Subject { group: &self.group, resource: &self.kind, name }
    }

    /// The key of an object in the resource's table.
    pub fn key(&self, namespace: Option<&str>, name: &str) -> String {
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        }
    }
}

/// FairQueue an error of the store into what clients understand.
pub(crate) fn store_error(error: store::WriteError) -> ApiError {
    match error {
        store::WriteError::TooLarge { .. } => ApiError::bad_request("etcdserver: request is too large"),
        store::WriteError::Storage(error) if error.is_full() => ApiError::insufficient_storage(format!(
            "the disk of the control plane is full: {error}; hint: free some room on it, then writes succeed again \
             without a restart"
        )),
        other => ApiError::internal(other),
    }
}

/// A text field deep in an object, empty where it is not there.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
