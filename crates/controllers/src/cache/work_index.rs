//! The index of Works: by binding, by member and by the kinds they bring. Of a Work it keeps only what is needed to
//! detect changes and to aggregate its status; manifests are not cached.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use api::{Binding, ObjectMeta, Work, kinds, names};
use decide::BindingKey;
use supervise::Recovered as _;

use super::memo::Fingerprint;
use super::owner::{binding_id, binding_key, owner_of, owner_text};
use super::work_summary::{WorkSummary, kinds_of};

/// Which Work: the cluster it is for, and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkKey {
    /// The member.
    pub cluster: String,
    /// The Work's name in that member's execution namespace.
    pub name: String,
}

/// The index of Works.
#[derive(Default)]
pub struct WorkIndex {
    /// Held for moments, and never together with the snapshot.
    entries: RwLock<Entries>,
}

#[derive(Default)]
struct Entries {
    /// By the binding that they belong to. One set for all: most bindings have few Works, and a set takes room for eleven.
    by_binding: BTreeSet<(Arc<str>, WorkKey)>,
    all: BTreeMap<WorkKey, Entry>,
    /// Bindings by permanent id.
    bindings: BTreeMap<String, BindingKey>,
    /// Kinds that Works bring, each kept once.
    kinds: BTreeSet<Arc<(String, String)>>,
}

/// What is kept of one Work.
struct Entry {
    /// Which binding it belongs to, as [`owner_of`] says.
    binding: Arc<str>,
    wanted: Wanted,
    /// Changes with every write of the Work.
    version: Fingerprint,
    /// Its status as JSON, which is a third of what it takes as a value.
    status: Box<str>,
    /// What it brings, as apiVersion and kind; Works of the same kind share it.
    kinds: Vec<Arc<(String, String)>>,
}

/// Changes with all of a Work but its status: generation, whether it is being deleted, and the rest of its metadata.
pub type Wanted = (i64, bool, Fingerprint);

impl WorkIndex {
    fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.entries.read().recovered()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries> {
        self.entries.write().recovered()
    }

    /// Inserts a Work; true when it is new or wants something else than before.
    pub fn put(&self, key: WorkKey, work: &WorkSummary) -> bool {
        let metadata = &work.metadata;
        let binding: Arc<str> = owner_of(metadata).into();
        let wanted = wanted(metadata);
        let mut entries = self.write();
        let version = Fingerprint::of(&metadata.resource_version);
        let status = serde_json::to_string(&work.status).expect("our objects always serialise").into();
        let kinds = kinds_of(work).into_iter().map(|kind| entries.shared(kind)).collect();
        let entry = Entry { binding: Arc::clone(&binding), wanted, version, status, kinds };
        let before = entries.all.insert(key.clone(), entry);
        if let Some(before) = before.as_ref().filter(|before| before.binding != binding) {
            entries.by_binding.remove(&(Arc::clone(&before.binding), key.clone()));
        }
        if !binding.is_empty() {
            entries.by_binding.insert((binding, key));
        }
        before.is_none_or(|before| before.wanted != wanted)
    }

    /// Removes a Work.
    pub fn remove(&self, key: &WorkKey) {
        let mut entries = self.write();
        if let Some(entry) = entries.all.remove(key) {
            entries.by_binding.remove(&(entry.binding, key.clone()));
        }
    }

    /// True when there is such a Work.
    pub fn contains(&self, key: &WorkKey) -> bool {
        self.read().all.contains_key(key)
    }

    /// The Works of a binding.
    pub fn of(&self, binding: &Binding) -> Vec<WorkKey> {
        self.read().of(binding).cloned().collect()
    }

    /// The Works of a binding with the fingerprints of their state: with the status, and without.
    pub fn fingerprints(&self, binding: &Binding) -> Vec<(WorkKey, Fingerprint, Wanted)> {
        let entries = self.read();
        let one =
            |key: &WorkKey| entries.all.get(key).map(|entry| (key.clone(), entry.version, entry.wanted));
        entries.of(binding).filter_map(one).collect()
    }

    /// The statuses of a binding's Works, without their manifests and without Works that are being deleted.
    pub fn statuses(&self, binding: &Binding) -> Vec<Work> {
        let entries = self.read();
        let statuses = entries.of(binding).filter_map(|key| {
            let entry = entries.all.get(key).filter(|entry| !entry.wanted.1)?;
            let mut work = Work::new(&kinds::WORK, &names::execution_namespace(&key.cluster), &key.name);
            work.status = serde_json::from_str(&entry.status).ok()?;
            Some(work)
        });
        statuses.collect()
    }

    /// The binding that a Work belongs to.
    pub fn binding_of(&self, key: &WorkKey) -> Option<BindingKey> {
        let entries = self.read();
        let owner = &entries.all.get(key)?.binding;
        match owner.splitn(3, '/').collect::<Vec<_>>()[..] {
            [_, namespace, name] => {
                Some(BindingKey { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => entries.bindings.get(&**owner).cloned(),
        }
    }

    /// The Works for one member.
    pub fn in_cluster(&self, cluster: &str) -> Vec<WorkKey> {
        self.read().in_cluster(cluster).map(|(key, _)| key.clone()).collect()
    }

    /// The Works that bring a kind to one member.
    pub fn bringing(&self, cluster: &str, api_version: &str, kind: &str) -> Vec<WorkKey> {
        let named = |one: &Arc<(String, String)>| one.0 == api_version && one.1 == kind;
        let entries = self.read();
        let bringing = entries.in_cluster(cluster).filter(|(_, entry)| entry.kinds.iter().any(named));
        bringing.map(|(key, _)| key.clone()).collect()
    }

    /// Notes the permanent id of a binding, instead of the one it had before. Works of early Karmadas name only the id.
    pub(super) fn put_binding(&self, before: &str, id: &str, key: &BindingKey) {
        let mut entries = self.write();
        if before != id {
            entries.forget_id(before, key);
        }
        if !id.is_empty() {
            entries.bindings.insert(id.to_owned(), key.clone());
        }
    }

    /// Forgets the permanent id of a binding.
    pub(super) fn remove_binding(&self, id: &str, key: &BindingKey) {
        self.write().forget_id(id, key);
    }
}

impl Entries {
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
        let owners = [owner_text(id, &binding_key(&binding.metadata)), id.to_owned()];
        owners.into_iter().filter(|owner| !owner.is_empty()).flat_map(|owner| {
            let owner: Arc<str> = owner.into();
            let first = (Arc::clone(&owner), WorkKey { cluster: String::new(), name: String::new() });
            self.by_binding.range(first..).take_while(move |(other, _)| *other == owner).map(|(_, key)| key)
        })
    }

    fn in_cluster<'e>(&'e self, cluster: &'e str) -> impl Iterator<Item = (&'e WorkKey, &'e Entry)> {
        let first = WorkKey { cluster: cluster.to_owned(), name: String::new() };
        self.all.range(first..).take_while(move |(key, _)| key.cluster == cluster)
    }

    /// Forgets a permanent id, unless it is another binding's by now.
    fn forget_id(&mut self, id: &str, key: &BindingKey) {
        if self.bindings.get(id) == Some(key) {
            self.bindings.remove(id);
        }
    }
}

/// Changes whenever a Work wants something else, or is called something else.
pub fn wanted(metadata: &ObjectMeta) -> Wanted {
    let owners: Vec<&str> = metadata.owner_references.iter().map(|owner| owner.uid.as_str()).collect();
    let ObjectMeta { uid, labels, annotations, finalizers, .. } = metadata;
    let rest = Fingerprint::of((uid, labels, annotations, finalizers, owners));
    (metadata.generation, metadata.deletion_timestamp.is_some(), rest)
}
