//! InterpretHealth of the built-in kinds, from an object's own status in a member.

use api::work::Health;
use serde_json::Value;

use super::Kind;
use crate::fields::{integer, list, text};

/// True for built-in kinds whose health can be told.
pub fn has_health(api_version: &str, kind: &str) -> bool {
    Kind::named(api_version, kind).is_some_and(|kind| rule(kind).is_some())
}

/// The health of a member's object; kinds of which nothing is known count as healthy.
pub fn health(object: &Value) -> Health {
    let healthy = Kind::of(object).and_then(rule).is_none_or(|holds| holds(object));
    if healthy { Health::Healthy } else { Health::Unhealthy }
}

fn rule(kind: Kind) -> Option<fn(&Value) -> bool> {
    Some(match kind {
        Kind::Deployment | Kind::StatefulSet => |object| {
            observed(object)
                && wanted(object).is_none_or(|wanted| status(object, "updatedReplicas") >= wanted)
                && status(object, "availableReplicas") >= status(object, "updatedReplicas")
        },
        Kind::ReplicaSet => |object| {
            observed(object)
                && wanted(object).is_none_or(|wanted| status(object, "availableReplicas") >= wanted)
        },
        Kind::DaemonSet => |object| {
            observed(object)
                && status(object, "updatedNumberScheduled") >= status(object, "desiredNumberScheduled")
                && status(object, "numberAvailable") >= status(object, "updatedNumberScheduled")
        },
        Kind::Service => |object| text(object, &["spec", "type"]) != "LoadBalancer" || has_address(object),
        Kind::Ingress => has_address,
        Kind::PersistentVolumeClaim => |object| text(object, &["status", "phase"]) == "Bound",
        Kind::Pod => |object| match text(object, &["status", "phase"]) {
            "Succeeded" => true,
            "Running" => is_ready(object),
            _ => false,
        },
        Kind::PodDisruptionBudget => {
            |object| status(object, "currentHealthy") >= status(object, "desiredHealthy")
        }
        _ => return None,
    })
}

fn status(object: &Value, field: &str) -> i64 {
    integer(object, &["status", field]).unwrap_or(0)
}

fn wanted(object: &Value) -> Option<i64> {
    integer(object, &["spec", "replicas"])
}

fn observed(object: &Value) -> bool {
    status(object, "observedGeneration") == integer(object, &["metadata", "generation"]).unwrap_or(0)
}

fn has_address(object: &Value) -> bool {
    let ingress = list(object, &["status", "loadBalancer", "ingress"]);
    ingress.iter().any(|point| !text(point, &["ip"]).is_empty() || !text(point, &["hostname"]).is_empty())
}

fn is_ready(object: &Value) -> bool {
    let conditions = list(object, &["status", "conditions"]);
    let ready = conditions.iter().find(|condition| text(condition, &["type"]) == "Ready");
    ready.is_some_and(|condition| text(condition, &["status"]) == "True")
}
