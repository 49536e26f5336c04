//! The reflector of one kind: its initial list and all later changes, over the API server's watch. After 410 Gone it
//! lists again and then reports deletions.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use apiserver::body::Body;
use bytes::{Buf as _, BytesMut};
use futures::future::BoxFuture;
use http::Response;
use http_body::Body as _;
use serde::Deserialize;

use crate::client::Client;
use crate::facts::{self, Facts};
use crate::key::{Key, Kind};

/// One watch event.
#[derive(Debug)]
pub enum Update {
    /// An object is there, in this state.
    State(Key, Facts),
    /// An object is gone since this revision.
    Gone(Key, u64),
    /// The list is complete: whatever is not in the set did not exist at this revision.
    Complete(BTreeSet<Key>, u64),
}

enum State {
    Opening(BoxFuture<'static, Response<Body>>),
    Open(Body),
    /// The kind is not served, or the server is ending. It may be served later.
    Missing,
}

/// The reflector of one kind.
pub struct Reflector {
    pub kind: Kind,
    client: Client,
    state: State,
    /// Bytes of a line whose end has not come yet.
    rest: BytesMut,
    /// The last revision that was passed on.
    revision: Option<u64>,
    /// Whether something came since the watch was opened.
    alive: bool,
    /// The objects seen so far, while the initial list is passed on.
    starting: Option<BTreeSet<Key>>,
}

impl Reflector {
    /// A reflector that begins with the state that is there now.
    pub fn new(kind: Kind, client: Client) -> Reflector {
        let state = State::Opening(client.watch(kind, None));
        let (rest, starting) = (BytesMut::new(), Some(BTreeSet::new()));
        Reflector { kind, client, state, rest, revision: None, alive: false, starting }
    }

    /// Whether the initial list has been passed on, or there is none.
    pub fn is_complete(&self) -> bool {
        self.starting.is_none() || matches!(self.state, State::Missing)
    }

    /// Asks again for a kind that was not served.
    pub fn reopen_if_missing(&mut self) {
        if matches!(self.state, State::Missing) {
            self.open(None);
        }
    }

    /// Passes on changes until there are none or `max` have been passed. `Ready` says how many there were; `Pending`
    /// says that everything written so far has been passed on.
    pub fn poll(
        &mut self,
        context: &mut Context<'_>,
        max: usize,
        emit: &mut dyn FnMut(Update),
    ) -> Poll<usize> {
        let mut received = 0;
        loop {
            received += self.emit_lines(max - received, emit);
            if received >= max {
                return Poll::Ready(received);
            }
            match self.poll_more(context) {
                Poll::Ready(true) => {}
                Poll::Pending | Poll::Ready(false) if received > 0 => return Poll::Ready(received),
                Poll::Pending | Poll::Ready(false) => return Poll::Pending,
            }
        }
    }

    /// Gets more bytes; false when the kind is not served.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        match &mut self.state {
            State::Missing => return Poll::Ready(false),
            State::Opening(answer) => {
                let response = ready!(answer.as_mut().poll(context));
                self.state = match response.status().is_success() {
                    true => State::Open(response.into_body()),
                    false => State::Missing,
                };
            }
            State::Open(body) => match ready!(Pin::new(body).poll_frame(context)) {
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.alive = true;
                        self.rest.extend_from_slice(&bytes);
                    }
                }
                // A watch that ends before it said anything would end again and again.
                None if !self.alive => self.state = State::Missing,
                // The watch ended: it goes on from where it was.
                None => self.open(self.revision.filter(|_| self.starting.is_none())),
                Some(Err(never)) => match never {},
            },
        }
        Poll::Ready(true)
    }

    fn open(&mut self, after: Option<u64>) {
        self.rest.clear();
        self.alive = false;
        if after.is_none() {
            self.starting = Some(BTreeSet::new());
        }
        self.state = State::Opening(self.client.watch(self.kind, after));
    }

    fn emit_lines(&mut self, max: usize, emit: &mut dyn FnMut(Update)) -> usize {
        let mut received = 0;
        while received < max
            && let Some(end) = self.rest.iter().position(|byte| *byte == b'\n')
        {
            let line = self.rest.split_to(end);
            self.rest.advance(1);
            self.emit_line(&line, emit);
            received += 1;
        }
        received
    }

    fn emit_line(&mut self, line: &[u8], emit: &mut dyn FnMut(Update)) {
        let Some((word, object)) = split_line(line) else { return };
        match word {
            b"ADDED" | b"MODIFIED" | b"DELETED" => {
                let Some((key, facts)) = facts::read(self.kind, object) else { return };
                self.revision = Some(facts.revision);
                if word == b"DELETED" {
                    return emit(Update::Gone(key, facts.revision));
                }
                if let Some(there) = &mut self.starting {
                    there.insert(key.clone());
                }
                emit(Update::State(key, facts));
            }
            b"BOOKMARK" => {
                if let Ok(Bookmark { metadata }) = serde_json::from_slice(object) {
                    self.revision = metadata.resource_version.parse().ok().or(self.revision);
                }
                if let Some(there) = self.starting.take_if(|_| ends_the_start(object)) {
                    emit(Update::Complete(there, self.revision.unwrap_or(0)));
                }
            }
            // The revision is compacted, or the server ended the watch: list again.
            _ => self.open(None),
        }
    }
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

fn ends_the_start(bookmark: &[u8]) -> bool {
    const MARK: &[u8] = b"k8s.io/initial-events-end";
    bookmark.windows(MARK.len()).any(|window| window == MARK)
}

/// The word and the object of `{"type":"WORD","object":OBJECT}`.
fn split_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    let quote = rest.iter().position(|byte| *byte == b'"')?;
    let (word, rest) = rest.split_at(quote);
    let object = rest.strip_prefix(b"\",\"object\":")?.strip_suffix(b"}")?;
    Some((word, object))
}
