//! Validation of OverridePolicies and ClusterOverridePolicies.

use api::override_policy::{
    FieldOverrider, FieldPatch, LabelAnnotationOverrider, OverriderOperator, Overriders,
};
use api::{ClusterAffinity, OverridePolicy, Scope, kinds};
use serde_json::Value;

use super::selectors::Owner;
use super::{Findings, Review, identity, placement, selectors, syntax};

/// An override policy of either scope.
pub(super) fn check(
    _: &Review<'_>,
    policy: &OverridePolicy,
    _: Option<&OverridePolicy>,
    findings: &mut Findings,
) {
    let spec = &policy.spec;
    let owner = match policy.kind == kinds::CLUSTER_OVERRIDE_POLICY.kind {
        true => Owner { scope: Scope::Cluster, namespace: "" },
        false => Owner { scope: Scope::Namespaced, namespace: &policy.metadata.namespace },
    };
    selectors::check(owner, &spec.resource_selectors, &spec.exclude_resource_selectors, findings);
    if !spec.override_rules.is_empty() && spec.target_cluster.is_some() {
        findings.refuse(
            "spec.targetCluster",
            "is deprecated and cannot co-exist with overrideRules; move it into a rule",
        );
    }
    if !spec.override_rules.is_empty() && !is_empty(&spec.overriders) {
        findings.refuse(
            "spec.overriders",
            "is deprecated and cannot co-exist with overrideRules; move them into a rule",
        );
    }
    clusters("spec.targetCluster", spec.target_cluster.as_ref(), findings);
    overriders("spec.overriders", &spec.overriders, findings);
    for (index, rule) in spec.override_rules.iter().enumerate() {
        let path = format!("spec.overrideRules[{index}]");
        clusters(&format!("{path}.targetCluster"), rule.target_cluster.as_ref(), findings);
        overriders(&format!("{path}.overriders"), &rule.overriders, findings);
    }
}

/// As in Karmada, a fieldOverrider alone does not count.
fn is_empty(overriders: &Overriders) -> bool {
    let without_fields = Overriders { field_overrider: Vec::new(), ..overriders.clone() };
    without_fields == Overriders::default()
}

fn clusters(path: &str, target: Option<&ClusterAffinity>, findings: &mut Findings) {
    let selector = target.and_then(|target| target.field_selector.as_ref());
    placement::fields(&format!("{path}.fieldSelector"), selector, findings);
}

fn overriders(path: &str, wanted: &Overriders, findings: &mut Findings) {
    identity::check(path, wanted, findings);
    let maps = [
        ("labelsOverrider", &wanted.labels_overrider),
        ("annotationsOverrider", &wanted.annotations_overrider),
    ];
    for (field, list) in maps {
        for (index, overrider) in list.iter().enumerate() {
            pairs(&format!("{path}.{field}[{index}].value"), field == "labelsOverrider", overrider, findings);
        }
    }
    for (index, field) in wanted.field_overrider.iter().enumerate() {
        fields(&format!("{path}.fieldOverrider[{index}]"), field, findings);
    }
}

fn pairs(path: &str, labels: bool, overrider: &LabelAnnotationOverrider, findings: &mut Findings) {
    for (key, value) in &overrider.value {
        if !syntax::is_label_key(key) {
            findings.refuse(path, format!("{key:?} is not a key; write for example app or example.com/app"));
        }
        if labels && !syntax::is_label_value(value) {
            findings.refuse(
                path,
                format!("{value:?} is not a label value; use letters, digits, `-`, `_` and `.`"),
            );
        }
    }
}

fn fields(path: &str, overrider: &FieldOverrider, findings: &mut Findings) {
    match (overrider.json.is_empty(), overrider.yaml.is_empty()) {
        (true, true) => findings.refuse(path, "needs json or yaml"),
        (false, false) => {
            findings.refuse(path, "json and yaml cannot co-exist; keep the one the field holds")
        }
        _ => {}
    }
    for (index, patch) in overrider.json.iter().enumerate() {
        subfield(&format!("{path}.json[{index}]"), patch, findings);
    }
    for (index, patch) in overrider.yaml.iter().enumerate() {
        subfield(&format!("{path}.yaml[{index}]"), patch, findings);
    }
}

fn subfield(path: &str, patch: &FieldPatch, findings: &mut Findings) {
    if patch.sub_path.is_empty() || !syntax::is_json_pointer(&patch.sub_path) {
        findings.refuse(
            format!("{path}.subPath"),
            format!("{:?} is not a JSON pointer; write for example /db/port", patch.sub_path),
        );
    }
    match (patch.operator, &patch.value) {
        (OverriderOperator::Remove, Value::Null) => {}
        (OverriderOperator::Remove, _) => {
            findings.refuse(format!("{path}.value"), "must be left out with remove")
        }
        (_, Value::Null) => findings.refuse(format!("{path}.value"), "is required with add and replace"),
        _ => {}
    }
}
