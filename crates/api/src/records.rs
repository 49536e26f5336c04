//! Longshore's own records on objects, so that no restart changes an answer (R1).
//!
//! Everything is an annotation: Karmada's own schemas prune unknown fields, but keep annotations, so the same records
//! work on a control plane that Karmada installed. Each record is one annotation with one JSON object, so it is read
//! and written as a whole or not at all.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ObjectMeta, StagedRollout, Suspension, Time, is_default};

/// Start of every key of ours; such keys are never a user's change of a template.
pub const PREFIX: &str = "longshore.io/";

/// On bindings: the [`Pin`], what the binding's spec was made from.
pub const PIN: &str = "longshore.io/pin";
/// On templates: the [`ClaimRecord`], how things stood when the policy in charge claimed it.
pub const CLAIM: &str = "longshore.io/claim";
/// On templates: digest of the template when it joined the waiting list, because it changed and no
/// policy matched (S3).
pub const WAITING: &str = "longshore.io/waiting";
/// On templates: a value that was never there before asks for propagation by the policy as it is now.
/// `longshore reconcile` writes it.
pub const RECONCILE: &str = "longshore.io/reconcile";

/// On bindings: the policy in effect as people type it, `pp/NAME` or `cpp/NAME`. Only shown, never read: the
/// [`Pin`] is what counts.
pub const SHOWN_POLICY: &str = "longshore.io/policy";
/// On bindings: the generation in effect of the policy in [`SHOWN_POLICY`]. Only shown, never read.
pub const SHOWN_GENERATION: &str = "longshore.io/generation";
/// On policies: list of [`Past`], what their spec said before, oldest first.
pub const HISTORY: &str = "longshore.io/history";
/// On a binding: the wish for a fresh placement that its clusters are the answer to.
pub const RESCHEDULED: &str = "longshore.io/rescheduled";

/// On bindings: the [`StrategyRecord`], how a change of its template spreads. Absent: all at once (G1).
pub const ROLLOUT_STRATEGY: &str = "longshore.io/rollout-strategy";
/// On bindings: what a person asks of the rollout. Each new value is answered once.
pub const ROLLOUT_REQUEST: &str = "longshore.io/rollout-request";

/// On policies, and on other objects whose change can move templates: how many templates one act may move at most.
pub const MAX_MOVED: &str = "longshore.io/max-moved";
/// On the same objects: how many objects one act may delete in members at most.
pub const MAX_DELETED: &str = "longshore.io/max-deleted";
/// On what a request writes: the plan beyond a budget that its author approves, by its digest. It is used up by that
/// request.
pub const APPROVED_PLAN: &str = "longshore.io/approved-plan";

/// On policies: `refuse` refuses a placement that names clusters which do not exist, `warn` only warns.
pub const UNKNOWN_CLUSTERS: &str = "longshore.io/unknown-clusters";

/// What a policy said for a while.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Past {
    /// Which generation it was.
    pub generation: i64,
    /// When the next one replaced it.
    pub until: Option<Time>,
    /// What its author noted in `kubernetes.io/change-cause`.
    #[serde(skip_serializing_if = "is_default")]
    pub cause: String,
    /// The whole spec.
    pub spec: Value,
}

impl Past {
    /// The earlier generations of a policy, oldest first; empty if none were recorded.
    pub fn read(policy: &ObjectMeta) -> Vec<Past> {
        read(policy, HISTORY).unwrap_or_default()
    }
}

/// A policy at one moment of its life.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PolicyMark {
    /// Which policy, also after it was deleted and made again under the same name.
    pub uid: String,
    /// Which version of its spec.
    pub generation: i64,
}

/// What a binding's spec was made from. Works are rendered only from a template with this digest (R2).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Pin {
    /// The policy whose rules the spec repeats.
    pub policy: PolicyMark,
    /// Digest of the user's part of the template.
    pub template: String,
    /// The template's [`RECONCILE`] value that was answered last.
    #[serde(skip_serializing_if = "is_default")]
    pub reconcile: String,
    /// The policy's own brake, apart from those of rollout policies, so that it outlives the policy (U8).
    #[serde(skip_serializing_if = "is_default")]
    pub suspension: Option<Suspension>,
}

/// The strategy that counts for a template, and which object says so (G13).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StrategyRecord {
    /// The object, as `KIND NAME` or `KIND NAMESPACE/NAME`.
    pub from: String,
    /// What it says; only strategies with stages are recorded.
    pub staged: StagedRollout,
}

impl StrategyRecord {
    /// The record on a binding; none if changes do not spread in stages.
    pub fn read(binding: &ObjectMeta) -> Option<StrategyRecord> {
        read(binding, ROLLOUT_STRATEGY)
    }

    /// Puts the record on a binding.
    pub fn write(&self, binding: &mut ObjectMeta) {
        write(binding, ROLLOUT_STRATEGY, self);
    }
}

/// How things stood when a policy claimed a template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimRecord {
    /// The policy that claims.
    pub policy: PolicyMark,
    /// Digest of the user's part of the template at that moment: another digest now is a user change.
    pub template: String,
    /// True when the template was there before the policy matched it, so a Lazy policy waits (R3).
    #[serde(skip_serializing_if = "is_default")]
    pub template_first: bool,
    /// Uid of the policy it was taken from by preemption.
    #[serde(skip_serializing_if = "is_default")]
    pub taken_from: String,
    /// The template's [`RECONCILE`] value at that moment: another one now was asked for since.
    #[serde(skip_serializing_if = "is_default")]
    pub reconcile: String,
}

impl Pin {
    /// The record on a binding; none if it was never written or cannot be understood.
    pub fn read(binding: &ObjectMeta) -> Option<Pin> {
        read(binding, PIN)
    }

    /// Puts the record on a binding.
    pub fn write(&self, binding: &mut ObjectMeta) {
        write(binding, PIN, self);
    }
}

impl ClaimRecord {
    /// The record on a template; none if it was never written or cannot be understood.
    pub fn read(template: &ObjectMeta) -> Option<ClaimRecord> {
        read(template, CLAIM)
    }

    /// Puts the record on a template.
    pub fn write(&self, template: &mut ObjectMeta) {
        write(template, CLAIM, self);
    }
}

fn read<T: DeserializeOwned>(metadata: &ObjectMeta, key: &str) -> Option<T> {
    serde_json::from_str(metadata.annotations.get(key)?).ok()
}

fn write<T: Serialize>(metadata: &mut ObjectMeta, key: &str, record: &T) {
    let json = serde_json::to_string(record).expect("strings, numbers and booleans are always JSON");
    metadata.annotations.insert(key.to_owned(), json);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r1_what_was_written_is_read_again() {
        let policy = PolicyMark { uid: "u1".into(), generation: 3 };
        let pin =
            Pin { policy: policy.clone(), template: "d1".into(), reconcile: "r1".into(), suspension: None };
        let claim = ClaimRecord {
            policy,
            template: "d0".into(),
            template_first: true,
            taken_from: "u0".into(),
            reconcile: String::new(),
        };
        let mut metadata = ObjectMeta::default();
        pin.write(&mut metadata);
        claim.write(&mut metadata);
        assert_eq!(
            metadata.annotation(PIN),
            r#"{"policy":{"uid":"u1","generation":3},"template":"d1","reconcile":"r1"}"#
        );
        assert_eq!(Pin::read(&metadata), Some(pin));
        assert_eq!(ClaimRecord::read(&metadata), Some(claim));
    }

    #[test]
    fn a_record_that_makes_no_sense_is_no_record() {
        let mut metadata = ObjectMeta::default();
        assert_eq!(Pin::read(&metadata), None);
        for text in ["", "7", "{", r#"{"policy":5}"#] {
            metadata.annotations.insert(PIN.to_owned(), text.to_owned());
            assert_eq!(Pin::read(&metadata), None, "{text}");
        }
    }
}
