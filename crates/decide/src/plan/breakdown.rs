//! The totals of a plan per cluster and per namespace.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Action, Plan};

/// What happens in each cluster, and to the templates of each namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Breakdown {
    /// By cluster.
    pub clusters: BTreeMap<String, Counts>,
    /// By namespace; templates without one are under the empty name.
    pub namespaces: BTreeMap<String, Counts>,
}

/// Objects in members by what happens to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// They appear.
    pub created: usize,
    /// They vanish.
    pub deleted: usize,
    /// They get another number of replicas.
    pub scaled: usize,
    /// Their content changes.
    pub updated: usize,
    /// They become suspended.
    pub suspended: usize,
    /// They are resumed.
    pub resumed: usize,
}

/// Counts a plan by cluster and by namespace.
pub fn breakdown(plan: &Plan) -> Breakdown {
    let mut counted = Breakdown::default();
    for one in plan.templates.values() {
        for (cluster, change) in one.clusters.iter() {
            count(&mut counted.clusters, cluster, change.action);
            count(&mut counted.namespaces, &one.template.namespace, change.action);
        }
    }
    counted
}

fn count(counts: &mut BTreeMap<String, Counts>, name: &str, action: Action) {
    let counts = match counts.get_mut(name) {
        Some(counts) => counts,
        None => counts.entry(name.to_owned()).or_default(),
    };
    match action {
        Action::Create { .. } => counts.created += 1,
        Action::Delete { .. } => counts.deleted += 1,
        Action::Scale { .. } => counts.scaled += 1,
        Action::Update => counts.updated += 1,
        Action::Suspend => counts.suspended += 1,
        Action::Resume => counts.resumed += 1,
    }
}

impl Counts {
    /// The numbers with the titles of their columns.
    pub fn columns(self) -> [(&'static str, usize); 6] {
        let Counts { created, deleted, scaled, updated, suspended, resumed } = self;
        [
            ("CREATE", created),
            ("DELETE", deleted),
            ("SCALE", scaled),
            ("UPDATE", updated),
            ("SUSPEND", suspended),
            ("RESUME", resumed),
        ]
    }
}
