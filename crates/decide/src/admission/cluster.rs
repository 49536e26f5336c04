//! Validation of Clusters and ClusterTaintPolicies.

use std::collections::BTreeSet;

use api::taint::{NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE};
use api::{Cluster, ClusterTaintPolicy};

use super::{Findings, Review, syntax};

/// A member. Longest name: it is part of names of 63 characters (`karmada-es-…`).
pub(super) fn check(_: &Review<'_>, cluster: &Cluster, _: Option<&Cluster>, findings: &mut Findings) {
    let name = &cluster.metadata.name;
    if name.len() > 48 || !syntax::is_dns_label(name) {
        findings.refuse(
            "metadata.name",
            format!("{name:?} must be 1 to 48 lower-case letters, digits and `-`, for example member1"),
        );
    }
    let spec = &cluster.spec;
    if !spec.api_endpoint.is_empty() && !has_scheme(&spec.api_endpoint, &["http", "https"]) {
        findings.refuse(
            "spec.apiEndpoint",
            format!("{:?} is not a URL; write for example https://10.0.0.1:6443", spec.api_endpoint),
        );
    }
    if !spec.proxy_url.is_empty() && !has_scheme(&spec.proxy_url, &["http", "https", "socks5"]) {
        findings.refuse(
            "spec.proxyURL",
            format!("{:?} must begin with http://, https:// or socks5://", spec.proxy_url),
        );
    }
    let secrets = [("secretRef", &spec.secret_ref), ("impersonatorSecretRef", &spec.impersonator_secret_ref)];
    for (field, secret) in secrets {
        if secret.as_ref().is_some_and(|secret| secret.namespace.is_empty() || secret.name.is_empty()) {
            findings.refuse(format!("spec.{field}"), "needs namespace and name");
        }
    }
    place(cluster, findings);
    taints(cluster, findings);
    models(cluster, findings);
}

fn has_scheme(url: &str, schemes: &[&str]) -> bool {
    url.split_once("://").is_some_and(|(scheme, rest)| schemes.contains(&scheme) && !rest.is_empty())
}

fn place(cluster: &Cluster, findings: &mut Findings) {
    let spec = &cluster.spec;
    if !spec.zone.is_empty() && !spec.zones.is_empty() {
        findings.refuse("spec.zone", "cannot co-exist with zones; keep zones");
    }
    let zones = spec.zones.iter().map(|zone| ("zones", zone));
    let single = [("provider", &spec.provider), ("region", &spec.region), ("zone", &spec.zone)];
    for (field, value) in single.into_iter().chain(zones) {
        if !syntax::is_label_value(value) {
            findings.refuse(
                format!("spec.{field}"),
                format!("{value:?} is not a label value; use letters, digits, `-`, `_` and `.`"),
            );
        }
    }
}

fn taints(cluster: &Cluster, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (index, taint) in cluster.spec.taints.iter().enumerate() {
        let path = format!("spec.taints[{index}]");
        taint_words(&path, &taint.key, &taint.value, &taint.effect, findings);
        if !seen.insert((&taint.key, &taint.effect)) {
            findings.refuse(path, format!("{}:{} is given twice", taint.key, taint.effect));
        }
    }
}

fn taint_words(path: &str, key: &str, value: &str, effect: &str, findings: &mut Findings) {
    if !syntax::is_label_key(key) || !syntax::is_label_value(value) {
        findings
            .refuse(path, format!("{key}={value} is not a taint; write for example example.com/maintenance"));
    }
    if ![NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE].contains(&effect) {
        findings.refuse(
            format!("{path}.effect"),
            format!("{effect:?} must be NoSchedule, PreferNoSchedule or NoExecute"),
        );
    }
}

/// Classes follow each other without gaps: grade 0, 1, 2 …, each beginning where the one before ends.
fn models(cluster: &Cluster, findings: &mut Findings) {
    let models = &cluster.spec.resource_models;
    for (index, model) in models.iter().enumerate() {
        let path = format!("spec.resourceModels[{index}]");
        if model.grade != index as u64 {
            findings.refuse(format!("{path}.grade"), format!("must be {index}: grades count up from 0"));
        }
        if model.ranges.is_empty() {
            findings.refuse(format!("{path}.ranges"), "must not be empty");
        }
        let Some(before) = index.checked_sub(1).and_then(|before| models.get(before)) else { continue };
        let joined = model.ranges.len() == before.ranges.len()
            && model
                .ranges
                .iter()
                .zip(&before.ranges)
                .all(|(range, before)| range.name == before.name && range.min == before.max);
        if !joined {
            findings.refuse(
                format!("{path}.ranges"),
                "must name the same resources as the grade before and begin where that one ends",
            );
        }
    }
}

/// A policy that taints clusters by their conditions.
pub(super) fn check_taint_policy(
    _: &Review<'_>,
    policy: &ClusterTaintPolicy,
    _: Option<&ClusterTaintPolicy>,
    findings: &mut Findings,
) {
    let mut seen = BTreeSet::new();
    for (index, taint) in policy.spec.taints.iter().enumerate() {
        let path = format!("spec.taints[{index}]");
        taint_words(&path, &taint.key, &taint.value, &taint.effect, findings);
        if !seen.insert((&taint.key, &taint.effect)) {
            findings.refuse(path, format!("{}:{} is given twice; keep one of them", taint.key, taint.effect));
        }
    }
}
