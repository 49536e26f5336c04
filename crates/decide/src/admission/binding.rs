//! Validation of bindings.

use std::collections::BTreeSet;

use api::annotations::DEPENDENCIES;
use api::interpreter::DependentObjectReference;
use api::{Binding, Object};

use super::{Findings, Rejection, Review};
use crate::gates::Gates;

/// A binding of either scope.
pub(super) fn check(review: &Review<'_>, binding: &Binding, _: Option<&Binding>, findings: &mut Findings) {
    rules(binding, review.gates, findings);
}

/// Whether a write of this binding would be refused, and why.
pub fn rejected(binding: &Binding, gates: &Gates) -> Option<Rejection> {
    let mut findings = Findings::default();
    rules(binding, gates, &mut findings);
    findings.verdict().err()
}

fn rules(binding: &Binding, gates: &Gates, findings: &mut Findings) {
    dependencies(binding, findings);
    if gates.components {
        components(binding, findings);
    }
}

fn dependencies<Spec, Status>(object: &Object<Spec, Status>, findings: &mut Findings) {
    let Some(json) = object.metadata.annotations.get(DEPENDENCIES) else { return };
    // Karmada writes a list that it never filled as `null` (M5).
    if let Err(error) = serde_json::from_str::<Option<Vec<DependentObjectReference>>>(json) {
        findings.refuse(
            format!("metadata.annotations[{DEPENDENCIES}]"),
            format!("is no JSON list of references, for example \
                     [{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"namespace\":\"default\",\"name\":\"conf\"}}]: {error}"),
        );
    }
}

fn components(binding: &Binding, findings: &mut Findings) {
    let mut names = BTreeSet::new();
    for (index, component) in binding.spec.components.iter().enumerate() {
        let path = format!("spec.components[{index}].name");
        if component.name.is_empty() {
            findings.refuse(path, "must not be empty");
        } else if !names.insert(&component.name) {
            findings.refuse(
                path,
                format!("{:?} is used twice; each component needs a name of its own", component.name),
            );
        }
    }
}
