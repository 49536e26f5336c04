//! How does a Job fare that runs in several members? It is done when it is done everywhere.

use api::Time;
use api::binding::AggregatedStatusItem;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{moment, statuses, sum};
use crate::fields::{at, list, text};

/// The status of a Job's template; none once the Job is finished, for a finished Job never changes.
pub(super) fn aggregate(template: &Value, items: &[AggregatedStatusItem], now: Timestamp) -> Option<Value> {
    let old = at(template, &["status"]).cloned().unwrap_or(json!({}));
    if has(&old, "Complete") || has(&old, "Failed") {
        return None;
    }
    let mut status = Map::new();
    for field in ["active", "succeeded", "failed"] {
        let sum = sum(items, field);
        if sum != 0 {
            status.insert(field.to_owned(), sum.into());
        }
    }
    let conditions = conditions(items, now);
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), conditions.into());
    }
    let start = at(&old, &["startTime"]).cloned().or_else(|| {
        let earliest = times(items, "startTime")?.into_iter().min_by_key(|time| moment(time))?;
        Some(earliest.into())
    });
    let completion =
        times(items, "completionTime").and_then(|all| all.into_iter().max_by_key(|time| moment(time)));
    for (field, time) in [("startTime", start), ("completionTime", completion.map(Value::from))] {
        if let Some(time) = time {
            status.insert(field.to_owned(), time);
        }
    }
    Some(Value::Object(status))
}

fn conditions(items: &[AggregatedStatusItem], now: Timestamp) -> Vec<Value> {
    let in_status = |item: &AggregatedStatusItem, kind: &str| {
        item.status.as_ref().is_some_and(|status| has(status, kind))
    };
    let everywhere = |kind: &str| !items.is_empty() && items.iter().all(|item| in_status(item, kind));
    let failed: Vec<&str> = items
        .iter()
        .filter(|item| in_status(item, "Failed"))
        .map(|item| item.cluster_name.as_str())
        .collect();
    let mut conditions = Vec::new();
    if !failed.is_empty() {
        let message = format!("Job executed failed in member clusters {}", failed.join(","));
        conditions.push(condition("Failed", "JobFailed", &message, now));
    }
    if everywhere("Complete") {
        conditions.push(condition("Complete", "Completed", "Job completed", now));
        if everywhere("SuccessCriteriaMet") {
            let message = "All member clusters have met success criteria";
            conditions.push(condition("SuccessCriteriaMet", "CompletionsReached", message, now));
        }
    }
    conditions
}

/// The times of all members; none unless each of them has one.
fn times<'a>(items: &'a [AggregatedStatusItem], field: &str) -> Option<Vec<&'a str>> {
    let told: Vec<&str> =
        statuses(items).map(|status| text(status, &[field])).filter(|time| !time.is_empty()).collect();
    (told.len() == items.len()).then_some(told)
}

fn has(status: &Value, kind: &str) -> bool {
    list(status, &["conditions"])
        .iter()
        .any(|condition| text(condition, &["type"]) == kind && text(condition, &["status"]) == "True")
}

fn condition(kind: &str, reason: &str, message: &str, now: Timestamp) -> Value {
    let now = Time::from(now).to_string();
    json!({
        "type": kind, "status": "True", "reason": reason, "message": message,
        "lastProbeTime": now, "lastTransitionTime": now,
    })
}
