//! Rules for bindings.

use std::collections::BTreeSet;

use api::annotations::DEPENDENCIES;
use api::interpreter::DependentObjectReference;
use api::{Binding, Object};

use super::{Findings, Review};

/// A binding of either scope.
pub(super) fn check(review: &Review<'_>, binding: &Binding, _: Option<&Binding>, findings: &mut Findings) {
    dependencies(binding, findings);
    if review.gates.components {
        components(binding, findings);
    }
}

fn dependencies<Spec, Status>(object: &Object<Spec, Status>, findings: &mut Findings) {
    let Some(json) = object.metadata.annotations.get(DEPENDENCIES) else { return };
    if let Err(error) = serde_json::from_str::<Vec<DependentObjectReference>>(json) {
        findings.refuse(
            format!("metadata.annotations[{DEPENDENCIES}]"),
            format!("is no JSON list of references, for example [{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"namespace\":\"default\",\"name\":\"conf\"}}]: {error}"),
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
