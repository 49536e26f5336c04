//! The row of an Event, read through either of its two groups. Must not know what events are about.

use serde_json::Value;

use super::object::{Object, joined, or};

pub(super) fn event(object: &Object<'_>) -> Vec<Value> {
    let first_seen = ["firstTimestamp", "deprecatedFirstTimestamp", "eventTime"]
        .into_iter()
        .find(|path| object.at(path).is_string())
        .map_or_else(|| String::from("<unknown>"), |path| object.since(path));
    let last = ["series.lastObservedTime", "lastTimestamp", "deprecatedLastTimestamp"];
    let last_seen = last.into_iter().find(|path| object.at(path).is_string()).map(|path| object.since(path));
    let has_series = object.at("series").is_object();
    let count = ["series.count", "count", "deprecatedCount"]
        .into_iter()
        .map(|path| object.integer(path))
        .find(|count| *count != 0);
    let either = |one: &str, other: &str| or(object.text(one), object.text(other)).to_owned();
    let kind = either("involvedObject.kind", "regarding.kind").to_lowercase();
    let name = either("involvedObject.name", "regarding.name");
    let target = joined([kind.as_str(), name.as_str()].into_iter().filter(|part| !part.is_empty()), "/");
    vec![
        last_seen.unwrap_or_else(|| first_seen.clone()).into(),
        object.text("type").into(),
        object.text("reason").into(),
        target.into(),
        either("involvedObject.fieldPath", "regarding.fieldPath").into(),
        event_source(object).into(),
        either("message", "note").trim().into(),
        first_seen.into(),
        count.unwrap_or(i64::from(!has_series)).into(),
        object.name().into(),
    ]
}

fn event_source(event: &Object<'_>) -> String {
    let first = |paths: &[&str]| paths.iter().map(|path| event.text(path)).find(|text| !text.is_empty());
    let component =
        ["source.component", "deprecatedSource.component", "reportingComponent", "reportingController"];
    let host = ["source.host", "deprecatedSource.host", "reportingInstance"];
    match (first(&component).unwrap_or_default(), first(&host)) {
        (component, None) => component.to_owned(),
        (component, Some(host)) => format!("{component}, {host}"),
    }
}
