//! Rules of the kinds in `apps`, and of ReplicationControllers. Must not know what stands in a template.

use serde_json::{Value, json};

use super::field::{Errors, Field, amount, check_amount, check_at_most_all, check_selector, misses, same};
use super::pod;
use apimachinery::error::FieldError;
use apimachinery::names;
use apimachinery::selector::LabelSelector;

const MISSED: &str = "`selector` does not match template `labels`";

pub(super) fn check(kind: &str, object: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let spec = object.at("spec");
    match kind {
        "Deployment" => check_deployment(&spec, errors),
        "ReplicaSet" => {
            spec.at("replicas").check_non_negative(errors);
            spec.at("minReadySeconds").check_non_negative(errors);
            check_strict_selector(&spec, "deployment", "invalid label selector", errors);
        }
        "DaemonSet" => return check_daemon_set(&spec, old, errors),
        "StatefulSet" => return check_stateful_set(&spec, old, errors),
        "ControllerRevision" => {
            if let Some(old) = old {
                object.at("data").check_immutable(&old["data"], errors);
            }
            return object.at("revision").check_non_negative(errors);
        }
        _ => return,
    }
    if let Some(old) = old {
        spec.at("selector").check_immutable(&old["spec"]["selector"], errors);
    }
}

pub(super) fn check_replication_controller(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    spec.at("minReadySeconds").check_non_negative(errors);
    let selector = spec.at("selector");
    selector.check_required(errors);
    spec.at("replicas").check_non_negative(errors);
    let template = spec.at("template");
    if !template.is_set() {
        return errors.push(template.required(""));
    }
    if !LabelSelector::from_labels(selector.value).matches_labels(&template.value["metadata"]["labels"]) {
        errors.push(template.at("metadata.labels").invalid(MISSED));
    }
    pod::check_template(&template, errors);
    check_always_restarted(&template, "ReplicationController", errors);
}

fn check_deployment(spec: &Field<'_>, errors: &mut Errors) {
    spec.at("replicas").check_non_negative(errors);
    check_strict_selector(spec, "deployment", "invalid label selector", errors);
    check_deployment_strategy(&spec.at("strategy"), errors);
    spec.at("minReadySeconds").check_non_negative(errors);
    spec.at("revisionHistoryLimit").check_non_negative(errors);
    let deadline = spec.at("progressDeadlineSeconds");
    deadline.check_non_negative(errors);
    let settle = spec.at("minReadySeconds").number().unwrap_or(0);
    if deadline.number().is_some_and(|deadline| deadline <= settle) {
        errors.push(deadline.invalid("must be greater than minReadySeconds"));
    }
}

/// The selector is there, says something, and finds the template; then the template itself.
fn check_strict_selector(spec: &Field<'_>, kind: &str, unreadable: &str, errors: &mut Errors) {
    let (selector, template) = (spec.at("selector"), spec.at("template"));
    if !selector.is_set() {
        errors.push(selector.required(""));
    } else {
        check_selector(&selector, errors);
        if selector.at("matchLabels").is_empty() && selector.at("matchExpressions").is_empty() {
            errors.push(selector.invalid(format!("empty selector is invalid for {kind}")));
        }
    }
    if LabelSelector::from_value(selector.value).is_err() {
        return errors.push(selector.invalid(unreadable));
    }
    if misses(&selector, &template.value["metadata"]["labels"]) {
        errors.push(template.at("metadata.labels").invalid(MISSED));
    }
    if kind == "deployment" {
        pod::check_template(&template, errors);
        check_always_restarted(&template, "ReplicaSet", errors);
    }
}

fn check_always_restarted(template: &Field<'_>, kind: &str, errors: &mut Errors) {
    let policy = template.at("spec.restartPolicy");
    if policy.text() != "Always" {
        errors.push(policy.not_supported(&["Always"]));
    }
    let deadline = template.at("spec.activeDeadlineSeconds");
    if deadline.is_set() {
        errors.push(deadline.forbidden(format!("activeDeadlineSeconds in {kind} is not Supported")));
    }
}

fn check_deployment_strategy(strategy: &Field<'_>, errors: &mut Errors) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "Recreate" if rolling.is_set() => {
            errors.push(rolling.forbidden("may not be specified when strategy `type` is 'Recreate'"));
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            check_amount(&unavailable, errors);
            check_amount(&surge, errors);
            if amount(&unavailable) == 0 && amount(&surge) == 0 {
                errors.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
            }
            check_at_most_all(&unavailable, errors);
        }
        _ => errors.push(FieldError::not_supported(
            strategy.path.clone(),
            strategy_value(strategy),
            &["Recreate", "RollingUpdate"],
        )),
    }
}

/// Kubernetes prints its internal form of the strategy here.
fn strategy_value(strategy: &Field<'_>) -> Value {
    json!({ "Type": strategy.at("type").value, "RollingUpdate": strategy.at("rollingUpdate").value })
}

fn check_daemon_set(spec: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let (selector, template) = (spec.at("selector"), spec.at("template"));
    if let Some(old) = old {
        selector.check_immutable(&old["spec"]["selector"], errors);
    }
    check_selector(&selector, errors);
    if misses(&selector, &template.value["metadata"]["labels"]) {
        errors.push(template.at("metadata.labels").invalid(MISSED));
    }
    if selector.is_set()
        && selector.at("matchLabels").is_empty()
        && selector.at("matchExpressions").is_empty()
    {
        errors.push(selector.invalid("empty selector is invalid for daemonset"));
    }
    pod::check_template(&template, errors);
    check_always_restarted(&template, "DaemonSet", errors);
    spec.at("minReadySeconds").check_non_negative(errors);
    check_daemon_strategy(&spec.at("updateStrategy"), errors);
    spec.at("revisionHistoryLimit").check_non_negative(errors);
}

fn check_daemon_strategy(strategy: &Field<'_>, errors: &mut Errors) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            check_amount(&unavailable, errors);
            check_at_most_all(&unavailable, errors);
            check_amount(&surge, errors);
            check_at_most_all(&surge, errors);
            match (amount(&unavailable), amount(&surge)) {
                (0, 0) => errors.push(unavailable.required("cannot be 0 when maxSurge is 0")),
                (1.., 1..) => errors.push(surge.invalid("may not be set when maxUnavailable is non-zero")),
                _ => {}
            }
        }
        _ => errors.push(FieldError::not_supported(
            strategy.path.clone(),
            strategy_value(strategy),
            &["RollingUpdate", "OnDelete"],
        )),
    }
}

const STATEFUL_SET_FROZEN: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
     'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
     'minReadySeconds' are forbidden";
const STATEFUL_SET_FREE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

fn check_stateful_set(spec: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let policy = spec.at("podManagementPolicy");
    if !matches!(policy.text(), "OrderedReady" | "Parallel") {
        errors.push(policy.invalid("must be 'OrderedReady' or 'Parallel'"));
    }
    check_stateful_strategy(&spec.at("updateStrategy"), errors);
    for moment in ["whenDeleted", "whenScaled"] {
        let retention = spec.at(&format!("persistentVolumeClaimRetentionPolicy.{moment}"));
        retention.check_one_of(&["Retain", "Delete"], errors);
    }
    spec.at("replicas").check_non_negative(errors);
    spec.at("minReadySeconds").check_non_negative(errors);
    spec.at("ordinals.start").check_non_negative(errors);
    if old.is_none() {
        spec.at("serviceName").check_optional_name(names::dns_label, errors);
    }
    check_strict_selector(spec, "statefulset", "", errors);
    let template = spec.at("template");
    let claims: Vec<&str> =
        spec.items("volumeClaimTemplates").iter().map(|claim| claim.at("metadata.name").text()).collect();
    pod::check_template_with_volumes(&template, &claims, errors);
    check_always_restarted(&template, "StatefulSet", errors);
    let Some(old) = old else { return };
    let frozen = |spec: &Value| -> Value {
        let fields = spec.as_object().into_iter().flatten();
        let frozen = fields.filter(|(field, _)| !STATEFUL_SET_FREE.contains(&field.as_str()));
        frozen.map(|(field, value)| (field.clone(), value.clone())).collect()
    };
    if !same(&frozen(spec.value), &frozen(&old["spec"])) {
        errors.push(spec.forbidden(STATEFUL_SET_FROZEN));
    }
}

fn check_stateful_strategy(strategy: &Field<'_>, errors: &mut Errors) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "OnDelete" if rolling.is_set() => {
            let printed = json!({ "Partition": rolling.at("partition").value, "MaxUnavailable": rolling.at("maxUnavailable").value });
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(FieldError::invalid(rolling.path.clone(), printed, detail));
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            rolling.at("partition").check_non_negative(errors);
            let unavailable = rolling.at("maxUnavailable");
            if unavailable.is_set() {
                check_amount(&unavailable, errors);
                if amount(&unavailable) == 0 {
                    errors.push(unavailable.invalid("cannot be 0"));
                }
                check_at_most_all(&unavailable, errors);
            }
        }
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(FieldError::invalid(strategy.path.clone(), strategy_value(strategy), detail));
        }
    }
}
