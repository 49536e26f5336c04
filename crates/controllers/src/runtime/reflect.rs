//! A collection as it is, kept current by list and watch. Says when it is complete, so that a cold cache
//! is never taken for an empty one; a lost watch is resumed, and after 410 the collection is listed anew.

use std::collections::BTreeSet;
use std::time::Duration;

use api::{Object, Unread};
use futures::TryStreamExt as _;
use kube::core::WatchEvent;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::rest::{Collection, Error, Rest};

/// How long to wait before a watch that broke is tried again; it doubles while listing fails, too.
const PAUSE_MIN: Duration = Duration::from_millis(200);
/// How long to wait at most.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How much longer than it should a watch may be silent.
const WATCH_PATIENCE: Duration = Duration::from_secs(30);
/// How long a watch lives before it is opened anew.
const WATCH_SECONDS: u32 = 290;

/// As much of an object as somebody wants to see: reading less is cheaper.
pub trait Reflected: DeserializeOwned + Send + 'static {
    /// Namespace and name.
    fn place(&self) -> (String, String);
    /// Its resourceVersion.
    fn revision(&self) -> String;
    /// Says what it is, where the list has not.
    fn fill(&mut self, api_version: &str, kind: &str);
}

impl Reflected for Value {
    fn place(&self) -> (String, String) {
        let text = |key: &str| self["metadata"][key].as_str().unwrap_or_default().to_owned();
        (text("namespace"), text("name"))
    }

    fn revision(&self) -> String {
        self["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
    }

    fn fill(&mut self, api_version: &str, kind: &str) {
        if self.get("kind").is_none() {
            self["apiVersion"] = api_version.into();
            self["kind"] = kind.into();
        }
    }
}

impl<Spec, Status> Reflected for Object<Spec, Status>
where
    Spec: DeserializeOwned + Default + Send + 'static,
    Status: DeserializeOwned + Default + Send + 'static,
{
    fn place(&self) -> (String, String) {
        (self.metadata.namespace.clone(), self.metadata.name.clone())
    }

    fn revision(&self) -> String {
        self.metadata.resource_version.clone()
    }

    fn fill(&mut self, api_version: &str, kind: &str) {
        if self.kind.is_empty() {
            (self.api_version, self.kind) = (api_version.to_owned(), kind.to_owned());
        }
    }
}

/// Who an object is, and nothing else of it.
pub type Outline = Object<IgnoredAny, IgnoredAny>;

/// What happened to one object, or to the view as a whole.
#[derive(Debug)]
pub enum Seen<T = Value> {
    /// The object is there, in this state.
    Is(Box<T>),
    /// The object is gone; its namespace and name.
    Gone(String, String),
    /// Everything that was there has been told: the view is complete.
    Complete,
}

/// What is there, each by namespace and name in one text: there may be a great many.
#[derive(Default)]
struct Known(BTreeSet<Box<str>>);

impl Known {
    fn insert(&mut self, (namespace, name): &(String, String)) {
        self.0.insert(Self::text(namespace, name));
    }

    fn remove(&mut self, (namespace, name): &(String, String)) {
        self.0.remove(&Self::text(namespace, name));
    }

    /// Namespaces have no slash in their name.
    fn text(namespace: &str, name: &str) -> Box<str> {
        format!("{namespace}/{name}").into()
    }

    fn into_places(self) -> impl Iterator<Item = (String, String)> {
        let split = |text: Box<str>| {
            let (namespace, name) = text.split_once('/')?;
            Some((namespace.to_owned(), name.to_owned()))
        };
        self.0.into_iter().filter_map(split)
    }
}

/// Tells `sink` everything that is in the collection and what becomes of it, until `stop`. `fill` adds
/// apiVersion and kind, which items of a list may lack; `selector` is a label selector, ready for a query.
pub async fn reflect<T: Reflected>(
    rest: Rest,
    collection: Collection,
    fill: (String, String),
    selector: &'static str,
    stop: CancellationToken,
    mut sink: impl FnMut(Seen<T>) + Send,
) {
    let mut known = Known::default();
    let mut pause = PAUSE_MIN;
    loop {
        let mut listed = false;
        let mut sink = |seen: Seen<T>| {
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
async fn follow<T: Reflected>(
    rest: &Rest,
    collection: &Collection,
    fill: &(String, String),
    selector: &str,
    known: &mut Known,
    sink: &mut (impl FnMut(Seen<T>) + Send),
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

async fn relist<T: Reflected>(
    rest: &Rest,
    collection: &Collection,
    fill: &(String, String),
    selector: &str,
    known: &mut Known,
    sink: &mut (impl FnMut(Seen<T>) + Send),
) -> Result<String, Error> {
    let mut missing = std::mem::take(known);
    let each = |item: Unread| {
        let item = Item::<T>::read(&item, collection);
        missing.remove(&item.place);
        known.insert(&item.place);
        if let Some(mut object) = item.object {
            object.fill(&fill.0, &fill.1);
            sink(Seen::Is(Box::new(object)));
        }
    };
    let version = rest.pages(collection, selector, each).await?;
    missing.into_places().for_each(|(namespace, name)| sink(Seen::Gone(namespace, name)));
    sink(Seen::Complete);
    Ok(version)
}

/// Watches from a revision; answers with the revision reached when the watch ends by itself, and with none
/// when the revision is too old.
async fn watch<T: Reflected>(
    rest: &Rest,
    collection: &Collection,
    from: &str,
    selector: &str,
    known: &mut Known,
    sink: &mut (impl FnMut(Seen<T>) + Send),
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
    let events = rest.client().request_events::<Unread>(request).await.map_err(unreachable)?;
    let mut events = std::pin::pin!(events);
    let mut version = from.to_owned();
    loop {
        // The server ends a quiet watch by itself; one that does not is no longer there.
        let silence = Duration::from_secs(u64::from(WATCH_SECONDS)) + WATCH_PATIENCE;
        let next = tokio::time::timeout(silence, events.try_next()).await;
        let event = next.map_err(|_| Error::TimedOut { action: action() })?.map_err(unreachable)?;
        let Some(event) = event else { return Ok(Some(version)) };
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let item = Item::<T>::read(&object, collection);
                version = item.revision;
                known.insert(&item.place);
                if let Some(object) = item.object {
                    sink(Seen::Is(Box::new(object)));
                }
            }
            WatchEvent::Deleted(object) => {
                let item = Item::<T>::read(&object, collection);
                version = item.revision;
                known.remove(&item.place);
                sink(Seen::Gone(item.place.0, item.place.1));
            }
            WatchEvent::Bookmark(bookmark) => version = bookmark.metadata.resource_version,
            WatchEvent::Error(status) if status.code == 410 => return Ok(None),
            WatchEvent::Error(status) => {
                return Err(Error::Refused { action: action(), code: status.code, message: status.message });
            }
        }
    }
}

/// One object of a list or a watch.
struct Item<T> {
    place: (String, String),
    revision: String,
    /// None if nobody can read it: it was written by somebody else, and must not hide the others.
    object: Option<T>,
}

impl<T: Reflected> Item<T> {
    fn read(text: &Unread, collection: &Collection) -> Self {
        match text.read::<T>() {
            Ok(object) => Self { place: object.place(), revision: object.revision(), object: Some(object) },
            Err(error) => {
                let named: Value = text.read().unwrap_or_default();
                let (place, revision) = (named.place(), named.revision());
                tracing::warn!(%error, %collection, ?place, "an object is left out of account");
                Self { place, revision, object: None }
            }
        }
    }
}
