//! The disruption budget (M4): compares the effects of a plan with the limits of the object, the control plane and the
//! policies that own the templates, and names the plan that an approval is for. Knows nothing of requests.

use std::collections::BTreeMap;
use std::fmt;

use api::records::{MAX_DELETED, MAX_MOVED};
use serde::Serialize;
use serde_json::{Value, json};

use crate::claim::ClaimSeen;
pub use crate::limits::Budget;
use crate::plan::{Action, Plan, TemplatePlan};
use crate::policy::{Policy, PolicyKey};
use crate::snapshot::Snapshot;
use crate::template::{TemplateKey, digest};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Templates that leave a cluster and enter another one.
    Moved,
    /// Objects that vanish from a member.
    Deleted,
    /// Templates that lose their last copy.
    LeftNowhere,
}

/// How much an act does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effects {
    /// Templates that leave a cluster and enter another one.
    pub moved: usize,
    /// Objects that vanish from a member.
    pub deleted: usize,
}

impl Effects {
    /// Those of a whole plan.
    pub fn of(plan: &Plan) -> Self {
        Self { moved: plan.totals.moved, deleted: plan.totals.deleted }
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        Self { moved: self.moved + other.moved, deleted: self.deleted + other.deleted }
    }

    /// What is more than a budget allows.
    fn beyond(self, budget: Budget, policy: Option<&PolicyKey>) -> Option<Excess> {
        let counts =
            [(Effect::Moved, self.moved, budget.moved), (Effect::Deleted, self.deleted, budget.deleted)];
        counts.into_iter().find_map(|(effect, count, max)| {
            let max = max.filter(|max| count > *max)?;
            Some(Excess { effect, count, max, policy: policy.cloned() })
        })
    }
}

/// More than a budget allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excess {
    /// What there is too much of.
    pub effect: Effect,
    /// How much there would be.
    pub count: usize,
    /// How much is allowed.
    pub max: usize,
    /// The policy whose templates are counted; none if all of them are.
    pub policy: Option<PolicyKey>,
}

impl fmt::Display for Excess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { effect, count, max, policy } = self;
        let (verb, what, limit) = match effect {
            Effect::Moved => ("move", "templates", MAX_MOVED),
            Effect::Deleted => ("delete", "objects", MAX_DELETED),
            Effect::LeftNowhere => {
                let (noun, run) = if *count == 1 { ("template", "runs") } else { ("templates", "run") };
                return write!(
                    formatter,
                    "it would delete the last copy of {count} {noun}, which then {run} NOWHERE"
                );
            }
        };
        write!(formatter, "it would {verb} {count} {what}")?;
        match policy {
            None => write!(formatter, ", and {limit} allows {max}"),
            Some(policy) => write!(formatter, " of {policy}, and its {limit} allows {max}"),
        }
    }
}

/// What is more than allowed: in total more than `act` allows, or for the templates of one policy more than that
/// policy allows. `spent` is what the same act has done before.
pub fn excess(
    snapshot: &Snapshot,
    plan: &Plan,
    act: Budget,
    spent: impl Fn(Option<&PolicyKey>) -> Effects,
) -> Option<Excess> {
    let total = Effects::of(plan).and(spent(None)).beyond(act, None);
    total.or_else(|| {
        let shares = shares(snapshot, plan);
        shares.into_iter().find_map(|(policy, share)| {
            share.and(spent(Some(&policy.key))).beyond(policy.budget, Some(&policy.key))
        })
    })
}

/// The templates that lose their last copy under a plan. An edit of a policy does that only with an approval, whatever
/// the budget (M2).
pub fn left_nowhere(plan: &Plan) -> Option<Excess> {
    let loses = |plan: &&TemplatePlan| {
        plan.nowhere && plan.clusters.values().any(|cluster| matches!(cluster.action, Action::Delete { .. }))
    };
    let count = plan.templates.values().filter(loses).count();
    (count > 0).then_some(Excess { effect: Effect::LeftNowhere, count, max: 0, policy: None })
}

/// What a plan does to the templates of each policy that has a budget.
pub fn shares<'w>(snapshot: &'w Snapshot, plan: &Plan) -> Vec<(&'w Policy, Effects)> {
    let is_limited = |policy: &Policy| policy.budget.is_limited();
    if !snapshot.policies.iter().any(|policy| is_limited(policy)) {
        return Vec::new();
    }
    let mut shares: BTreeMap<PolicyKey, (&Policy, Effects)> = BTreeMap::new();
    for plan in plan.templates.values() {
        let Some(policy) = owner(snapshot, &plan.template).filter(|policy| is_limited(policy)) else {
            continue;
        };
        let share = &mut shares.entry(policy.key.clone()).or_insert((policy, Effects::default())).1;
        *share = share.and(Effects { moved: usize::from(plan.is_moved()), deleted: plan.deleted() });
    }
    shares.into_values().collect()
}

/// The policy that has a template now.
fn owner<'w>(snapshot: &'w Snapshot, key: &TemplateKey) -> Option<&'w Policy> {
    let template = snapshot.templates.get(key)?;
    let claim = ClaimSeen::on(&template.labels, &template.annotations)?;
    snapshot.policies.get(&claim.policy()).map(AsRef::as_ref)
}

/// What a request writes, as it is before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    kind: String,
    namespace: String,
    name: String,
    /// Empty for what is new.
    uid: String,
    generation: i64,
    /// It is deleted.
    deleted: bool,
}

impl Subject {
    /// An object that is written; `old` is what is there, none if it is new.
    pub fn written(object: &Value, old: Option<&Value>) -> Self {
        Self::of(object, old, false)
    }

    /// An object that is deleted.
    pub fn deleted(object: &Value) -> Self {
        Self::of(object, Some(object), true)
    }

    fn of(object: &Value, old: Option<&Value>, deleted: bool) -> Self {
        let text = |object: &Value, pointer: &str| {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        Self {
            kind: text(object, "/kind"),
            namespace: text(object, "/metadata/namespace"),
            name: text(object, "/metadata/name"),
            uid: old.map(|old| text(old, "/metadata/uid")).unwrap_or_default(),
            generation: old.and_then(|old| old["metadata"]["generation"].as_i64()).unwrap_or(0),
            deleted,
        }
    }
}

/// The digest by which a plan is approved. It covers the generation of the object that is written and of the bindings
/// of the templates that something happens to. So the same change, made again later, is another plan.
pub fn approval(snapshot: &Snapshot, plan: &Plan, subject: &Subject) -> String {
    let bindings: BTreeMap<&str, Value> = plan
        .templates
        .iter()
        .filter_map(|(id, plan)| {
            let metadata = &snapshot.bindings.get(&plan.template.binding())?.metadata;
            Some((id.as_str(), json!([metadata.uid, metadata.generation])))
        })
        .collect();
    digest(&json!({ "plan": plan, "subject": subject, "bindings": bindings }))
}

#[cfg(test)]
mod tests;
