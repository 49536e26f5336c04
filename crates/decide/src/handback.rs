//! Migration back to Karmada: our state that Karmada could not handle. These are records on templates, which it would
//! copy into members, suspensions that only we lift, and fields of policies that it does not know (M5).

use std::fmt;

use api::binding::BindingSuspension;
use api::records::{PREFIX, Pin};
use api::{Binding, PropagationSpec};

use crate::binding::{follows, suspension};
use crate::policy::PolicyKey;
use crate::snapshot::Snapshot;
use crate::template::Template;

/// What has to be taken off a binding.
#[derive(Debug, Clone, PartialEq)]
pub struct Leftover {
    /// Annotations of ours.
    pub annotations: Vec<String>,
    /// The suspension that stays, if it is not the one that is there.
    pub suspension: Option<Option<BindingSuspension>>,
}

/// Annotations of ours on a template. Karmada would copy them into members.
pub fn of_template(template: &Template) -> Vec<String> {
    ours(template.annotations.keys())
}

/// What of ours is on a binding; none if nothing is.
///
/// Karmada suspends no dependency, so it would never resume one that we hold because everything that needs it is held
/// (U6); and what only a rollout policy holds (U7) is held by nothing that Karmada knows.
pub fn of_binding(binding: &Binding) -> Option<Leftover> {
    let annotations = ours(binding.metadata.annotations.keys());
    let found = binding.spec.suspension.as_ref();
    let stays = match (&binding.spec.placement, Pin::read(&binding.metadata)) {
        (None, _) => suspension(None, std::iter::empty(), found),
        (Some(_), Some(pin)) => suspension(pin.suspension.as_ref(), std::iter::empty(), found),
        (Some(_), None) => found.cloned(),
    };
    let suspension = (stays.as_ref() != found).then_some(stays);
    let leftover = Leftover { annotations, suspension };
    (!leftover.annotations.is_empty() || leftover.suspension.is_some()).then_some(leftover)
}

fn ours<'k>(keys: impl Iterator<Item = &'k String>) -> Vec<String> {
    keys.filter(|key| key.starts_with(PREFIX)).cloned().collect()
}

/// Something that Karmada does otherwise, which no cleaning changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caveat {
    /// Templates wait under a policy; Karmada lets them follow when it starts.
    Waiting {
        /// The policy.
        policy: PolicyKey,
        /// How many of its templates.
        templates: usize,
    },
    /// A policy says something that Karmada does not know.
    Unknown {
        /// The policy.
        policy: PolicyKey,
        /// The field.
        field: &'static str,
    },
    /// A rollout policy stops to act: what only it holds is delivered.
    Rollout {
        /// The rollout policy.
        policy: PolicyKey,
    },
}

/// What Karmada does otherwise with what users wrote.
pub fn caveats(snapshot: &Snapshot) -> Vec<Caveat> {
    let mut all = Vec::new();
    for policy in snapshot.policies.iter() {
        let claimed = snapshot.templates.claimed(policy.id()).filter(|key| {
            let binding = snapshot.bindings.get(&key.binding());
            !binding.is_some_and(|binding| follows(binding, policy))
        });
        match claimed.count() {
            0 => {}
            templates => all.push(Caveat::Waiting { policy: policy.key.clone(), templates }),
        }
        let unknown = unknown_fields(&policy.spec);
        all.extend(unknown.into_iter().map(|field| Caveat::Unknown { policy: policy.key.clone(), field }));
    }
    all.extend(snapshot.rollouts.keys().map(|policy| Caveat::Rollout { policy: policy.clone() }));
    all
}

fn unknown_fields(spec: &PropagationSpec) -> Vec<&'static str> {
    let is_pattern = |namespace: &str| namespace.contains([',', '*']);
    let selectors = &spec.resource_selectors;
    let fields = [
        (!spec.exclude_resource_selectors.is_empty(), "excludeResourceSelectors"),
        (selectors.iter().any(|one| one.exclude.is_some()), "resourceSelectors[].exclude"),
        (
            selectors.iter().any(|one| is_pattern(&one.namespace)),
            "resourceSelectors[].namespace with more than one name",
        ),
    ];
    fields.into_iter().filter(|(is_said, _)| *is_said).map(|(_, field)| field).collect()
}

impl fmt::Display for Caveat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Caveat::Waiting { policy, templates } => write!(
                formatter,
                "{templates} templates of {policy} wait for a change; Karmada lets them follow when it starts. \
                 Before the controllers are stopped: longshore reconcile --policy {0}, or longshore rollout undo {0}",
                policy.name
            ),
            Caveat::Unknown { policy, field } => {
                write!(
                    formatter,
                    "{policy} uses {field}, which Karmada does not support: write plain selectors instead"
                )
            }
            Caveat::Rollout { policy } => {
                let name = match policy.namespace.as_str() {
                    "" => format!("ClusterRolloutPolicy {}", policy.name),
                    namespace => format!("RolloutPolicy {namespace}/{}", policy.name),
                };
                write!(
                    formatter,
                    "{name} is deleted with its kind: templates that only it suspends are delivered"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn binding(placement: Value, pin: Value, suspension: Value) -> Binding {
        let mut annotations = json!({ "policy.karmada.io/applied-placement": "{}" });
        if !pin.is_null() {
            annotations["longshore.io/pin"] = pin.to_string().into();
        }
        serde_json::from_value(json!({
            "metadata": { "name": "b", "namespace": "default", "annotations": annotations },
            "spec": { "placement": placement, "suspension": suspension },
        }))
        .expect("a binding")
    }

    #[test]
    fn m5_only_suspensions_of_ours_are_lifted() {
        let on = json!({ "dispatchingOnClusters": { "clusterNames": ["m1"] } });
        let lifted = |binding: &Binding| of_binding(binding).and_then(|leftover| leftover.suspension);
        let dependency = binding(Value::Null, json!({ "template": "d" }), on.clone());
        assert_eq!(lifted(&dependency), Some(None), "U6: nobody else would lift it");
        let mut scheduling = on.clone();
        scheduling["scheduling"] = true.into();
        let kept = BindingSuspension { scheduling: Some(true), ..BindingSuspension::default() };
        assert_eq!(lifted(&binding(Value::Null, Value::Null, scheduling)), Some(Some(kept)));
        let policys = json!({ "template": "d", "suspension": { "dispatching": true } });
        assert_eq!(lifted(&binding(json!({}), policys.clone(), json!({ "dispatching": true }))), None);
        let both = json!({ "dispatching": true, "dispatchingOnClusters": { "clusterNames": ["m1"] } });
        let own = BindingSuspension { dispatching: Some(true), ..BindingSuspension::default() };
        assert_eq!(
            lifted(&binding(json!({}), policys, both)),
            Some(Some(own)),
            "U7: the rollout policy's part goes"
        );
        assert_eq!(of_binding(&binding(json!({}), Value::Null, on)), None, "Karmada's own");
    }

    #[test]
    fn m5_only_annotations_of_ours_are_removed() {
        let ours = of_binding(&binding(json!({}), json!({ "template": "d" }), Value::Null));
        assert_eq!(ours.expect("a record").annotations, ["longshore.io/pin"]);
    }
}
