//! A collection as it is, kept current by list and watch. Says when it is complete, so that a cold cache
//! is never taken for an empty one; a lost watch is resumed, and after 410 the collection is listed anew.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::TryStreamExt as _;
use kube::core::WatchEvent;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::rest::{Collection, Error, Rest};

/// How long to wait before a watch that broke is tried again; it doubles while listing fails, too.
const PAUSE_MIN: Duration = Duration::from_millis(200);
/// How long to wait at most.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long a page of a list may take.
const LIST_PATIENCE: Duration = Duration::from_secs(30);
/// How long a watch lives before it is opened anew.
const WATCH_SECONDS: u32 = 290;

/// What happened to one object, or to the view as a whole.
#[derive(Debug)]
pub enum Seen {
    /// The object is there, in this state.
    Is(Box<Value>),
    /// The object is gone; its namespace and name.
    Gone(String, String),
    /// Everything that was there has been told: the view is complete.
    Complete,
}

#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    items: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: String,
}

/// Tells `sink` everything that is in the collection and what becomes of it, until `stop`. `fill` adds
/// apiVersion and kind, which items of a list may lack; `selector` is a label selector, ready for a query.
pub async fn reflect(
    rest: Rest,
    collection: Collection,
    fill: (String, String),
    selector: &'static str,
    stop: CancellationToken,
    mut sink: impl FnMut(Seen) + Send,
) {
    let mut known: BTreeSet<(String, String)> = BTreeSet::new();
    let mut pause = PAUSE_MIN;
    loop {
        let mut listed = false;
        let mut sink = |seen: Seen| {
            listed |= matches!(seen, Seen::Complete);
            sink(seen);
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            broken = follow(&rest, &collection, &fill, selector, &mut known, &mut sink) => {
                tracing::debug!(%collection, error = %broken, "watch is opened anew");
            }
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        pause = if listed { PAUSE_MIN } else { pause.saturating_mul(2).min(PAUSE_MAX) };
    }
}

/// Lists, then watches until something breaks.
async fn follow(
    rest: &Rest,
    collection: &Collection,
    fill: &(String, String),
    selector: &str,
    known: &mut BTreeSet<(String, String)>,
    sink: &mut (impl FnMut(Seen) + Send),
) -> Error {
    // None while there is no revision to go on from, at first and when it is gone: listing shows what happened.
    let mut version: Option<String> = None;
    loop {
        let reached = match &version {
            None => relist(rest, collection, fill, selector, known, sink).await.map(Some),
            Some(version) => watch(rest, collection, version, selector, known, sink).await,
        };
        match reached {
            Ok(reached) => version = reached,
            Err(error) => return error,
        }
    }
}

async fn relist(
    rest: &Rest,
    collection: &Collection,
    fill: &(String, String),
    selector: &str,
    known: &mut BTreeSet<(String, String)>,
    sink: &mut (impl FnMut(Seen) + Send),
) -> Result<String, Error> {
    let mut missing = std::mem::take(known);
    let mut next = String::new();
    loop {
        let path = format!("{collection}?limit=500&labelSelector={selector}&continue={next}");
        let page: Page = tokio::time::timeout(LIST_PATIENCE, rest.fetch(&path))
            .await
            .unwrap_or_else(|_| Err(Error::TimedOut { action: format!("list {collection}") }))?;
        for mut item in page.items {
            if item.get("kind").is_none() {
                item["apiVersion"] = fill.0.as_str().into();
                item["kind"] = fill.1.as_str().into();
            }
            let place = place(&item);
            missing.remove(&place);
            known.insert(place);
            sink(Seen::Is(Box::new(item)));
        }
        next = page.metadata.next;
        if next.is_empty() {
            missing.into_iter().for_each(|(namespace, name)| sink(Seen::Gone(namespace, name)));
            sink(Seen::Complete);
            return Ok(page.metadata.resource_version);
        }
    }
}

/// Watches from a revision; answers with the revision reached when the watch ends by itself, and with none
/// when the revision is too old.
async fn watch(
    rest: &Rest,
    collection: &Collection,
    from: &str,
    selector: &str,
    known: &mut BTreeSet<(String, String)>,
    sink: &mut (impl FnMut(Seen) + Send),
) -> Result<Option<String>, Error> {
    let path = format!(
        "{collection}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}\
         &labelSelector={selector}&resourceVersion={from}"
    );
    let action = || format!("watch {collection}");
    let request = http::Request::builder().uri(path).body(Vec::new()).map_err(|error| Error::Refused {
        action: action(),
        code: 400,
        message: error.to_string(),
    })?;
    let unreachable = |source| Error::Unreachable { action: action(), source: Box::new(source) };
    let events = rest.client().request_events::<Value>(request).await.map_err(unreachable)?;
    let mut events = std::pin::pin!(events);
    let mut version = from.to_owned();
    loop {
        // The server ends a quiet watch by itself; one that does not is no longer there.
        let silence = Duration::from_secs(u64::from(WATCH_SECONDS)) + LIST_PATIENCE;
        let next = tokio::time::timeout(silence, events.try_next()).await;
        let event = next.map_err(|_| Error::TimedOut { action: action() })?.map_err(unreachable)?;
        let Some(event) = event else { return Ok(Some(version)) };
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                version = revision(&object);
                known.insert(place(&object));
                sink(Seen::Is(Box::new(object)));
            }
            WatchEvent::Deleted(object) => {
                version = revision(&object);
                let (namespace, name) = place(&object);
                known.remove(&(namespace.clone(), name.clone()));
                sink(Seen::Gone(namespace, name));
            }
            WatchEvent::Bookmark(bookmark) => version = bookmark.metadata.resource_version,
            WatchEvent::Error(status) if status.code == 410 => return Ok(None),
            WatchEvent::Error(status) => {
                return Err(Error::Refused { action: action(), code: status.code, message: status.message });
            }
        }
    }
}

fn place(object: &Value) -> (String, String) {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

fn revision(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
}
