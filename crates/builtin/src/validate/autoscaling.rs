//! Rules of autoscalers and disruption budgets. Must not know how scaling is decided.

use serde_json::json;

use super::field::{Errors, Field, check_amount, check_at_most_all, check_selector};
use super::resources::check_positive;
use apimachinery::error::FieldError;

const METRIC_TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

pub(super) fn check(kind: &str, object: &Field<'_>, errors: &mut Errors) {
    if kind != "HorizontalPodAutoscaler" {
        return;
    }
    let spec = object.at("spec");
    let (lower, upper) = (spec.at("minReplicas"), spec.at("maxReplicas"));
    if lower.number().is_some_and(|minimum| minimum < 1) {
        errors.push(lower.invalid("must be greater than or equal to 1"));
    }
    if upper.number().unwrap_or(0) < 1 {
        errors.push(upper.invalid("must be greater than 0"));
    }
    if lower.number().is_some_and(|minimum| upper.number().unwrap_or(0) < minimum) {
        errors.push(upper.invalid("must be greater than or equal to `minReplicas`"));
    }
    check_target(&spec.at("scaleTargetRef"), errors);
    let metrics = spec.items("metrics");
    metrics.iter().for_each(|metric| check_metric(metric, errors));
    let is_counted = |metric: &Field<'_>| matches!(metric.at("type").text(), "Object" | "External");
    if lower.number() == Some(0) && !metrics.iter().any(is_counted) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(spec.at("metrics").forbidden(why));
    }
    for direction in ["scaleUp", "scaleDown"] {
        check_rules(&spec.at("behavior").at(direction), errors);
    }
}

fn check_target(target: &Field<'_>, errors: &mut Errors) {
    for field in ["kind", "name"].map(|field| target.at(field)) {
        match field.text() {
            "" => errors.push(field.required("")),
            text if text.contains('/') => errors.push(field.invalid("may not contain '/'")),
            _ => {}
        }
    }
    let version = target.at("apiVersion");
    let text = version.text();
    let refuse = |why: String| FieldError::invalid(version.path.clone(), text, why);
    match text.split('/').count() {
        1 if text == "v1" => {}
        1 => errors.push(refuse(String::from("apiVersion must specify API group"))),
        2 => {}
        _ => errors.push(refuse(format!("unexpected GroupVersion string: {text}"))),
    }
}

fn check_metric(metric: &Field<'_>, errors: &mut Errors) {
    let kind = metric.at("type");
    if kind.is_empty() {
        errors.push(kind.required("must specify a metric source type"));
    }
    let source = match kind.text() {
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "Pods" => "pods",
        "Object" => "object",
        "External" => "external",
        _ => {
            let refused = FieldError::not_supported(kind.path.clone(), kind.text(), &METRIC_TYPES);
            return errors.push(refused);
        }
    };
    let source = metric.at(source);
    if !source.is_set() {
        return errors.push(source.required("must populate information for the given metric source"));
    }
    let target = source.at("target");
    match kind.text() {
        "Resource" | "ContainerResource" => {
            if source.at("name").is_empty() {
                errors.push(source.at("name").required("must specify a resource name"));
            }
            check_target_type(&target, errors);
            check_utilization(&target, errors);
        }
        other => {
            if source.at("metric.name").is_empty() {
                errors.push(source.at("metric.name").required("must specify a metric name"));
            }
            check_target_type(&target, errors);
            check_value(&target, other, errors);
        }
    }
}

fn check_target_type(target: &Field<'_>, errors: &mut Errors) {
    let kind = target.at("type");
    match kind.text() {
        "" => errors.push(kind.required("must specify a metric target type")),
        "Utilization" | "Value" | "AverageValue" => {}
        _ => errors.push(kind.invalid("must be either Utilization, Value, or AverageValue")),
    }
    check_positive(&target.at("value"), errors);
    check_positive(&target.at("averageValue"), errors);
}

fn check_utilization(target: &Field<'_>, errors: &mut Errors) {
    let (percent, value) = (target.at("averageUtilization"), target.at("averageValue"));
    if percent.number().is_some_and(|percent| percent < 1) {
        errors.push(percent.invalid("must be greater than 0"));
    }
    match (percent.is_set(), value.is_set()) {
        (false, false) => {
            errors.push(percent.required("must set either a target raw value or a target utilization"));
        }
        (true, true) => {
            errors.push(value.forbidden("may not set both a target raw value and a target utilization"));
        }
        _ => {}
    }
}

fn check_value(target: &Field<'_>, kind: &str, errors: &mut Errors) {
    let (value, average) = (target.at("value"), target.at("averageValue"));
    if kind == "Pods" && !average.is_set() {
        errors.push(average.required("must specify a positive target averageValue"));
    }
    if kind != "Pods" && !average.is_set() && !value.is_set() {
        let why = "must set either a target value for metric or a per-pod target";
        errors.push(average.required(why));
    }
}

fn check_rules(rules: &Field<'_>, errors: &mut Errors) {
    if !rules.is_set() {
        return;
    }
    let window = rules.at("stabilizationWindowSeconds");
    match window.number() {
        Some(..0) => errors.push(window.invalid("must be greater than or equal to zero")),
        Some(3601..) => errors.push(window.invalid("must be less than or equal to 3600")),
        _ => {}
    }
    rules.at("selectPolicy").check_one_of(&["Disabled", "Max", "Min"], errors);
    let policies = rules.at("policies");
    if policies.is_empty() {
        errors.push(policies.required("must specify at least one Policy"));
    }
    for policy in rules.items("policies") {
        policy.at("type").check_one_of(&["Percent", "Pods"], errors);
        let (value, period) = (policy.at("value"), policy.at("periodSeconds"));
        for number in [&value, &period] {
            if number.number().is_none_or(|number| number <= 0) {
                errors.push(number.invalid("must be greater than zero"));
            }
        }
        if period.number().is_some_and(|seconds| seconds > 1800) {
            errors.push(period.invalid("must be less than or equal to 1800"));
        }
    }
}

/// PodDisruptionBudgets: one bound, not two.
pub(super) fn check_disruption_budget(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let (lower, upper) = (spec.at("minAvailable"), spec.at("maxUnavailable"));
    if lower.is_set() && upper.is_set() {
        let printed = json!({
            "MinAvailable": lower.value, "Selector": spec.at("selector").value, "MaxUnavailable": upper.value,
            "UnhealthyPodEvictionPolicy": spec.at("unhealthyPodEvictionPolicy").value,
        });
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid(spec.path.clone(), printed, why));
    }
    for bound in [&lower, &upper] {
        check_amount(bound, errors);
        check_at_most_all(bound, errors);
    }
    check_selector(&spec.at("selector"), errors);
    spec.at("unhealthyPodEvictionPolicy").check_one_of(&["AlwaysAllow", "IfHealthyBudget"], errors);
}
