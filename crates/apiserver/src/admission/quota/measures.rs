//! What quotas count of objects beside their number: pods that have not ended, and node ports and load balancers of
//! Services. Must not know which quota asks.

use serde::Deserialize;
use store::{Counter, Measure, Measured, Store};

/// Where pods are.
pub(super) const PODS: &str = "/pods";
/// Where Services are.
pub(super) const SERVICES: &str = "/services";

/// Pods that have not ended.
pub(super) const ACTIVE: Counter = Counter::Measured(0);
/// Services of type LoadBalancer.
pub(super) const LOAD_BALANCERS: Counter = Counter::Measured(0);
/// Ports of nodes that Services take.
pub(super) const NODE_PORTS: Counter = Counter::Measured(1);

const MEASURED: [(&str, Measure); 2] = [(PODS, measure_pod), (SERVICES, measure_service)];

/// Lets the store count.
pub(super) fn register(store: &Store) {
    MEASURED.into_iter().for_each(|(table, measure)| store.measure(table, measure));
}

/// Whether a change of an object of this table may change what is counted.
pub(super) fn is_measured(table: &str) -> bool {
    MEASURED.iter().any(|(measured, _)| *measured == table)
}

/// What an object of this table counts for.
pub(super) fn measure(table: &str, object: &[u8]) -> Measured {
    let measure = MEASURED.iter().find(|(measured, _)| *measured == table);
    measure.map_or_else(Measured::default, |(_, measure)| measure(object))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pod {
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: Option<String>,
}

fn measure_pod(bytes: &[u8]) -> Measured {
    let pod: Pod = serde_json::from_slice(bytes).unwrap_or_default();
    let has_ended = matches!(pod.status.phase.as_deref(), Some("Succeeded" | "Failed"));
    [u64::from(!has_ended), 0]
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Service {
    spec: ServiceSpec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ServiceSpec {
    r#type: Option<String>,
    ports: Vec<ServicePort>,
    allocate_load_balancer_node_ports: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ServicePort {
    node_port: Option<u32>,
}

/// A load balancer without ports of nodes takes those that it names, as in Kubernetes.
fn measure_service(bytes: &[u8]) -> Measured {
    let Service { spec } = serde_json::from_slice(bytes).unwrap_or_default();
    let all = spec.ports.len() as u64;
    let named = spec.ports.iter().filter(|port| port.node_port.unwrap_or(0) != 0).count() as u64;
    match spec.r#type.as_deref() {
        Some("NodePort") => [0, all],
        Some("LoadBalancer") if spec.allocate_load_balancer_node_ports == Some(false) => [1, named],
        Some("LoadBalancer") => [1, all],
        _ => [0, 0],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(table: &str, object: &Value, expected: Measured) {
        assert_eq!(measure(table, object.to_string().as_bytes()), expected, "{object}");
    }

    #[test]
    fn a_pod_counts_until_it_has_ended() {
        check(PODS, &json!({ "spec": {} }), [1, 0]);
        for (phase, active) in
            [("Pending", 1), ("Running", 1), ("Unknown", 1), ("Succeeded", 0), ("Failed", 0)]
        {
            check(PODS, &json!({ "status": { "phase": phase } }), [active, 0]);
        }
    }

    #[test]
    fn services_count_by_what_they_take() {
        let ports = json!([{ "port": 80 }, { "port": 81, "nodePort": 30_000 }]);
        let service = |kind: &str| json!({ "spec": { "type": kind, "ports": ports } });
        check(SERVICES, &service("ClusterIP"), [0, 0]);
        check(SERVICES, &service("NodePort"), [0, 2]);
        check(SERVICES, &service("LoadBalancer"), [1, 2]);
        let mut without = service("LoadBalancer");
        without["spec"]["allocateLoadBalancerNodePorts"] = false.into();
        check(SERVICES, &without, [1, 1]);
        check("/configmaps", &service("LoadBalancer"), [0, 0]);
    }

    #[test]
    fn nothing_that_could_be_stored_makes_it_panic() {
        for bytes in [&b""[..], b"{", b"null", b"[]", b"{\"spec\":7,\"status\":\"x\"}", b"\xff\xfe"] {
            for (table, _) in MEASURED {
                assert!(measure(table, bytes).iter().sum::<u64>() <= 1, "{table}");
            }
        }
    }
}
