//! The row of a Pod: its STATUS is put together from phase, conditions and every container.
//! Must not know about tables beyond its own cells.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;
use super::object::{NONE, Object, at, integer, list, text};

/// What the containers of a Pod add up to.
#[derive(Default)]
struct Summary {
    ready: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
    status: String,
}

pub(super) fn cells(pod: &Object<'_>) -> Vec<Value> {
    let summary = summary(pod);
    let total = pod.list("spec.containers").len() + sidecars(pod).count();
    let restarts = match summary.last_restart {
        Some(then) if summary.restarts != 0 => {
            let ago = age::human_duration(pod.now.duration_since(then).as_secs());
            format!("{} ({ago} ago)", summary.restarts)
        }
        _ => summary.restarts.to_string(),
    };
    let address = pod.list("status.podIPs").first().map(|address| text(address, "ip")).unwrap_or_default();
    vec![
        pod.name().into(),
        format!("{}/{total}", summary.ready).into(),
        summary.status.into(),
        restarts.into(),
        pod.age().into(),
        super::object::or(address, NONE).into(),
        pod.text_or_none("spec.nodeName").into(),
        pod.text_or_none("status.nominatedNodeName").into(),
        readiness_gates(pod).into(),
    ]
}

pub(super) fn conditions(pod: &Object<'_>) -> Value {
    let (reason, message) = match pod.text("status.phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return Value::Null,
    };
    json!([{ "type": "Completed", "status": "True", "reason": reason, "message": message }])
}

fn summary(pod: &Object<'_>) -> Summary {
    let mut summary = Summary { status: initial_status(pod).to_owned(), ..Summary::default() };
    let initializing = add_init_containers(pod, &mut summary);
    if !initializing || pod.condition("Initialized") == "True" {
        // Init containers that ended no longer count; sidecars keep running and do.
        let ready = summary.ready;
        summary = Summary { ready, status: summary.status, ..Summary::default() };
        for status in pod.list("status.initContainerStatuses") {
            if is_sidecar(pod, status) {
                add_restarts(status, &mut summary);
            }
        }
        add_containers(pod, &mut summary);
    }
    if pod.is_being_deleted() {
        let ended = matches!(pod.text("status.phase"), "Succeeded" | "Failed");
        match pod.text("status.reason") {
            "NodeLost" => summary.status = String::from("Unknown"),
            _ if !ended => summary.status = String::from("Terminating"),
            _ => {}
        }
    }
    summary
}

fn initial_status<'a>(pod: &Object<'a>) -> &'a str {
    let gated = pod.list("status.conditions").iter().any(|condition| {
        text(condition, "type") == "PodScheduled" && text(condition, "reason") == "SchedulingGated"
    });
    match pod.text("status.reason") {
        _ if gated => "SchedulingGated",
        "" => pod.text("status.phase"),
        reason => reason,
    }
}

/// Goes through the init containers up to the one that is not done; says whether there is one.
fn add_init_containers(pod: &Object<'_>, summary: &mut Summary) -> bool {
    for (index, status) in pod.list("status.initContainerStatuses").iter().enumerate() {
        add_restarts(status, summary);
        let terminated = at(status, "state.terminated");
        if terminated.is_object() && integer(terminated, "exitCode") == 0 {
            continue;
        }
        if is_sidecar(pod, status) && at(status, "started") == true {
            summary.ready += usize::from(at(status, "ready") == true);
            continue;
        }
        summary.status = match text(status, "state.waiting.reason") {
            _ if terminated.is_object() => format!("Init:{}", termination(terminated)),
            "" | "PodInitializing" => format!("Init:{index}/{}", pod.list("spec.initContainers").len()),
            reason => format!("Init:{reason}"),
        };
        return true;
    }
    false
}

fn add_containers(pod: &Object<'_>, summary: &mut Summary) {
    let (mut running, mut failure) = (false, None);
    for status in pod.list("status.containerStatuses").iter().rev() {
        add_restarts(status, summary);
        let terminated = at(status, "state.terminated");
        let waiting = text(status, "state.waiting.reason");
        if !waiting.is_empty() {
            summary.status = waiting.to_owned();
        } else if terminated.is_object() {
            summary.status = termination(terminated);
            if integer(terminated, "exitCode") != 0 {
                failure = Some(summary.status.clone());
            }
        } else if at(status, "ready") == true && at(status, "state.running").is_object() {
            running = true;
            summary.ready += 1;
        }
    }
    // One finished container does not end a Pod while another still runs.
    if summary.status == "Completed" {
        match failure {
            _ if running && pod.condition("Ready") == "True" => summary.status = String::from("Running"),
            Some(failure) => summary.status = failure,
            None if running => summary.status = String::from("NotReady"),
            None => {}
        }
    }
}

fn add_restarts(status: &Value, summary: &mut Summary) {
    summary.restarts += integer(status, "restartCount");
    let finished = age::read(at(status, "lastState.terminated.finishedAt"));
    summary.last_restart = summary.last_restart.max(finished);
}

fn termination(terminated: &Value) -> String {
    match (text(terminated, "reason"), integer(terminated, "signal")) {
        ("", 0) => format!("ExitCode:{}", integer(terminated, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// Init containers that restart always keep running beside the others.
fn sidecars<'a>(pod: &Object<'a>) -> impl Iterator<Item = &'a Value> {
    pod.list("spec.initContainers").iter().filter(|container| text(container, "restartPolicy") == "Always")
}

fn is_sidecar(pod: &Object<'_>, status: &Value) -> bool {
    sidecars(pod).any(|container| text(container, "name") == text(status, "name"))
}

fn readiness_gates(pod: &Object<'_>) -> String {
    let gates = pod.list("spec.readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open = gates.iter().filter(|gate| {
        let first = list(pod.at("status"), "conditions")
            .iter()
            .find(|condition| text(condition, "type") == text(gate, "conditionType"));
        first.is_some_and(|condition| text(condition, "status") == "True")
    });
    format!("{}/{}", open.count(), gates.len())
}
