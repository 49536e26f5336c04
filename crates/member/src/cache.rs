//! The informer cache of a member: the cached part of every object, owner references, free capacity of the nodes, and
//! the set of objects to reconcile (dirty).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::facts::{self, Detail, Facts, Phase};
use crate::key::{Key, Kind};
use crate::node::Nodes;

/// The facts, and the indexes over them.
#[derive(Default)]
pub struct Cache {
    /// Boxed, because a map leaves half of its places empty where names come in order.
    objects: BTreeMap<Key, Box<Facts>>,
    /// Children by the uid of their controller. One set for all: most have one child, and a set takes room for eleven.
    children: BTreeSet<(Arc<str>, Key)>,
    pub nodes: Nodes,
    /// Pods that wait for room.
    unplaced: BTreeSet<Key>,
    /// Objects to reconcile.
    dirty: BTreeSet<Key>,
}

impl Cache {
    /// The facts of an object.
    pub fn facts(&self, key: &Key) -> Option<&Facts> {
        self.objects.get(key).map(AsRef::as_ref)
    }

    /// The keys of a kind, in order.
    pub fn keys(&self, kind: Kind) -> impl Iterator<Item = &Key> {
        let first = Key { kind, path: "".into() };
        self.objects.range(first..).map(|(key, _)| key).take_while(move |key| key.kind == kind)
    }

    /// The objects of a kind that an object controls, with their facts, in order.
    pub fn children(&self, uid: &str, kind: Kind) -> impl Iterator<Item = (&Key, &Facts)> {
        let first: (Arc<str>, Key) = (uid.into(), Key { kind, path: "".into() });
        let owner = Arc::clone(&first.0);
        let keys =
            self.children.range(first..).take_while(move |(uid, key)| *uid == owner && key.kind == kind);
        keys.filter_map(|(_, key)| self.objects.get_key_value(key)).map(|(key, facts)| (key, &**facts))
    }

    /// The pods that an object controls and that are not on their way out.
    pub fn pods(&self, uid: &str) -> Vec<(&Key, &facts::Pod)> {
        let living = self.children(uid, Kind::Pod).filter(|(_, facts)| !facts.deleting);
        living.filter_map(|(key, facts)| Some((key, facts.pod()?))).collect()
    }

    /// Takes note of an object's state. States that are older than what is known change nothing.
    /// `echo` says that the object needs no further reconcile: its state is what we just made of it.
    pub fn observe(&mut self, key: Key, mut facts: Facts, echo: bool) {
        if let Some(owner) = &mut facts.owner {
            self.share(owner);
        }
        let old = self.objects.get(&key);
        if old.is_some_and(|old| old.revision >= facts.revision) {
            return;
        }
        let old = old.cloned();
        let same = old.as_ref().is_some_and(|old| old.is_alike(&facts));
        if !echo {
            self.dirty.insert(key.clone());
        }
        if !same {
            if let Some(old) = &old {
                self.unlink(&key, old);
            }
            self.link(&key, &facts);
            self.mark_affected(&key, old.as_deref(), Some(&facts));
        }
        self.objects.insert(key, Box::new(facts));
    }

    /// Takes note that an object is gone, unless a newer state of its name is known.
    pub fn forget(&mut self, key: &Key, revision: u64) {
        if self.objects.get(key).is_none_or(|facts| facts.revision > revision) {
            return;
        }
        let Some(old) = self.objects.remove(key) else { return };
        self.unlink(key, &old);
        self.unplaced.remove(key);
        self.dirty.remove(key);
        self.mark_affected(key, Some(&old), None);
    }

    /// Notes that we began an object's deletion. It is known until the watch reports the deletion, so that an older
    /// event cannot bring it back.
    pub fn mark_deleting(&mut self, key: &Key, uid: &str) {
        let Some(facts) = self.objects.get_mut(key).filter(|facts| &*facts.uid == uid) else { return };
        facts.deleting = true;
        let facts = facts.clone();
        self.mark_affected(key, Some(&facts), Some(&facts));
    }

    /// A pod fits on no node; it is reconciled again when there is room.
    pub fn wait_for_room(&mut self, key: &Key) {
        self.unplaced.insert(key.clone());
    }

    /// Marks an object for reconciling.
    pub fn touch(&mut self, key: Key) {
        self.dirty.insert(key);
    }

    /// Whether any object is to be reconciled.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Up to `max` objects to reconcile, all of the kind that comes first.
    pub fn take_dirty(&mut self, max: usize) -> Vec<Key> {
        let mut batch: Vec<Key> = Vec::new();
        while batch.len() < max
            && let Some(key) = self.dirty.pop_first()
        {
            if batch.first().is_some_and(|first| first.kind != key.kind) {
                self.dirty.insert(key);
                break;
            }
            batch.push(key);
        }
        batch
    }

    /// Names an owner by what is known of it, so that no name is kept twice.
    fn share(&self, owner: &mut facts::Owner) {
        let Some((key, facts)) = self.objects.get_key_value(&owner.key) else { return };
        owner.key = key.clone();
        if facts.uid == owner.uid {
            owner.uid = Arc::clone(&facts.uid);
        }
    }

    fn link(&mut self, key: &Key, facts: &Facts) {
        if let Some(owner) = facts.holder() {
            self.children.insert((Arc::clone(&owner.uid), key.clone()));
        }
        match &facts.detail {
            Detail::Pod(pod) if pod.takes_room() => self.nodes.take(&pod.node, pod.wish.needs),
            Detail::Node(node) => self.nodes.put(key.name(), node.clone()),
            _ => {}
        }
    }

    fn unlink(&mut self, key: &Key, facts: &Facts) {
        if let Some(owner) = facts.holder() {
            self.children.remove(&(Arc::clone(&owner.uid), key.clone()));
        }
        match &facts.detail {
            Detail::Pod(pod) if pod.takes_room() => self.nodes.release(&pod.node, pod.wish.needs),
            Detail::Node(_) => self.nodes.remove(key.name()),
            _ => {}
        }
    }

    /// Marks the objects that depend on a change of another object.
    fn mark_affected(&mut self, key: &Key, old: Option<&Facts>, new: Option<&Facts>) {
        for owner in [old, new].into_iter().flatten().filter_map(Facts::holder) {
            self.dirty.insert(owner.key.clone());
        }
        match (key.kind, old.or(new)) {
            (Kind::Pod, _) => self.mark_affected_by_pod(key, old, new),
            (Kind::Node, _) => self.mark_affected_by_node(key, new.is_none()),
            (Kind::Claim, Some(claim)) => {
                let volumes: Vec<Key> =
                    self.children(&claim.uid, Kind::Volume).map(|(key, _)| key.clone()).collect();
                self.dirty.extend(volumes);
            }
            _ => {}
        }
    }

    fn mark_affected_by_pod(&mut self, key: &Key, old: Option<&Facts>, new: Option<&Facts>) {
        let takes = |facts: Option<&Facts>| facts.and_then(Facts::pod).is_some_and(facts::Pod::takes_room);
        if takes(old) && !takes(new) {
            self.mark_pods_that_fit();
        }
        let inside = |budget: &&Key| budget.namespace() == key.namespace();
        let budgets: Vec<Key> = self.keys(Kind::Budget).filter(inside).cloned().collect();
        self.dirty.extend(budgets);
    }

    fn mark_affected_by_node(&mut self, key: &Key, gone: bool) {
        self.mark_pods_that_fit();
        let sets: Vec<Key> = self.keys(Kind::DaemonSet).cloned().collect();
        self.dirty.extend(sets);
        if gone {
            let on_node =
                |pod: &&Key| self.facts(pod).and_then(Facts::pod).is_some_and(|pod| &*pod.node == key.name());
            let pods: Vec<Key> = self.keys(Kind::Pod).filter(on_node).cloned().collect();
            self.dirty.extend(pods);
        }
    }

    /// Lets those waiting pods try again that fit now, all together.
    fn mark_pods_that_fit(&mut self) {
        let mut fitting = Vec::new();
        for key in &self.unplaced {
            let pod = self.objects.get(key).and_then(|facts| facts.pod());
            if pod.is_some_and(|pod| self.nodes.promise(&pod.wish).is_some()) {
                fitting.push(key.clone());
            }
        }
        self.nodes.forget_promises();
        for pod in fitting {
            self.unplaced.remove(&pod);
            self.dirty.insert(pod);
        }
    }
}

impl Facts {
    /// The facts of a pod.
    pub fn pod(&self) -> Option<&facts::Pod> {
        match &self.detail {
            Detail::Pod(pod) => Some(pod),
            _ => None,
        }
    }

    /// The facts of a ReplicaSet.
    pub fn replica_set(&self) -> Option<&facts::ReplicaSet> {
        match &self.detail {
            Detail::ReplicaSet(set) => Some(set),
            _ => None,
        }
    }

    /// The facts of a volume.
    pub fn volume(&self) -> Option<&facts::Volume> {
        match &self.detail {
            Detail::Volume(volume) => Some(volume),
            _ => None,
        }
    }

    /// Whose it is: the controller of an object, the claim of a volume.
    fn holder(&self) -> Option<&facts::Owner> {
        self.owner.as_ref().or_else(|| self.volume()?.claim.as_ref())
    }

    /// Whether the difference matters to no other object.
    fn is_alike(&self, other: &Facts) -> bool {
        (&self.uid, self.deleting, &self.owner, &self.detail)
            == (&other.uid, other.deleting, &other.owner, &other.detail)
    }
}

impl facts::Pod {
    /// Whether it takes room on a node.
    fn takes_room(&self) -> bool {
        !self.node.is_empty() && self.is_active()
    }

    /// Whether it runs or will run.
    pub fn is_active(&self) -> bool {
        matches!(self.phase, Phase::Waiting | Phase::Ready)
    }
}
