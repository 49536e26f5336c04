//! Rules of tolerations, affinities and spreading. Must not know about nodes.

use serde_json::Value;

use super::field::{Errors, Field, check_selector, same};
use apimachinery::error::FieldError;
use apimachinery::names;

pub(super) fn check_tolerations(spec: &Field<'_>, errors: &mut Errors) {
    for toleration in spec.items("tolerations") {
        let (key, operator, value) =
            (toleration.at("key"), toleration.at("operator"), toleration.at("value"));
        let effect = toleration.at("effect");
        key.check_optional_name(names::label_key, errors);
        if key.is_empty() && operator.text() != "Exists" {
            errors.push(operator.invalid(
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            ));
        }
        if toleration.at("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(effect.path.clone(), effect.text(), why));
        }
        match operator.text() {
            "" | "Equal" => errors.extend(
                names::label_value(value.text())
                    .into_iter()
                    .map(|why| FieldError::invalid(operator.path.clone(), value.text(), why)),
            ),
            "Exists" if !value.is_empty() => {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(operator.path.clone(), value.text(), why));
            }
            "Exists" => {}
            _ => errors.push(operator.not_supported(&["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            effect.check_one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
        }
    }
}

/// Tolerations may be added, and their seconds may change; nothing else.
pub(super) fn check_tolerations_kept(spec: &Field<'_>, old: &Value, errors: &mut Errors) {
    let lasting = |toleration: &Value| {
        let mut lasting = toleration.clone();
        if let Some(fields) = lasting.as_object_mut() {
            fields.remove("tolerationSeconds");
        }
        lasting
    };
    let now: Vec<Value> =
        spec.items("tolerations").iter().map(|toleration| lasting(toleration.value)).collect();
    let before = old["tolerations"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_kept = |toleration: &Value| now.iter().any(|one| same(one, &lasting(toleration)));
    if !before.iter().all(is_kept) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(spec.at("tolerations").forbidden(why));
    }
}

pub(super) fn check_spread(spec: &Field<'_>, errors: &mut Errors) {
    for constraint in spec.items("topologySpreadConstraints") {
        let (skew, key) = (constraint.at("maxSkew"), constraint.at("topologyKey"));
        if skew.number().is_none_or(|skew| skew <= 0) {
            errors.push(skew.invalid("must be greater than zero"));
        }
        match key.is_empty() {
            true => errors.push(key.required("can not be empty")),
            false => key.check_name(names::label_key, errors),
        }
        let otherwise = constraint.at("whenUnsatisfiable");
        if !matches!(otherwise.text(), "DoNotSchedule" | "ScheduleAnyway") {
            errors.push(otherwise.not_supported(&["DoNotSchedule", "ScheduleAnyway"]));
        }
        check_selector(&constraint.at("labelSelector"), errors);
    }
}

pub(super) fn check_affinity(affinity: &Field<'_>, errors: &mut Errors) {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let node = affinity.at("nodeAffinity");
    let terms = node.at(required);
    if terms.is_set() {
        check_node_selector(&terms, errors);
    }
    for term in node.items(preferred) {
        check_weight(&term, errors);
        check_node_term(&term.at("preference"), errors);
    }
    for side in ["podAffinity", "podAntiAffinity"].map(|side| affinity.at(side)) {
        for term in side.items(required) {
            check_pod_term(&term, errors);
        }
        for term in side.items(preferred) {
            check_weight(&term, errors);
            check_pod_term(&term.at("podAffinityTerm"), errors);
        }
    }
}

fn check_weight(term: &Field<'_>, errors: &mut Errors) {
    let weight = term.at("weight");
    if weight.number().is_none_or(|weight| !(1..=100).contains(&weight)) {
        errors.push(weight.invalid("must be in the range 1-100"));
    }
}

/// A node selector with at least one term.
fn check_node_selector(selector: &Field<'_>, errors: &mut Errors) {
    let terms = selector.items("nodeSelectorTerms");
    if terms.is_empty() {
        let why = "must have at least one node selector term";
        return errors.push(selector.at("nodeSelectorTerms").required(why));
    }
    terms.iter().for_each(|term| check_node_term(term, errors));
}

fn check_node_term(term: &Field<'_>, errors: &mut Errors) {
    for expression in term.items("matchExpressions") {
        let (operator, values) = (expression.at("operator"), expression.at("values"));
        let count = values.value.as_array().map_or(0, Vec::len);
        match operator.text() {
            "In" | "NotIn" if count == 0 => {
                errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if count > 0 => {
                errors.push(
                    values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
                );
            }
            "Gt" | "Lt" if count != 1 => {
                errors
                    .push(values.required("must be specified single value when `operator` is 'Lt' or 'Gt'"));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            _ => errors.push(operator.invalid("not a valid selector operator")),
        }
        expression.at("key").check_name(names::label_key, errors);
    }
}

fn check_pod_term(term: &Field<'_>, errors: &mut Errors) {
    check_selector(&term.at("labelSelector"), errors);
    check_selector(&term.at("namespaceSelector"), errors);
    term.items("namespaces").iter().for_each(|namespace| namespace.check_name(names::dns_label, errors));
    let key = term.at("topologyKey");
    if key.is_empty() {
        errors.push(key.required("can not be empty"));
    }
    let wrong = names::label_key(key.text());
    errors.extend(wrong.into_iter().map(|why| FieldError::invalid(key.path.clone(), key.text(), why)));
}
