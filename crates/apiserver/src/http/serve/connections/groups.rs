//! Connections grouped by address or user, with the largest group and the oldest connection of each in constant
//! reach.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

/// Connections by group. Ids grow with time, so the smallest id of a group is its oldest connection.
pub(super) struct Groups<Key> {
    members: HashMap<Key, BTreeSet<u64>>,
    sizes: BTreeSet<(usize, Key)>,
    total: usize,
}

impl<Key> Default for Groups<Key> {
    fn default() -> Self {
        Self { members: HashMap::new(), sizes: BTreeSet::new(), total: 0 }
    }
}

impl<Key: Clone + Eq + Hash + Ord> Groups<Key> {
    /// Adds a connection to a group.
    pub fn insert(&mut self, key: &Key, id: u64) {
        let before = self.size(key);
        if self.members.entry(key.clone()).or_default().insert(id) {
            self.total += 1;
            self.resized(key, before);
        }
    }

    /// Removes a connection from its group.
    pub fn remove(&mut self, key: &Key, id: u64) {
        let before = self.size(key);
        if self.members.get_mut(key).is_some_and(|members| members.remove(&id)) {
            self.total -= 1;
            self.resized(key, before);
        }
    }

    fn resized(&mut self, key: &Key, before: usize) {
        self.sizes.remove(&(before, key.clone()));
        match self.size(key) {
            0 => drop(self.members.remove(key)),
            size => drop(self.sizes.insert((size, key.clone()))),
        }
    }

    /// How many connections a group has.
    pub fn size(&self, key: &Key) -> usize {
        self.members.get(key).map_or(0, BTreeSet::len)
    }

    /// How many connections all groups have.
    pub fn total(&self) -> usize {
        self.total
    }

    /// The group with the most connections.
    pub fn largest(&self) -> Option<&Key> {
        self.sizes.last().map(|(_, key)| key)
    }

    /// The connections of a group, oldest first.
    pub fn members(&self, key: &Key) -> impl Iterator<Item = u64> {
        self.members.get(key).into_iter().flatten().copied()
    }

    /// The oldest connection of a group.
    pub fn oldest(&self, key: &Key) -> Option<u64> {
        self.members(key).next()
    }
}
