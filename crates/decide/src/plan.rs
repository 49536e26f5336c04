//! The dry run of a change: settles the snapshot before and after it with the functions that controllers call, and
//! returns the difference: per template, per cluster, in total. Promises nothing that reconciling would not do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::activation::{Activation, HoldWhy};
use crate::binding::Refusal;
use crate::claim::ClaimWhy;
use crate::fields::put;
use crate::gates::Gates;
use crate::policy::PolicyKey;
use crate::propagation::Propagation;
use crate::snapshot::{Change, ChangeError, Interpreters, Snapshot};
use crate::template::{Template, TemplateKey, digest};

mod breakdown;
mod copies;
mod difference;
mod fields;
mod one_by_one;
mod print;
mod rendered;
mod unbound;

pub use breakdown::{Breakdown, Counts, breakdown};
use difference::{Comparison, Draft};
pub use fields::FieldChange;
use one_by_one::one_by_one;
pub use print::NOWHERE;
pub use rendered::add_rendered;
pub use unbound::unbound;

/// What a set of changes would do; templates to which nothing happens are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Per template.
    pub templates: BTreeMap<String, TemplatePlan>,
    /// In total.
    pub totals: Totals,
}

/// What would happen to one template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplatePlan {
    /// The template.
    pub template: Arc<TemplateKey>,
    /// The change of its owner, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimChange>,
    /// What waits for the template to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<HoldWhy>,
    /// What would happen in each cluster; templates to which the same happens share it.
    #[serde(default, skip_serializing_if = "is_nowhere")]
    pub clusters: Arc<BTreeMap<String, ClusterPlan>>,
    /// Which fields change in clusters that keep their copy, at most twenty; values of Secrets are hidden.
    #[serde(default, skip_serializing_if = "is_unchanged")]
    pub fields: Arc<Vec<FieldChange>>,
    /// No cluster has it afterwards: it loses its last copy, or a policy that selects no cluster claims it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nowhere: bool,
    /// Why, in one sentence.
    pub why: Arc<str>,
}

impl TemplatePlan {
    /// How many copies vanish.
    pub fn deleted(&self) -> usize {
        self.clusters.values().filter(|cluster| matches!(cluster.action, Action::Delete { .. })).count()
    }

    /// How many copies appear.
    pub fn created(&self) -> usize {
        self.clusters.values().filter(|cluster| matches!(cluster.action, Action::Create { .. })).count()
    }

    /// True when it leaves a cluster and enters another one.
    pub fn is_moved(&self) -> bool {
        self.deleted() > 0 && self.created() > 0
    }
}

fn is_unchanged(fields: &[FieldChange]) -> bool {
    fields.is_empty()
}

fn is_nowhere(clusters: &BTreeMap<String, ClusterPlan>) -> bool {
    clusters.is_empty()
}

/// How ownership of a template would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "camelCase")]
pub enum ClaimChange {
    /// No policy owned it.
    Claimed {
        /// The new owner.
        by: PolicyKey,
    },
    /// No policy owns it afterwards.
    Released {
        /// The old owner.
        from: PolicyKey,
    },
    /// Its owner released it and another policy matches.
    Handed {
        /// The old owner.
        from: PolicyKey,
        /// The new owner.
        to: PolicyKey,
    },
    /// Taken from an owner that would have kept it.
    Preempted {
        /// The old owner.
        from: PolicyKey,
        /// The policy that takes it.
        by: PolicyKey,
    },
}

/// What would happen to a template in one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterPlan {
    /// What changes.
    #[serde(flatten)]
    pub action: Action,
    /// Suspended there, so nothing is written until it is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Not before the copies in these clusters are applied (M1).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Those of them to which nothing can be written now, because they are suspended or not ready.
    #[serde(default, rename = "heldBy", skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<String>,
    /// The stage in which it happens, or after which a copy is removed; empty where everything happens at once.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stage: String,
}

/// A change in one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "camelCase")]
pub enum Action {
    /// It appears there.
    Create {
        /// With so many replicas.
        replicas: i32,
    },
    /// It vanishes there.
    Delete {
        /// With so many replicas.
        replicas: i32,
    },
    /// It gets another number of replicas.
    Scale {
        /// From.
        from: i32,
        /// To.
        to: i32,
    },
    /// Its content changes.
    Update,
    /// It becomes suspended.
    Suspend,
    /// It is resumed.
    Resume,
}

/// A plan in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Templates to which anything happens.
    pub templates: usize,
    /// Templates claimed by a policy that had no owner.
    pub claimed: usize,
    /// Templates that lose their owner and get no other.
    pub released: usize,
    /// Templates that change owners because their owner released them.
    pub handed: usize,
    /// Templates taken from their owner.
    pub preempted: usize,
    /// Templates that leave a cluster and enter another one.
    pub moved: usize,
    /// Templates for which something waits for a change of theirs.
    pub held: usize,
    /// Objects that appear in a cluster.
    pub created: usize,
    /// Objects that vanish from a cluster.
    pub deleted: usize,
    /// Objects that get another number of replicas.
    pub scaled: usize,
    /// Objects whose content changes.
    pub updated: usize,
    /// Objects that become suspended.
    pub suspended: usize,
    /// Objects that are resumed.
    pub resumed: usize,
    /// Templates that no cluster has afterwards.
    pub nowhere: usize,
}

/// What would these changes do, made together? Looks only at what they touch.
pub fn plan(
    snapshot: &Snapshot,
    changes: &[Change],
    interpreters: Interpreters<'_>,
) -> Result<Plan, ChangeError> {
    let (after, touched) = made(snapshot, changes)?;
    match one_by_one(snapshot, &after, &touched, interpreters) {
        Some(plan) => Ok(plan),
        None => between_worlds(snapshot, changes, interpreters),
    }
}

/// The plan without any change: whatever is not settled yet. Empty for a settled snapshot.
pub fn unsettled(snapshot: &Snapshot, interpreters: Interpreters<'_>) -> Plan {
    let mut after = snapshot.clone();
    let keys = after.templates.iter().map(|template| Arc::clone(&template.key)).collect();
    let (mut reasons, mut texts) = (BTreeMap::new(), Texts::default());
    let mut see = |key: &Arc<TemplateKey>, decided: &Propagation| {
        if !decided.is_settled() {
            reasons.entry(Arc::clone(key)).or_insert_with(|| texts.of(decided));
        }
    };
    let written = after.settle_seen(&keys, interpreters, &mut see);
    Comparison::new(snapshot, &after, interpreters).worlds((snapshot, &after), &written, reasons)
}

/// What a restart with these feature gates would do: what is not settled under them, without what is not settled
/// under the gates of this world either.
pub fn restarted(snapshot: &Snapshot, gates: Gates, interpreters: Interpreters<'_>) -> Plan {
    let before = unsettled(snapshot, interpreters);
    let after = unsettled(&Snapshot { gates, ..snapshot.clone() }, interpreters);
    let mut draft = Draft::default();
    let is_news = |(id, plan): &(String, TemplatePlan)| before.templates.get(id) != Some(plan);
    after.templates.into_iter().filter(is_news).for_each(|(_, plan)| draft.add(plan));
    Draft::plan([draft])
}

/// The plan by settling both worlds as a whole, which is always right and costs twice as much.
fn between_worlds(
    snapshot: &Snapshot,
    changes: &[Change],
    interpreters: Interpreters<'_>,
) -> Result<Plan, ChangeError> {
    let mut before = snapshot.clone();
    let (mut after, mut touched) = made(&before, changes)?;
    // What is not yet settled is not the changes' doing. Settling may show that they touch more.
    for _ in 0..ROUNDS_MAX {
        if before.settle(&touched, interpreters).is_empty() {
            break;
        }
        let (again, more) = made(&before, changes)?;
        after = again;
        touched.extend(more);
    }
    let (mut reasons, mut texts) = (BTreeMap::new(), Texts::default());
    let mut see = |key: &Arc<TemplateKey>, decided: &Propagation| {
        if !decided.is_settled() {
            reasons.entry(Arc::clone(key)).or_insert_with(|| texts.of(decided));
        }
    };
    let mut written = after.settle_seen(&touched, interpreters, &mut see);
    touched.append(&mut written);
    let comparison = Comparison::new(&before, &after, interpreters);
    Ok(comparison.worlds((&before, &after), &touched, reasons))
}

/// The last reason in words: most templates that one edit touches share it.
#[derive(Default)]
struct Texts {
    last: Option<(ClaimWhy, Activation, Option<Refusal>, Arc<str>)>,
}

impl Texts {
    fn of(&mut self, decided: &Propagation) -> Arc<str> {
        let Propagation { claim, activation, refusal, .. } = decided;
        let same = |last: &&(ClaimWhy, Activation, Option<Refusal>, Arc<str>)| {
            last.0 == *claim.why() && last.1 == *activation && last.2 == *refusal
        };
        if let Some((.., text)) = self.last.as_ref().filter(same) {
            return Arc::clone(text);
        }
        let text: Arc<str> = decided.why().to_string().into();
        self.last = Some((claim.why().clone(), activation.clone(), refusal.clone(), Arc::clone(&text)));
        text
    }
}

/// More rounds than any snapshot needs to settle.
const ROUNDS_MAX: usize = 4;

/// The snapshot with the changes applied and nothing settled, and what they touch.
fn made(
    snapshot: &Snapshot,
    changes: &[Change],
) -> Result<(Snapshot, BTreeSet<Arc<TemplateKey>>), ChangeError> {
    let mut after = snapshot.clone();
    let mut touched = BTreeSet::new();
    for (index, change) in changes.iter().enumerate() {
        touched.append(&mut after.apply(&dated(&after, change, index))?);
    }
    Ok((after, touched))
}

/// What is only tried has the version it had before, or none: here it comes after all there is, and after the
/// changes before it. What would not change keeps its version.
fn dated(snapshot: &Snapshot, change: &Change, index: usize) -> Change {
    let Change::Put(object) = change else { return change.clone() };
    let same = |template: &Arc<Template>| template.digest == digest(object);
    if snapshot.template(object).is_some_and(same) {
        return change.clone();
    }
    let mut object = Value::clone(object);
    let later = (u64::MAX >> 1) + index as u64;
    put(&mut object, &["metadata", "resourceVersion"], later.to_string().into());
    Change::Put(Arc::new(object))
}

impl Plan {
    /// True when nothing at all would happen.
    pub fn is_empty(&self) -> bool {
        self.templates.is_empty()
    }

    /// Templates that no cluster has afterwards, although they are propagated.
    pub fn nowhere(&self) -> impl Iterator<Item = &TemplatePlan> {
        self.templates.values().filter(|plan| plan.nowhere)
    }
}

#[cfg(test)]
mod tests;
