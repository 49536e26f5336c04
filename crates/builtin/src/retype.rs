//! Clears the fields of a Service that only its former type has and the request leaves unchanged, when its type
//! changes. Fields that the request changed stay, for validation to refuse.

use serde_json::{Value, json};

use super::fill::{each, is_unset, set};

/// Takes away what the new type of a Service does not have.
pub(super) fn drop_fields_of_old_type(service: &mut Value, old: &Value) {
    if has_node_ports(old) && !has_node_ports(service) && node_ports_are_old(service, old) {
        each(service, "spec.ports[]", &mut |port| drop(remove(port, "nodePort")));
    }
    let leaves = |test: fn(&Value) -> bool, service: &Value| test(old) && !test(service);
    let dropped: [(bool, &[&str]); 4] = [
        (leaves(has_cluster_address, service), &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]),
        (leaves(checks_health, service), &["healthCheckNodePort"]),
        (leaves(is_balanced, service), &["allocateLoadBalancerNodePorts", "loadBalancerClass"]),
        (leaves(is_reachable_from_outside, service), &["externalTrafficPolicy"]),
    ];
    for field in dropped.into_iter().filter(|(leaves, _)| *leaves).flat_map(|(_, fields)| fields) {
        if service["spec"][field] == old["spec"][field] {
            each(service, "spec", &mut |spec| drop(remove(spec, field)));
        }
    }
    if !is_balanced(service) && !is_unset(service, "status") {
        each(service, "status", &mut |status| set(status, "loadBalancer", json!({})));
    }
}

fn remove(value: &mut Value, field: &str) -> Option<Value> {
    value.as_object_mut()?.remove(field)
}

fn type_of(service: &Value) -> &str {
    service["spec"]["type"].as_str().filter(|kind| !kind.is_empty()).unwrap_or("ClusterIP")
}

fn has_cluster_address(service: &Value) -> bool {
    type_of(service) != "ExternalName"
}

fn has_node_ports(service: &Value) -> bool {
    matches!(type_of(service), "NodePort" | "LoadBalancer")
}

fn is_balanced(service: &Value) -> bool {
    type_of(service) == "LoadBalancer"
}

fn checks_health(service: &Value) -> bool {
    is_balanced(service) && service["spec"]["externalTrafficPolicy"] == "Local"
}

fn is_reachable_from_outside(service: &Value) -> bool {
    has_node_ports(service) || (type_of(service) == "ClusterIP" && !is_unset(&service["spec"], "externalIPs"))
}

fn node_ports_are_old(service: &Value, old: &Value) -> bool {
    let ports = |service: &Value| -> Vec<i64> {
        let ports = service["spec"]["ports"].as_array().into_iter().flatten();
        ports.filter_map(|port| port["nodePort"].as_i64()).collect()
    };
    let before = ports(old);
    ports(service).iter().all(|port| before.contains(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balanced() -> Value {
        json!({
            "spec": {
                "type": "LoadBalancer", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
                "allocateLoadBalancerNodePorts": true, "externalTrafficPolicy": "Cluster",
                "ports": [{ "port": 80, "nodePort": 30000 }],
            },
            "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } },
        })
    }

    fn retyped(to: &str, change: impl FnOnce(&mut Value)) -> Value {
        let mut service = balanced();
        service["spec"]["type"] = to.into();
        change(&mut service);
        drop_fields_of_old_type(&mut service, &balanced());
        service
    }

    #[test]
    fn fields_of_the_former_service_type_are_dropped() {
        let expected = json!({
            "spec": {
                "type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{ "port": 80 }],
            },
            "status": { "loadBalancer": {} },
        });
        assert_eq!(retyped("ClusterIP", |_| ()), expected);
        let external = json!({
            "spec": { "type": "ExternalName", "ports": [{ "port": 80 }] }, "status": { "loadBalancer": {} },
        });
        assert_eq!(retyped("ExternalName", |_| ()), external);
        assert_eq!(retyped("LoadBalancer", |_| ()), balanced());
        let ports = retyped("NodePort", |_| ())["spec"]["ports"].take();
        assert_eq!(ports, balanced()["spec"]["ports"]);
    }

    #[test]
    fn what_the_request_changed_stays_for_validation() {
        let service = retyped("ClusterIP", |service| service["spec"]["ports"][0]["nodePort"] = 30001.into());
        assert_eq!(service["spec"]["ports"][0]["nodePort"], 30001);
        let service =
            retyped("ClusterIP", |service| service["spec"]["externalTrafficPolicy"] = "Local".into());
        assert_eq!(service["spec"]["externalTrafficPolicy"], "Local");
    }
}
