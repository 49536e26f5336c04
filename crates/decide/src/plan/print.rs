//! A plan as text: one line per template and cluster, the totals last.

use std::fmt;

use super::{Action, ClaimChange, ClusterPlan, Plan, Totals};

/// Marks a template that no cluster has afterwards; conspicuous on purpose.
pub const NOWHERE: &str = "WOULD RUN NOWHERE";

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for plan in self.templates.values() {
            write!(formatter, "{}", plan.template)?;
            if let Some(claim) = &plan.claim {
                write!(formatter, ": {claim}")?;
            }
            writeln!(formatter)?;
            for (cluster, change) in plan.clusters.iter() {
                writeln!(formatter, "  {cluster}: {change}")?;
            }
            if plan.nowhere {
                writeln!(formatter, "  {NOWHERE}")?;
            }
            match &plan.held {
                Some(held) => writeln!(formatter, "  waits: {held}")?,
                None => writeln!(formatter, "  because {}", plan.why)?,
            }
        }
        write!(formatter, "{}", self.totals)
    }
}

impl fmt::Display for ClaimChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClaimChange::Claimed { by } => write!(formatter, "claimed by {by}"),
            ClaimChange::Released { from } => write!(formatter, "released by {from}"),
            ClaimChange::Handed { from, to } => write!(formatter, "handed from {from} to {to}"),
            ClaimChange::Preempted { from, by } => write!(formatter, "taken from {from} by {by}"),
        }
    }
}

impl fmt::Display for ClusterPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.action {
            Action::Create { replicas } => write!(formatter, "create with {replicas} replicas")?,
            Action::Delete { replicas } => write!(formatter, "delete with {replicas} replicas")?,
            Action::Scale { from, to } => write!(formatter, "scale from {from} to {to} replicas")?,
            Action::Update => write!(formatter, "update")?,
            Action::Suspend => return write!(formatter, "suspend"),
            Action::Resume => write!(formatter, "resume")?,
        }
        match (self.stage.as_str(), self.action) {
            ("", _) => {}
            (stage, Action::Delete { .. }) => write!(formatter, ", after stage {stage}")?,
            (stage, _) => write!(formatter, ", in stage {stage}")?,
        }
        if self.suspended {
            write!(formatter, " (suspended: not before it is resumed)")?;
        }
        match (self.after.as_slice(), self.held_by.as_slice()) {
            ([], _) => Ok(()),
            (after, []) => write!(formatter, ", after it is applied in {}", after.join(", ")),
            (after, held_by) => write!(
                formatter,
                ", after it is applied in {} (held: {} is suspended or not ready)",
                after.join(", "),
                held_by.join(", ")
            ),
        }
    }
}

impl ClusterPlan {
    /// A change that waits for nothing elsewhere.
    pub fn of(action: Action, suspended: bool) -> ClusterPlan {
        ClusterPlan { action, suspended, after: Vec::new(), held_by: Vec::new(), stage: String::new() }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.claimed, "claimed"),
            (self.released, "released"),
            (self.handed, "handed over"),
            (self.preempted, "preempted"),
            (self.moved, "moved"),
            (self.held, "waiting"),
            (self.created, "to create"),
            (self.deleted, "to delete"),
            (self.scaled, "to scale"),
            (self.updated, "to update"),
            (self.suspended, "to suspend"),
            (self.resumed, "to resume"),
            (self.nowhere, "to run NOWHERE"),
        ];
        if self.templates == 0 {
            return write!(formatter, "Plan: nothing changes.");
        }
        let plural = if self.templates == 1 { "" } else { "s" };
        write!(formatter, "Plan: {} template{plural}", self.templates)?;
        for (count, words) in parts.into_iter().filter(|(count, _)| *count > 0) {
            write!(formatter, ", {count} {words}")?;
        }
        write!(formatter, ".")
    }
}
