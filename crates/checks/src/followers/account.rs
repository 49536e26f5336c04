//! Compares what followers report with the write-ahead log: between two lists no event is missing, duplicated or out of
//! order, and every list is a state that the log went through.

use std::collections::BTreeMap;

use super::Copied;
use crate::log::{Change, Log};

/// What a follower was told from one list to the next.
#[derive(Debug, Default)]
pub(super) struct Stretch {
    /// What the list said.
    pub listed: Copied,
    /// What came afterwards.
    pub events: Vec<(u64, Change)>,
}

/// Somewhere in the log, with what there is at that moment.
struct Cursor<'a> {
    rest: std::iter::Peekable<std::collections::btree_map::Iter<'a, u64, Change>>,
    state: Copied,
}

impl Cursor<'_> {
    fn step(&mut self) -> Option<(u64, Change)> {
        let (revision, change) = self.rest.next()?;
        match change.is_gone {
            true => self.state.remove(&change.name),
            false => self.state.insert(change.name.clone(), *revision),
        };
        Some((*revision, change.clone()))
    }

    /// Goes to where a list was made. A list does not tell its revision: where something came after it, it was made
    /// just before that, and otherwise it is looked for.
    fn find(&mut self, stretch: &Stretch) -> Result<(), String> {
        let found = match stretch.events.first() {
            Some((first, _)) => {
                while self.rest.peek().is_some_and(|(revision, _)| *revision < first) {
                    self.step();
                }
                self.state == stretch.listed
            }
            None => loop {
                if self.state == stretch.listed {
                    break true;
                }
                if self.step().is_none() {
                    break false;
                }
            },
        };
        match found {
            true => Ok(()),
            false => {
                let next = self.rest.peek();
                Err(format!(
                    "listed {:?}, where the log has {:?} before {next:?}",
                    stretch.listed, self.state
                ))
            }
        }
    }
}

/// Judges a follower that does not report the revisions of its lists: it has seen every event between them, from its
/// first list to the end of the log; events that a list covers are not delivered as events.
pub(super) fn judge_stretches(stretches: &[Stretch], log: &Log) -> Result<usize, String> {
    let mut cursor = Cursor { rest: log.iter().peekable(), state: Copied::new() };
    let mut told = 0;
    for stretch in stretches {
        cursor.find(stretch)?;
        for event in &stretch.events {
            match cursor.step() {
                Some(wanted) if wanted == *event => told += 1,
                other => return Err(format!("saw {event:?} where the log has {other:?}")),
            }
        }
    }
    match cursor.rest.next() {
        None => Ok(told),
        Some(missed) => Err(format!("missed {missed:?} and what follows")),
    }
}

/// Judges a follower that reports the revision spans for which it is complete.
pub(super) fn judge_spans(
    spans: &[(u64, u64)],
    seen: &BTreeMap<u64, String>,
    log: &Log,
) -> Result<usize, String> {
    for (after, until) in spans {
        let within = log.range(after..).skip_while(|(revision, _)| *revision <= after);
        for (revision, change) in within.take_while(|(revision, _)| *revision <= until) {
            if seen.get(revision) != Some(&change.name) {
                return Err(format!("missed {revision} {change:?}, knows all after {after} up to {until}"));
            }
        }
    }
    match seen.iter().find(|(revision, name)| log.get(revision).is_none_or(|change| change.name != **name)) {
        None => Ok(seen.len()),
        Some(made_up) => Err(format!("saw {made_up:?}, which the log does not have")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, is_gone: bool) -> Change {
        Change { name: name.to_owned(), is_gone }
    }

    fn log() -> Log {
        [
            (3, change("a", false)),
            (5, change("b", false)),
            (6, change("a", true)),
            (9, change("b", false)),
            (10, change("b", true)),
        ]
        .into()
    }

    fn stretch(listed: &[(&str, u64)], events: &[u64]) -> Stretch {
        let listed = listed.iter().map(|(name, revision)| ((*name).to_owned(), *revision)).collect();
        Stretch {
            listed,
            events: events.iter().map(|revision| (*revision, log()[revision].clone())).collect(),
        }
    }

    #[test]
    fn a_complete_follower_passes() {
        let check =
            |stretches: &[Stretch], told: usize| assert_eq!(judge_stretches(stretches, &log()), Ok(told));
        check(&[stretch(&[], &[3, 5, 6, 9, 10])], 5);
        check(&[stretch(&[("a", 3)], &[5]), stretch(&[("b", 9)], &[10])], 2);
        // A list that nothing came after, and one that saw the end.
        check(&[stretch(&[("a", 3)], &[]), stretch(&[("b", 5)], &[9, 10])], 2);
        assert_eq!(judge_spans(&[(2, 5), (8, 10)], &seen(&[3, 5, 9, 10]), &log()), Ok(4));
    }

    fn seen(revisions: &[u64]) -> BTreeMap<u64, String> {
        revisions.iter().map(|revision| (*revision, log()[revision].name.clone())).collect()
    }

    #[test]
    fn an_inconsistent_follower_fails() {
        let check = |stretches: &[Stretch], why: &str| {
            let found = judge_stretches(stretches, &log()).expect_err("something is wrong");
            assert!(found.contains(why), "{found}");
        };
        check(&[stretch(&[], &[5, 6, 9, 10])], "listed {}");
        check(&[stretch(&[], &[3, 6, 9, 10])], "saw (6");
        check(&[stretch(&[], &[3, 5, 6, 9])], "missed (10");
        check(&[stretch(&[], &[3, 5, 5])], "saw (5");
        check(&[stretch(&[], &[5, 3])], "listed {}");
        check(&[stretch(&[("a", 3)], &[6])], "listed");
        check(&[stretch(&[("a", 3)], &[5]), stretch(&[("a", 3)], &[])], "listed");
        check(&[stretch(&[("a", 4)], &[])], "listed");
        check(&[stretch(&[("a", 3)], &[])], "missed (5");
        assert!(
            judge_spans(&[(2, 6)], &seen(&[3, 6]), &log()).expect_err("one is missing").contains("missed 5")
        );
        let made_up = [(4, "a".to_owned())].into();
        assert!(judge_spans(&[], &made_up, &log()).expect_err("one is made up").contains("does not have"));
    }
}
