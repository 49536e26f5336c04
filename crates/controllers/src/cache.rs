//! The informer cache: one `decide::Snapshot` that watches keep current, with the Works indexed by their binding.
//! Controllers start after every informer has synced, so a cold cache is never read as "absent".

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use api::{Binding, Cluster, ClusterTaintPolicy, ObjectMeta, Work, kinds, names};
use decide::binding::{Trespass, trespass};
use decide::snapshot::Change;
use decide::{BindingKey, Gates, Snapshot, Template, TemplateKey, dependencies};
use serde_json::Value;
use supervise::{Injector, Recovered as _};

mod memo;
mod moving;
mod needs;
mod news;
mod owner;

pub use memo::{Fingerprint, Question, ReconcileMemo};
pub use moving::Moving;
use needs::Needs;
pub use news::{WorkNews, kinds_of};
pub use owner::{binding_id, binding_key, binding_of_work, is_work_of};
use owner::{owner_of, owner_text};

/// Which Work: the cluster it is for, and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkKey {
    /// The member.
    pub cluster: String,
    /// The Work's name in that member's execution namespace.
    pub name: String,
}

/// What a kind is called in paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The plural name.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

/// The informer cache. Clones share it.
#[derive(Clone, Default)]
pub struct Cache {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Everything that decisions ask about. Held for moments, never across an await.
    snapshot: RwLock<Snapshot>,
    /// Works by the permanent id of their binding, and the other way round. Never held together with `snapshot`.
    works: RwLock<WorkIndex>,
    /// Kinds by apiVersion and kind.
    served: RwLock<BTreeMap<(String, String), Served>>,
    /// Kinds of which the server itself says that there are none any more.
    gone: RwLock<BTreeSet<(String, String)>>,
    /// The dependency index; locked after `snapshot` where both are held.
    needs: RwLock<Needs>,
    /// Clusters that are gone, by their uid; locked after `snapshot`. One stays in the snapshot, as one that is being
    /// deleted, until no binding names it any more.
    gone_clusters: Mutex<BTreeSet<String>>,
    /// ClusterTaintPolicies by name.
    taint_policies: RwLock<BTreeMap<String, ClusterTaintPolicy>>,
    /// What needs no look.
    settled: ReconcileMemo,
    /// Bindings that wait for their members.
    moving: Moving,
    /// Whether every informer has synced.
    complete: AtomicBool,
    /// Lets a test panic while the snapshot is being changed.
    injector: Injector,
}

#[derive(Default)]
struct WorkIndex {
    /// By the binding that they belong to. One set for all: most bindings have few Works, and a set takes room for eleven.
    by_binding: BTreeSet<(Arc<str>, WorkKey)>,
    all: BTreeMap<WorkKey, SeenWork>,
    /// Bindings by permanent id.
    bindings: BTreeMap<String, BindingKey>,
    /// Kinds that Works bring, each kept once.
    kinds: BTreeSet<Arc<(String, String)>>,
}

/// The fields of a Work that are needed to detect its changes and to pass them on.
struct SeenWork {
    /// Which binding it belongs to, as [`owner_of`] says.
    binding: Arc<str>,
    wanted: Wanted,
    /// Stands for the whole of it.
    version: Fingerprint,
    /// Its status as JSON, which is a third of what it takes as a value.
    status: Box<str>,
    /// What it brings, as apiVersion and kind; Works of the same kind share it.
    kinds: Vec<Arc<(String, String)>>,
}

/// Changes with all of a Work but its status.
pub type Wanted = (i64, bool, Fingerprint);

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
        self.inner.injector.at("view", &object);
        let touched = snapshot.take(object).unwrap_or_else(|error| {
            // An object that cannot be decoded was written by another client; decisions ignore it.
            tracing::warn!(%error, "an object is left out of account");
            BTreeSet::new()
        });
        drop(snapshot);
        touched.into_iter().map(Arc::unwrap_or_clone).collect()
    }

    /// Lets a template be none any more, although it is there; false if it was none.
    pub fn leave_out(&self, key: &TemplateKey) -> bool {
        // There is a lot that never was one.
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

    /// Forgets a cluster.
    pub fn remove_cluster(&self, name: &str) {
        let kind = &api::kinds::CLUSTER;
        self.remove(&kind.api_version(), kind.kind, "", name);
        let mut snapshot = self.write();
        let of_name = snapshot.clusters.iter().find(|cluster| cluster.metadata.name == name);
        let uid = of_name.map(|cluster| cluster.metadata.uid.clone());
        self.gone_clusters().extend(uid);
        self.leave_clusters(&mut snapshot);
    }

    fn gone_clusters(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.inner.gone_clusters.lock().recovered()
    }

    /// Removes gone clusters from the snapshot, unless a binding has yet to leave them.
    fn leave_clusters(&self, snapshot: &mut Snapshot) {
        let Snapshot { clusters, bindings, .. } = snapshot;
        self.gone_clusters().retain(|uid| {
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

    /// Takes in a binding.
    pub fn put_binding(&self, key: BindingKey, mut binding: Binding) -> Option<Arc<Binding>> {
        // No decision depends on a binding's managedFields, and they are most of it; a write without them keeps them.
        binding.metadata.managed_fields = Vec::new();
        let needs = dependencies::noted(&binding);
        self.inner.needs.write().recovered().put(&key, needs);
        let id = binding_id(&binding.metadata).to_owned();
        let mut snapshot = self.write();
        let before = Arc::make_mut(&mut snapshot.bindings).insert(Arc::new(key.clone()), Arc::new(binding));
        self.leave_clusters(&mut snapshot);
        drop(snapshot);
        let old_id = before.as_ref().map(|before| binding_id(&before.metadata)).unwrap_or_default();
        let mut works = self.works_mut();
        if old_id != id && works.bindings.get(old_id) == Some(&key) {
            works.bindings.remove(old_id);
        }
        if !id.is_empty() {
            works.bindings.insert(id, key);
        }
        drop(works);
        before
    }

    /// Forgets a binding.
    pub fn remove_binding(&self, key: &BindingKey) -> Option<Arc<Binding>> {
        self.inner.settled.forget(key);
        self.inner.moving.forget(key);
        self.inner.needs.write().recovered().put(key, Vec::new());
        let mut snapshot = self.write();
        let binding = Arc::make_mut(&mut snapshot.bindings).remove(key)?;
        self.leave_clusters(&mut snapshot);
        drop(snapshot);
        let id = binding_id(&binding.metadata);
        let mut works = self.works_mut();
        if works.bindings.get(id) == Some(key) {
            works.bindings.remove(id);
        }
        Some(binding)
    }

    /// The bindings that say they need a template.
    pub fn who_needs(&self, template: &Template) -> BTreeSet<BindingKey> {
        self.inner.needs.read().recovered().who(template)
    }

    /// Takes in a ClusterTaintPolicy.
    pub fn put_taint_policy(&self, policy: ClusterTaintPolicy) {
        let mut policies = self.inner.taint_policies.write().recovered();
        policies.insert(policy.metadata.name.clone(), policy);
    }

    /// Forgets a ClusterTaintPolicy.
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

    fn works(&self) -> RwLockReadGuard<'_, WorkIndex> {
        self.inner.works.read().recovered()
    }

    fn works_mut(&self) -> RwLockWriteGuard<'_, WorkIndex> {
        self.inner.works.write().recovered()
    }

    /// Takes in a Work; true when it is new or wants something else than before.
    pub fn put_work(&self, key: WorkKey, work: &WorkNews) -> bool {
        let metadata = &work.metadata;
        let binding: Arc<str> = owner_of(metadata).into();
        let wanted = wanted(metadata);
        let mut works = self.works_mut();
        let version = Fingerprint::of(&metadata.resource_version);
        let status = serde_json::to_string(&work.status).expect("our objects always serialise").into();
        let kinds = kinds_of(work).into_iter().map(|kind| works.shared(kind)).collect();
        let seen = SeenWork { binding: Arc::clone(&binding), wanted, version, status, kinds };
        let before = works.all.insert(key.clone(), seen);
        if let Some(before) = before.as_ref().filter(|before| before.binding != binding) {
            works.by_binding.remove(&(Arc::clone(&before.binding), key.clone()));
        }
        if !binding.is_empty() {
            works.by_binding.insert((binding, key));
        }
        before.is_none_or(|before| before.wanted != wanted)
    }

    /// Forgets a Work.
    pub fn remove_work(&self, key: &WorkKey) {
        let mut works = self.works_mut();
        if let Some(seen) = works.all.remove(key) {
            works.by_binding.remove(&(seen.binding, key.clone()));
        }
    }

    /// The Works of a binding.
    pub fn works_of(&self, binding: &Binding) -> Vec<WorkKey> {
        self.works().of(binding).cloned().collect()
    }

    /// The Works of a binding, and what stands for the state of each: with its status, and without.
    pub fn works_seen(&self, binding: &Binding) -> Vec<(WorkKey, Fingerprint, Wanted)> {
        let works = self.works();
        let keys = works.of(binding);
        let seen = |key: &WorkKey| works.all.get(key).map(|seen| (key.clone(), seen.version, seen.wanted));
        keys.filter_map(seen).collect()
    }

    /// What the Works of a binding say, without what they bring; those that are going say nothing any more.
    pub fn work_statuses(&self, binding: &Binding) -> Vec<Work> {
        let works = self.works();
        let keys = works.of(binding);
        let told = keys.filter_map(|key| {
            let seen = works.all.get(key).filter(|seen| !seen.wanted.1)?;
            let mut work = Work::new(&kinds::WORK, &names::execution_namespace(&key.cluster), &key.name);
            work.status = serde_json::from_str(&seen.status).ok()?;
            Some(work)
        });
        told.collect()
    }

    /// Notes that every informer has synced.
    pub fn note_complete(&self) {
        self.inner.complete.store(true, Ordering::Release);
    }

    /// Whether what it does not have is not there.
    pub fn is_complete(&self) -> bool {
        self.inner.complete.load(Ordering::Acquire)
    }

    /// What needs no look.
    pub fn settled(&self) -> &ReconcileMemo {
        &self.inner.settled
    }

    /// Bindings whose Works wait for reports of members.
    pub fn moving(&self) -> &Moving {
        &self.inner.moving
    }

    /// True when there is such a Work.
    pub fn has_work(&self, key: &WorkKey) -> bool {
        self.works().all.contains_key(key)
    }

    /// The binding that a Work belongs to.
    pub fn binding_of(&self, key: &WorkKey) -> Option<BindingKey> {
        let works = self.works();
        let owner = &works.all.get(key)?.binding;
        match owner.splitn(3, '/').collect::<Vec<_>>()[..] {
            [_, namespace, name] => {
                Some(BindingKey { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => works.bindings.get(&**owner).cloned(),
        }
    }

    /// The Works for one member.
    pub fn works_in(&self, cluster: &str) -> Vec<WorkKey> {
        let first = WorkKey { cluster: cluster.to_owned(), name: String::new() };
        let works = self.works();
        works
            .all
            .range(first..)
            .map(|(key, _)| key)
            .take_while(|key| key.cluster == cluster)
            .cloned()
            .collect()
    }

    /// The Works that bring a kind to one member.
    pub fn works_bringing(&self, cluster: &str, api_version: &str, kind: &str) -> Vec<WorkKey> {
        let works = self.works();
        let brings = |key: &WorkKey| {
            let named = |one: &Arc<(String, String)>| one.0 == api_version && one.1 == kind;
            works.all.get(key).is_some_and(|seen| seen.kinds.iter().any(named))
        };
        let first = WorkKey { cluster: cluster.to_owned(), name: String::new() };
        let there = works.all.range(first..).map(|(key, _)| key).take_while(|key| key.cluster == cluster);
        there.filter(|key| brings(key)).cloned().collect()
    }

    /// Learns what a kind is called in paths.
    pub fn learn(&self, api_version: &str, kind: &str, served: Served) {
        let place = (api_version.to_owned(), kind.to_owned());
        self.inner.gone.write().recovered().remove(&place);
        let mut known = self.inner.served.write().recovered();
        known.insert((api_version.to_owned(), kind.to_owned()), served);
    }

    /// Removes a kind that is no longer served, with all its objects; returns the templates to reconcile.
    pub fn forget(&self, api_version: &str, kind: &str) -> BTreeSet<TemplateKey> {
        let mut known = self.inner.served.write().recovered();
        known.remove(&(api_version.to_owned(), kind.to_owned()));
        drop(known);
        let mut snapshot = self.write();
        let of_kind = |key: &TemplateKey| key.api_version == api_version && key.kind == kind;
        let keys = snapshot.templates.iter().map(|template| TemplateKey::clone(&template.key));
        let left: BTreeSet<TemplateKey> = keys.filter(of_kind).collect();
        left.iter().for_each(|key| drop(snapshot.templates.remove(key)));
        left
    }

    /// Notes that a kind is served no more, by the word of the server.
    pub fn note_gone(&self, api_version: &str, kind: &str) {
        let place = (api_version.to_owned(), kind.to_owned());
        self.inner.gone.write().recovered().insert(place);
    }

    /// Whether a kind is known to be served no more; one that is merely not known is not.
    pub fn is_gone(&self, api_version: &str, kind: &str) -> bool {
        let gone = self.inner.gone.read().recovered();
        gone.contains(&(api_version.to_owned(), kind.to_owned()))
    }

    /// The templates of bindings whose kind is not known to be served.
    pub fn bound_to_unserved(&self) -> BTreeSet<TemplateKey> {
        let snapshot = self.snapshot();
        let served = self.inner.served.read().recovered();
        let known = |key: &TemplateKey| served.contains_key(&(key.api_version.clone(), key.kind.clone()));
        snapshot.bindings.values().map(|binding| TemplateKey::of(binding)).filter(|key| !known(key)).collect()
    }

    /// What a kind is called in paths.
    pub fn served(&self, api_version: &str, kind: &str) -> Option<Served> {
        let known = self.inner.served.read().recovered();
        known.get(&(api_version.to_owned(), kind.to_owned())).cloned()
    }
}

impl WorkIndex {
    fn shared(&mut self, kind: (String, String)) -> Arc<(String, String)> {
        let known = self.kinds.get(&kind).cloned();
        known.unwrap_or_else(|| {
            let kind = Arc::new(kind);
            self.kinds.insert(Arc::clone(&kind));
            kind
        })
    }

    /// The Works of a binding.
    fn of(&self, binding: &Binding) -> impl Iterator<Item = &WorkKey> {
        let id = binding_id(&binding.metadata);
        let marks = [owner_text(id, &binding_key(&binding.metadata)), id.to_owned()];
        marks.into_iter().filter(|mark| !mark.is_empty()).flat_map(|mark| {
            let mark: Arc<str> = mark.into();
            let first = (Arc::clone(&mark), WorkKey { cluster: String::new(), name: String::new() });
            self.by_binding.range(first..).take_while(move |(other, _)| *other == mark).map(|(_, key)| key)
        })
    }
}

/// Changes whenever a Work wants something else, or is called something else.
pub fn wanted(metadata: &ObjectMeta) -> Wanted {
    let owners: Vec<&str> = metadata.owner_references.iter().map(|owner| owner.uid.as_str()).collect();
    let ObjectMeta { uid, labels, annotations, finalizers, .. } = metadata;
    let marks = Fingerprint::of((uid, labels, annotations, finalizers, owners));
    (metadata.generation, metadata.deletion_timestamp.is_some(), marks)
}
