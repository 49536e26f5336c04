//! The informer cache: one `decide::Snapshot` that watches keep current. Beside it are its indexes (`work_index`,
//! `dependency_index`, `moving`), the discovery cache (`discovery`) and the reconcile memo (`memo`), each with a lock of its
//! own. Controllers start after every informer has synced, so a cold cache is never read as "absent".

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use api::{Binding, Cluster, ClusterTaintPolicy, kinds};
use decide::binding::{Trespass, trespass};
use decide::snapshot::Change;
use decide::{BindingKey, Gates, Snapshot, TemplateKey, dependencies};
use serde_json::Value;
use supervise::{Injector, Recovered as _};

mod dependency_index;
mod discovery;
mod memo;
mod moving;
mod owner;
mod work_index;
mod work_summary;

pub use dependency_index::DependencyIndex;
pub use discovery::{Served, ServedKinds};
pub use memo::{Fingerprint, Question, ReconcileMemo};
pub use moving::Moving;
pub use owner::{binding_id, binding_key, binding_of_work, is_work_of};
pub use work_index::{Wanted, WorkIndex, WorkKey, wanted};
pub use work_summary::{WorkSummary, kinds_of};

/// The informer cache. Clones share it.
#[derive(Clone, Default)]
pub struct Cache {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Everything that decisions depend on. Held for moments, never across an await.
    snapshot: RwLock<Snapshot>,
    /// Deleted clusters by their uid; locked after `snapshot`. One stays in the snapshot, as one that is being deleted,
    /// until no binding names it any more.
    deleted_clusters: Mutex<BTreeSet<String>>,
    /// ClusterTaintPolicies by name.
    taint_policies: RwLock<BTreeMap<String, ClusterTaintPolicy>>,
    works: WorkIndex,
    /// Locked after `snapshot` where both are held.
    dependencies: DependencyIndex,
    moving: Moving,
    served: ServedKinds,
    memo: ReconcileMemo,
    /// Whether every informer has synced.
    synced: AtomicBool,
    /// Lets a test panic while the snapshot is being changed.
    injector: Injector,
}

impl Cache {
    /// An empty cache with these feature gates.
    pub fn new(gates: Gates) -> Self {
        Self::with_faults(gates, Injector::default())
    }

    /// The same, where a test lets things fail.
    pub(crate) fn with_faults(gates: Gates, injector: Injector) -> Self {
        let cache = Self { inner: Arc::new(Inner { injector, ..Inner::default() }) };
        cache.write().gates = gates;
        cache
    }

    /// The current snapshot.
    pub fn snapshot(&self) -> RwLockReadGuard<'_, Snapshot> {
        self.inner.snapshot.read().recovered()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Snapshot> {
        self.inner.snapshot.write().recovered()
    }

    /// Inserts an object that decisions depend on; returns the templates to reconcile.
    pub fn put(&self, object: Value) -> BTreeSet<TemplateKey> {
        let mut snapshot = self.write();
        self.inner.injector.at("cache", &object);
        let touched = snapshot.take(object).unwrap_or_else(|error| {
            // An object that cannot be decoded was written by another client; decisions ignore it.
            tracing::warn!(%error, "an object cannot be decoded and is ignored");
            BTreeSet::new()
        });
        drop(snapshot);
        touched.into_iter().map(Arc::unwrap_or_clone).collect()
    }

    /// Removes a template that exists and is no longer to be propagated; false if it was not in the cache.
    pub fn exclude(&self, key: &TemplateKey) -> bool {
        // Most excluded objects never were in the cache, and a read lock is cheaper.
        let is_known = self.snapshot().templates.get(key).is_some();
        is_known && self.write().templates.remove(key).is_some()
    }

    /// Removes an object; returns the templates to reconcile.
    pub fn remove(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> BTreeSet<TemplateKey> {
        let place = TemplateKey {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let TemplateKey { api_version, kind, namespace, name } = place.clone();
        let mut snapshot = self.write();
        // Deleting a template deletes its binding, but only the binding's own watch says when it is gone: until then it
        // has finalizers that a controller must handle.
        let place = place.binding();
        let kept = snapshot.bindings.get(&place).cloned();
        let touched =
            snapshot.apply(&Change::Delete { api_version, kind, namespace, name }).unwrap_or_default();
        if let Some(binding) = kept {
            Arc::make_mut(&mut snapshot.bindings).entry(Arc::new(place)).or_insert(binding);
        }
        touched.into_iter().map(Arc::unwrap_or_clone).collect()
    }

    /// Removes a cluster.
    pub fn remove_cluster(&self, name: &str) {
        let kind = &kinds::CLUSTER;
        self.remove(&kind.api_version(), kind.kind, "", name);
        let mut snapshot = self.write();
        let of_name = snapshot.clusters.iter().find(|cluster| cluster.metadata.name == name);
        let uid = of_name.map(|cluster| cluster.metadata.uid.clone());
        self.deleted_clusters().extend(uid);
        self.drop_unused_clusters(&mut snapshot);
    }

    fn deleted_clusters(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.inner.deleted_clusters.lock().recovered()
    }

    /// Removes deleted clusters from the snapshot, unless a binding still names them.
    fn drop_unused_clusters(&self, snapshot: &mut Snapshot) {
        let Snapshot { clusters, bindings, .. } = snapshot;
        self.deleted_clusters().retain(|uid| {
            let Some(gone) = clusters.iter().find(|cluster| cluster.metadata.uid == *uid) else {
                return false;
            };
            let names = |binding: &Arc<Binding>| {
                binding.spec.clusters.iter().any(|target| target.name == gone.metadata.name)
            };
            let is_named = bindings.values().any(names);
            if !is_named {
                Arc::make_mut(clusters).retain(|cluster| cluster.metadata.uid != *uid);
            }
            is_named
        });
    }

    /// Inserts a binding; returns its state before.
    pub fn put_binding(&self, key: BindingKey, mut binding: Binding) -> Option<Arc<Binding>> {
        // No decision depends on a binding's managedFields, and they are most of it; a write without them keeps them.
        binding.metadata.managed_fields = Vec::new();
        self.inner.dependencies.put(&key, dependencies::noted(&binding));
        let id = binding_id(&binding.metadata).to_owned();
        let mut snapshot = self.write();
        let before = Arc::make_mut(&mut snapshot.bindings).insert(Arc::new(key.clone()), Arc::new(binding));
        self.drop_unused_clusters(&mut snapshot);
        drop(snapshot);
        let id_before = before.as_ref().map(|before| binding_id(&before.metadata)).unwrap_or_default();
        self.inner.works.put_binding(id_before, &id, &key);
        before
    }

    /// Removes a binding; returns its last state.
    pub fn remove_binding(&self, key: &BindingKey) -> Option<Arc<Binding>> {
        self.inner.memo.forget(key);
        self.inner.moving.forget(key);
        self.inner.dependencies.put(key, Vec::new());
        let mut snapshot = self.write();
        let binding = Arc::make_mut(&mut snapshot.bindings).remove(key)?;
        self.drop_unused_clusters(&mut snapshot);
        drop(snapshot);
        self.inner.works.remove_binding(binding_id(&binding.metadata), key);
        Some(binding)
    }

    /// Removes a kind that is no longer served, with all its templates; returns these.
    pub fn remove_kind(&self, api_version: &str, kind: &str) -> BTreeSet<TemplateKey> {
        self.inner.served.remove(api_version, kind);
        let mut snapshot = self.write();
        let of_kind = |key: &TemplateKey| key.api_version == api_version && key.kind == kind;
        let keys = snapshot.templates.iter().map(|template| TemplateKey::clone(&template.key));
        let left: BTreeSet<TemplateKey> = keys.filter(of_kind).collect();
        left.iter().for_each(|key| drop(snapshot.templates.remove(key)));
        left
    }

    /// The templates of bindings whose kind is not known to be served.
    pub fn templates_of_unserved_kinds(&self) -> BTreeSet<TemplateKey> {
        let snapshot = self.snapshot();
        let is_served = |key: &TemplateKey| self.inner.served.get(&key.api_version, &key.kind).is_some();
        let bound = snapshot.bindings.values().map(|binding| TemplateKey::of(binding));
        bound.filter(|key| !is_served(key)).collect()
    }

    /// Inserts a ClusterTaintPolicy.
    pub fn put_taint_policy(&self, policy: ClusterTaintPolicy) {
        let mut policies = self.inner.taint_policies.write().recovered();
        policies.insert(policy.metadata.name.clone(), policy);
    }

    /// Removes a ClusterTaintPolicy.
    pub fn remove_taint_policy(&self, name: &str) {
        self.inner.taint_policies.write().recovered().remove(name);
    }

    /// Every ClusterTaintPolicy.
    pub fn taint_policies(&self) -> Vec<ClusterTaintPolicy> {
        let policies = self.inner.taint_policies.read().recovered();
        policies.values().cloned().collect()
    }

    /// A binding; none if it is to be ignored (M3), unless it is being deleted: then what it has made goes, too.
    pub fn binding(&self, key: &BindingKey) -> Option<Arc<Binding>> {
        let found = self.snapshot().bindings.get(key).cloned()?;
        let is_heeded = found.metadata.deletion_timestamp.is_some() || trespass(&found).is_none();
        is_heeded.then_some(found)
    }

    /// A binding that is ignored, and why.
    pub fn trespasser(&self, key: &BindingKey) -> Option<(Arc<Binding>, Trespass)> {
        let found = self.snapshot().bindings.get(key).cloned()?;
        let why = trespass(&found)?;
        Some((found, why))
    }

    /// Every binding's key.
    pub fn binding_keys(&self) -> Vec<BindingKey> {
        self.snapshot().bindings.keys().map(|key| BindingKey::clone(key)).collect()
    }

    /// A member.
    pub fn cluster(&self, name: &str) -> Option<Cluster> {
        self.snapshot().clusters.iter().find(|cluster| cluster.metadata.name == name).cloned()
    }

    /// Notes that every informer has synced.
    pub fn note_synced(&self) {
        self.inner.synced.store(true, Ordering::Release);
    }

    /// Whether every informer has synced: an object that is not in the cache does not exist.
    pub fn is_synced(&self) -> bool {
        self.inner.synced.load(Ordering::Acquire)
    }

    /// The index of Works.
    pub fn works(&self) -> &WorkIndex {
        &self.inner.works
    }

    /// The dependency index.
    pub fn dependencies(&self) -> &DependencyIndex {
        &self.inner.dependencies
    }

    /// The kinds that are served.
    pub fn served(&self) -> &ServedKinds {
        &self.inner.served
    }

    /// The reconcile memo.
    pub fn memo(&self) -> &ReconcileMemo {
        &self.inner.memo
    }

    /// Bindings whose Works wait for reports of members.
    pub fn moving(&self) -> &Moving {
        &self.inner.moving
    }
}
