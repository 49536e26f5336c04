//! The permission to render: which clusters may have a revision, by what is recorded on the binding and by nothing else.
//! A revision that is not recorded may go nowhere, so that a controller that is late, restarted or has an old cache can
//! only deliver less.

use std::collections::BTreeSet;

use api::records::StrategyRecord;
use api::{Binding, BindingRollout, RolloutPhase};

/// Where a revision may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permit {
    /// Everywhere.
    All,
    /// To these clusters; others keep what they have.
    Only(BTreeSet<String>),
}

impl Permit {
    /// Whether a cluster may have it.
    pub fn allows(&self, cluster: &str) -> bool {
        match self {
            Permit::All => true,
            Permit::Only(clusters) => clusters.contains(cluster),
        }
    }
}

/// Where this revision of a binding may go.
pub fn permit(binding: &Binding, revision: &str) -> Permit {
    if StrategyRecord::read(&binding.metadata).is_none() || is_complete(binding, revision) {
        return Permit::All;
    }
    let recorded = recorded(binding).filter(|rollout| rollout.revision == revision);
    Permit::Only(
        recorded.map(|rollout| rollout.current_clusters.iter().cloned().collect()).unwrap_or_default(),
    )
}

/// Whether a copy in a cluster that is no longer wanted stays for now (G9). `revision` is none where nothing can be
/// rendered.
pub(crate) fn stays(binding: &Binding, revision: Option<&str>, cluster: &str) -> bool {
    if StrategyRecord::read(&binding.metadata).is_none() {
        return false;
    }
    match (recorded(binding), revision) {
        (Some(rollout), Some(revision)) if rollout.revision != revision => true,
        (None, Some(revision)) => !is_complete(binding, revision),
        (Some(rollout), _) => {
            let known = [&rollout.current_clusters, &rollout.suspended_clusters, &rollout.leaving_clusters];
            known.into_iter().flatten().any(|name| name == cluster)
        }
        (None, None) => false,
    }
}

/// Whether a change of this binding is on its way through stages.
pub fn is_in_flight(binding: &Binding) -> bool {
    recorded(binding).is_some() && StrategyRecord::read(&binding.metadata).is_some()
}

fn recorded(binding: &Binding) -> Option<&BindingRollout> {
    binding.spec.suspension.as_ref()?.rollout.as_ref()
}

fn is_complete(binding: &Binding, revision: &str) -> bool {
    let done = |phase| matches!(phase, RolloutPhase::Succeeded | RolloutPhase::Failed);
    let progress = binding.status.rollout.as_ref().filter(|progress| progress.revision == revision);
    recorded(binding).is_none() && progress.is_some_and(|progress| done(progress.phase))
}
