//! The budget spent so far by the requests of one act. Templates are activated one by one, all with the same value, and
//! the budget bounds their sum. In memory only; a restart resets it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use decide::PolicyKey;
use decide::budget::Effects;
use supervise::Recovered as _;

/// How many acts are remembered; values are moments, so the oldest are forgotten first.
const ACTS_MAX: usize = 1_000;

/// What one act has done: per policy, and in total under none.
type Act = BTreeMap<Option<PolicyKey>, Effects>;

/// What each act has done, by its value. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Spent {
    acts: Arc<Mutex<BTreeMap<String, Act>>>,
}

impl Spent {
    /// What the act with this value has done, in total or to the templates of one policy.
    pub fn of(&self, value: &str, policy: Option<&PolicyKey>) -> Effects {
        let acts = self.acts.lock().recovered();
        let effects = acts.get(value).and_then(|act| act.get(&policy.cloned()));
        effects.copied().unwrap_or_default()
    }

    /// Adds what a request of the act with this value does.
    pub fn add(&self, value: &str, effects: impl IntoIterator<Item = (Option<PolicyKey>, Effects)>) {
        let mut acts = self.acts.lock().recovered();
        let act = acts.entry(value.to_owned()).or_default();
        for (policy, more) in effects {
            let so_far = act.entry(policy).or_default();
            *so_far = so_far.and(more);
        }
        while acts.len() > ACTS_MAX {
            acts.pop_first();
        }
    }
}
