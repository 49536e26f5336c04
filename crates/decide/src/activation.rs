//! Activation: may a binding follow its policy now? Level-based: depends only on what is written on template and
//! binding, so no restart, missed event or repeated reconcile ever activates anything (R1). Does not say what the
//! binding should contain.

use std::fmt;

use api::records::{ClaimRecord, Pin, PolicyMark};
use serde::{Deserialize, Serialize};

use crate::binding::Bound;
use crate::gates::Gates;
use crate::policy::{Policy, PolicyKey};
use crate::template::Template;

/// Whether a binding follows its policy now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", content = "why", rename_all = "camelCase")]
pub enum Activation {
    /// The binding is made from policy and template as they are now.
    Follow(FollowWhy),
    /// The binding, if there is one, stays as it is; only its suspension changes (L5).
    Hold(HoldWhy),
    /// A binding that Karmada made is pinned as it is.
    Adopt,
}

/// Why a binding follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FollowWhy {
    /// The policy acts at once.
    Immediate,
    /// There is no binding yet, and the policy was there before the template (R3).
    PolicyFirst,
    /// Static mode: there is no binding yet (S1).
    Unmanaged,
    /// Static mode: the template was on the waiting list (S3).
    Waiting,
    /// The user changed the template.
    UserChange,
    /// `longshore reconcile` asked for it.
    Reconcile,
}

/// Why a binding waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HoldWhy {
    /// The policy is lazy and the template did not change since (L1).
    Lazy {
        /// The policy.
        policy: PolicyKey,
        /// Its generation now.
        generation: i64,
        /// What the binding follows instead.
        follows: Follows,
    },
    /// Static mode, and the template did not change since (S2).
    Static {
        /// The policy.
        policy: PolicyKey,
        /// Its generation now.
        generation: i64,
        /// What the binding follows instead.
        follows: Follows,
    },
    /// The policy names override policies that do not exist yet.
    MissingOverrides {
        /// The policy.
        policy: PolicyKey,
        /// The override policies.
        names: Vec<String>,
    },
    /// No policy claims the template: what runs stays (R2).
    Unclaimed,
    /// The template is not for policies to touch.
    Foreign,
}

/// What a binding follows while it waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Follows {
    /// There is no binding, so nothing is propagated.
    Nothing,
    /// An earlier generation of the same policy, or this very one.
    Itself {
        /// That generation.
        generation: i64,
    },
    /// Another policy, which may be gone.
    Another {
        /// That policy.
        policy: PolicyMark,
    },
}

impl Follows {
    fn of(pin: Option<&Pin>, policy: &Policy) -> Follows {
        match pin {
            None => Follows::Nothing,
            Some(pin) if pin.policy.uid == policy.uid => {
                Follows::Itself { generation: pin.policy.generation }
            }
            Some(pin) => Follows::Another { policy: pin.policy.clone() },
        }
    }
}

/// May the binding of a template follow the policy that claims it now?
///
/// `record` is the claim's record as it stands or is about to be written, `missing_overrides` are
/// `dependentOverrides` of the policy that do not exist.
pub fn activation(
    template: &Template,
    bound: Option<&Bound<'_>>,
    policy: &Policy,
    record: &ClaimRecord,
    missing_overrides: Vec<String>,
    gates: &Gates,
) -> Activation {
    if !missing_overrides.is_empty() {
        let policy = policy.key.clone();
        return Activation::Hold(HoldWhy::MissingOverrides { policy, names: missing_overrides });
    }
    let pin = match bound {
        Some(Bound { pin: None, .. }) if policy.spec.is_lazy() || gates.static_policy => {
            return Activation::Adopt;
        }
        bound => bound.and_then(|bound| bound.pin.as_ref()),
    };
    let follows = Follows::of(pin, policy);
    let (key, generation) = (policy.key.clone(), policy.generation);
    match (gates.static_policy, policy.spec.is_lazy()) {
        _ if reconcile_asked(template, record, pin) => Activation::Follow(FollowWhy::Reconcile),
        (false, false) => Activation::Follow(FollowWhy::Immediate),
        (true, _) if !static_acts(template, pin) => {
            Activation::Hold(HoldWhy::Static { policy: key, generation, follows })
        }
        (true, false) => Activation::Follow(static_why(template, pin)),
        (_, true) => match lazy_acts(template, record, pin) {
            Some(why) => Activation::Follow(why),
            None => Activation::Hold(HoldWhy::Lazy { policy: key, generation, follows }),
        },
    }
}

/// A value that neither the pin nor the claim has seen.
fn reconcile_asked(template: &Template, record: &ClaimRecord, pin: Option<&Pin>) -> bool {
    let answered = match pin {
        Some(pin) => &pin.reconcile,
        None => &record.reconcile,
    };
    !template.reconcile().is_empty() && template.reconcile() != answered
}

/// S1 to S4: without a binding, from the waiting list, or after a user change.
fn static_acts(template: &Template, pin: Option<&Pin>) -> bool {
    pin.is_none_or(|pin| template.is_waiting() || pin.template != template.digest)
}

fn static_why(template: &Template, pin: Option<&Pin>) -> FollowWhy {
    match pin {
        None => FollowWhy::Unmanaged,
        Some(_) if template.is_waiting() => FollowWhy::Waiting,
        Some(_) => FollowWhy::UserChange,
    }
}

/// A lazy policy acts after a user change. The change is measured from the binding if it was made under
/// this claim, and from the claim if not: what changed before the claim is not this policy's trigger (R3,
/// L2).
fn lazy_acts(template: &Template, record: &ClaimRecord, pin: Option<&Pin>) -> Option<FollowWhy> {
    match pin {
        Some(pin) if made_under(pin, record) => {
            (pin.template != template.digest).then_some(FollowWhy::UserChange)
        }
        Some(_) if !record.template_first => Some(FollowWhy::UserChange),
        None if !record.template_first => Some(FollowWhy::PolicyFirst),
        _ => (record.template != template.digest).then_some(FollowWhy::UserChange),
    }
}

/// The policy counts its generations up, so a binding it made before it claimed anew has a smaller one.
pub(crate) fn made_under(pin: &Pin, record: &ClaimRecord) -> bool {
    pin.policy.uid == record.policy.uid && pin.policy.generation >= record.policy.generation
}

impl fmt::Display for Activation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Activation::Follow(why) => write!(formatter, "{why}"),
            Activation::Hold(why) => write!(formatter, "{why}"),
            Activation::Adopt => {
                write!(formatter, "the binding was made by Karmada and is taken over as it is")
            }
        }
    }
}

impl fmt::Display for FollowWhy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            FollowWhy::Immediate => "the policy acts at once",
            FollowWhy::PolicyFirst => "the policy was there before the template (R3)",
            FollowWhy::Unmanaged => "nothing is propagated yet, so the policy acts at once (S1)",
            FollowWhy::Waiting => "the template was waiting for a policy (S3)",
            FollowWhy::UserChange => "the template was changed",
            FollowWhy::Reconcile => "a reconcile was asked for",
        })
    }
}

impl fmt::Display for HoldWhy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HoldWhy::Lazy { policy, generation, follows } => write!(
                formatter,
                "{policy} is lazy, so its generation {generation} waits until the template changes (L1); {follows}"
            ),
            HoldWhy::Static { policy, generation, follows } => write!(
                formatter,
                "policies are static, so generation {generation} of {policy} waits until the template changes (S2); {follows}"
            ),
            HoldWhy::MissingOverrides { policy, names } => {
                write!(
                    formatter,
                    "{policy} waits for override policies that do not exist yet: {}",
                    names.join(", ")
                )
            }
            HoldWhy::Unclaimed => {
                write!(formatter, "no policy claims the template, so what runs stays as it is (R2)")
            }
            HoldWhy::Foreign => write!(formatter, "policies ignore the template"),
        }
    }
}

impl fmt::Display for Follows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Follows::Nothing => write!(formatter, "nothing is propagated until then"),
            Follows::Itself { generation } => {
                write!(formatter, "generation {generation} stays in effect until then")
            }
            Follows::Another { policy } => {
                write!(
                    formatter,
                    "generation {} of the policy with uid {} stays in effect until then",
                    policy.generation, policy.uid
                )
            }
        }
    }
}
