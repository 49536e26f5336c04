//! Rows of autoscalers and of the scale subresource. Must not know how scaling is decided.

use serde_json::Value;

use super::object::{Object, at, list, quantity, text};

/// Metrics beyond these are only counted.
const METRICS_SHOWN: usize = 2;

pub(super) fn horizontal_pod_autoscaler(object: &Object<'_>) -> Vec<Value> {
    let minimum = match object.at("spec.minReplicas").as_i64() {
        Some(minimum) => minimum.to_string(),
        None => String::from("<unset>"),
    };
    vec![
        object.name().into(),
        format!("{}/{}", object.text("spec.scaleTargetRef.kind"), object.text("spec.scaleTargetRef.name"))
            .into(),
        targets(object).into(),
        minimum.into(),
        object.integer("spec.maxReplicas").into(),
        object.integer("status.currentReplicas").into(),
        object.age().into(),
    ]
}

pub(super) fn scale(object: &Object<'_>) -> Vec<Value> {
    vec![
        object.name().into(),
        object.integer("spec.replicas").into(),
        object.integer("status.replicas").into(),
        object.age().into(),
    ]
}

fn targets(object: &Object<'_>) -> String {
    let metrics = object.list("spec.metrics");
    if let (true, Some(target)) =
        (metrics.is_empty(), object.at("spec.targetCPUUtilizationPercentage").as_i64())
    {
        let current = percent(object.at("status.currentCPUUtilizationPercentage"), "<unknown>");
        return format!("cpu: {current}/{target}%");
    }
    if metrics.is_empty() {
        return String::from("<none>");
    }
    let current = list(object.value, "status.currentMetrics");
    let shown: Vec<String> = metrics
        .iter()
        .enumerate()
        .take(METRICS_SHOWN)
        .map(|(index, metric)| target(metric, current.get(index).unwrap_or(&Value::Null)))
        .collect();
    match metrics.len().saturating_sub(METRICS_SHOWN) {
        0 => shown.join(", "),
        more => format!("{} + {more} more...", shown.join(", ")),
    }
}

fn target(metric: &Value, status: &Value) -> String {
    let (source, average_marked) = match text(metric, "type") {
        "External" => ("external", true),
        "Object" => ("object", true),
        "Pods" => ("pods", false),
        "Resource" => ("resource", false),
        "ContainerResource" => ("containerResource", false),
        _ => return String::from("<unknown type>"),
    };
    let (wanted, current) = (at(&metric[source], "target"), at(&status[source], "current"));
    let name = match text(&metric[source], "name") {
        "" => String::new(),
        name => format!("{name}: "),
    };
    if !wanted["averageValue"].is_null() {
        let mark = if average_marked { " (avg)" } else { "" };
        return format!(
            "{name}{}/{}{mark}",
            known(&current["averageValue"]),
            quantity(&wanted["averageValue"])
        );
    }
    match source {
        "external" | "object" => format!("{}/{}", known(&current["value"]), quantity(&wanted["value"])),
        "pods" => format!("{}/0", known(&current["averageValue"])),
        _ => {
            let current = percent(&current["averageUtilization"], "<unknown>");
            format!("{name}{current}/{}", percent(&wanted["averageUtilization"], "<auto>"))
        }
    }
}

fn known(value: &Value) -> String {
    match value {
        Value::Null => String::from("<unknown>"),
        other => quantity(other),
    }
}

fn percent(value: &Value, otherwise: &str) -> String {
    value.as_i64().map_or_else(|| otherwise.to_owned(), |percent| format!("{percent}%"))
}
