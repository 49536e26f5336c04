//! Templates and members that make no progress, and why: decisions that fail, and members that report errors. A
//! template that waits because its policy says so is not stuck. Pure.

use std::collections::BTreeSet;

use api::binding::{LAST_COPY_KEPT, SCHEDULED};
use api::work::Health;
use api::{Binding, ConditionStatus};
use decide::Snapshot;
use decide::activation::{Activation, HoldWhy};
use decide::readiness::unknown;
use decide::snapshot::Interpreters;
use decide::why::staying;
use serde::{Deserialize, Serialize};

/// Something that does not get on.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stuck {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

/// Everything that does not get on, by name.
pub fn stuck(snapshot: &Snapshot) -> Vec<Stuck> {
    let mut all = Vec::new();
    let silent = snapshot.clusters.iter().filter(|cluster| unknown(cluster).is_some());
    let silent: BTreeSet<&str> = silent.map(|cluster| cluster.metadata.name.as_str()).collect();
    for template in snapshot.templates.iter() {
        let binding = snapshot.bindings.get(&template.key.binding()).map(AsRef::as_ref);
        let Some(decided) = snapshot.look(&template.key, Interpreters::BUILT_IN) else { continue };
        let mut say = |why: String| all.push(Stuck { what: template.key.to_string(), why });
        if let Some(refusal) = &decided.refusal {
            say(refusal.to_string());
            continue;
        }
        if let Some(rejection) = decided.rejection(binding, &snapshot.gates) {
            say(format!("its binding cannot be changed: {rejection}"));
        }
        if let Activation::Hold(hold @ HoldWhy::MissingOverrides { .. }) = &decided.activation {
            say(hold.to_string());
        }
        if let Some(binding) = binding {
            complaints(binding, &silent).into_iter().for_each(&mut say);
            if let Some(staying) = staying(binding, &snapshot.clusters) {
                say(staying.to_string());
            }
        }
    }
    all.sort();
    all
}

/// What is wrong with a binding; what silent clusters said last is not known to be so.
fn complaints(binding: &Binding, silent: &BTreeSet<&str>) -> Vec<String> {
    let scheduled = binding.status.conditions.iter().find(|condition| condition.kind == SCHEDULED);
    let nowhere = scheduled.filter(|condition| condition.status == ConditionStatus::False);
    let kept = binding.status.conditions.iter().find(|condition| condition.kind == LAST_COPY_KEPT);
    // That the last copy stays includes why nothing else fits.
    let all = kept.or(nowhere).map(|condition| condition.message.clone());
    let mut all: Vec<String> = all.into_iter().collect();
    let reports = binding.status.aggregated_status.iter();
    for item in reports.filter(|item| !silent.contains(item.cluster_name.as_str())) {
        let cluster = &item.cluster_name;
        if !item.applied && !item.applied_message.is_empty() {
            all.push(format!("not applied in {cluster}: {}", item.applied_message));
        } else if item.health == Some(Health::Unhealthy) {
            all.push(format!("unhealthy in {cluster}"));
        }
    }
    all
}
