//! Rows of the kinds that run Pods. Must not know about Pods' own status.

use serde_json::Value;

use super::age::{human_duration, read};
use super::object::{NONE, Object, joined, text};
use apimachinery::selector::LabelSelector;

pub(super) fn deployment(object: &Object<'_>) -> Vec<Value> {
    let selector = match LabelSelector::from_value(object.at("spec.selector")) {
        Ok(selector) => selector.to_string(),
        Err(_) => String::from("<invalid>"),
    };
    let [containers, images] = containers(object.list("spec.template.spec.containers"));
    vec![
        object.name().into(),
        ready(object).into(),
        object.integer("status.updatedReplicas").into(),
        object.integer("status.availableReplicas").into(),
        object.age().into(),
        containers,
        images,
        selector.into(),
    ]
}

pub(super) fn replica_set(object: &Object<'_>) -> Vec<Value> {
    replicas(object, object.selector("spec.selector"))
}

pub(super) fn replication_controller(object: &Object<'_>) -> Vec<Value> {
    replicas(object, object.labels("spec.selector"))
}

fn replicas(object: &Object<'_>, selector: String) -> Vec<Value> {
    let [containers, images] = containers(object.list("spec.template.spec.containers"));
    vec![
        object.name().into(),
        object.integer("spec.replicas").into(),
        object.integer("status.replicas").into(),
        object.integer("status.readyReplicas").into(),
        object.age().into(),
        containers,
        images,
        selector.into(),
    ]
}

pub(super) fn stateful_set(object: &Object<'_>) -> Vec<Value> {
    let [containers, images] = containers(object.list("spec.template.spec.containers"));
    vec![object.name().into(), ready(object).into(), object.age().into(), containers, images]
}

pub(super) fn daemon_set(object: &Object<'_>) -> Vec<Value> {
    let [containers, images] = containers(object.list("spec.template.spec.containers"));
    vec![
        object.name().into(),
        object.integer("status.desiredNumberScheduled").into(),
        object.integer("status.currentNumberScheduled").into(),
        object.integer("status.numberReady").into(),
        object.integer("status.updatedNumberScheduled").into(),
        object.integer("status.numberAvailable").into(),
        object.labels("spec.template.spec.nodeSelector").into(),
        object.age().into(),
        containers,
        images,
        object.selector("spec.selector").into(),
    ]
}

pub(super) fn job(object: &Object<'_>) -> Vec<Value> {
    let [containers, images] = containers(object.list("spec.template.spec.containers"));
    vec![
        object.name().into(),
        job_status(object).into(),
        completions(object).into(),
        job_duration(object).into(),
        object.age().into(),
        containers,
        images,
        object.selector("spec.selector").into(),
    ]
}

fn job_status(job: &Object<'_>) -> &'static str {
    let is = |kind: &str| job.condition(kind) == "True";
    match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if job.is_being_deleted() => "Terminating",
        () if is("Suspended") => "Suspended",
        () if is("FailureTarget") => "FailureTarget",
        () if is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(job: &Object<'_>) -> String {
    let succeeded = job.integer("status.succeeded");
    match (job.at("spec.completions").as_i64(), job.integer("spec.parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(job: &Object<'_>) -> String {
    let Some(start) = read(job.at("status.startTime")) else { return String::new() };
    let end = read(job.at("status.completionTime")).unwrap_or(job.now);
    human_duration(end.duration_since(start).as_secs())
}

pub(super) fn cron_job(object: &Object<'_>) -> Vec<Value> {
    let last = match object.at("status.lastScheduleTime") {
        Value::Null => NONE.to_owned(),
        _ => object.since("status.lastScheduleTime"),
    };
    let suspended = match object.at("spec.suspend").as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let [containers, images] = containers(object.list("spec.jobTemplate.spec.template.spec.containers"));
    vec![
        object.name().into(),
        object.text("spec.schedule").into(),
        object.at("spec.timeZone").as_str().unwrap_or(NONE).into(),
        suspended.into(),
        object.list("status.active").len().into(),
        last.into(),
        object.age().into(),
        containers,
        images,
        object.selector("spec.jobTemplate.spec.selector").into(),
    ]
}

pub(super) fn pod_template(object: &Object<'_>) -> Vec<Value> {
    let [containers, images] = containers(object.list("template.spec.containers"));
    vec![object.name().into(), containers, images, object.labels("template.metadata.labels").into()]
}

pub(super) fn controller_revision(object: &Object<'_>) -> Vec<Value> {
    let owner = object.list("metadata.ownerReferences").iter().find(|owner| owner["controller"] == true);
    let controller = owner.map_or_else(
        || NONE.to_owned(),
        |owner| {
            let group =
                text(owner, "apiVersion").rsplit_once('/').map(|(group, _)| group).unwrap_or_default();
            let kind = joined([text(owner, "kind"), group].into_iter().filter(|part| !part.is_empty()), ".");
            format!("{}/{}", kind.to_lowercase(), text(owner, "name"))
        },
    );
    vec![object.name().into(), controller.into(), object.integer("revision").into(), object.age().into()]
}

fn ready(object: &Object<'_>) -> String {
    format!("{}/{}", object.integer("status.readyReplicas"), object.integer("spec.replicas"))
}

/// The names and the images of containers, each on one line.
fn containers(containers: &[Value]) -> [Value; 2] {
    ["name", "image"]
        .map(|field| joined(containers.iter().map(|container| text(container, field)), ",").into())
}

pub(super) fn pod_disruption_budget(object: &Object<'_>) -> Vec<Value> {
    let bound = |path: &str| match object.at(path) {
        Value::Null => Value::from("N/A"),
        Value::String(text) => text.as_str().into(),
        number => number.to_string().into(),
    };
    vec![
        object.name().into(),
        bound("spec.minAvailable"),
        bound("spec.maxUnavailable"),
        object.integer("status.disruptionsAllowed").into(),
        object.age().into(),
    ]
}
