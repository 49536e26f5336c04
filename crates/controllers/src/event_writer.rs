//! Writes the Events that were recorded.

use api::Time;
use serde_json::{Value, json};

use crate::ctx::Ctx;
use crate::events::{Event, EventKey, Regarding};
use crate::rest::{Collection, Error};
use crate::runtime::Action;

/// Writes one Event, or raises its count. A server that does not want it is no reason to try again.
pub async fn reconcile(ctx: &Ctx, key: &EventKey) -> Result<Action, Error> {
    let Some((event, count)) = ctx.events.take(key) else { return Ok(Action::AwaitChange) };
    match write(ctx, key, &event, count).await {
        Ok(()) => Ok(Action::AwaitChange),
        Err(error @ Error::Conflict { .. }) => {
            ctx.events.put_back(key, event, count);
            Err(error)
        }
        Err(error) => {
            tracing::debug!(%error, reason = event.reason, "an event is dropped");
            Ok(Action::AwaitChange)
        }
    }
}

async fn write(ctx: &Ctx, key: &EventKey, event: &Event, count: u64) -> Result<(), Error> {
    let collection = Collection::new("v1", "events", &key.namespace);
    let path = collection.object(&key.name);
    let now = Time::from((ctx.now)());
    if count == 0 && ctx.control.get::<Value>(&path).await?.is_some() {
        return Ok(());
    }
    let known = ctx.events.is_known(key);
    let found = if known { ctx.control.get::<Value>(&path).await? } else { None };
    let found = match found {
        Some(found) => found,
        // Most events are new, so it is created without reading it first.
        None => match ctx.control.create(&collection, &manifest(key, event, count.max(1), now)).await {
            Err(Error::Conflict { .. }) => ctx.control.fetch::<Value>(&path).await?,
            created => return created.map(|_| ctx.events.note_written(key)),
        },
    };
    ctx.events.note_written(key);
    let patch = json!({
        "metadata": { "resourceVersion": found["metadata"]["resourceVersion"] },
        "message": event.message,
        "count": found["count"].as_u64().unwrap_or(0).saturating_add(count),
        "lastTimestamp": now,
    });
    ctx.control.merge(&path, &patch).await.map(drop)
}

fn manifest(key: &EventKey, event: &Event, count: u64, now: Time) -> Value {
    let Regarding { api_version, kind, namespace, name, uid } = &event.regarding;
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "namespace": key.namespace, "name": key.name },
        "involvedObject": {
            "apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name, "uid": uid,
        },
        "type": event.event_type.as_str(),
        "reason": event.reason,
        "message": event.message,
        "source": { "component": event.component },
        "reportingComponent": event.component,
        "reportingInstance": "",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": count,
    })
}
