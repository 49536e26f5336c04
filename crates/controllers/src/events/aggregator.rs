//! Combines Events of one object and reason that differ only in their message, as client-go's recorder does (E1): a
//! message that changes with every attempt would otherwise make a new Event each time.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// How many messages of one object and reason are Events of their own.
const SIMILAR_MAX: usize = 10;
/// How long similar Events are counted; client-go's interval.
const INTERVAL: Duration = Duration::from_secs(600);
/// How many groups of similar Events are remembered. A forgotten group starts anew.
const GROUPS_MAX: usize = 10_000;

/// The messages that were recorded lately, by what they are about.
#[derive(Debug)]
pub struct Aggregator<K> {
    groups: HashMap<K, Group>,
}

#[derive(Debug)]
struct Group {
    messages: HashSet<u64>,
    last: Instant,
}

impl<K> Default for Aggregator<K> {
    fn default() -> Self {
        Self { groups: HashMap::new() }
    }
}

impl<K: Hash + Eq> Aggregator<K> {
    /// Notes a message; true when so many others of its group came before that it is combined with them.
    pub fn is_combined(&mut self, group: K, message: u64) -> bool {
        let now = Instant::now();
        if self.groups.len() >= GROUPS_MAX && !self.groups.contains_key(&group) {
            self.groups.retain(|_, group| now - group.last <= INTERVAL);
            if self.groups.len() >= GROUPS_MAX {
                self.groups.clear();
            }
        }
        let group = self.groups.entry(group).or_insert(Group { messages: HashSet::new(), last: now });
        if now - group.last > INTERVAL {
            group.messages.clear();
        }
        group.last = now;
        if group.messages.len() < SIMILAR_MAX {
            group.messages.insert(message);
        }
        !group.messages.contains(&message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn e1_messages_beyond_the_first_ten_are_combined() {
        let mut aggregator = Aggregator::default();
        let combined = (0..15).filter(|message| aggregator.is_combined("web", *message)).count();
        assert_eq!(combined, 5);
        assert!(!aggregator.is_combined("web", 3), "what has an Event of its own keeps it");
        assert!(!aggregator.is_combined("other", 99), "another object is not concerned");
        tokio::time::advance(INTERVAL * 2).await;
        assert!(!aggregator.is_combined("web", 99), "an interval later it starts anew");
    }
}
