//! Storage usage by first segment of the key (up to its slash), over all tables. Updated with every write, so that
//! reading it is O(1).

use std::collections::HashMap;

use crate::Usage;

/// What is counted, by first part of the keys.
#[derive(Default)]
pub(super) struct UsageIndex {
    of: HashMap<Box<str>, Usage>,
    total: Usage,
}

impl UsageIndex {
    /// Counts an entry that is there now, and one that it replaces or that went away.
    pub fn count(&mut self, key: &str, added: Option<u64>, removed: Option<u64>) {
        self.total.count(added, removed);
        let Some((part, _)) = key.split_once('/') else { return };
        if let Some(usage) = self.of.get_mut(part) {
            usage.count(added, removed);
            if usage.keys == 0 {
                self.of.remove(part);
            }
            return;
        }
        let mut usage = Usage::default();
        usage.count(added, removed);
        self.of.insert(part.into(), usage);
    }

    pub fn of(&self, part: &str) -> Usage {
        self.of.get(part).copied().unwrap_or_default()
    }

    pub fn total(&self) -> Usage {
        self.total
    }

    /// The parts with the most bytes, the largest first.
    pub fn largest(&self, count: usize) -> Vec<(Box<str>, Usage)> {
        let mut all: Vec<(&Box<str>, &Usage)> = self.of.iter().collect();
        all.sort_unstable_by_key(|(part, usage)| (std::cmp::Reverse(usage.bytes), *part));
        all.into_iter().take(count).map(|(part, usage)| (part.clone(), *usage)).collect()
    }
}

impl Usage {
    fn count(&mut self, added: Option<u64>, removed: Option<u64>) {
        self.keys = (self.keys + u64::from(added.is_some())).saturating_sub(u64::from(removed.is_some()));
        self.bytes = (self.bytes + added.unwrap_or(0)).saturating_sub(removed.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_and_goes_is_counted() {
        let mut usage = UsageIndex::default();
        usage.count("a/x", Some(10), None);
        usage.count("a/y", Some(5), None);
        usage.count("a/x", Some(12), Some(10));
        usage.count("b/x", Some(20), None);
        usage.count("alone", Some(3), None);
        assert_eq!(usage.of("a"), Usage { keys: 2, bytes: 17 });
        assert_eq!(usage.total(), Usage { keys: 4, bytes: 40 });
        let names: Vec<_> = usage.largest(5).into_iter().map(|(part, _)| part).collect();
        assert_eq!(names, ["b".into(), "a".into()]);
        usage.count("b/x", None, Some(20));
        assert_eq!((usage.of("b"), usage.largest(1)[0].0.as_ref()), (Usage::default(), "a"));
    }
}
