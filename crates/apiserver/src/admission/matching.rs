//! Matching rules of webhooks and policies: by resource, operation, namespace and labels.

use serde_json::Value;

use super::{AdmissionChain, Operation, WriteAttributes};
use crate::storage::{stored, text};
use apimachinery::selector::LabelSelector;

/// The group whose kinds are exempt from webhooks and policies: an administrator must be able to repair a broken
/// configuration.
pub(super) const GROUP: &str = "admissionregistration.k8s.io";

/// What a webhook or a policy says about the writes it wants to see.
#[derive(Debug)]
pub(super) struct Matching {
    namespaces: LabelSelector,
    objects: LabelSelector,
    rules: Vec<Value>,
    excluded: Vec<Value>,
    is_exact: bool,
    /// What no rules mean: of a webhook nothing, of a binding everything.
    is_everything_without_rules: bool,
}

impl Matching {
    /// That of a webhook.
    pub fn of_webhook(hook: &Value) -> Self {
        Self::read(hook, "rules", false)
    }

    /// That of a policy.
    pub fn of_policy(constraints: &Value) -> Self {
        Self::read(constraints, "resourceRules", false)
    }

    /// That of a binding, which narrows its policy's.
    pub fn of_binding(resources: &Value) -> Self {
        Self::read(resources, "resourceRules", true)
    }

    fn read(source: &Value, rules: &str, is_everything_without_rules: bool) -> Self {
        // What was accepted can be read; what cannot selects everything, which asks once too often.
        let selector = |key: &str| LabelSelector::from_value(&source[key]).unwrap_or_default();
        let list = |key: &str| source[key].as_array().cloned().unwrap_or_default();
        Self {
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            rules: list(rules),
            excluded: list("excludeResourceRules"),
            is_exact: source["matchPolicy"] == "Exact",
            is_everything_without_rules,
        }
    }

    /// Whether its rules are about a write.
    fn has_rule_for(&self, attributes: &WriteAttributes<'_>, object: &Value) -> bool {
        let any = |rules: &[Value]| rules.iter().any(|rule| self.is_about(rule, attributes, object));
        let wanted = (self.rules.is_empty() && self.is_everything_without_rules) || any(&self.rules);
        wanted && !any(&self.excluded)
    }

    fn is_about(&self, rule: &Value, attributes: &WriteAttributes<'_>, object: &Value) -> bool {
        let resource = &attributes.call.resource;
        let said = |key: &str| rule[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let has = |key: &str, wanted: &str| said(key).iter().any(|one| one == "*" || one == wanted);
        let scope = match text(rule, "/scope") {
            "Namespaced" => resource.namespaced,
            "Cluster" => !resource.namespaced,
            _ => true,
        };
        let names = said("resourceNames");
        let name = match attributes.call.name() {
            "" => text(object, "/metadata/name"),
            name => name,
        };
        scope
            && has("operations", operation_name(attributes.operation))
            && has("apiGroups", &resource.group)
            // Versions of one resource are equivalent, unless `matchPolicy` is `Exact`.
            && (!self.is_exact || has("apiVersions", &resource.version))
            && names_resource(rule, &resource.plural, attributes.call.subresource())
            && (names.is_empty() || names.iter().any(|one| one == name))
    }
}

impl AdmissionChain {
    /// Whether a write is one of those.
    pub(super) fn is_matched(
        &self,
        matching: &Matching,
        attributes: &WriteAttributes<'_>,
        object: &Value,
    ) -> bool {
        if &*attributes.call.resource.group == GROUP || !matching.has_rule_for(attributes, object) {
            return false;
        }
        let in_namespace = self
            .namespace_of(attributes, object)
            .is_none_or(|namespace| matching.namespaces.matches_labels(&namespace["metadata"]["labels"]));
        let labelled = |object: &Value| matching.objects.matches_labels(&object["metadata"]["labels"]);
        in_namespace && (labelled(object) || attributes.old.is_some_and(labelled))
    }

    /// The namespace that a write is about; a namespace is in itself.
    pub(super) fn namespace_of(&self, attributes: &WriteAttributes<'_>, object: &Value) -> Option<Value> {
        match (&*attributes.call.resource.table, &attributes.call.namespace) {
            ("/namespaces", _) => Some(object.clone()),
            (_, None) => None,
            (_, Some(name)) => self.store.get("/namespaces", name).map(|entry| stored::parse(&entry.value)),
        }
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
