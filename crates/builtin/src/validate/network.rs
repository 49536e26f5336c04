//! Rules of Ingresses, NetworkPolicies and endpoints. Must not know about Services.

use std::net::IpAddr;

use serde_json::Value;

use super::field::{Errors, Field, check_selector, has_segment};
use super::{pod, service};
use apimachinery::error::FieldError;
use apimachinery::names;

pub(super) fn check(kind: &str, object: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    match kind {
        "Ingress" => check_ingress(&object.at("spec"), errors),
        "NetworkPolicy" => check_policy(&object.at("spec"), errors),
        "EndpointSlice" => check_slice(object, old, errors),
        _ => {}
    }
}

fn check_ingress(spec: &Field<'_>, errors: &mut Errors) {
    let default = spec.at("defaultBackend");
    if spec.at("rules").is_empty() && !default.is_set() {
        // Kubernetes prints the list of rules, which is not there.
        let why = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(spec.path.clone(), Value::Null, why));
    }
    if default.is_set() {
        check_backend(&default, errors);
    }
    for rule in spec.items("rules") {
        check_host(&rule.at("host"), errors);
        check_paths(&rule, errors);
    }
    for hosts in spec.items("tls") {
        hosts.items("hosts").iter().for_each(|host| check_pattern(host, errors));
    }
    spec.at("ingressClassName").check_optional_name(names::dns_subdomain, errors);
}

fn check_host(host: &Field<'_>, errors: &mut Errors) {
    if host.is_empty() {
        return;
    }
    if host.text().parse::<IpAddr>().is_ok() {
        return errors.push(host.invalid("must be a DNS name, not an IP address"));
    }
    check_pattern(host, errors);
}

fn check_pattern(host: &Field<'_>, errors: &mut Errors) {
    match host.text().contains('*') {
        true => host.check_name(names::wildcard_subdomain, errors),
        false => host.check_name(names::dns_subdomain, errors),
    }
}

fn check_paths(rule: &Field<'_>, errors: &mut Errors) {
    let http = rule.at("http");
    if !http.is_set() {
        return;
    }
    http.at("paths").check_required(errors);
    for path in http.items("paths") {
        let (kind, text) = (path.at("pathType"), path.at("path"));
        match kind.text() {
            "Exact" | "Prefix" => check_path(&text, errors),
            "ImplementationSpecific" if !text.is_empty() && !text.text().starts_with('/') => {
                errors.push(text.invalid("must be an absolute path"));
            }
            "ImplementationSpecific" => {}
            "" => errors.push(kind.required("pathType must be specified")),
            _ => errors.push(kind.not_supported(&["Exact", "ImplementationSpecific", "Prefix"])),
        }
        check_backend(&path.at("backend"), errors);
    }
}

fn check_path(path: &Field<'_>, errors: &mut Errors) {
    if !path.text().starts_with('/') {
        return errors.push(path.invalid("must be an absolute path"));
    }
    for sequence in ["//", "/./", "/../", "%2f", "%2F"] {
        if path.text().contains(sequence) {
            errors.push(path.invalid(format!("must not contain '{sequence}'")));
        }
    }
    for end in [".", ".."] {
        if has_segment(path.text(), end) && path.text().ends_with(&format!("/{end}")) {
            errors.push(path.invalid(format!("cannot end with '/{end}'")));
        }
    }
}

fn check_backend(backend: &Field<'_>, errors: &mut Errors) {
    let (service, resource) = (backend.at("service"), backend.at("resource"));
    let refuse = |why: &str| FieldError::invalid(backend.path.clone(), "", why);
    match (service.is_set(), resource.is_set()) {
        (true, true) => return errors.push(refuse("cannot set both resource and service backends")),
        (false, true) => return,
        (false, false) => return errors.push(refuse("resource or service backend is required")),
        (true, false) => {}
    }
    let (name, port) = (service.at("name"), service.at("port"));
    match name.is_empty() {
        true => errors.push(name.required("")),
        false => name.check_name(names::dns_1035_label, errors),
    }
    let number = port.at("number").number().filter(|number| *number != 0);
    match (port.at("name").is_empty(), number) {
        (false, Some(_)) => errors.push(refuse("cannot set both port name & port number")),
        (false, None) => port.at("name").check_name(names::port_name, errors),
        (true, Some(number)) => {
            errors.extend(names::port_number(number).map(|why| port.at("number").invalid(why)));
        }
        (true, None) => errors.push(backend.required("port name or number is required")),
    }
}

fn check_policy(spec: &Field<'_>, errors: &mut Errors) {
    check_selector(&spec.at("podSelector"), errors);
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.items(rules) {
            rule.items("ports").iter().for_each(|port| check_policy_port(port, errors));
            rule.items(peers).iter().for_each(|peer| check_peer(peer, errors));
        }
    }
    if spec.items("policyTypes").len() > 2 {
        return errors.push(spec.at("policyTypes").invalid("may not specify more than two policyTypes"));
    }
    for kind in spec.items("policyTypes") {
        kind.check_one_of(&["Ingress", "Egress"], errors);
    }
}

fn check_policy_port(port: &Field<'_>, errors: &mut Errors) {
    port.at("protocol").check_one_of(&["TCP", "UDP", "SCTP"], errors);
    let (start, end) = (port.at("port"), port.at("endPort"));
    let Some(last) = end.number() else {
        return if start.is_set() {
            super::probe::check_port(&start, errors)
        };
    };
    if !start.is_set() {
        return errors.push(end.invalid("may not be specified when `port` is not specified"));
    }
    super::probe::check_port(&start, errors);
    match start.number() {
        None => errors.push(end.invalid("may not be specified when `port` is non-numeric")),
        // Kubernetes prints the first port here.
        Some(first) if last < first => {
            errors.push(FieldError::invalid(
                end.path.clone(),
                first,
                "must be greater than or equal to `port`",
            ));
        }
        Some(_) => errors.extend(names::port_number(last).map(|why| end.invalid(why))),
    }
}

fn check_peer(peer: &Field<'_>, errors: &mut Errors) {
    let block = peer.at("ipBlock");
    let selectors = ["podSelector", "namespaceSelector"].map(|selector| peer.at(selector));
    let selected = selectors.iter().filter(|selector| selector.is_set()).count();
    selectors.iter().for_each(|selector| check_selector(selector, errors));
    if block.is_set() {
        check_block(&block, errors);
    }
    match (selected, block.is_set()) {
        (0, false) => errors.push(peer.required("must specify a peer")),
        (1.., true) => errors.push(peer.forbidden("may not specify both ipBlock and another peer")),
        _ => {}
    }
}

fn check_block(block: &Field<'_>, errors: &mut Errors) {
    let cidr = block.at("cidr");
    let bad = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    if cidr.is_empty() {
        return errors.push(cidr.required(""));
    }
    let Some(outer) = range(cidr.text()) else { return errors.push(cidr.invalid(bad)) };
    for except in block.items("except") {
        match range(except.text()) {
            None => errors.push(except.invalid(bad)),
            Some(inner) if !is_within(inner, outer) => {
                errors.push(except.invalid("must be a strict subset of `cidr`"));
            }
            Some(_) => {}
        }
    }
}

/// The first address of a range as a number, its prefix length, and how many bits addresses have.
fn range(text: &str) -> Option<(u128, u32, u32)> {
    let (address, prefix) = text.split_once('/')?;
    let (number, bits) = match address.parse::<IpAddr>().ok()? {
        IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let prefix: u32 = prefix.parse().ok().filter(|prefix| *prefix <= bits)?;
    Some((number, prefix, bits))
}

fn is_within(inner: (u128, u32, u32), outer: (u128, u32, u32)) -> bool {
    let network = |number: u128| number.checked_shr(outer.2 - outer.1).unwrap_or(0);
    inner.2 == outer.2 && inner.1 > outer.1 && network(inner.0) == network(outer.0)
}

fn check_slice(slice: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let kind = slice.at("addressType");
    match kind.is_empty() {
        true => errors.push(kind.required("")),
        false => kind.check_one_of(&["FQDN", "IPv4", "IPv6"], errors),
    }
    for endpoint in slice.items("endpoints") {
        if endpoint.at("addresses").is_empty() {
            errors.push(endpoint.at("addresses").required("must contain at least 1 address"));
        }
    }
    if let Some(old) = old {
        kind.check_immutable(&old["addressType"], errors);
    }
}

pub(super) fn check_endpoints(object: &Field<'_>, errors: &mut Errors) {
    for subset in object.items("subsets") {
        let lists = ["addresses", "notReadyAddresses"];
        if lists.iter().all(|list| subset.at(list).is_empty()) {
            errors.push(subset.required("must specify `addresses` or `notReadyAddresses`"));
        }
        for address in lists.iter().flat_map(|list| subset.items(list)) {
            let ip = address.at("ip");
            pod::check_address(&ip, errors);
            match ip.text().parse::<IpAddr>() {
                Ok(parsed) => errors.extend(service::special(parsed).map(|why| ip.invalid(why))),
                Err(_) => errors.push(ip.invalid("must be a valid IP address")),
            }
        }
        let ports = subset.items("ports");
        for port in &ports {
            let (name, number) = (port.at("name"), port.at("port"));
            match name.is_empty() {
                true if ports.len() > 1 => errors.push(name.required("")),
                _ => name.check_optional_name(names::dns_label, errors),
            }
            errors.extend(names::port_number(number.number().unwrap_or(0)).map(|why| number.invalid(why)));
            port.at("protocol").check_one_of(&["SCTP", "TCP", "UDP"], errors);
        }
    }
}
