//! The engine: the state of a running server that every request sees, put together from the parts that own it. Verbs,
//! watches and controllers work on it, in modules of their own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use store::Store;
use tokio_util::sync::CancellationToken;

use crate::admission::{Admission, AdmissionChain, Quotas, StorageLimiter};
use crate::audit::Audit;
use crate::authn::Authenticator;
use crate::authz::Rbac;
use crate::conversion::Conversion;
use crate::discovery::OpenApiCache;
use crate::environment::{self, Clock, Random};
use crate::extension::{Extension, Served};
use crate::flowcontrol::FairQueue;
use crate::metrics::Metrics;
use crate::registry::{Definition, Registry, Resource, load_definitions};
use crate::security::Security;
use crate::supervision::Supervision;
use crate::work_queue::WorkQueue;
use apimachinery::error::ApiError;

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
    pub now: Clock,
    pub random: Random,
    pub root_ca: String,
    pub registry: Arc<ArcSwap<Registry>>,
    /// The custom kinds behind the registry, by the name of their definition.
    pub custom: Mutex<BTreeMap<String, Arc<Definition>>>,
    /// Held while a definition is written: whether its names are free depends on all the others.
    pub definition_writes: tokio::sync::Mutex<()>,
    /// The work of the controllers.
    pub work_queue: WorkQueue,
    /// Resources that are computed.
    pub extension: Option<Served>,
    pub openapi: OpenApiCache,
    pub metrics: Metrics,
    pub authenticator: Authenticator,
    /// The longest life of a token of a service account, in seconds.
    pub token_seconds_max: Option<i64>,
    /// The audit log.
    pub audit: Option<Arc<Audit>>,
    /// Authorization: roles and bindings.
    pub rbac: Arc<Rbac>,
    /// The admission hook, webhooks and admission policies.
    pub admission: AdmissionChain,
    /// How many objects namespaces may have.
    pub quotas: Quotas,
    /// How many bytes may be stored.
    pub storage: StorageLimiter,
    /// Conversion between the versions of custom kinds.
    pub conversion: Conversion,
    /// The fair queue of requests.
    pub queue: FairQueue,
    /// Where the server listens, once it does.
    pub advertised: OnceLock<SocketAddr>,
    /// What becomes of panics.
    pub supervision: Arc<Supervision>,
    /// Ends every watch.
    pub shutdown: CancellationToken,
}

impl Engine {
    pub fn new(config: Config, security: Security, extension: Option<Extension>) -> Arc<Self> {
        let Config { store, now, random, admission, root_ca } = config;
        let Security { tokens, keys, audit, limits, storage, token_seconds_max, .. } = security;
        let custom = load_definitions(&store);
        let registry = Registry::new(custom.values(), extension.as_ref().map(Extension::resources));
        let registry = Arc::new(ArcSwap::from_pointee(registry));
        let rbac = Arc::new(Rbac::load(&store));
        Arc::new(Self {
            admission: AdmissionChain::new(admission, &store, &registry, &rbac, &random),
            authenticator: Authenticator { tokens, keys, store: store.clone(), now: now.clone() },
            conversion: Conversion::new(store.clone(), random.clone()),
            quotas: Quotas::load(&store),
            storage: StorageLimiter::new(storage, store.clone()),
            queue: FairQueue::new(limits),
            custom: Mutex::new(custom),
            definition_writes: tokio::sync::Mutex::new(()),
            work_queue: WorkQueue::default(),
            extension: extension.map(Served::from),
            openapi: OpenApiCache::default(),
            metrics: Metrics::default(),
            advertised: OnceLock::new(),
            supervision: Arc::default(),
            shutdown: CancellationToken::new(),
            store,
            now,
            random,
            root_ca,
            registry,
            token_seconds_max,
            audit,
            rbac,
        })
    }

    /// The time as objects carry it: whole seconds, UTC.
    pub fn timestamp(&self) -> String {
        environment::timestamp(&self.now)
    }

    /// A version 4 UUID.
    pub fn uid(&self) -> String {
        environment::uid(&self.random)
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
