//! The aggregated status of a Job in several members: it is complete when it is complete in all of them.

use api::Time;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Told, moment, statuses, sum};
use crate::fields::{at, integer, list, text};

/// The status of a Job's template; none once it is complete, for then nothing changes any more. A Job has failed as
/// soon as it failed in one member; what happens in the others is counted still, so that it does not matter who was
/// first. Kubernetes wants a finished Job to have begun, to have nothing active, and to say beforehand that it fails.
pub(super) fn aggregate(template: &Value, items: &[Told<'_>], now: Timestamp) -> Option<Value> {
    let old = at(template, &["status"]).cloned().unwrap_or(json!({}));
    if has(&old, "Complete") {
        return None;
    }
    let conditions = conditions(&old, items, now);
    let failed = conditions.iter().any(|condition| text(condition, &["type"]) == "Failed");
    let mut status = Map::new();
    for field in ["active", "succeeded", "failed"] {
        let sum = match (failed, field) {
            (true, "active") => 0,
            (true, _) => sum(items, field).max(integer(&old, &[field]).unwrap_or(0)),
            (false, _) => sum(items, field),
        };
        if sum != 0 {
            status.insert(field.to_owned(), sum.into());
        }
    }
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), conditions.into());
    }
    let start = at(&old, &["startTime"]).cloned().or_else(|| {
        let told = times(items, "startTime");
        let earliest = told.iter().min_by_key(|time| moment(time))?;
        (failed || told.len() == items.len()).then(|| (*earliest).into())
    });
    let told = times(items, "completionTime");
    let completion = told.iter().max_by_key(|time| moment(time)).filter(|_| told.len() == items.len());
    for (field, time) in [("startTime", start), ("completionTime", completion.map(|time| (*time).into()))] {
        if let Some(time) = time {
            status.insert(field.to_owned(), time);
        }
    }
    Some(Value::Object(status))
}

fn conditions(old: &Value, items: &[Told<'_>], now: Timestamp) -> Vec<Value> {
    let in_status =
        |item: &Told<'_>, kind: &str| item.status.as_ref().is_some_and(|status| has(status, kind));
    let everywhere = |kind: &str| !items.is_empty() && items.iter().all(|item| in_status(item, kind));
    let failed: Vec<&str> =
        items.iter().filter(|item| in_status(item, "Failed")).map(|item| item.cluster_name).collect();
    if !failed.is_empty() {
        let message = format!("Job executed failed in member clusters {}", failed.join(","));
        return ["FailureTarget", "Failed"]
            .map(|kind| condition(old, kind, "JobFailed", &message, now))
            .into();
    }
    // The member in which it failed may have been left since; what has failed has failed.
    if has(old, "Failed") {
        return list(old, &["conditions"]).to_vec();
    }
    let mut conditions = Vec::new();
    if everywhere("Complete") {
        conditions.push(condition(old, "Complete", "Completed", "Job completed", now));
        if everywhere("SuccessCriteriaMet") {
            let message = "All member clusters have met success criteria";
            conditions.push(condition(old, "SuccessCriteriaMet", "CompletionsReached", message, now));
        }
    }
    conditions
}

/// The times that members tell.
fn times<'a>(items: &'a [Told<'_>], field: &str) -> Vec<&'a str> {
    statuses(items).map(|status| text(status, &[field])).filter(|time| !time.is_empty()).collect()
}

fn has(status: &Value, kind: &str) -> bool {
    holding(status, kind).is_some()
}

fn holding<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    let is =
        |condition: &&Value| text(condition, &["type"]) == kind && text(condition, &["status"]) == "True";
    list(status, &["conditions"]).iter().find(is)
}

/// A condition that holds now, since when it holds.
fn condition(old: &Value, kind: &str, reason: &str, message: &str, now: Timestamp) -> Value {
    let since = match holding(old, kind).map(|before| text(before, &["lastTransitionTime"])) {
        Some(time) if !time.is_empty() => time.to_owned(),
        _ => Time::from(now).to_string(),
    };
    json!({
        "type": kind, "status": "True", "reason": reason, "message": message,
        "lastProbeTime": since, "lastTransitionTime": since,
    })
}
