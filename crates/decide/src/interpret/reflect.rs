//! InterpretStatus of the built-in kinds: the part of a member's status that is collected. Only what the aggregation
//! needs, so that a heartbeat in a member is no write in the control plane.

use api::annotations;
use serde_json::{Map, Value, json};

use super::Kind;
use crate::fields::{at, integer, text};

/// The status that is collected of a member's object; none if there is nothing to collect.
pub fn reflect(object: &Value) -> Option<Value> {
    let status = at(object, &["status"])?;
    match Kind::of(object) {
        Some(Kind::Service) if text(object, &["spec", "type"]) != "LoadBalancer" => None,
        Some(Kind::Service) => {
            Some(json!({"loadBalancer": status.get("loadBalancer").cloned().unwrap_or(json!({}))}))
        }
        Some(kind) => match fields(kind) {
            Some(fields) => Some(picked(object, status, kind, fields)),
            None => Some(status.clone()),
        },
        None => Some(status.clone()),
    }
}

/// The fields that are picked; none for kinds whose whole status is collected.
fn fields(kind: Kind) -> Option<&'static [&'static str]> {
    Some(match kind {
        Kind::Deployment => &[
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "observedGeneration",
        ],
        // Karmada leaves the observed generation of a StatefulSet out, so that its template never catches up.
        Kind::StatefulSet => &[
            "availableReplicas",
            "currentReplicas",
            "readyReplicas",
            "replicas",
            "updatedReplicas",
            "observedGeneration",
        ],
        Kind::ReplicaSet => &["replicas", "readyReplicas", "availableReplicas", "observedGeneration"],
        Kind::DaemonSet => &[
            "currentNumberScheduled",
            "desiredNumberScheduled",
            "numberAvailable",
            "numberMisscheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberUnavailable",
            "observedGeneration",
        ],
        Kind::Job => &["active", "succeeded", "failed", "conditions", "startTime", "completionTime"],
        Kind::PodDisruptionBudget => {
            &["disruptionsAllowed", "expectedPods", "desiredHealthy", "currentHealthy", "disruptedPods"]
        }
        Kind::HorizontalPodAutoscaler => &["currentReplicas", "desiredReplicas"],
        _ => return None,
    })
}

fn picked(object: &Value, status: &Value, kind: Kind, fields: &[&str]) -> Value {
    let mut picked: Map<String, Value> = fields
        .iter()
        .filter_map(|field| {
            Some(((*field).to_owned(), status.get(field).filter(|value| !value.is_null())?.clone()))
        })
        .collect();
    if matches!(kind, Kind::Deployment | Kind::StatefulSet | Kind::ReplicaSet | Kind::DaemonSet) {
        let template = text(object, &["metadata", "annotations", annotations::TEMPLATE_GENERATION]);
        let generations = [
            ("generation", integer(object, &["metadata", "generation"])),
            ("resourceTemplateGeneration", template.parse().ok()),
        ];
        for (field, generation) in generations {
            if let Some(generation) = generation.filter(|generation| *generation != 0) {
                picked.insert(field.to_owned(), generation.into());
            }
        }
    }
    Value::Object(picked)
}
