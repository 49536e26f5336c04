//! Change budgets at admission: the flags of the commands that run the controllers.

use plane::policy_impact::{Budget, PolicyImpact};

/// Limits of what one change may do, for changed objects that set no limit of their own.
#[derive(clap::Args)]
pub struct ChangeBudgetFlags {
    /// Change budget: how many templates one change may move to other clusters, unless an annotation of the changed
    /// object sets another limit
    #[arg(long, value_name = "N")]
    max_moved: Option<usize>,
    /// Change budget: how many objects one change may delete in members, unless an annotation of the changed object
    /// sets another limit
    #[arg(long, value_name = "N")]
    max_deleted: Option<usize>,
    /// Reject policies that name clusters which do not exist, unless an annotation of the policy allows it
    #[arg(long)]
    refuse_unknown_clusters: bool,
}

impl ChangeBudgetFlags {
    /// The budget of each change.
    pub fn budget(&self) -> Budget {
        Budget { moved: self.max_moved, deleted: self.max_deleted }
    }

    /// The check of policies at admission that these flags configure.
    pub fn policy_impact(&self) -> PolicyImpact {
        PolicyImpact::new(self.budget()).refusing_unknown_clusters(self.refuse_unknown_clusters)
    }
}
