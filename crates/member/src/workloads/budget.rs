//! PodDisruptionBudgets: how many pods they select, how many are healthy, and how many may be evicted.

use serde_json::{Value, json};

use super::{Round, as_count, condition, is_deleting, share};
use crate::key::Key;
use crate::plan::{Plan, status};

/// The selector of a budget as a list request writes it; `None` where it selects nothing.
pub fn selector(object: &Value) -> Option<String> {
    let selector = object["spec"]["selector"].as_object()?;
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let equal = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let rules = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    let rules = rules.map(|rule| {
        let key = rule["key"].as_str().unwrap_or_default();
        let values: Vec<&str> =
            rule["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        match rule["operator"].as_str() {
            Some("In") => format!("{key} in ({})", values.join(",")),
            Some("NotIn") => format!("{key} notin ({})", values.join(",")),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        }
    });
    Some(equal.chain(rules).collect::<Vec<_>>().join(","))
}

/// What is to be done about a budget, given the pods it selects.
pub fn reconcile(round: &Round<'_>, key: &Key, object: &Value, pods: &[Value]) -> Plan {
    if is_deleting(object) {
        return Plan::nothing();
    }
    let is_counted = |pod: &&Value| {
        !is_deleting(pod) && !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
    };
    let expected = as_count(pods.iter().filter(is_counted).count());
    let healthy = as_count(pods.iter().filter(is_counted).filter(|pod| is_ready(pod)).count());
    let spec = &object["spec"];
    let desired = match share(&spec["maxUnavailable"], expected, true) {
        Some(unavailable) => (expected - unavailable).max(0),
        None => share(&spec["minAvailable"], expected, true).unwrap_or(1),
    };
    let allowed = (healthy - desired).max(0);
    let (word, reason) = match allowed > 0 {
        true => ("True", "SufficientPods"),
        false => ("False", "InsufficientPods"),
    };
    let mut allowing = condition(&object["status"], "DisruptionAllowed", word, (reason, ""), round.stamp);
    allowing["observedGeneration"] = object["metadata"]["generation"].clone();
    let report = json!({
        "observedGeneration": object["metadata"]["generation"],
        "expectedPods": expected,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
        "conditions": [allowing],
    });
    status(key, object, report).map_or_else(Plan::nothing, Plan::one)
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_written_as_lists_take_them() {
        let object = json!({ "spec": { "selector": {
            "matchLabels": { "app": "a" },
            "matchExpressions": [
                { "key": "x", "operator": "In", "values": ["1", "2"] },
                { "key": "y", "operator": "DoesNotExist" },
                { "key": "z", "operator": "Exists" },
            ],
        } } });
        assert_eq!(selector(&object).as_deref(), Some("app=a,x in (1,2),!y,z"));
        assert_eq!(selector(&json!({ "spec": {} })), None);
    }
}
