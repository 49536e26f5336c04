//! Defaults of HorizontalPodAutoscalers. Must not know how scaling is decided.

use serde_json::{Value, json};

use super::super::fill::Fill::Number;
use super::super::fill::{canonical, each, fill, is_unset, object, set};

pub(super) fn apply(value: &mut Value) {
    fill(value, &[("spec.minReplicas", Number(1))]);
    // Version 1 knows no metrics and no behaviour, only the CPU.
    if value["apiVersion"] == "autoscaling/v1" {
        return fill(value, &[("spec.targetCPUUtilizationPercentage", Number(80))]);
    }
    each(value, "spec", &mut |spec| {
        if is_unset(spec, "metrics") {
            let target = json!({ "type": "Utilization", "averageUtilization": 80 });
            let cpu = json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } });
            set(spec, "metrics", json!([cpu]));
        }
        each(spec, "behavior", &mut behavior);
        for source in ["resource", "containerResource", "pods", "object", "external"] {
            for amount in ["value", "averageValue"] {
                canonical(spec, &format!("metrics[].{source}.target"), amount);
            }
        }
    });
}

fn behavior(behavior: &mut Value) {
    let policy = |kind: &str, value: i64| json!({ "type": kind, "value": value, "periodSeconds": 15 });
    let up = json!([policy("Pods", 4), policy("Percent", 100)]);
    let down = json!([policy("Percent", 100)]);
    for (direction, policies) in [("scaleUp", up), ("scaleDown", down)] {
        let Some(rules) = object(behavior, direction) else { continue };
        rules.entry("selectPolicy").or_insert_with(|| "Max".into());
        rules.entry("policies").or_insert(policies);
        if direction == "scaleUp" {
            rules.entry("stabilizationWindowSeconds").or_insert_with(|| 0.into());
        }
    }
}
