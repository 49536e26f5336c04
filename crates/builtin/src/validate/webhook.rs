//! Rules of admission webhook configurations. Must not know how webhooks are called.

use std::collections::BTreeSet;

use super::field::{Errors, Field, check_selector};
use apimachinery::error::FieldError;
use apimachinery::names;
use schema::expressions::Scope;

const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

pub(super) fn check(kind: &str, object: &Field<'_>, errors: &mut Errors) {
    if !matches!(kind, "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") {
        return;
    }
    let mut seen = BTreeSet::new();
    for webhook in object.items("webhooks") {
        check_webhook(&webhook, errors);
        let name = webhook.at("name");
        if !seen.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
}

fn check_webhook(webhook: &Field<'_>, errors: &mut Errors) {
    check_qualified(&webhook.at("name"), errors);
    webhook.items("rules").iter().for_each(|rule| check_rule(rule, errors));
    webhook.at("failurePolicy").check_one_of(&["Fail", "Ignore"], errors);
    webhook.at("matchPolicy").check_one_of(&["Equivalent", "Exact"], errors);
    let effects = webhook.at("sideEffects");
    match effects.is_empty() {
        true => errors.push(effects.required("must specify one of None, NoneOnDryRun")),
        false => effects.check_one_of(&["None", "NoneOnDryRun"], errors),
    }
    let timeout = webhook.at("timeoutSeconds");
    if timeout.number().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        errors.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
    }
    check_selector(&webhook.at("namespaceSelector"), errors);
    check_selector(&webhook.at("objectSelector"), errors);
    check_client(&webhook.at("clientConfig"), errors);
    webhook.at("reinvocationPolicy").check_one_of(&["IfNeeded", "Never"], errors);
    check_versions(webhook, errors);
    super::policy::check_conditions(webhook, Scope::Webhook, errors);
}

fn check_qualified(name: &Field<'_>, errors: &mut Errors) {
    if name.is_empty() {
        return errors.push(name.required(""));
    }
    let before = errors.len();
    name.check_name(names::dns_subdomain, errors);
    if errors.len() == before && name.text().split('.').count() < 3 {
        errors.push(name.invalid("should be a domain with at least three segments separated by dots"));
    }
}

fn check_versions(webhook: &Field<'_>, errors: &mut Errors) {
    let list = webhook.at("admissionReviewVersions");
    if list.is_empty() {
        return errors.push(list.required("must specify one of v1, v1beta1"));
    }
    let (mut seen, mut usable) = (BTreeSet::new(), false);
    for version in webhook.items("admissionReviewVersions") {
        if !seen.insert(version.text()) {
            errors.push(version.invalid("duplicate version"));
            continue;
        }
        version.check_name(names::dns_1035_label, errors);
        usable |= VERSIONS.contains(&version.text());
    }
    if !usable {
        errors.push(list.invalid("must include at least one of v1, v1beta1"));
    }
}

fn check_client(client: &Field<'_>, errors: &mut Errors) {
    let (url, service) = (client.at("url"), client.at("service"));
    if url.is_set() == service.is_set() {
        return errors.push(client.required("exactly one of url or service is required"));
    }
    match url.is_set() {
        true => check_url(&url, errors),
        false => check_service(&service, errors),
    }
}

fn check_url(url: &Field<'_>, errors: &mut Errors) {
    let form = "; desired format: https://host[/path]";
    let Some((scheme, rest)) = url.text().split_once("://") else {
        return errors.push(FieldError::required(url.path.clone(), format!("url must be a valid URL{form}")));
    };
    let refuse = |value: &str, why: String| FieldError::invalid(url.path.clone(), value, why);
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let host = rest.split('/').next().unwrap_or_default();
    if scheme != "https" {
        errors.push(refuse(scheme, format!("'https' is the only allowed URL scheme{form}")));
    }
    if host.is_empty() {
        errors.push(refuse(host, format!("host must be specified{form}")));
    }
    if let Some((user, _)) = host.split_once('@') {
        errors.push(refuse(user, String::from("user information is not permitted in the URL")));
    }
    if !fragment.is_empty() {
        errors.push(refuse(fragment, String::from("fragments are not permitted in the URL")));
    }
    if !query.is_empty() {
        errors.push(refuse(query, String::from("query parameters are not permitted in the URL")));
    }
}

fn check_service(service: &Field<'_>, errors: &mut Errors) {
    let (port, path) = (service.at("port"), service.at("path"));
    service.at("name").check_required(errors);
    service.at("namespace").check_required(errors);
    let wrong = port.number().and_then(names::port_number);
    errors.extend(wrong.map(|why| port.invalid(format!("port is not valid: {why}"))));
    if path.is_empty() || path.text() == "/" {
        return;
    }
    if path.text() == "//" {
        return errors.push(path.invalid("segment[0] may not be empty"));
    }
    if !path.text().starts_with('/') {
        errors.push(path.invalid("must start with a '/'"));
    }
    let inner = path.text().get(1..).unwrap_or_default();
    let segments = inner.strip_suffix('/').unwrap_or(inner).split('/').enumerate();
    for (index, segment) in segments {
        if segment.is_empty() {
            errors.push(path.invalid(format!("segment[{index}] may not be empty")));
            continue;
        }
        for why in names::dns_subdomain(segment) {
            errors.push(path.invalid(format!("segment[{index}]: {why}")));
        }
    }
}

pub(super) fn check_rule(rule: &Field<'_>, errors: &mut Errors) {
    let operations = rule.at("operations");
    operations.check_required(errors);
    check_star(rule, "operations", "if '*' is present, must not specify other operations", errors);
    for operation in rule.items("operations") {
        operation.check_one_of(&["*", "CONNECT", "CREATE", "DELETE", "UPDATE"], errors);
    }
    rule.at("apiGroups").check_required(errors);
    check_star(rule, "apiGroups", "if '*' is present, must not specify other API groups", errors);
    rule.at("apiVersions").check_required(errors);
    check_star(rule, "apiVersions", "if '*' is present, must not specify other API versions", errors);
    rule.items("apiVersions").iter().for_each(|version| version.check_required(errors));
    rule.at("resources").check_required(errors);
    rule.items("resources").iter().for_each(|resource| resource.check_required(errors));
    check_resource_star(rule, errors);
    rule.at("scope").check_one_of(&["*", "Cluster", "Namespaced"], errors);
}

fn check_star(rule: &Field<'_>, list: &str, why: &str, errors: &mut Errors) {
    let items = rule.items(list);
    if items.len() > 1 && items.iter().any(|item| item.text() == "*") {
        errors.push(rule.at(list).invalid(why));
    }
}

/// `*` covers every resource, but not their subresources.
fn check_resource_star(rule: &Field<'_>, errors: &mut Errors) {
    let resources = rule.items("resources");
    let has = |name: &str| resources.iter().any(|resource| resource.text() == name);
    if has("*/*") && resources.len() > 1 {
        return errors
            .push(rule.at("resources").invalid("if '*/*' is present, must not specify other resources"));
    }
    if has("*") && resources.iter().any(|resource| resource.text() != "*" && !resource.text().contains('/')) {
        let why = "if '*' is present, must not specify other resources without subresources";
        errors.push(rule.at("resources").invalid(why));
    }
}
