//! Admission of writes: the hook of the embedding process, webhooks, admission policies and quotas. The hook is one
//! function that may mutate, refuse or warn about every write; the server itself knows no policy.

use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::Value;
use store::Store;

use crate::authn::Identity;
use crate::authz::Rbac;
use crate::call::Call;
use crate::environment::Random;
use crate::registry::Registry;
use apimachinery::error::ApiError;

mod conditions;
mod expression_authorizer;
mod matching;
pub(crate) mod policies;
pub(crate) mod quota;
mod storage_limits;
mod webhooks;

use expression_authorizer::ExpressionAuthorizer;
use policies::Policies;
pub(crate) use quota::Quotas;
pub(crate) use storage_limits::StorageLimiter;
pub use storage_limits::StorageLimits;
use webhooks::Webhooks;

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A new state of an object.
    Update,
    /// The beginning of an object's end.
    Delete,
}

/// One write, as admission sees it.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// What is being done.
    pub operation: Operation,
    /// API group, empty for core.
    pub group: &'a str,
    /// API version of the request.
    pub version: &'a str,
    /// Plural resource name.
    pub resource: &'a str,
    /// Kind of the object.
    pub kind: &'a str,
    /// Subresource, empty for the object itself.
    pub subresource: &'a str,
    /// The state before, absent on create.
    pub old: Option<&'a Value>,
    /// Nothing will be written.
    pub dry_run: bool,
    /// The requesting user.
    pub identity: &'a Identity,
}

/// Admits a write and may change the object (on delete: the object as it is, changes are ignored).
/// Answers with warnings for the client, or with the refusal.
pub type Admission = Arc<dyn Fn(&Attributes<'_>, &mut Value) -> Result<Vec<String>, ApiError> + Send + Sync>;

/// Admits everything.
pub fn admit_all() -> Admission {
    Arc::new(|_, _| Ok(Vec::new()))
}

/// A write that webhooks and policies are asked about.
#[derive(Clone, Copy)]
pub(crate) struct WriteAttributes<'a> {
    pub call: &'a Call,
    pub operation: Operation,
    pub dry_run: bool,
    /// The state before, absent on create.
    pub old: Option<&'a Value>,
}

/// The admission chain: everything that may change or refuse a write, with what it reads to decide.
pub(crate) struct AdmissionChain {
    hook: Admission,
    webhooks: Webhooks,
    policies: Policies,
    store: Store,
    registry: Arc<ArcSwap<Registry>>,
    rbac: Arc<Rbac>,
    random: Random,
}

impl AdmissionChain {
    /// The chain of this hook and of the webhooks and policies that the store holds.
    pub fn new(
        hook: Admission,
        store: &Store,
        registry: &Arc<ArcSwap<Registry>>,
        rbac: &Arc<Rbac>,
        random: &Random,
    ) -> Self {
        Self {
            hook,
            webhooks: Webhooks::load(store),
            policies: Policies::load(store),
            store: store.clone(),
            registry: registry.clone(),
            rbac: rbac.clone(),
            random: random.clone(),
        }
    }

    /// Reads the configurations of webhooks or policies again, because an object of this table changed.
    pub fn follow(&self, table: &str) {
        if Webhooks::concerns(table) {
            self.webhooks.follow(&self.store);
        }
        if Policies::concerns(table) {
            self.policies.follow(&self.store);
        }
    }

    /// Calls the admission hook.
    pub fn admit(
        &self,
        call: &Call,
        dry_run: bool,
        operation: Operation,
        old: Option<&Value>,
        object: &mut Value,
    ) -> Result<Vec<String>, ApiError> {
        let attributes = Attributes {
            operation,
            group: &call.resource.group,
            version: &call.resource.version,
            resource: &call.resource.plural,
            kind: &call.resource.kind,
            subresource: call.subresource(),
            old,
            dry_run,
            identity: &call.identity,
        };
        (self.hook)(&attributes, object)
    }
}
