//! The reconcile memo: fingerprints of reconciles that changed nothing, so that the next one with the same input is
//! skipped. Independent of what controllers read. Losing an entry costs a reconcile, never a wrong answer.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::{Mutex, MutexGuard};

use decide::BindingKey;
use supervise::Recovered as _;

/// What a reconcile asks about a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Are its Works as they should be?
    Works,
    /// Does its status match its Works'?
    Status,
}

/// Stands for everything that an answer was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint of these facts.
    pub fn of(facts: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        facts.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// The last fingerprint that needed no write, by binding and question.
#[derive(Default)]
pub struct ReconcileMemo(Mutex<HashMap<BindingKey, [Option<Fingerprint>; 2]>>);

impl ReconcileMemo {
    fn fingerprints(&self) -> MutexGuard<'_, HashMap<BindingKey, [Option<Fingerprint>; 2]>> {
        self.0.lock().recovered()
    }

    /// Whether the question was answered from the same facts before, and nothing was left to do.
    pub fn holds(&self, key: &BindingKey, question: Question, fingerprint: Fingerprint) -> bool {
        self.fingerprints().get(key).is_some_and(|known| known[question as usize] == Some(fingerprint))
    }

    /// Remembers that these facts need no write.
    pub fn note(&self, key: &BindingKey, question: Question, fingerprint: Fingerprint) {
        self.fingerprints().entry(key.clone()).or_default()[question as usize] = Some(fingerprint);
    }

    /// Forgets a binding.
    pub fn forget(&self, key: &BindingKey) {
        self.fingerprints().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_question_about_the_same_facts_is_answered() {
        let memo = ReconcileMemo::default();
        let key = |name: &str| BindingKey { namespace: String::new(), name: name.to_owned() };
        memo.note(&key("a"), Question::Works, Fingerprint::of((1, "x")));
        let check = |name: &str, question: Question, facts: (i32, &str), expected: bool| {
            assert_eq!(
                memo.holds(&key(name), question, Fingerprint::of(facts)),
                expected,
                "{name} {facts:?}"
            );
        };
        check("a", Question::Works, (1, "x"), true);
        check("a", Question::Works, (2, "x"), false);
        check("a", Question::Status, (1, "x"), false);
        check("b", Question::Works, (1, "x"), false);
        memo.forget(&key("a"));
        check("a", Question::Works, (1, "x"), false);
    }
}
