//! How objects are converted between versions: `spec.conversion`.

use serde_json::Value;

use super::{list, text, texts};
use crate::error::FieldError;
use crate::metadata::names;

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
        (Some(url), false) => webhook_url(url, &format!("{path}.url")).into_iter().collect(),
        (None, true) => service(&client["service"], &format!("{path}.service")),
        _ => vec![FieldError::required(path, "exactly one of url or service is required")],
    }
}

fn webhook_url(url: &str, path: &str) -> Option<FieldError> {
    const FORM: &str = "; desired format: https://host[/path]";
    let detail = match url.split_once("://") {
        Some(("https", "")) => format!("host must be specified{FORM}"),
        Some(("https", rest)) if rest.starts_with('/') => format!("host must be specified{FORM}"),
        Some(("https", _)) => return None,
        _ => format!("'https' is the only allowed URL scheme{FORM}"),
    };
    Some(FieldError::invalid(path, url, detail))
}

fn service(service: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, detail) in
        [("name", "service name is required"), ("namespace", "service namespace is required")]
    {
        if text(&service[key]).is_empty() {
            errors.push(FieldError::required(format!("{path}.{key}"), detail));
        }
    }
    let port = service["port"].as_i64().unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(format!("{path}.port"), port, detail));
    }
    if let Some(route) = service["path"].as_str()
        && !route.starts_with('/')
    {
        errors.push(FieldError::invalid(format!("{path}.path"), route, "must start with a '/'"));
    }
    errors
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
        let faults = names::dns1035_label(version).into_iter();
        errors.extend(faults.map(|fault| FieldError::invalid(field.as_str(), *version, fault)));
    }
    if !all.iter().any(|version| ["v1", "v1beta1"].contains(version)) {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(path, versions.clone(), detail));
    }
    errors
}
