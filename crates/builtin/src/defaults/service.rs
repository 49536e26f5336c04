//! Defaults of Services, and allocation of their addresses and ports. Must not know which addresses are free: the
//! caller passes them in.

use serde_json::{Value, json};

use super::super::fill::Fill::{Flag, Object, Text};
use super::super::fill::{each, fill, is_unset, set};

/// Fills in what a Service does not say, except what has to be allocated.
pub(super) fn apply(value: &mut Value) {
    fill(value, &[("spec", Object)]);
    each(value, "spec", &mut |spec| {
        fill(
            spec,
            &[
                ("sessionAffinity", Text("None")),
                ("type", Text("ClusterIP")),
                ("ports[].protocol", Text("TCP")),
            ],
        );
        session_affinity(spec);
        each(spec, "ports[]", &mut target_port);
        let kind = spec["type"].as_str().unwrap_or_default().to_owned();
        let has_external_addresses = !is_unset(spec, "externalIPs") && kind == "ClusterIP";
        if matches!(&*kind, "NodePort" | "LoadBalancer") || has_external_addresses {
            fill(spec, &[("externalTrafficPolicy", Text("Cluster"))]);
        }
        if matches!(&*kind, "ClusterIP" | "NodePort" | "LoadBalancer") {
            fill(spec, &[("internalTrafficPolicy", Text("Cluster"))]);
        }
        if kind == "LoadBalancer" {
            fill(spec, &[("allocateLoadBalancerNodePorts", Flag(true))]);
        }
    });
    balancer_mode(value);
}

/// Whether a Service still wants an address in the cluster.
fn needs_cluster_ip(service: &Value) -> bool {
    has_cluster_ip(service) && is_unset(&service["spec"], "clusterIP")
}

/// Gives a Service its cluster address, address family and node ports. What it had before it keeps, unless
/// the request says otherwise; the rest comes from `cluster_ip` and `node_port`, which may run dry.
pub fn allocate_service(
    service: &mut Value,
    old: Option<&Value>,
    cluster_ip: impl FnOnce() -> Option<String>,
    mut node_port: impl FnMut() -> Option<u16>,
) {
    if let Some(old) = old {
        keep_addresses(service, old);
    }
    if needs_cluster_ip(service)
        && let Some(address) = cluster_ip()
    {
        set(&mut service["spec"], "clusterIP", address);
    }
    if !has_cluster_ip(service) {
        return;
    }
    let address = service["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
    let family = if address.contains(':') { "IPv6" } else { "IPv4" };
    each(service, "spec", &mut |spec| {
        if is_unset(spec, "clusterIPs") && !address.is_empty() {
            set(spec, "clusterIPs", json!([address]));
        }
        if is_unset(spec, "ipFamilies") {
            set(spec, "ipFamilies", json!([family]));
        }
        fill(spec, &[("ipFamilyPolicy", Text("SingleStack"))]);
        let balanced = spec["type"] == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] != false;
        if spec["type"] == "NodePort" || balanced {
            each(spec, "ports[]", &mut |port| allocate_port(port, &mut node_port));
        }
    });
}

fn has_cluster_ip(service: &Value) -> bool {
    matches!(service["spec"]["type"].as_str(), Some("ClusterIP" | "NodePort" | "LoadBalancer"))
}

fn allocate_port(port: &mut Value, next: &mut impl FnMut() -> Option<u16>) {
    let unset = port["nodePort"].as_i64().unwrap_or(0) == 0;
    if let (true, Some(number)) = (unset, unset.then(&mut *next).flatten()) {
        set(port, "nodePort", number);
    }
}

/// A replaced Service that leaves its address out keeps it; node ports stay with port and protocol.
fn keep_addresses(service: &mut Value, old: &Value) {
    if has_cluster_ip(service) && has_cluster_ip(old) {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if is_unset(&service["spec"], field) && !is_unset(&old["spec"], field) {
                let kept = old["spec"][field].clone();
                each(service, "spec", &mut |spec| set(spec, field, kept.clone()));
            }
        }
    }
    let has_ports = |one: &Value| matches!(one["spec"]["type"].as_str(), Some("NodePort" | "LoadBalancer"));
    if !has_ports(service) || !has_ports(old) {
        return;
    }
    let old_ports = old["spec"]["ports"].as_array().cloned().unwrap_or_default();
    each(service, "spec.ports[]", &mut |port| {
        let twin =
            old_ports.iter().find(|old| old["port"] == port["port"] && old["protocol"] == port["protocol"]);
        if let (Some(twin), true) = (twin, port["nodePort"].as_i64().unwrap_or(0) == 0) {
            let kept = twin["nodePort"].clone();
            if !kept.is_null() {
                set(port, "nodePort", kept);
            }
        }
    });
}

fn session_affinity(spec: &mut Value) {
    if spec["sessionAffinity"] == "None"
        && let Some(fields) = spec.as_object_mut()
    {
        fields.remove("sessionAffinityConfig");
    }
    let timeout = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    if spec["sessionAffinity"] == "ClientIP" && timeout.is_null() {
        set(spec, "sessionAffinityConfig", json!({ "clientIP": { "timeoutSeconds": 10_800 } }));
    }
}

fn target_port(port: &mut Value) {
    let target = &port["targetPort"];
    if target.is_null() || target == 0 || target == "" {
        let number = port["port"].clone();
        if !number.is_null() {
            set(port, "targetPort", number);
        }
    }
}

fn balancer_mode(value: &mut Value) {
    if value["spec"]["type"] != "LoadBalancer" {
        return;
    }
    each(value, "status.loadBalancer.ingress[]", &mut |point| {
        if !is_unset(point, "ip") {
            fill(point, &[("ipMode", Text("VIP"))]);
        }
    });
}
