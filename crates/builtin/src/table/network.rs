//! Rows of Services, Ingresses and their kin. Must not know about workloads.

use std::collections::BTreeSet;

use serde_json::Value;

use super::object::{NONE, Object, at, integer, joined, list, or, text};

/// Endpoints, ports and hosts beyond these are only counted.
const SHOWN: usize = 3;

pub(super) fn service(object: &Object<'_>) -> Vec<Value> {
    let ports: Vec<String> = object.list("spec.ports").iter().map(port).collect();
    let address = object.list("spec.clusterIPs").first().and_then(Value::as_str);
    vec![
        object.name().into(),
        object.text("spec.type").into(),
        address.unwrap_or(NONE).into(),
        external_addresses(object).into(),
        or(&ports.join(","), NONE).into(),
        object.age().into(),
        object.labels("spec.selector").into(),
    ]
}

fn port(port: &Value) -> String {
    let (number, protocol) = (integer(port, "port"), text(port, "protocol"));
    match integer(port, "nodePort") {
        0 => format!("{number}/{protocol}"),
        node_port => format!("{number}:{node_port}/{protocol}"),
    }
}

fn external_addresses(service: &Object<'_>) -> String {
    let external = service.list("spec.externalIPs").iter().filter_map(Value::as_str);
    match service.text("spec.type") {
        "ClusterIP" | "NodePort" => or(&joined(external, ","), NONE).to_owned(),
        "LoadBalancer" => {
            let given = balancer_addresses(service);
            let all = joined(given.iter().copied().chain(external), ",");
            or(&all, "<pending>").to_owned()
        }
        "ExternalName" => service.text("spec.externalName").to_owned(),
        _ => String::from("<unknown>"),
    }
}

fn balancer_addresses<'a>(object: &Object<'a>) -> BTreeSet<&'a str> {
    let points = object.list("status.loadBalancer.ingress").iter();
    points
        .map(|point| or(text(point, "ip"), text(point, "hostname")))
        .filter(|address| !address.is_empty())
        .collect()
}

pub(super) fn endpoints(object: &Object<'_>) -> Vec<Value> {
    vec![object.name().into(), endpoint_list(object).into(), object.age().into()]
}

fn endpoint_list(object: &Object<'_>) -> String {
    let subsets = object.list("subsets");
    if subsets.is_empty() {
        return NONE.to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = || list(subset, "addresses").iter().map(|address| text(address, "ip"));
        let ports = list(subset, "ports");
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports.iter().map(|port| integer(port, "port")) {
            all.extend(addresses().map(|address| host_port(address, port)));
        }
    }
    shortened(&all)
}

fn host_port(address: &str, port: i64) -> String {
    match address.contains(':') {
        true => format!("[{address}]:{port}"),
        false => format!("{address}:{port}"),
    }
}

fn shortened(all: &[String]) -> String {
    let shown = all.iter().take(SHOWN).map(String::as_str);
    match all.len().saturating_sub(SHOWN) {
        0 => joined(shown, ","),
        more => format!("{} + {more} more...", joined(shown, ",")),
    }
}

pub(super) fn endpoint_slice(object: &Object<'_>) -> Vec<Value> {
    let ports: Vec<String> = object.list("ports").iter().map(slice_port).collect();
    let endpoints = object.list("endpoints").iter().flat_map(|endpoint| list(endpoint, "addresses"));
    let addresses: Vec<String> = endpoints.filter_map(Value::as_str).map(str::to_owned).collect();
    vec![
        object.name().into(),
        object.text("addressType").into(),
        or(&shortened(&ports), "<unset>").into(),
        or(&shortened(&addresses), "<unset>").into(),
        object.age().into(),
    ]
}

fn slice_port(port: &Value) -> String {
    match (at(port, "port").as_i64(), at(port, "name").as_str()) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => String::from("*"),
    }
}

pub(super) fn ingress(object: &Object<'_>) -> Vec<Value> {
    let ports = if object.list("spec.tls").is_empty() { "80" } else { "80, 443" };
    vec![
        object.name().into(),
        object.at("spec.ingressClassName").as_str().unwrap_or(NONE).into(),
        hosts(object.list("spec.rules")).into(),
        joined(balancer_addresses(object), ",").into(),
        ports.into(),
        object.age().into(),
    ]
}

fn hosts(rules: &[Value]) -> String {
    let mut named = rules.iter().enumerate().filter(|(_, rule)| !text(rule, "host").is_empty());
    let shown: Vec<(usize, &str)> =
        named.by_ref().take(SHOWN).map(|(index, rule)| (index, text(rule, "host"))).collect();
    let line = joined(shown.iter().map(|(_, host)| *host), ",");
    match shown.last() {
        None => String::from("*"),
        // Kubernetes counts every rule here, with or without a host.
        Some((last, _)) if shown.len() == SHOWN && last + 1 < rules.len() => {
            format!("{line} + {} more...", rules.len() - SHOWN)
        }
        Some(_) => line,
    }
}

pub(super) fn ingress_class(object: &Object<'_>) -> Vec<Value> {
    let parameters = match object.at("spec.parameters") {
        Value::Null => NONE.to_owned(),
        reference => {
            let kind = [text(reference, "kind"), text(reference, "apiGroup")];
            let kind = joined(kind.into_iter().filter(|part| !part.is_empty()), ".");
            format!("{kind}/{}", text(reference, "name"))
        }
    };
    vec![object.name().into(), object.text("spec.controller").into(), parameters.into(), object.age().into()]
}

pub(super) fn network_policy(object: &Object<'_>) -> Vec<Value> {
    let selector = match object.at("spec.podSelector") {
        Value::Null => NONE.to_owned(),
        _ => object.selector("spec.podSelector"),
    };
    vec![object.name().into(), selector.into(), object.age().into()]
}

pub(super) fn service_cidr(object: &Object<'_>) -> Vec<Value> {
    let ranges = joined(object.list("spec.cidrs").iter().filter_map(Value::as_str), ",");
    vec![object.name().into(), ranges.into(), object.age().into()]
}

pub(super) fn ip_address(object: &Object<'_>) -> Vec<Value> {
    let parent = object.at("spec.parentRef");
    let resource = [text(parent, "resource"), text(parent, "group")];
    let resource = joined(resource.into_iter().filter(|part| !part.is_empty()), ".").to_lowercase();
    let parts = [resource.as_str(), text(parent, "namespace"), text(parent, "name")];
    let path = joined(parts.into_iter().filter(|part| !part.is_empty()), "/");
    vec![object.name().into(), if parent.is_null() { NONE.into() } else { path.into() }]
}
