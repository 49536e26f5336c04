//! Rules of Jobs and CronJobs. Must not know what stands in a template.

use serde_json::Value;

use super::field::{Errors, Field, check_selector, misses, same};
use super::{pod, schedule};
use apimachinery::error::FieldError;

const PARALLELISM_MAX: i64 = 100_000;

pub(super) fn check(kind: &str, object: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    match kind {
        "Job" => check_job(object, old, errors),
        "CronJob" => check_cron_job(object, errors),
        _ => {}
    }
}

fn check_job(job: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let spec = job.at("spec");
    if spec.at("manualSelector").value != &Value::Bool(true) {
        check_generated_selector(job, errors);
    }
    check_job_spec(&spec, errors);
    let selector = spec.at("selector");
    if !selector.is_set() {
        errors.push(selector.required(""));
    }
    check_selector(&selector, errors);
    if misses(&selector, &spec.value["template"]["metadata"]["labels"]) {
        let labels = spec.at("template.metadata.labels");
        errors.push(labels.invalid("`selector` does not match template `labels`"));
    }
    if let Some(old) = old {
        check_job_update(&spec, &old["spec"], errors);
    }
}

fn check_generated_selector(job: &Field<'_>, errors: &mut Errors) {
    let selector = job.at("spec.selector");
    let uid = &job.at("spec.template.metadata.labels").value["batch.kubernetes.io/controller-uid"];
    let own = serde_json::json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": uid } });
    if selector.is_set() && !same(selector.value, &own) {
        errors.push(selector.invalid("`selector` not auto-generated"));
    }
}

fn check_job_spec(spec: &Field<'_>, errors: &mut Errors) {
    let numbers = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    numbers.iter().for_each(|number| spec.at(number).check_non_negative(errors));
    let (mode, parallelism) = (spec.at("completionMode"), spec.at("parallelism"));
    mode.check_one_of(&["NonIndexed", "Indexed"], errors);
    match mode.text() {
        "Indexed" => {
            if !spec.at("completions").is_set() {
                errors.push(spec.at("completions").required("when completion mode is Indexed"));
            }
            if parallelism.number().is_some_and(|number| number > PARALLELISM_MAX) {
                errors.push(parallelism.invalid(format!(
                    "must be less than or equal to {PARALLELISM_MAX} when completion mode is Indexed"
                )));
            }
        }
        "NonIndexed" => {
            for field in ["backoffLimitPerIndex", "maxFailedIndexes"].map(|field| spec.at(field)) {
                if field.is_set() {
                    errors.push(field.invalid("requires indexed completion mode"));
                }
            }
        }
        _ => {}
    }
    spec.at("podReplacementPolicy").check_one_of(&["Failed", "TerminatingOrFailed"], errors);
    pod::check_template(&spec.at("template"), errors);
    check_restarts(spec, errors);
}

fn check_restarts(spec: &Field<'_>, errors: &mut Errors) {
    let policy = spec.at("template.spec.restartPolicy");
    match policy.text() {
        "" | "Always" => errors.push(policy.required("valid values: \"OnFailure\", \"Never\"")),
        "Never" => {}
        "OnFailure" if spec.at("podFailurePolicy").is_set() => {
            errors.push(policy.invalid("only \"Never\" is supported when podFailurePolicy is specified"));
        }
        "OnFailure" => {}
        _ => errors.push(policy.not_supported(&["OnFailure", "Never"])),
    }
}

/// What a Job runs is fixed, except where nothing has run yet: a suspended Job may still be placed.
fn check_job_update(spec: &Field<'_>, old: &Value, errors: &mut Errors) {
    let indexed_and_elastic = spec.at("completionMode").text() == "Indexed"
        && spec.at("completions").value == spec.at("parallelism").value
        && old["completions"] == old["parallelism"];
    if !indexed_and_elastic {
        spec.at("completions").check_immutable(&old["completions"], errors);
    }
    spec.at("selector").check_immutable(&old["selector"], errors);
    let (template, before) = (spec.at("template"), &old["template"]);
    let is_suspended = old["suspend"] == true;
    if !same(&placed(template.value, is_suspended), &placed(before, is_suspended)) {
        errors.push(template.invalid("field is immutable"));
    }
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        spec.at(field).check_immutable(&old[field], errors);
    }
}

/// A template without what decides where its Pods go, where that may still change.
fn placed(template: &Value, is_suspended: bool) -> Value {
    let mut rest = template.clone();
    if !is_suspended {
        return rest;
    }
    let (placement, marks) =
        (["nodeSelector", "affinity", "tolerations", "schedulingGates"], ["labels", "annotations"]);
    if let Some(spec) = rest.get_mut("spec").and_then(Value::as_object_mut) {
        placement.iter().for_each(|field| drop(spec.remove(*field)));
    }
    if let Some(metadata) = rest.get_mut("metadata").and_then(Value::as_object_mut) {
        marks.iter().for_each(|field| drop(metadata.remove(*field)));
    }
    rest
}

fn check_cron_job(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let when = spec.at("schedule");
    if when.is_empty() {
        errors.push(when.required(""));
    } else if when.text().contains("TZ") {
        errors.push(when.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
    } else if let Err(why) = schedule::check(when.text()) {
        errors.push(when.invalid(why));
    }
    spec.at("startingDeadlineSeconds").check_non_negative(errors);
    let zone = spec.at("timeZone");
    if zone.is_set() && zone.is_empty() {
        errors.push(zone.invalid("timeZone must be nil or non-empty string"));
    } else if zone.text().eq_ignore_ascii_case("local") {
        errors.push(
            zone.invalid(
                "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
            ),
        );
    }
    spec.at("concurrencyPolicy").check_one_of(&["Allow", "Forbid", "Replace"], errors);
    let template = spec.at("jobTemplate.spec");
    check_job_spec(&template, errors);
    if template.at("manualSelector").value == &Value::Bool(true) {
        let place = template.at("manualSelector");
        errors.push(FieldError::not_supported(place.path.clone(), true, &["nil", "false"]));
    }
    spec.at("successfulJobsHistoryLimit").check_non_negative(errors);
    spec.at("failedJobsHistoryLimit").check_non_negative(errors);
}
