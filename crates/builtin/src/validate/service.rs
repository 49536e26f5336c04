//! Rules of Services. Must not know which addresses are free.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::field::{Errors, Field, check_labels};
use super::{pod, probe};
use apimachinery::error::FieldError;
use apimachinery::names;

const BALANCED_ONLY: &str = "may only be used when `type` is 'LoadBalancer'";

pub(super) fn check(service: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let spec = service.at("spec");
    if let Some(old) = old {
        check_address_kept(&spec, &old["spec"], errors);
    }
    let kind = spec.at("type").text();
    let headless = spec.at("clusterIP").text() == "None" || spec.value["clusterIPs"][0] == "None";
    let ports = spec.items("ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        errors.push(spec.at("ports").required(""));
    }
    check_type(&spec, kind, headless, errors);
    let mut port_names = BTreeSet::new();
    for port in &ports {
        check_port(port, ports.len() > 1, &mut port_names, errors);
    }
    check_labels(&spec.at("selector"), errors);
    check_affinity(&spec, errors);
    check_addresses(&spec, kind, errors);
    let known = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    spec.at("type").check_one_of(&known, errors);
    check_duplicates(&ports, kind, errors);
    if !spec.at("loadBalancerSourceRanges").is_empty() && kind != "LoadBalancer" {
        // Kubernetes spells the field this way here.
        errors.push(spec.at("LoadBalancerSourceRanges").forbidden(BALANCED_ONLY));
    }
    for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"].map(|field| spec.at(field)) {
        if field.is_set() && kind != "LoadBalancer" {
            errors.push(field.forbidden(BALANCED_ONLY));
        }
    }
    check_traffic(&spec, kind, errors);
}

fn check_type(spec: &Field<'_>, kind: &str, headless: bool, errors: &mut Errors) {
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let why = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid("spec.clusterIPs[0]", "None", why));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"].map(|field| spec.at(field)) {
                if !field.is_empty() {
                    errors.push(field.forbidden("may not be set for ExternalName services"));
                }
            }
            let name = spec.at("externalName");
            match name.text().strip_suffix('.').unwrap_or(name.text()) {
                "" => errors.push(name.required("")),
                host => errors.extend(names::dns_subdomain(host).into_iter().map(|why| name.invalid(why))),
            }
        }
        _ => {}
    }
}

fn check_port<'a>(port: &Field<'a>, named: bool, seen: &mut BTreeSet<&'a str>, errors: &mut Errors) {
    let (name, number) = (port.at("name"), port.at("port"));
    if named && name.is_empty() {
        errors.push(name.required(""));
    } else if !name.is_empty() {
        name.check_name(names::dns_label, errors);
        if !seen.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
    errors.extend(names::port_number(number.number().unwrap_or(0)).map(|why| number.invalid(why)));
    port.at("protocol").check_one_of(&["SCTP", "TCP", "UDP"], errors);
    probe::check_port(&port.at("targetPort"), errors);
    port.at("appProtocol").check_optional_name(names::label_key, errors);
}

fn check_affinity(spec: &Field<'_>, errors: &mut Errors) {
    let affinity = spec.at("sessionAffinity");
    affinity.check_one_of(&["ClientIP", "None"], errors);
    let timeout = spec.at("sessionAffinityConfig.clientIP.timeoutSeconds");
    if affinity.text() == "ClientIP"
        && timeout.number().is_some_and(|seconds| !(1..=86_400).contains(&seconds))
    {
        errors.push(timeout.invalid("must be greater than 0 and less than 86400"));
    }
}

fn check_addresses(spec: &Field<'_>, kind: &str, errors: &mut Errors) {
    let listed = spec.items("clusterIPs");
    let own = spec.at("clusterIP");
    // A lone clusterIP stands for the first of clusterIPs.
    let first = Field { value: own.value, path: format!("{}[0]", spec.at("clusterIPs").path) };
    let cluster = if listed.is_empty() && !own.is_empty() { vec![first] } else { listed };
    for address in cluster.iter().filter(|address| kind != "ExternalName" && address.text() != "None") {
        pod::check_address(address, errors);
    }
    for address in spec.items("externalIPs") {
        match address.text().parse::<IpAddr>() {
            Ok(parsed) => errors.extend(special(parsed).map(|why| address.invalid(why))),
            Err(_) => pod::check_address(&address, errors),
        }
    }
}

/// Why an address cannot be one of an endpoint.
pub(super) fn special(address: IpAddr) -> Option<&'static str> {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    match () {
        () if address.is_unspecified() => Some("may not be unspecified (0.0.0.0 or ::)"),
        () if address.is_loopback() => Some("may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        () if is_link_local => Some("may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        () if address.is_multicast() => {
            Some("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
        }
        () => None,
    }
}

fn check_duplicates(ports: &[Field<'_>], kind: &str, errors: &mut Errors) {
    let (mut on_nodes, mut inside) = (BTreeSet::new(), BTreeSet::new());
    let used = |port: &Field<'_>| port.at("nodePort").number().filter(|number| *number != 0);
    for port in ports.iter().filter(|port| kind == "ClusterIP" && used(port).is_some()) {
        errors.push(port.at("nodePort").forbidden("may not be used when `type` is 'ClusterIP'"));
    }
    for port in ports {
        if used(port).is_some_and(|number| !on_nodes.insert((port.at("protocol").text(), number))) {
            errors.push(port.at("nodePort").duplicate());
        }
    }
    for port in ports {
        let (protocol, number) = (port.at("protocol").text(), port.at("port").number().unwrap_or(0));
        if !inside.insert((protocol, number)) {
            let printed = json!({ "Name": "", "Protocol": protocol, "AppProtocol": null, "Port": number, "TargetPort": 0, "NodePort": 0 });
            errors.push(FieldError::duplicate(port.path.clone(), printed));
        }
    }
}

fn check_traffic(spec: &Field<'_>, kind: &str, errors: &mut Errors) {
    let (external, internal) = (spec.at("externalTrafficPolicy"), spec.at("internalTrafficPolicy"));
    let is_reachable = matches!(kind, "LoadBalancer" | "NodePort")
        || (kind == "ClusterIP" && !spec.at("externalIPs").is_empty());
    if !is_reachable && !external.is_empty() {
        errors.push(external.invalid("may only be set for externally-accessible services"));
    } else if is_reachable {
        external.check_one_of(&["Cluster", "Local"], errors);
    }
    if internal.is_set() {
        internal.check_one_of(&["Cluster", "Local"], errors);
    }
}

fn check_address_kept(spec: &Field<'_>, old: &Value, errors: &mut Errors) {
    let involves_external_name = spec.at("type").text() == "ExternalName" || old["type"] == "ExternalName";
    let before = old["clusterIP"].as_str().unwrap_or_default();
    let now = spec.at("clusterIP").text();
    if !involves_external_name && !before.is_empty() && now != before {
        let why = "may not change once set";
        errors.push(FieldError::invalid("spec.clusterIPs[0]", json!([now]), why));
    }
}
