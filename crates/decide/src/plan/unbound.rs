//! The plan of a binding that is deleted by hand: its Works are deleted, and with them every copy, until the binding is
//! created again. The snapshots before and after are the same, so no comparison shows that.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::copies::in_use;
use super::difference::Draft;
use super::{Action, ClusterPlan, Plan, TemplatePlan};
use crate::snapshot::Snapshot;
use crate::template::{BindingKey, TemplateKey};

/// What the deletion of a binding would do; nothing if there is none.
pub fn unbound(snapshot: &Snapshot, key: &BindingKey) -> Plan {
    let Some(binding) = snapshot.bindings.get(key) else { return Plan::default() };
    let gone = in_use(binding).into_iter().map(|(cluster, replicas)| {
        let action = Action::Delete { replicas };
        (cluster.to_owned(), ClusterPlan::of(action, false))
    });
    let clusters: BTreeMap<String, ClusterPlan> = gone.collect();
    let mut draft = Draft::default();
    if !clusters.is_empty() {
        let template = Arc::new(TemplateKey::of(binding));
        let why =
            "its binding is deleted, which removes its copies until the binding is created again".into();
        draft.add(TemplatePlan {
            template,
            claim: None,
            held: None,
            clusters: Arc::new(clusters),
            fields: Arc::default(),
            nowhere: false,
            why,
        });
    }
    Draft::plan([draft])
}
