//! GET on a collection: lists objects at a revision, whole or in pages.

use std::io::Write as _;

use bytes::{BufMut, Bytes, BytesMut};
use flate2::{Compression, write::GzEncoder};
use futures::stream;
use serde_json::{Value, json};
use store::{Entry, Range, ReadError, Revision};

use crate::call::Call;
use crate::engine::Engine;
use crate::http::Body;
use crate::http::content::{Language, Shape};
use crate::http::options::{Start, check_list_options};
use crate::verbs::Answer;
use crate::verbs::continuation::Continuation;
use crate::verbs::selection::Selection;
use apimachinery::error::ApiError;

/// Answers smaller than this are sent as they are, as in kube-apiserver.
pub(crate) const GZIP_BYTES_MIN: usize = 128 * 1024;
/// How much of a list is put together at a time.
const CHUNK_BYTES: usize = 64 * 1024;
/// How many entries are looked at together when only some of them match.
const SCAN_ENTRIES: usize = 1_000;

/// What kube-apiserver says to those whose list took too long.
const INCONSISTENT: &str = "The provided continue parameter is too old to display a consistent list result. You can \
    start a new list without the continue parameter, or use the continue token in this response to retrieve the \
    remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were \
    created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// One page of a list.
struct Listed {
    entries: Vec<Entry>,
    revision: Revision,
    remaining: Option<usize>,
    next: Option<String>,
}

impl Engine {
    /// Lists the collection.
    pub async fn list(&self, call: &Call) -> Result<Answer, ApiError> {
        check_list_options(&call.query, false)?;
        let selection = Selection::parse(call)?;
        let listed = self.read_page(call, &selection).await?;
        let mut metadata = json!({ "resourceVersion": listed.revision.to_string() });
        if let Some(next) = &listed.next {
            metadata["continue"] = next.as_str().into();
        }
        if let Some(remaining) = listed.remaining.filter(|remaining| *remaining > 0) {
            metadata["remainingItemCount"] = remaining.into();
        }
        let as_stored = call.accepted.shape == Shape::Object
            && call.accepted.language == Language::Json
            && !call.query.flag("pretty")
            && listed.entries.iter().all(|entry| call.resource.serves_as_stored(entry.revision));
        match as_stored {
            true => Ok(stream_list(call, &metadata, listed.entries)),
            false => {
                let objects = self.conversion.served_entries(&call.resource, &listed.entries).await?;
                Ok(Answer::encoded(self.shaped_list(call, &objects, &metadata)?))
            }
        }
    }

    /// Everything that the selectors of a request match, now.
    pub async fn select_all(&self, call: &Call) -> Result<Vec<Entry>, ApiError> {
        let selection = Selection::parse(call)?;
        let page = self.page(call, &selection, None, None, None).await?;
        Ok(page.entries)
    }

    async fn read_page(&self, call: &Call, selection: &Selection) -> Result<Listed, ApiError> {
        let limit =
            call.query.number("limit")?.and_then(|limit| usize::try_from(limit).ok()).filter(|n| *n > 0);
        if let Some(token) = call.query.get("continue") {
            let token = Continuation::decode(token)?;
            if call.query.get("resourceVersion").is_some_and(|version| version != "0") {
                let why = "specifying resource version is not allowed when using continue";
                return Err(ApiError::bad_request(why));
            }
            return self.page(call, selection, limit, Some(token.after.as_str()), token.revision).await;
        }
        let at = self.list_revision(call)?;
        self.page(call, selection, limit, None, at).await
    }

    /// The revision that the request insists on, if it does.
    fn list_revision(&self, call: &Call) -> Result<Option<Revision>, ApiError> {
        let start = Start::parse(&call.query)
            .map_err(|error| ApiError::bad_request(format!("invalid resource version: {}", error.message)))?;
        let exact = call.query.get("resourceVersionMatch") == Some("Exact");
        match (start, exact) {
            (Start::At(revision), _) if revision > self.store.revision() => Err(self.too_large(revision)),
            (Start::At(revision), true) => Ok(Some(revision)),
            _ => Ok(None),
        }
    }

    /// A revision in the future: the client gets a timeout with a retry hint.
    pub fn too_large(&self, revision: Revision) -> ApiError {
        let message = format!("Too large resource version: {revision}, current: {}", self.store.revision());
        let mut error = ApiError::timeout(format!("Timeout: {message}"));
        error.details = json!({
            "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
            "retryAfterSeconds": 1,
        });
        error.retry_after_seconds = Some(1);
        error
    }

    async fn page(
        &self,
        call: &Call,
        selection: &Selection,
        limit: Option<usize>,
        after: Option<&str>,
        at: Option<Revision>,
    ) -> Result<Listed, ApiError> {
        let table = &call.resource.table;
        // The first read settles the revision; further ones of the same list stay on it.
        let revision = at.unwrap_or_else(|| self.store.revision());
        if let Some(only) = &selection.only {
            let entry = self.store.get_at(table, only, revision).map_err(|error| expired(&error, after))?;
            let mut entries: Vec<Entry> = entry.into_iter().collect();
            let matching = self.matching_entries(call, selection, &entries).await?;
            entries.retain(|_| matching == [true]);
            return Ok(Listed { entries, revision, remaining: None, next: None });
        }
        let mut range = Range { prefix: &selection.prefix, after, limit, at: Some(revision) };
        if selection.is_everything() {
            let page = self.store.range(table, range).map_err(|error| expired(&error, after))?;
            let next = (page.remaining > 0).then(|| continuation(&page.entries, revision)).flatten();
            return Ok(Listed { entries: page.entries, revision, remaining: Some(page.remaining), next });
        }
        range.limit = Some(SCAN_ENTRIES);
        let mut entries: Vec<Entry> = Vec::new();
        let mut last: Option<std::sync::Arc<str>> = None;
        loop {
            let page = self.store.range(table, Range { after: last.as_deref().or(after), ..range });
            let page = page.map_err(|error| expired(&error, after))?;
            let more = page.remaining > 0;
            let matching = self.matching_entries(call, selection, &page.entries).await?;
            for (index, entry) in page.entries.iter().enumerate() {
                if matching[index] {
                    entries.push(entry.clone());
                }
                if limit == Some(entries.len()) {
                    let rest = more || index + 1 < page.entries.len();
                    let next = rest.then(|| Continuation::new(&entry.key, revision).encode());
                    return Ok(Listed { entries, revision, remaining: None, next });
                }
            }
            last = page.entries.last().map(|entry| entry.key.clone());
            if !more {
                return Ok(Listed { entries, revision, remaining: None, next: None });
            }
        }
    }
}

impl Engine {
    async fn matching_entries(
        &self,
        call: &Call,
        selection: &Selection,
        entries: &[Entry],
    ) -> Result<Vec<bool>, ApiError> {
        let stored: Vec<&[u8]> = entries.iter().map(|entry| &*entry.value).collect();
        self.matching(&call.resource, selection, &stored).await
    }
}

fn continuation(entries: &[Entry], revision: Revision) -> Option<String> {
    entries.last().map(|entry| Continuation::new(&entry.key, revision).encode())
}

/// The 410 of a compacted revision; a paginated list gets a continue token to go on with.
fn expired(error: &ReadError, after: Option<&str>) -> ApiError {
    match (error, after) {
        (ReadError::Compacted { .. }, None) => {
            ApiError::expired("The resourceVersion for the provided list is too old.")
        }
        (ReadError::Compacted { .. }, Some(after)) => ApiError {
            continuation: Some(Continuation::inconsistent(after).encode()),
            ..ApiError::expired(INCONSISTENT)
        },
        (ReadError::Future { .. }, _) => ApiError::timeout(error.to_string()),
    }
}

/// The list as it lies in the store: a head, the objects one after another, and an end.
fn stream_list(call: &Call, metadata: &Value, entries: Vec<Entry>) -> Answer {
    let head = format!(
        "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{metadata},\"items\":[",
        Value::from(&*call.resource.list_kind),
        Value::from(call.resource.api_version()),
    );
    let size = head.len() + entries.iter().map(|entry| entry.value.len() + 1).sum::<usize>();
    let gzip = call.accepted.gzip && size >= GZIP_BYTES_MIN;
    let mut pieces = Pieces { head: Some(head), entries: entries.into_iter(), first: true, done: false };
    if size <= CHUNK_BYTES {
        let body = std::iter::from_fn(|| pieces.next()).collect::<Vec<Bytes>>().concat();
        return Answer::stream(Body::full(body), false);
    }
    match gzip {
        false => Answer::stream(Body::stream(stream::iter(pieces)), false),
        true => Answer::stream(Body::stream(stream::iter(gzipped(pieces))), true),
    }
}

/// Puts a list together piece by piece, so that a large one never lies in memory twice.
struct Pieces {
    head: Option<String>,
    entries: std::vec::IntoIter<Entry>,
    first: bool,
    done: bool,
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.done {
            return None;
        }
        let mut piece = BytesMut::with_capacity(CHUNK_BYTES / 4);
        if let Some(head) = self.head.take() {
            piece.put_slice(head.as_bytes());
        }
        while piece.len() < CHUNK_BYTES {
            let Some(entry) = self.entries.next() else {
                self.done = true;
                piece.put_slice(b"]}\n");
                break;
            };
            if !std::mem::take(&mut self.first) {
                piece.put_u8(b',');
            }
            piece.put_slice(&entry.value);
        }
        Some(piece.freeze())
    }
}

fn gzipped(pieces: Pieces) -> impl Iterator<Item = Bytes> {
    // Level 1: a list is read once, and the processor is dearer than the wire.
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut state = Some((pieces, encoder));
    std::iter::from_fn(move || {
        let (pieces, encoder) = state.as_mut()?;
        match pieces.next() {
            Some(piece) => {
                encoder.write_all(&piece).expect("writing into memory does not fail");
                Some(Bytes::from(std::mem::take(encoder.get_mut())))
            }
            None => {
                let (_, encoder) = state.take()?;
                Some(Bytes::from(encoder.finish().expect("writing into memory does not fail")))
            }
        }
    })
    .filter(|piece| !piece.is_empty())
}
