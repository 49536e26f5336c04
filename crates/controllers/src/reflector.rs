//! The reflector: keeps a collection current by list and watch. Reports when it has synced, so that a cold cache is
//! never taken for an empty one; a lost watch is resumed, and after 410 Gone the collection is listed again.

use std::collections::BTreeSet;
use std::time::Duration;

use api::{Object, Unread};
use futures::TryStreamExt as _;
use kube::core::{TypeMeta, WatchEvent};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use supervise::catch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::rest::{Collection, Error, REQUEST_TIMEOUT, Rest, failure};
use crate::runtime::Supervisor;

mod guarded_sink;
#[cfg(test)]
mod tests;

use guarded_sink::GuardedSink;

/// The first delay after a watch broke; it doubles until a watch lasts.
const BACKOFF_MIN: Duration = Duration::from_millis(200);
/// How long a watch has to last to reset the backoff: a server may take its time to refuse one.
const WATCH_LASTED_MIN: Duration = Duration::from_secs(2);
/// The longest delay after a watch broke.
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// How long after its timeout a watch may be silent before its connection counts as dead.
const WATCH_TIMEOUT_GRACE: Duration = Duration::from_secs(30);
/// The `timeoutSeconds` of a watch: after it the server ends the watch, and the next one goes on from there.
const WATCH_TIMEOUT_SECONDS: u32 = 290;

/// The part of an object that the informer needs: decoding less is cheaper.
pub trait Reflected: DeserializeOwned + Send + 'static {
    /// Namespace and name.
    fn namespaced_name(&self) -> NamespacedName;
    /// Its resourceVersion.
    fn resource_version(&self) -> String;
    /// Sets apiVersion and kind where the list left them out.
    fn set_type(&mut self, types: &TypeMeta);
}

impl Reflected for Value {
    fn namespaced_name(&self) -> NamespacedName {
        let text = |key: &str| self["metadata"][key].as_str().unwrap_or_default().to_owned();
        NamespacedName { namespace: text("namespace"), name: text("name") }
    }

    fn resource_version(&self) -> String {
        self["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
    }

    fn set_type(&mut self, types: &TypeMeta) {
        if self.get("kind").is_none() {
            self["apiVersion"] = types.api_version.as_str().into();
            self["kind"] = types.kind.as_str().into();
        }
    }
}

impl<Spec, Status> Reflected for Object<Spec, Status>
where
    Spec: DeserializeOwned + Default + Send + 'static,
    Status: DeserializeOwned + Default + Send + 'static,
{
    fn namespaced_name(&self) -> NamespacedName {
        NamespacedName { namespace: self.metadata.namespace.clone(), name: self.metadata.name.clone() }
    }

    fn resource_version(&self) -> String {
        self.metadata.resource_version.clone()
    }

    fn set_type(&mut self, types: &TypeMeta) {
        if self.kind.is_empty() {
            (self.api_version, self.kind) = (types.api_version.clone(), types.kind.clone());
        }
    }
}

/// The metadata of an object, and nothing else of it.
pub type PartialObjectMetadata = Object<IgnoredAny, IgnoredAny>;

/// Namespace and name; the namespace is empty for cluster-scoped kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespacedName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// A change of one object.
#[derive(Debug)]
pub enum Delta<T = Value> {
    /// The object exists, in this state.
    Applied(Box<T>),
    /// The object was deleted.
    Deleted(NamespacedName),
}

/// What the reflector reports about a collection.
#[derive(Debug)]
pub enum Report<T = Value> {
    /// An object changed, or is in the list.
    Change(Delta<T>),
    /// Every listed object has been reported: the informer has synced.
    Synced,
    /// The server refused the list several times in a row. It is tried again all the same.
    ListRefused,
}

/// The objects that were reported to exist, each as one text of namespace and name: there may be a great many.
#[derive(Default)]
struct KnownObjects(BTreeSet<Box<str>>);

impl KnownObjects {
    fn insert(&mut self, name: &NamespacedName) {
        self.0.insert(Self::text(name));
    }

    fn remove(&mut self, name: &NamespacedName) {
        self.0.remove(&Self::text(name));
    }

    /// Namespaces have no slash in their name.
    fn text(NamespacedName { namespace, name }: &NamespacedName) -> Box<str> {
        format!("{namespace}/{name}").into()
    }

    /// The objects that are known here and not there.
    fn without<'a>(&'a self, others: &'a Self) -> impl Iterator<Item = NamespacedName> + 'a {
        let gone = self.0.difference(&others.0).filter_map(|text| text.split_once('/'));
        gone.map(|(namespace, name)| NamespacedName {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

/// Passes every object of the collection and all its changes to `sink`, until `stop`. Items of a list may lack
/// apiVersion and kind, so `types` adds them; `selector` is a label selector.
pub async fn reflect<T: Reflected>(
    rest: Rest,
    collection: Collection,
    types: TypeMeta,
    selector: &'static str,
    stop: CancellationToken,
    supervisor: &Supervisor,
    sink: impl FnMut(Report<T>) + Send,
) {
    let mut known = KnownObjects::default();
    let mut backoff = BACKOFF_MIN;
    let mut sink = GuardedSink::new(sink, &collection, supervisor);
    loop {
        let Interrupted { error, watched_for } = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            interrupted = catch(list_and_watch(&rest, &collection, &types, selector, &mut known, &mut sink)) => {
                // The objects reported so far are still known, so the next list reports those that were deleted.
                interrupted.unwrap_or_else(|panic| {
                    supervisor.task_panicked("watch", &collection.to_string(), &panic);
                    Interrupted { error: Error::TimedOut { action: format!("list and watch {collection}") }, watched_for: None }
                })
            }
        };
        tracing::debug!(%collection, %error, "the watch ended; it is reopened");
        let lasted = watched_for.is_some_and(|time| time >= backoff.max(WATCH_LASTED_MIN));
        // Logged once, when the backoff reaches its maximum. Other components report that a server is unreachable.
        let persists = !lasted && backoff < BACKOFF_MAX && backoff.saturating_mul(2) >= BACKOFF_MAX;
        if persists && !error.is_outage() && !error.is_overload() {
            match watched_for {
                Some(_) => {
                    tracing::warn!(%collection, %error, "cannot be watched; it is listed periodically instead");
                }
                None => {
                    tracing::warn!(%collection, %error, "cannot be listed; its objects are not known");
                    sink.list_refused::<T>();
                }
            }
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(backoff) => {}
        }
        backoff = if lasted { BACKOFF_MIN } else { backoff.saturating_mul(2).min(BACKOFF_MAX) };
    }
}

/// Why list and watch ended.
struct Interrupted {
    error: Error,
    /// For how long the watch that broke had lasted; none if it was the list.
    watched_for: Option<Duration>,
}

/// Lists, then watches until something breaks.
async fn list_and_watch<T: Reflected>(
    rest: &Rest,
    collection: &Collection,
    types: &TypeMeta,
    selector: &str,
    known: &mut KnownObjects,
    sink: &mut GuardedSink<'_, impl FnMut(Report<T>) + Send>,
) -> Interrupted {
    // None while there is no revision to go on from, at first and when it is gone: listing shows what happened.
    let mut version: Option<String> = None;
    loop {
        let begun = Instant::now();
        let reached = match &version {
            None => relist(rest, collection, types, selector, known, sink).await.map(Some),
            Some(version) => watch(rest, collection, version, selector, known, sink).await,
        };
        match reached {
            Ok(reached) => version = reached,
            Err(error) => return Interrupted { error, watched_for: version.map(|_| begun.elapsed()) },
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
    types: &TypeMeta,
    selector: &str,
    known: &mut KnownObjects,
    sink: &mut GuardedSink<'_, impl FnMut(Report<T>) + Send>,
) -> Result<String, Error> {
    let mut listed = KnownObjects::default();
    sink.retry_at = None;
    let each = |item: Unread| {
        let item = Item::<T>::read(&item, collection);
        listed.insert(&item.name);
        // Noted even if the list is never finished: a sink that received the object must receive its deletion.
        known.insert(&item.name);
        if let Some(mut object) = item.object {
            object.set_type(types);
            sink.applied(&item.name, object);
        }
    };
    let version = rest.pages(collection, selector, each).await?;
    let deleted: Vec<NamespacedName> = known.without(&listed).collect();
    for name in deleted {
        if !sink.deleted::<T>(&name) {
            listed.insert(&name);
        }
    }
    *known = listed;
    sink.list_ended::<T>();
    Ok(version)
}

/// Watches from a revision; answers with the revision reached when the watch ends by itself, and with none
/// when the revision is too old.
async fn watch<T: Reflected>(
    rest: &Rest,
    collection: &Collection,
    from: &str,
    selector: &str,
    known: &mut KnownObjects,
    sink: &mut GuardedSink<'_, impl FnMut(Report<T>) + Send>,
) -> Result<Option<String>, Error> {
    let path = collection.path().with("watch", "true").with("allowWatchBookmarks", "true");
    let path = path.with("timeoutSeconds", &WATCH_TIMEOUT_SECONDS.to_string());
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
        opened = tokio::time::timeout(REQUEST_TIMEOUT, rest.client().request_events::<Unread>(request)) => opened,
    };
    let events = opened.map_err(|_| Error::TimedOut { action: action() })?.map_err(failed)?;
    let mut events = std::pin::pin!(events);
    let mut version = from.to_owned();
    loop {
        // The server ends a quiet watch by itself; one that does not is no longer there.
        let silence = Duration::from_secs(u64::from(WATCH_TIMEOUT_SECONDS)) + WATCH_TIMEOUT_GRACE;
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
                version = item.resource_version;
                known.insert(&item.name);
                if let Some(object) = item.object {
                    sink.applied(&item.name, object);
                }
            }
            WatchEvent::Deleted(object) => {
                let item = Item::<T>::read(&object, collection);
                version = item.resource_version;
                if sink.deleted::<T>(&item.name) {
                    known.remove(&item.name);
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
    name: NamespacedName,
    resource_version: String,
    /// `None` if it cannot be decoded: it was written by another client, and must not hide the others.
    object: Option<T>,
}

impl<T: Reflected> Item<T> {
    fn read(text: &Unread, collection: &Collection) -> Self {
        match text.read::<T>() {
            Ok(object) => Self {
                name: object.namespaced_name(),
                resource_version: object.resource_version(),
                object: Some(object),
            },
            Err(error) => {
                let named: Value = text.read().unwrap_or_default();
                let (name, resource_version) = (named.namespaced_name(), named.resource_version());
                tracing::warn!(%error, %collection, ?name, "an object cannot be decoded and is ignored");
                Self { name, resource_version, object: None }
            }
        }
    }
}
