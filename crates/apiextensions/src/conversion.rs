//! Validates `spec.conversion`: the conversion strategy and its webhook.

use serde_json::Value;

use super::{list, text, texts};
use apimachinery::error::FieldError;
use apimachinery::names;

/// What is wrong with a conversion. The paths are those kube-apiserver prints, not those users write.
pub(super) fn check(conversion: &Value, path: &str) -> Vec<FieldError> {
    if !conversion.is_object() {
        return Vec::new();
    }
    let client = &conversion["webhook"]["clientConfig"];
    let reviews = &conversion["webhook"]["conversionReviewVersions"];
    let client_path = format!("{path}.webhookClientConfig");
    let reviews_path = format!("{path}.conversionReviewVersions");
    match text(&conversion["strategy"]) {
        "Webhook" => {
            let mut errors = webhook(client, &client_path);
            errors.extend(review_versions(reviews, &reviews_path));
            errors
        }
        strategy => {
            let mut errors = Vec::new();
            match strategy {
                "None" => {}
                "" => errors.push(FieldError::required(format!("{path}.strategy"), "")),
                other => {
                    let field = format!("{path}.strategy");
                    errors.push(FieldError::not_supported(field, other, &["None", "Webhook"]));
                }
            }
            let detail = "should not be set when strategy is not set to Webhook";
            if client.is_object() {
                errors.push(FieldError::forbidden(client_path, detail));
            }
            if !list(reviews).is_empty() {
                errors.push(FieldError::forbidden(reviews_path, detail));
            }
            errors
        }
    }
}

fn webhook(client: &Value, path: &str) -> Vec<FieldError> {
    if !client.is_object() {
        return vec![FieldError::required(path, "required when strategy is set to Webhook")];
    }
    match (client["url"].as_str(), client["service"].is_object()) {
        (Some(url), false) => webhook_url(url, &format!("{path}.url")),
        (None, true) => service(&client["service"], &format!("{path}.service")),
        _ => vec![FieldError::required(path, "exactly one of url or service is required")],
    }
}

fn webhook_url(url: &str, path: &str) -> Vec<FieldError> {
    const FORM: &str = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let mut errors = Vec::new();
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(FieldError::invalid(path, scheme, detail));
    }
    if host.is_empty() {
        errors.push(FieldError::invalid(path, "", format!("host must be specified{FORM}")));
    }
    for (part, detail) in [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ] {
        if !part.is_empty() {
            errors.push(FieldError::invalid(path, part, detail));
        }
    }
    errors
}

fn service(service: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["name", "namespace"] {
        if text(&service[key]).is_empty() {
            errors.push(FieldError::required(format!("{path}.{key}"), ""));
        }
    }
    let port = service["port"].as_i64().unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(format!("{path}.port"), port, detail));
    }
    let route = text(&service["path"]);
    let faults = route_faults(route).into_iter();
    errors.extend(faults.map(|fault| FieldError::invalid(format!("{path}.path"), route, fault)));
    errors
}

fn route_faults(route: &str) -> Vec<String> {
    if ["", "/"].contains(&route) {
        return Vec::new();
    }
    let mut faults = Vec::new();
    if !route.starts_with('/') {
        faults.push(String::from("must start with a '/'"));
    }
    // The first character is skipped whether it is a slash or not, as kube-apiserver does.
    let rest: String = route.chars().skip(1).collect();
    for (index, step) in rest.strip_suffix('/').unwrap_or(&rest).split('/').enumerate() {
        match step {
            "" => faults.push(format!("segment[{index}] may not be empty")),
            step => {
                let wrong = names::dns_subdomain(step).into_iter();
                faults.extend(wrong.map(|fault| format!("segment[{index}]: {fault}")));
            }
        }
    }
    faults
}

fn review_versions(versions: &Value, path: &str) -> Vec<FieldError> {
    let all: Vec<&str> = texts(versions).collect();
    if all.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = Vec::new();
    for (index, version) in all.iter().enumerate() {
        let field = format!("{path}[{index}]");
        if all[..index].contains(version) {
            errors.push(FieldError::invalid(field, *version, "duplicate version"));
            continue;
        }
        let faults = names::dns_1035_label(version).into_iter();
        errors.extend(faults.map(|fault| FieldError::invalid(field.as_str(), *version, fault)));
    }
    if !all.iter().any(|version| ["v1", "v1beta1"].contains(version)) {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(path, versions.clone(), detail));
    }
    errors
}
