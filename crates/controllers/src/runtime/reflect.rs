//! A collection as it is, kept current by list and watch. Says when it is complete, so that a cold cache
//! is never taken for an empty one; a lost watch is resumed, and after 410 the collection is listed anew.

use std::collections::BTreeSet;
use std::time::Duration;

use api::{Object, Unread};
use futures::TryStreamExt as _;
use kube::core::WatchEvent;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::rest::{Collection, Error, PATIENCE, Rest, failure};

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

/// Tells `sink` everything that is in the collection and what becomes of it, until `stop`. `fill` adds
/// apiVersion and kind, which items of a list may lack; `selector` is a label selector.
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
        let Broken { error, watched_for } = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            broken = follow(&rest, &collection, &fill, selector, &mut known, &mut sink) => broken,
        };
        tracing::debug!(%collection, %error, "watch is opened anew");
        let lived = watched_for.is_some_and(|time| time >= pause.max(LIFE_MIN));
        // Said once, when the pause becomes as long as it gets. That a server is away is told by others.
        let lasts = !lived && pause < PAUSE_MAX && pause.saturating_mul(2) >= PAUSE_MAX;
        if lasts && !error.is_outage() && !error.is_overload() {
            match watched_for {
                Some(_) => {
                    tracing::warn!(%collection, %error, "cannot be watched; it is listed now and then instead");
                }
                None => {
                    tracing::warn!(%collection, %error, "cannot be listed; what is in it is not known");
                    sink(Seen::Refused);
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
    sink: &mut (impl FnMut(Seen<T>) + Send),
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

async fn relist<T: Reflected>(
    rest: &Rest,
    collection: &Collection,
    fill: &(String, String),
    selector: &str,
    known: &mut Known,
    sink: &mut (impl FnMut(Seen<T>) + Send),
) -> Result<String, Error> {
    let mut listed = Known::default();
    let each = |item: Unread| {
        let item = Item::<T>::read(&item, collection);
        listed.insert(&item.place);
        // Also if the list is never finished: whoever was told of it has to be told when it is gone.
        known.insert(&item.place);
        if let Some(mut object) = item.object {
            object.fill(&fill.0, &fill.1);
            sink(Seen::Is(Box::new(object)));
        }
    };
    let version = rest.pages(collection, selector, each).await?;
    known.without(&listed).for_each(|(namespace, name)| sink(Seen::Gone(namespace, name)));
    *known = listed;
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
    let path = collection.path().with("watch", "true").with("allowWatchBookmarks", "true");
    let path = path.with("timeoutSeconds", &WATCH_SECONDS.to_string());
    let path = path.with("labelSelector", selector).with("resourceVersion", from);
    let action = || format!("watch {collection}");
    let request = http::Request::builder()
        .uri(path.target()?)
        .body(Vec::new())
        .map_err(|error| Error::Refused { action: action(), code: 400, message: error.to_string() })?;
    let failed = |error| failure(action(), error);
    let opened = tokio::time::timeout(PATIENCE, rest.client().request_events::<Unread>(request)).await;
    let events = opened.map_err(|_| Error::TimedOut { action: action() })?.map_err(failed)?;
    let mut events = std::pin::pin!(events);
    let mut version = from.to_owned();
    loop {
        // The server ends a quiet watch by itself; one that does not is no longer there.
        let silence = Duration::from_secs(u64::from(WATCH_SECONDS)) + WATCH_PATIENCE;
        let next = tokio::time::timeout(silence, events.try_next()).await;
        let event = next.map_err(|_| Error::TimedOut { action: action() })?.map_err(failed)?;
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// A server that gives these answers, one after the other, and then none.
    fn answering(answers: Vec<(StatusCode, Value)>) -> Rest {
        let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
        let service = tower::service_fn(move |_: Request<Body>| {
            let next = answers.lock().expect("no one panics while holding it").pop_front();
            async move {
                let Some((status, body)) = next else { return std::future::pending().await };
                let mut response = Response::new(Body::from(body.to_string().into_bytes()));
                *response.status_mut() = status;
                Ok::<_, Infallible>(response)
            }
        });
        Rest::new(kube::Client::new(service, "default"))
    }

    fn list(names: &[&str], next: &str) -> (StatusCode, Value) {
        let item =
            |name: &&str| json!({ "metadata": { "namespace": "n", "name": name, "resourceVersion": "1" } });
        let items: Vec<Value> = names.iter().map(item).collect();
        (StatusCode::OK, json!({ "metadata": { "resourceVersion": "1", "continue": next }, "items": items }))
    }

    fn refusal(code: u16) -> (StatusCode, Value) {
        let status =
            json!({ "kind": "Status", "status": "Failure", "message": "no", "reason": "x", "code": code });
        (StatusCode::from_u16(code).expect("a status"), status)
    }

    /// Everything that is told until the server has no more answers.
    async fn told(answers: Vec<(StatusCode, Value)>) -> Vec<String> {
        let mut told = Vec::new();
        let collection = Collection::new("v1", "configmaps", "");
        let fill = ("v1".to_owned(), "ConfigMap".to_owned());
        let sink = |seen: Seen| {
            told.push(match seen {
                Seen::Is(object) => format!("is {}", object.place().1),
                Seen::Gone(_, name) => format!("gone {name}"),
                Seen::Complete => "complete".to_owned(),
                Seen::Refused => "refused".to_owned(),
            });
        };
        let stop = CancellationToken::new();
        let reflecting = reflect(answering(answers), collection, fill, "", stop, sink);
        assert!(tokio::time::timeout(Duration::from_secs(20), reflecting).await.is_err());
        told
    }

    #[tokio::test(start_paused = true)]
    async fn what_goes_while_listing_fails_is_told() {
        let answers = vec![
            list(&["a", "b"], ""),
            refusal(500), // the watch
            refusal(500), // the list
            list(&["a"], ""),
        ];
        assert_eq!(told(answers).await, ["is a", "is b", "complete", "is a", "gone b", "complete"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_told_from_half_a_list_is_told_when_it_goes() {
        let answers = vec![list(&["a", "b"], "more"), refusal(500), list(&["b"], "")];
        assert_eq!(told(answers).await, ["is a", "is b", "is b", "gone a", "complete"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_watched_is_listed_less_and_less_often() {
        let refused = |_| [list(&["a"], ""), refusal(403)];
        let told = told((0..50).flat_map(refused).collect()).await;
        // After 0, 0.2, 0.6, 1.4, 3, 6.2, 12.6 and no further one within 20 seconds.
        assert_eq!(told.iter().filter(|one| *one == "complete").count(), 7, "{told:?}");
        assert!(!told.contains(&"refused".to_owned()), "it can be listed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_that_lasts_is_told_and_an_outage_is_not() {
        let lasting = |code: u16| (0..7).map(|_| refusal(code)).collect::<Vec<_>>();
        assert_eq!(told(lasting(403)).await, ["refused"]);
        assert_eq!(told(lasting(500)).await, ["refused"]);
        assert!(told(lasting(503)).await.is_empty());
        assert!(told(lasting(429)).await.is_empty());
    }
}
