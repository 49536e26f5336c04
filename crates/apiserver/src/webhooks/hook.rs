//! One webhook as its configuration describes it: where it is, what it wants to see, what its failure means.

use std::time::Duration;

use serde_json::Value;

use super::Asking;
use crate::admission::Operation;
use crate::engine::text;
use crate::selector::LabelSelector;

/// Whether calling it changes something elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SideEffects {
    /// No, or not on a dry run.
    None,
    /// Yes, or nobody knows.
    Some,
}

/// One webhook.
#[derive(Debug)]
pub(super) struct Hook {
    pub name: String,
    /// Where it is; what a reference to a Service is instead, nobody can reach from here.
    pub url: Option<String>,
    /// The authority of its certificate, in PEM.
    pub authority: Vec<u8>,
    pub timeout: Duration,
    pub is_ignored_when_failing: bool,
    pub side_effects: SideEffects,
    pub namespaces: LabelSelector,
    pub objects: LabelSelector,
    rules: Vec<Value>,
    is_exact: bool,
}

impl Hook {
    /// The webhooks of a configuration, in its order.
    pub fn all_of(configuration: &Value) -> Vec<Self> {
        let hooks = configuration["webhooks"].as_array().map(Vec::as_slice).unwrap_or_default();
        hooks.iter().map(Self::read).collect()
    }

    fn read(hook: &Value) -> Self {
        use base64::Engine as _;
        let bundle = text(hook, "/clientConfig/caBundle");
        let authority = base64::engine::general_purpose::STANDARD.decode(bundle).unwrap_or_default();
        let seconds = hook["timeoutSeconds"].as_u64().unwrap_or(10).clamp(1, 30);
        // What was accepted can be read; what cannot selects everything, which asks once too often.
        let selector = |key: &str| LabelSelector::from_value(&hook[key]).unwrap_or_default();
        Self {
            name: text(hook, "/name").to_owned(),
            url: hook.pointer("/clientConfig/url").and_then(Value::as_str).map(str::to_owned),
            authority,
            timeout: Duration::from_secs(seconds),
            is_ignored_when_failing: hook["failurePolicy"] == "Ignore",
            side_effects: match text(hook, "/sideEffects") {
                "None" | "NoneOnDryRun" => SideEffects::None,
                _ => SideEffects::Some,
            },
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            rules: hook["rules"].as_array().cloned().unwrap_or_default(),
            is_exact: hook["matchPolicy"] == "Exact",
        }
    }

    /// Whether one of its rules is about a write.
    pub fn has_rule_for(&self, asking: &Asking<'_>) -> bool {
        let resource = &asking.call.resource;
        let has = |rule: &Value, key: &str, wanted: &str| {
            let said = rule[key].as_array().map(Vec::as_slice).unwrap_or_default();
            said.iter().any(|one| one == "*" || one == wanted)
        };
        self.rules.iter().any(|rule| {
            let scope = match text(rule, "/scope") {
                "Namespaced" => resource.namespaced,
                "Cluster" => !resource.namespaced,
                _ => true,
            };
            scope
                && has(rule, "operations", operation_name(asking.operation))
                && has(rule, "apiGroups", &resource.group)
                // Versions of one resource are equivalent, unless the webhook insists.
                && (!self.is_exact || has(rule, "apiVersions", &resource.version))
                && names_resource(rule, &resource.plural, asking.call.part())
        })
    }
}

/// What an operation is called in rules and reviews.
pub(super) fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
    }
}

fn names_resource(rule: &Value, plural: &str, part: &str) -> bool {
    let said = rule["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
    said.iter().filter_map(Value::as_str).any(|one| match one.split_once('/') {
        None => part.is_empty() && (one == "*" || one == plural),
        Some((resource, wanted)) => {
            (resource == "*" || resource == plural) && (wanted == "*" || (wanted == part && !part.is_empty()))
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_name_resources_and_their_parts() {
        let check = |said: &str, plural: &str, part: &str, expected: bool| {
            assert_eq!(
                names_resource(&json!({ "resources": [said] }), plural, part),
                expected,
                "{said} {plural}/{part}"
            );
        };
        check("pods", "pods", "", true);
        check("pods", "pods", "status", false);
        check("*", "pods", "", true);
        check("*", "pods", "status", false);
        check("*/*", "pods", "status", true);
        check("*/*", "pods", "", true);
        check("pods/*", "pods", "status", true);
        check("*/scale", "pods", "scale", true);
        check("*/scale", "pods", "", false);
        check("pods/status", "pods", "scale", false);
    }
}
