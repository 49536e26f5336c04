//! GET with `watch`: streams changes from a revision on. A watch is a cursor in the store's log, so it loses and
//! repeats nothing; one that falls behind compaction gets a 410 and has to relist.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::stream;
use serde_json::{Value, json};
use store::{Entry, Event, EventKind, Range, ReadError, Revision, Scan, Watch};
use tokio::time::Instant;

use crate::call::Call;
use crate::engine::Engine;
use crate::http::Body;
use crate::http::content::Shape;
use crate::http::options::{Start, check_list_options};
use crate::storage::stored;
use crate::verbs::{Answer, Selection, include_object};
use apimachinery::error::ApiError;

/// The timeout of a watch if the client sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(45 * 60);
/// How often a watch that asked for bookmarks gets one.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How much is sent at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// Everything a running watch needs.
struct Running {
    engine: Arc<Engine>,
    call: Call,
    selection: Selection,
    watch: Watch,
    /// The state at the start, still to be sent.
    initial: Scan,
    /// The bookmark that ends the initial state, still to be sent.
    initial_end: Option<Bytes>,
    bookmarks: bool,
    next_bookmark: Instant,
    deadline: Instant,
    columns_sent: bool,
    over: bool,
}

impl Engine {
    /// Starts a watch.
    pub fn watch(self: &Arc<Self>, call: Call) -> Result<Answer, ApiError> {
        // A new watch would send its initial state and end, and the client would retry at once, in a loop.
        if self.shutdown.is_cancelled() {
            return Err(ApiError::unavailable("the server is shutting down"));
        }
        check_list_options(&call.query, true)?;
        let selection = Selection::parse(&call)?;
        let timeout = call.query.number("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok());
        let timeout = timeout.filter(|seconds| *seconds > 0).map_or(DEFAULT_TIMEOUT, Duration::from_secs);
        // A Table that cannot be made must be refused before the stream begins.
        include_object(&call)?;
        let initial = match self.watch_start(&call, &selection) {
            Ok(start) => start,
            // kube-apiserver opens the watch and says in it that the revision is gone.
            Err(error) if error.code == 410 => return Ok(only_event(&error_event(&error))),
            Err(error) => return Err(error),
        };
        let after = initial.revision();
        let prefix = selection.only.as_deref().unwrap_or(&selection.prefix);
        let watch = match self.store.watch(&call.resource.table, prefix, after) {
            Ok(watch) => watch,
            Err(error) => return Ok(only_event(&error_event(&too_old(&error)))),
        };
        let initial_end = call
            .query
            .flag("sendInitialEvents")
            .then(|| bookmark(&call, after, json!({ "k8s.io/initial-events-end": "true" })));
        let now = Instant::now();
        let running = Running {
            engine: self.clone(),
            selection,
            watch,
            initial,
            initial_end,
            bookmarks: call.query.flag("allowWatchBookmarks"),
            next_bookmark: now + BOOKMARK_EVERY,
            deadline: now + timeout,
            columns_sent: false,
            over: false,
            call,
        };
        let body = stream::unfold(running, |mut running| async move {
            running.next_chunk().await.map(|chunk| (chunk, running))
        });
        Ok(Answer::stream(Body::stream(body), false))
    }

    /// The objects a watch begins with, of the revision after which events follow.
    fn watch_start(&self, call: &Call, selection: &Selection) -> Result<Scan, ApiError> {
        let start = Start::parse(&call.query)?;
        let initial_wanted =
            call.query.get("sendInitialEvents").map(|_| call.query.flag("sendInitialEvents"));
        match (start, initial_wanted) {
            (Start::At(revision), _) if revision > self.store.revision() => Err(self.too_large(revision)),
            (Start::At(revision), None | Some(false)) => Ok(Scan::empty(revision)),
            (_, Some(false)) => Ok(Scan::empty(self.store.revision())),
            _ => {
                let prefix = selection.only.as_deref().unwrap_or(&selection.prefix);
                let range = Range { prefix, ..Range::default() };
                self.store.scan(&call.resource.table, range).map_err(ApiError::internal)
            }
        }
    }
}

impl Running {
    /// The next chunk of the stream; `None` ends it.
    async fn next_chunk(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        if let Some(chunk) = self.initial_chunk().await {
            return Some(chunk);
        }
        loop {
            let wake = self.deadline.min(if self.bookmarks { self.next_bookmark } else { self.deadline });
            let engine = self.engine.clone();
            tokio::select! {
                biased;
                () = engine.shutdown.cancelled() => return None,
                batch = self.watch.next() => {
                    let chunk = self.encode_batch(batch).await;
                    if !chunk.is_empty() {
                        return Some(chunk);
                    }
                }
                () = self.call.resource.gone.cancelled() => return None,
                () = tokio::time::sleep_until(wake) => return self.wake_up(),
            }
        }
    }

    /// What is sent when nothing happened for a while: a bookmark, or the end.
    fn wake_up(&mut self) -> Option<Bytes> {
        let now = Instant::now();
        self.over = now >= self.deadline;
        self.next_bookmark = now + BOOKMARK_EVERY;
        self.bookmarks.then(|| bookmark(&self.call, self.watch.revision(), Value::Null))
    }

    /// Some of the state at the start, as far as it is wanted; `None` when all of it has been sent.
    async fn initial_chunk(&mut self) -> Option<Bytes> {
        while !self.initial.is_over() || self.initial_end.is_some() {
            let mut chunk = match self.initial_shown().await {
                Ok(shown) => self.encode(shown).await,
                Err(error) => self.failed(&error),
            };
            if !self.over && self.initial.is_over() {
                chunk.extend(self.initial_end.take());
            }
            if !chunk.is_empty() {
                return Some(chunk.freeze());
            }
            // Nothing of it matched; other tasks may run before the next part is filtered.
            tokio::task::yield_now().await;
        }
        None
    }

    /// What is wanted of the next part of the state at the start.
    async fn initial_shown(&mut self) -> Result<Vec<Shown>, ApiError> {
        let (mut shown, mut bytes) = (Vec::new(), 0);
        while bytes < CHUNK_BYTES {
            let Some(Entry { key, value, revision, .. }) = self.initial.next() else { break };
            bytes += value.len();
            let named = self.selection.only.as_deref().is_none_or(|only| only == &*key);
            if named {
                shown.push(Shown { kind: "ADDED", revision, value });
            }
        }
        let stored: Vec<&[u8]> = shown.iter().map(|one| &*one.value).collect();
        let matching = self.engine.matching(&self.call.resource, &self.selection, &stored).await?;
        let mut matching = matching.into_iter();
        shown.retain(|_| matching.next() == Some(true));
        Ok(shown)
    }

    async fn encode_batch(&mut self, batch: Result<store::Batch, store::WatchError>) -> Bytes {
        let batch = match batch {
            Ok(batch) => batch,
            Err(store::WatchError::Compacted { .. }) => {
                self.over = true;
                let message = format!("too old resource version: {}", self.watch.revision());
                return error_event(&ApiError::expired(message));
            }
            Err(store::WatchError::Closed) => {
                self.over = true;
                return Bytes::new();
            }
        };
        let converted = match self.converted_verdicts(&batch).await {
            Ok(verdicts) => verdicts,
            Err(error) => return self.failed(&error).freeze(),
        };
        let judged = batch.events.iter().enumerate().filter_map(|(index, event)| {
            let verdict = converted.as_ref().map_or_else(|| self.verdict(event), |verdicts| verdicts[index]);
            self.shown(event, verdict)
        });
        let shown = judged.collect();
        self.encode(shown).await.freeze()
    }

    /// Whether what was there before an event matches, and what is there after it.
    fn verdict(&self, event: &Event) -> [bool; 2] {
        let matches = |bytes: &[u8]| self.selection.is_everything() || self.selection.matches(bytes);
        let before = event.previous.as_deref().is_some_and(|bytes| matches(bytes));
        [before, event.kind == EventKind::Put && matches(&event.value)]
    }

    /// The same for all events at once, where a webhook says what there is to match.
    async fn converted_verdicts(&self, batch: &store::Batch) -> Result<Option<Vec<[bool; 2]>>, ApiError> {
        if self.call.resource.converter().is_none() || self.selection.is_everything() {
            return Ok(None);
        }
        let sides = |event: &Event| {
            let after = (event.kind == EventKind::Put).then(|| event.value.clone());
            [event.previous.as_deref().cloned(), after]
        };
        let sides: Vec<Option<Bytes>> = batch.events.iter().flat_map(|event| sides(event)).collect();
        let there: Vec<&[u8]> = sides.iter().flatten().map(|bytes| &**bytes).collect();
        let matching = self.engine.matching(&self.call.resource, &self.selection, &there).await?;
        let mut matching = matching.into_iter();
        let mut verdict = |side: &Option<Bytes>| side.is_some() && matching.next() == Some(true);
        Ok(Some(sides.chunks_exact(2).map(|two| [verdict(&two[0]), verdict(&two[1])]).collect()))
    }

    /// Events that cannot be encoded must not be skipped: the client gets an ERROR event and relists.
    fn failed(&mut self, error: &ApiError) -> BytesMut {
        self.over = true;
        BytesMut::from(&*error_event(error))
    }

    /// An object that begins or ceases to match the selectors is added or deleted for this watcher.
    fn shown(&self, event: &Event, [was_matched, is_matched]: [bool; 2]) -> Option<Shown> {
        if self.selection.only.as_deref().is_some_and(|only| only != &*event.key) {
            return None;
        }
        let before = event.previous.as_deref().filter(|_| was_matched);
        let (kind, value) = match (before, is_matched) {
            (None, true) => ("ADDED", event.value.clone()),
            (Some(_), true) => ("MODIFIED", event.value.clone()),
            (Some(_), false) if event.kind == EventKind::Delete => ("DELETED", event.value.clone()),
            (Some(before), false) => ("DELETED", at_revision(before, event.revision)),
            (None, false) => return None,
        };
        // What is shown for the last time may have been written long ago.
        let is_old = kind == "DELETED"
            && self.call.resource.custom.is_some()
            && !self.call.resource.is_stored_version(&value);
        let revision = if is_old { 0 } else { event.revision };
        Some(Shown { kind, revision, value })
    }

    async fn encode(&mut self, shown: Vec<Shown>) -> BytesMut {
        let mut chunk = BytesMut::new();
        let resource = &self.call.resource;
        let as_stored = self.call.accepted.shape == Shape::Object
            && shown.iter().all(|one| resource.serves_as_stored(one.revision));
        if as_stored {
            shown.iter().for_each(|one| put_event(&mut chunk, one.kind, &one.value));
            return chunk;
        }
        let objects = shown.iter().map(|one| (one.revision, stored::parse(&one.value))).collect();
        match self.engine.conversion.served_all(resource, objects).await {
            Ok(objects) => {
                for (one, object) in shown.iter().zip(&objects) {
                    let shaped = self.shaped(object);
                    put_event(&mut chunk, one.kind, &shaped);
                }
            }
            Err(error) => return self.failed(&error),
        }
        chunk
    }

    fn shaped(&mut self, object: &Value) -> Vec<u8> {
        // Clients keep the columns of the first event.
        let with_columns = !std::mem::replace(&mut self.columns_sent, true);
        let shaped = self.engine.shaped_object(&self.call, object, with_columns);
        shaped.unwrap_or_else(|error| error.status().to_string().into_bytes())
    }
}

/// What a watcher is shown of one change.
struct Shown {
    kind: &'static str,
    revision: Revision,
    value: Bytes,
}

fn put_event(chunk: &mut BytesMut, kind: &str, object: &[u8]) {
    chunk.put_slice(b"{\"type\":\"");
    chunk.put_slice(kind.as_bytes());
    chunk.put_slice(b"\",\"object\":");
    chunk.put_slice(object);
    chunk.put_slice(b"}\n");
}

/// The stored object as of a later revision, for watchers that no longer see it.
fn at_revision(bytes: &[u8], revision: Revision) -> Bytes {
    let mut object = stored::parse(bytes);
    object["metadata"]["resourceVersion"] = revision.to_string().into();
    Bytes::from(object.to_string())
}

fn bookmark(call: &Call, revision: Revision, annotations: Value) -> Bytes {
    let mut metadata = json!({ "resourceVersion": revision.to_string(), "creationTimestamp": null });
    if !annotations.is_null() {
        metadata["annotations"] = annotations;
    }
    let object = match call.accepted.shape {
        Shape::Object => {
            json!({ "kind": call.resource.kind, "apiVersion": call.resource.api_version(), "metadata": metadata })
        }
        Shape::Metadata => {
            json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata })
        }
        Shape::Table => {
            let inner = json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata });
            json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1",
                "metadata": { "resourceVersion": revision.to_string() },
                "columnDefinitions": null,
                "rows": [{ "cells": [], "object": inner }],
            })
        }
    };
    event("BOOKMARK", &object)
}

fn event(kind: &str, object: &Value) -> Bytes {
    Bytes::from(format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n"))
}

fn error_event(error: &ApiError) -> Bytes {
    event("ERROR", &error.status())
}

fn too_old(error: &ReadError) -> ApiError {
    match error {
        ReadError::Compacted { oldest } => {
            ApiError::expired(format!("too old resource version, oldest is {oldest}"))
        }
        ReadError::Future { .. } => ApiError::timeout(error.to_string()),
    }
}

fn only_event(event: &Bytes) -> Answer {
    Answer::stream(Body::full(event.clone()), false)
}
