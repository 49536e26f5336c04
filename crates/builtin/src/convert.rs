//! Version conversion: an object in its storage version as another version, and back. Versions of custom kinds differ
//! only in their schema; of the built-in kinds, Event and HorizontalPodAutoscaler have two representations.

use serde_json::{Map, Value, json};

/// The spelling pairs among the built-in kinds that share one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Representation {
    /// The served version is the stored one.
    Stored,
    /// events.k8s.io/v1, stored as core/v1.
    NewEvent,
    /// autoscaling/v1, stored as autoscaling/v2.
    OldAutoscaler,
    /// A custom kind: apiVersion changes, and the version's own schema prunes and defaults.
    Custom,
}

impl Representation {
    /// From the stored spelling to the served one.
    pub fn serve(self, object: &mut Value) {
        match self {
            Self::Stored | Self::Custom => {}
            Self::NewEvent => rename(object, |(stored, served)| (stored, served)),
            Self::OldAutoscaler => autoscaler_to_v1(object),
        }
    }

    /// From the served spelling to the stored one.
    pub fn store(self, object: &mut Value) {
        match self {
            Self::Stored | Self::Custom => {}
            Self::NewEvent => rename(object, |(stored, served)| (served, stored)),
            Self::OldAutoscaler => autoscaler_to_v2(object),
        }
    }
}

/// Field names of an Event in core/v1 and in events.k8s.io/v1; all others agree.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

fn rename(object: &mut Value, direction: fn((&'static str, &'static str)) -> (&'static str, &'static str)) {
    let Some(fields) = object.as_object_mut() else { return };
    for (from, to) in EVENT_FIELDS.map(direction) {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}

/// Where metrics that autoscaling/v1 has no field for are kept, so that a round trip loses nothing.
const OTHER_METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

fn autoscaler_to_v1(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let metrics = spec.remove("metrics").unwrap_or_default();
    let metrics = metrics.as_array().cloned().unwrap_or_default();
    let (cpu, others): (Vec<Value>, Vec<Value>) = metrics.into_iter().partition(is_cpu_utilization);
    if let Some(target) = cpu.first() {
        let percentage = target["resource"]["target"]["averageUtilization"].clone();
        spec.insert("targetCPUUtilizationPercentage".to_owned(), percentage);
    }
    if !others.is_empty() {
        let text = Value::Array(others).to_string();
        annotations(object).insert(OTHER_METRICS.to_owned(), text.into());
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        let current = status.remove("currentMetrics").unwrap_or_default();
        let cpu = current.as_array().into_iter().flatten().find(|metric| is_cpu(metric)).cloned();
        let percentage = cpu.map(|metric| metric["resource"]["current"]["averageUtilization"].clone());
        if let Some(percentage) = percentage.filter(|value| !value.is_null()) {
            status.insert("currentCPUUtilizationPercentage".to_owned(), percentage);
        }
    }
}

fn autoscaler_to_v2(object: &mut Value) {
    let kept = object
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
        .and_then(|all| all.remove(OTHER_METRICS));
    let kept =
        kept.as_ref().and_then(Value::as_str).and_then(|text| serde_json::from_str::<Vec<Value>>(text).ok());
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let mut metrics = kept.unwrap_or_default();
    if let Some(percentage) = spec.remove("targetCPUUtilizationPercentage") {
        let target = json!({ "type": "Utilization", "averageUtilization": percentage });
        metrics.insert(0, json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } }));
    }
    if !metrics.is_empty() {
        spec.insert("metrics".to_owned(), Value::Array(metrics));
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut)
        && let Some(percentage) = status.remove("currentCPUUtilizationPercentage")
    {
        let cpu = json!({ "name": "cpu", "current": { "averageUtilization": percentage } });
        status.insert("currentMetrics".to_owned(), json!([{ "type": "Resource", "resource": cpu }]));
    }
}

fn is_cpu(metric: &Value) -> bool {
    metric["type"] == "Resource" && metric["resource"]["name"] == "cpu"
}

fn is_cpu_utilization(metric: &Value) -> bool {
    is_cpu(metric) && metric["resource"]["target"]["type"] == "Utilization"
}

fn annotations(object: &mut Value) -> &mut Map<String, Value> {
    let annotations = &mut object["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations.as_object_mut().expect("it was just made an object")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_autoscaler_survives_the_round_trip() {
        let memory = json!({ "type": "Resource", "resource": { "name": "memory", "target": { "type": "AverageValue", "averageValue": "1Gi" } } });
        let cpu = json!({ "type": "Resource", "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 80 } } });
        let stored = json!({ "metadata": { "name": "a", "annotations": {} }, "spec": { "maxReplicas": 3, "metrics": [cpu, memory] } });
        let mut served = stored.clone();
        Representation::OldAutoscaler.serve(&mut served);
        assert_eq!(served["spec"]["targetCPUUtilizationPercentage"], 80);
        assert_eq!(served["spec"].get("metrics"), None);
        Representation::OldAutoscaler.store(&mut served);
        assert_eq!(served, stored);
    }

    #[test]
    fn an_event_survives_the_round_trip() {
        let stored = json!({ "involvedObject": { "name": "a" }, "message": "m", "count": 2, "reason": "R" });
        let mut served = stored.clone();
        Representation::NewEvent.serve(&mut served);
        assert_eq!(
            served,
            json!({ "regarding": { "name": "a" }, "note": "m", "deprecatedCount": 2, "reason": "R" })
        );
        Representation::NewEvent.store(&mut served);
        assert_eq!(served, stored);
    }
}
