//! AggregateStatus of the built-in kinds: the template's status from the members' statuses, behaviour.md 6.9.

mod deployment;
mod job;

use api::Text;
use api::binding::AggregatedStatusItem;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Kind;
use crate::fields::{at, integer, list, pairs, text};

/// The template's new status; none if it stays as it is.
pub fn aggregate(template: &Value, items: &[AggregatedStatusItem], now: Timestamp) -> Option<Value> {
    let items = &items.iter().map(Told::from).collect::<Vec<_>>()[..];
    let new = match Kind::of(template)? {
        Kind::Deployment => deployment::aggregate(template, items, now),
        Kind::ReplicaSet => counters(template, items, &REPLICA_SET),
        Kind::StatefulSet => counters(template, items, &STATEFUL_SET),
        Kind::DaemonSet => counters(template, items, &DAEMON_SET),
        Kind::Service if text(template, &["spec", "type"]) != "LoadBalancer" => return None,
        Kind::Service | Kind::Ingress => addresses(items),
        Kind::Job => job::aggregate(template, items, now)?,
        Kind::CronJob => cron_job(template, items),
        Kind::Pod => pod(items)?,
        Kind::PersistentVolume => phase(items, &["Failed", "Pending", "Available", "Bound", "Released"])?,
        Kind::PersistentVolumeClaim => claim(items),
        Kind::PodDisruptionBudget => disruption_budget(items),
        Kind::HorizontalPodAutoscaler => sums(items, &["currentReplicas", "desiredReplicas"]),
        Kind::ServiceImport => return None,
    };
    (at(template, &["status"]).unwrap_or(&json!({})) != &new).then_some(new)
}

/// The status that a member reports.
struct Told<'a> {
    cluster_name: &'a str,
    status: Option<Value>,
}

impl<'a> From<&'a AggregatedStatusItem> for Told<'a> {
    fn from(item: &'a AggregatedStatusItem) -> Self {
        Self { cluster_name: &item.cluster_name, status: item.status.as_ref().map(Text::read) }
    }
}

/// Fields that are added up; those in the second list are written even when they are 0, as Kubernetes does.
struct Counters(&'static [&'static str], &'static [&'static str]);

const DEPLOYMENT: Counters = Counters(
    &["replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "unavailableReplicas"],
    &[],
);
const REPLICA_SET: Counters = Counters(&["replicas", "readyReplicas", "availableReplicas"], &["replicas"]);
const STATEFUL_SET: Counters = Counters(
    &["availableReplicas", "currentReplicas", "readyReplicas", "replicas", "updatedReplicas"],
    &["replicas", "availableReplicas"],
);
const DAEMON_SET: Counters = Counters(
    &[
        "currentNumberScheduled",
        "desiredNumberScheduled",
        "numberAvailable",
        "numberMisscheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberUnavailable",
    ],
    &["currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"],
);

/// Adds up the counters and leaves the rest of the status alone. The template counts as observed when every
/// member has observed the manifest that came from this very generation of it.
fn counters(template: &Value, items: &[Told<'_>], Counters(fields, always): &Counters) -> Value {
    let generation = integer(template, &["metadata", "generation"]).unwrap_or(0);
    let mut status: Map<String, Value> =
        pairs(template, &["status"]).map(|(k, v)| (k.clone(), v.clone())).collect();
    for field in *fields {
        let sum = sum(items, field);
        match sum == 0 && !always.contains(field) {
            true => drop(status.remove(*field)),
            false => drop(status.insert((*field).to_owned(), sum.into())),
        }
    }
    let caught_up = |item: &Told<'_>| {
        let number =
            |field: &str| item.status.as_ref().and_then(|status| integer(status, &[field])).unwrap_or(0);
        item.status.is_some()
            && number("observedGeneration") >= number("generation")
            && number("resourceTemplateGeneration") >= generation
    };
    // No report does not mean all reports: what runs nowhere yet was observed by no member.
    if !items.is_empty() && items.iter().all(caught_up) && generation != 0 {
        status.insert("observedGeneration".to_owned(), generation.into());
    }
    Value::Object(status)
}

fn statuses<'a>(items: &'a [Told<'_>]) -> impl Iterator<Item = &'a Value> {
    items.iter().filter_map(|item| item.status.as_ref())
}

fn sum(items: &[Told<'_>], field: &str) -> i64 {
    statuses(items).filter_map(|status| integer(status, &[field])).fold(0, i64::saturating_add)
}

fn sums(items: &[Told<'_>], fields: &[&str]) -> Value {
    Value::Object(fields.iter().map(|field| ((*field).to_owned(), sum(items, field).into())).collect())
}

fn addresses(items: &[Told<'_>]) -> Value {
    let all = statuses(items).flat_map(|status| list(status, &["loadBalancer", "ingress"]));
    let mut points: Vec<Value> = all.cloned().collect();
    points.sort_by_cached_key(|point| {
        (text(point, &["ip"]).to_owned(), text(point, &["hostname"]).to_owned(), point.to_string())
    });
    points.dedup();
    match points.is_empty() {
        true => json!({"loadBalancer": {}}),
        false => json!({"loadBalancer": {"ingress": points}}),
    }
}

fn cron_job(template: &Value, items: &[Told<'_>]) -> Value {
    let mut status: Map<String, Value> =
        pairs(template, &["status"]).map(|(k, v)| (k.clone(), v.clone())).collect();
    let active: Vec<Value> = statuses(items).flat_map(|status| list(status, &["active"])).cloned().collect();
    let latest =
        |field: &str| statuses(items).map(|status| text(status, &[field])).max_by_key(|time| moment(time));
    let news = [
        ("active", (!active.is_empty()).then(|| active.into())),
        ("lastScheduleTime", latest("lastScheduleTime").filter(|time| !time.is_empty()).map(Value::from)),
        ("lastSuccessfulTime", latest("lastSuccessfulTime").filter(|time| !time.is_empty()).map(Value::from)),
    ];
    for (field, value) in news {
        match value {
            Some(value) => drop(status.insert(field.to_owned(), value)),
            None => drop(status.remove(field)),
        }
    }
    Value::Object(status)
}

fn moment(time: &str) -> Option<Timestamp> {
    time.parse().ok()
}

/// The first phase of the list that some member is in; a member without a status is `Pending`.
fn phase(items: &[Told<'_>], order: &[&str]) -> Option<Value> {
    let is_in = |item: &Told<'_>, phase: &str| match &item.status {
        Some(status) => text(status, &["phase"]) == phase,
        None => phase == "Pending",
    };
    let first = order.iter().find(|phase| items.iter().any(|item| is_in(item, phase)))?;
    Some(json!({"phase": first}))
}

fn pod(items: &[Told<'_>]) -> Option<Value> {
    let mut status = phase(items, &["Failed", "Pending", "Running", "Succeeded"])?;
    for field in ["containerStatuses", "initContainerStatuses"] {
        let containers = statuses(items).flat_map(|status| list(status, &[field]));
        let told: Vec<Value> = containers
            .map(|container| {
                let ready = container.get("ready").cloned().unwrap_or(false.into());
                let state = container.get("state").cloned().unwrap_or(json!({}));
                json!({"name": "", "ready": ready, "state": state, "restartCount": 0, "image": "", "imageID": "", "lastState": {}})
            })
            .collect();
        if !told.is_empty() {
            status[field] = told.into();
        }
    }
    Some(status)
}

fn claim(items: &[Told<'_>]) -> Value {
    let phases: Vec<&str> = statuses(items).map(|status| text(status, &["phase"])).collect();
    let lost = phases.contains(&"Lost");
    let other = phases.iter().rfind(|phase| **phase != "Bound").unwrap_or(&"Bound");
    json!({"phase": if lost { "Lost" } else { *other }})
}

fn disruption_budget(items: &[Told<'_>]) -> Value {
    let mut status = sums(items, &["currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed"]);
    let disrupted: Map<String, Value> = items
        .iter()
        .filter_map(|item| Some((item.cluster_name, item.status.as_ref()?)))
        .flat_map(|(cluster, status)| {
            pairs(status, &["disruptedPods"])
                .map(move |(pod, time)| (format!("{cluster}/{pod}"), time.clone()))
        })
        .collect();
    if !disrupted.is_empty() {
        status["disruptedPods"] = disrupted.into();
    }
    status
}
