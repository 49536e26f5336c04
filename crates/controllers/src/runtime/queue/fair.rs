//! Fair queuing: the order in which waiting keys are taken. Users' keys go first, and inside a priority the namespaces
//! take turns (round robin), so that a tenant with thousands of keys delays another one by one key. Every operation
//! takes constant time.

use std::collections::{HashMap, VecDeque};

use super::{Key, Priority};

/// After so many users' keys in a row one of the others is taken, if there is one: a flood of edits by one tenant must
/// not stop what another one's policy brought up.
const USERS_IN_A_ROW_MAX: u32 = 8;

/// Keys that wait for a worker.
pub(super) struct Waiting<K> {
    queued: HashMap<K, Priority>,
    user: Turns<K>,
    resync: Turns<K>,
    users_in_a_row: u32,
}

/// Keys of one priority, by namespace.
struct Turns<K> {
    /// The keys of each namespace in the order in which they came; never empty.
    lines: HashMap<String, VecDeque<K>>,
    /// The namespaces that have keys, each once, in the order of their turns.
    order: VecDeque<String>,
}

impl<K: Key> Waiting<K> {
    pub(super) fn new() -> Self {
        let (user, resync) = (Turns::new(), Turns::new());
        Self { queued: HashMap::new(), user, resync, users_in_a_row: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.queued.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    /// Adds a key of a namespace, or raises its priority.
    pub(super) fn add(&mut self, key: K, namespace: String, priority: Priority) {
        match self.queued.get(&key) {
            Some(before) if *before <= priority => {}
            // Raised: the place in the slower line stays and is skipped when its turn comes.
            _ => {
                self.queued.insert(key.clone(), priority);
                match priority {
                    Priority::User => self.user.add(key, namespace),
                    Priority::Resync => self.resync.add(key, namespace),
                }
            }
        }
    }

    /// Takes the key whose turn it is.
    pub(super) fn take(&mut self) -> Option<K> {
        let first = match self.users_in_a_row < USERS_IN_A_ROW_MAX {
            true => Priority::User,
            false => Priority::Resync,
        };
        let second = if first == Priority::User { Priority::Resync } else { Priority::User };
        let taken = self.take_of(first).map(|key| (key, first));
        let (key, priority) = taken.or_else(|| self.take_of(second).map(|key| (key, second)))?;
        self.users_in_a_row = if priority == Priority::User { self.users_in_a_row + 1 } else { 0 };
        self.queued.remove(&key);
        Some(key)
    }

    fn take_of(&mut self, priority: Priority) -> Option<K> {
        let turns = match priority {
            Priority::User => &mut self.user,
            Priority::Resync => &mut self.resync,
        };
        turns.take(|key| self.queued.get(key) == Some(&priority))
    }
}

impl<K> Turns<K> {
    fn new() -> Self {
        Self { lines: HashMap::new(), order: VecDeque::new() }
    }

    fn add(&mut self, key: K, namespace: String) {
        match self.lines.get_mut(&namespace) {
            Some(line) => line.push_back(key),
            None => {
                self.order.push_back(namespace.clone());
                self.lines.insert(namespace, VecDeque::from([key]));
            }
        }
    }

    /// Takes the first key that still stands here from the namespace whose turn it is; those that do not cost no turn.
    fn take(&mut self, stands: impl Fn(&K) -> bool) -> Option<K> {
        loop {
            let namespace = self.order.pop_front()?;
            let line = self.lines.get_mut(&namespace)?;
            let key = std::iter::from_fn(|| line.pop_front()).find(|key| stands(key));
            match line.is_empty() {
                true => _ = self.lines.remove(&namespace),
                false => self.order.push_back(namespace),
            }
            if key.is_some() {
                return key;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pair = (&'static str, u32);

    fn waiting(keys: impl IntoIterator<Item = (Pair, Priority)>) -> Waiting<Pair> {
        let mut waiting = Waiting::new();
        keys.into_iter().for_each(|(key, priority)| waiting.add(key, key.0.to_owned(), priority));
        waiting
    }

    fn all(mut waiting: Waiting<Pair>) -> Vec<Pair> {
        std::iter::from_fn(|| waiting.take()).collect()
    }

    #[test]
    fn namespaces_take_turns_and_keep_their_own_order() {
        let flood = (0..4).map(|number| (("flood", number), Priority::User));
        let others = [(("a", 0), Priority::User), (("b", 0), Priority::User), (("a", 1), Priority::User)];
        let expected = [("flood", 0), ("a", 0), ("b", 0), ("flood", 1), ("a", 1), ("flood", 2), ("flood", 3)];
        assert_eq!(all(waiting(flood.chain(others))), expected);
    }

    #[test]
    fn a_namespace_that_comes_late_waits_for_one_key_however_many_there_are() {
        let mut waiting = waiting((0..5_000).map(|number| (("flood", number), Priority::User)));
        (0..100).for_each(|_| _ = waiting.take());
        waiting.add(("other", 0), "other".to_owned(), Priority::User);
        let before = std::iter::from_fn(|| waiting.take()).take_while(|key| key.0 != "other").count();
        assert!(before <= 1, "{before}");
    }

    #[test]
    fn a_flood_of_users_does_not_stop_others() {
        let mut waiting = waiting((0..5_000).map(|number| (("flood", number), Priority::User)));
        waiting.add(("other", 0), "other".to_owned(), Priority::Resync);
        let before = std::iter::from_fn(|| waiting.take()).take_while(|key| key.0 != "other").count();
        assert_eq!(before, 8);
    }

    #[test]
    fn a_key_that_is_raised_is_taken_once_and_costs_its_namespace_no_turn() {
        let mut waiting = waiting([(("a", 0), Priority::Resync), (("a", 1), Priority::Resync)]);
        waiting.add(("a", 0), "a".to_owned(), Priority::User);
        waiting.add(("a", 0), "a".to_owned(), Priority::Resync);
        waiting.add(("b", 0), "b".to_owned(), Priority::Resync);
        assert_eq!(waiting.len(), 3);
        assert_eq!(all(waiting), [("a", 0), ("a", 1), ("b", 0)]);
    }
}
