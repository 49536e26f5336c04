//! The reflector: keeps a collection current by list and watch. Reports when it has synced, so that a cold cache is
//! never taken for an empty one; a lost watch is resumed, and after 410 Gone the collection is listed again.

use std::collections::BTreeSet;
use std::time::Duration;

use api::{Object, Unread};
use futures::TryStreamExt as _;
use kube::core::WatchEvent;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use supervise::catch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Supervisor;
use crate::rest::{Collection, Error, PATIENCE, Rest, failure};

mod handled;
#[cfg(test)]
mod tests;

use handled::Handled;

/// How long to wait before a watch that broke is tried again; it doubles as long as none lives.
const PAUSE_MIN: Duration = Duration::from_millis(200);
/// How long a watch has to last at least until it has lived: one that is refused may take its time to end.
const LIFE_MIN: Duration = Duration::from_secs(2);
/// How long to wait at most.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How much longer than it should a watch may be silent.
const WATCH_PATIENCE: Duration = Duration::from_secs(30);
/// How long a watch lives before it is opened anew.
const WATCH_SECONDS: u32 = 290;

/// The part of an object that the informer needs: decoding less is cheaper.
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

/// The identity of an object, and nothing else of it.
pub type Outline = Object<IgnoredAny, IgnoredAny>;

/// What happened to one object, or to the collection as a whole.
#[derive(Debug)]
pub enum Seen<T = Value> {
    /// The object is there, in this state.
    Is(Box<T>),
    /// The object is gone; its namespace and name.
    Gone(String, String),
    /// Every listed object has been reported: the informer has synced.
    Complete,
    /// The server is there and has refused to list it several times in a row. It is tried again all the same.
    Refused,
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

    /// What is here and not there.
    fn without<'a>(&'a self, others: &'a Self) -> impl Iterator<Item = (String, String)> + 'a {
        let gone = self.0.difference(&others.0).filter_map(|text| text.split_once('/'));
        gone.map(|(namespace, name)| (namespace.to_owned(), name.to_owned()))
    }
}

/// Passes every object of the collection and all its changes to `sink`, until `stop`. `fill` adds apiVersion and kind,
/// which items of a list may lack; `selector` is a label selector.
pub async fn reflect<T: Reflected>(
    rest: Rest,
    collection: Collection,
    fill: (String, String),
    selector: &'static str,
    stop: CancellationToken,
    supervisor: &Supervisor,
    sink: impl FnMut(Seen<T>) + Send,
) {
    let mut known = Known::default();
    let mut pause = PAUSE_MIN;
    let mut sink = Handled::new(sink, &collection, supervisor);
    loop {
        let Broken { error, watched_for } = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            broken = catch(follow(&rest, &collection, &fill, selector, &mut known, &mut sink)) => {
                // The objects reported so far are still known, so the next list reports those that were deleted.
                broken.unwrap_or_else(|panic| {
                    supervisor.task_panicked("watch", &collection.to_string(), &panic);
                    Broken { error: Error::TimedOut { action: format!("follow {collection}") }, watched_for: None }
                })
            }
        };
        tracing::debug!(%collection, %error, "watch is opened anew");
        let lived = watched_for.is_some_and(|time| time >= pause.max(LIFE_MIN));
        // Logged once, when the backoff reaches its maximum. Other components report that a server is unreachable.
        let lasts = !lived && pause < PAUSE_MAX && pause.saturating_mul(2) >= PAUSE_MAX;
        if lasts && !error.is_outage() && !error.is_overload() {
            match watched_for {
                Some(_) => {
                    tracing::warn!(%collection, %error, "cannot be watched; it is listed now and then instead");
                }
                None => {
                    tracing::warn!(%collection, %error, "cannot be listed; what is in it is not known");
                    sink.refused::<T>();
                }
            }
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        pause = if lived { PAUSE_MIN } else { pause.saturating_mul(2).min(PAUSE_MAX) };
    }
}

/// Why nothing is followed any more.
struct Broken {
    error: Error,
    /// For how long the watch that broke had lasted; none if it was the list.
    watched_for: Option<Duration>,
}

/// Lists, then watches until something breaks.
async fn follow<T: Reflected>(
    rest: &Rest,
    collection: &Collection,
    fill: &(String, String),
    selector: &str,
    known: &mut Known,
    sink: &mut Handled<'_, impl FnMut(Seen<T>) + Send>,
) -> Broken {
    // None while there is no revision to go on from, at first and when it is gone: listing shows what happened.
    let mut version: Option<String> = None;
    loop {
        let begun = Instant::now();
        let reached = match &version {
            None => relist(rest, collection, fill, selector, known, sink).await.map(Some),
            Some(version) => watch(rest, collection, version, selector, known, sink).await,
        };
        match reached {
            Ok(reached) => version = reached,
            Err(error) => return Broken { error, watched_for: version.map(|_| begun.elapsed()) },
        }
    }
}

/// Resolves at a time, if there is one.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn relist<T: Reflected>(
    rest: &Rest,
    collection: &Collection,
    fill: &(String, String),
    selector: &str,
    known: &mut Known,
    sink: &mut Handled<'_, impl FnMut(Seen<T>) + Send>,
) -> Result<String, Error> {
    let mut listed = Known::default();
    sink.retry_at = None;
    let each = |item: Unread| {
        let item = Item::<T>::read(&item, collection);
        listed.insert(&item.place);
        // Noted even if the list is never finished: a sink that received the object must receive its deletion.
        known.insert(&item.place);
        if let Some(mut object) = item.object {
            object.fill(&fill.0, &fill.1);
            sink.object(&item.place, object);
        }
    };
    let version = rest.pages(collection, selector, each).await?;
    let gone: Vec<(String, String)> = known.without(&listed).collect();
    for place in gone {
        if !sink.gone::<T>(&place) {
            listed.insert(&place);
        }
    }
    *known = listed;
    sink.listed::<T>();
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
    sink: &mut Handled<'_, impl FnMut(Seen<T>) + Send>,
) -> Result<Option<String>, Error> {
    let path = collection.path().with("watch", "true").with("allowWatchBookmarks", "true");
    let path = path.with("timeoutSeconds", &WATCH_SECONDS.to_string());
    let path = path.with("labelSelector", selector).with("resourceVersion", from);
    let action = || format!("watch {collection}");
    let request = http::Request::builder()
        .uri(path.target()?)
        .body(Vec::new())
        .map_err(|error| Error::Refused { action: action(), code: 400, message: error.to_string() })?;
    let failed = |error| failure(action(), error);
    let opened = tokio::select! {
        biased;
        () = at(sink.retry_at) => return Ok(None),
        opened = tokio::time::timeout(PATIENCE, rest.client().request_events::<Unread>(request)) => opened,
    };
    let events = opened.map_err(|_| Error::TimedOut { action: action() })?.map_err(failed)?;
    let mut events = std::pin::pin!(events);
    let mut version = from.to_owned();
    loop {
        // The server ends a quiet watch by itself; one that does not is no longer there.
        let silence = Duration::from_secs(u64::from(WATCH_SECONDS)) + WATCH_PATIENCE;
        let next = tokio::select! {
            biased;
            () = at(sink.retry_at) => return Ok(None),
            next = tokio::time::timeout(silence, events.try_next()) => next,
        };
        let event = next.map_err(|_| Error::TimedOut { action: action() })?.map_err(failed)?;
        let Some(event) = event else { return Ok(Some(version)) };
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let item = Item::<T>::read(&object, collection);
                version = item.revision;
                known.insert(&item.place);
                if let Some(object) = item.object {
                    sink.object(&item.place, object);
                }
            }
            WatchEvent::Deleted(object) => {
                let item = Item::<T>::read(&object, collection);
                version = item.revision;
                if sink.gone::<T>(&item.place) {
                    known.remove(&item.place);
                }
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
    /// `None` if it cannot be decoded: it was written by another client, and must not hide the others.
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
