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

    /// The parts that rank highest, the highest first; those of rank 0 are left out.
    pub fn largest(&self, count: usize, rank: impl Fn(&str, Usage) -> u64) -> Vec<(Box<str>, Usage)> {
        let ranked = self.of.iter().map(|(part, usage)| (rank(part, *usage), part, *usage));
        let mut ranked: Vec<(u64, &Box<str>, Usage)> = ranked.filter(|(rank, ..)| *rank > 0).collect();
        ranked.sort_unstable_by_key(|(rank, part, _)| (std::cmp::Reverse(*rank), *part));
        ranked.into_iter().take(count).map(|(_, part, usage)| (part.clone(), usage)).collect()
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
        let names = |rank: fn(&str, Usage) -> u64| -> Vec<String> {
            usage.largest(5, rank).into_iter().map(|(part, _)| part.into()).collect()
        };
        assert_eq!(names(|_, usage| usage.bytes), ["b", "a"]);
        assert_eq!(names(|_, usage| usage.keys), ["a", "b"]);
        assert_eq!(names(|part, _| u64::from(part == "b")), ["b"]);
        usage.count("b/x", None, Some(20));
        let largest = usage.largest(1, |_, usage| usage.bytes);
        assert_eq!((usage.of("b"), largest[0].0.as_ref()), (Usage::default(), "a"));
    }
}
