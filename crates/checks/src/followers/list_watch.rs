//! List and watch as client-go's reflectors do it: in pages or as a WatchList, then watches from the last revision with
//! bookmarks, and a relist only when the server says that the revision is gone (410).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use super::{Copied, FollowerState};
use crate::random::SeededRandom;

const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Why a list or watch did not come to its end.
enum Stop {
    /// The server or the connection failed: try again from where we are.
    Broken,
    /// The revision is gone (410): relist.
    Expired,
}

struct Reflector {
    client: Client,
    label: &'static str,
    seen: Arc<Mutex<FollowerState>>,
    /// The last revision that is known.
    revision: u64,
    copy: Copied,
}

/// Runs for ever; one that dozes sometimes does not look for a while.
pub(super) async fn run(
    client: Client,
    label: &'static str,
    mut random: Option<SeededRandom>,
    seen: Arc<Mutex<FollowerState>>,
) {
    let mut reflector = Reflector { client, label, seen, revision: 0, copy: Copied::new() };
    for turn in 0_usize.. {
        // Every other time the list comes through a watch.
        let listed = match turn % 2 {
            0 => reflector.list().await,
            _ => reflector.watch_list().await,
        };
        if listed.is_err() {
            tokio::time::sleep(RETRY_INTERVAL).await;
            continue;
        }
        reflector.begin_span();
        while !matches!(reflector.watch().await, Err(Stop::Expired)) {
            tokio::time::sleep(RETRY_INTERVAL).await;
            super::doze(&mut random, 3, &reflector.seen).await;
        }
    }
}

impl Reflector {
    /// Reads the collection in pages.
    async fn list(&mut self) -> Result<(), Stop> {
        let mut copy = Copied::new();
        let mut token = String::new();
        loop {
            let path = format!("{COLLECTION}?labelSelector={}&limit=3&continue={token}", self.label);
            let list = self.json(&path).await?;
            for item in list["items"].as_array().into_iter().flatten() {
                copy.insert(name(item), revision(item));
            }
            match list["metadata"]["continue"].as_str() {
                Some(next) if !next.is_empty() => token = next.to_owned(),
                _ => {
                    self.revision = revision(&list);
                    self.copy = copy;
                    return Ok(());
                }
            }
        }
    }

    /// Reads the collection as the beginning of a watch.
    async fn watch_list(&mut self) -> Result<(), Stop> {
        let path = format!(
            "{COLLECTION}?labelSelector={}&watch=true&allowWatchBookmarks=true&sendInitialEvents=true\
             &resourceVersionMatch=NotOlderThan&timeoutSeconds=5",
            self.label
        );
        let mut lines = self.open(&path).await?;
        let mut copy = Copied::new();
        while let Some(event) = lines.next().await? {
            let object = &event["object"];
            if object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true" {
                self.revision = revision(object);
                self.copy = copy;
                return Ok(());
            }
            copy.insert(name(object), revision(object));
        }
        Err(Stop::Broken)
    }

    fn begin_span(&mut self) {
        let mut seen = self.seen.lock().expect("no one panics while holding it");
        seen.lists += 1;
        seen.spans.push((self.revision, self.revision));
        seen.copy = Some(self.copy.clone());
    }

    async fn watch(&mut self) -> Result<(), Stop> {
        let path = format!(
            "{COLLECTION}?labelSelector={}&watch=true&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion={}",
            self.label, self.revision
        );
        let mut lines = self.open(&path).await?;
        while let Some(event) = lines.next().await? {
            if event["type"] == "ERROR" {
                let expired = event["object"]["code"] == 410;
                return Err(if expired { Stop::Expired } else { Stop::Broken });
            }
            self.take(&event);
        }
        Ok(())
    }

    fn take(&mut self, event: &Value) {
        let object = &event["object"];
        let now = revision(object);
        let mut seen = self.seen.lock().expect("no one panics while holding it");
        let bookmark = event["type"] == "BOOKMARK";
        if now < self.revision || (now == self.revision && !bookmark) {
            seen.problems.push(format!("after revision {}: {event}", self.revision));
        }
        self.revision = now;
        if let Some(span) = seen.spans.last_mut() {
            span.1 = now;
        }
        if bookmark {
            return;
        }
        let before = match event["type"].as_str() {
            Some("DELETED") => self.copy.remove(&name(object)),
            _ => self.copy.insert(name(object), now),
        };
        if before.is_some() != (event["type"] != "ADDED") {
            seen.problems.push(format!("something before this is missing: {event}"));
        }
        seen.revisions.insert(now, name(object));
        seen.copy = Some(self.copy.clone());
    }

    async fn json(&self, path: &str) -> Result<Value, Stop> {
        let response = self.send(path).await?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|_| Stop::Broken)?;
        match status {
            StatusCode::OK => serde_json::from_slice(&body.to_bytes()).map_err(|_| Stop::Broken),
            StatusCode::GONE => Err(Stop::Expired),
            _ => Err(Stop::Broken),
        }
    }

    async fn open(&self, path: &str) -> Result<Lines, Stop> {
        let response = self.send(path).await?;
        match response.status() {
            StatusCode::OK => Ok(Lines { body: response.into_body(), rest: Vec::new() }),
            StatusCode::GONE => Err(Stop::Expired),
            _ => Err(Stop::Broken),
        }
    }

    async fn send(&self, path: &str) -> Result<http::Response<Body>, Stop> {
        let request = Request::get(path).body(Body::empty()).expect("a well-formed request");
        self.client.send(request).await.map_err(|_| Stop::Broken)
    }
}

/// A stream of events, one per line.
struct Lines {
    body: Body,
    rest: Vec<u8>,
}

impl Lines {
    async fn next(&mut self) -> Result<Option<Value>, Stop> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return serde_json::from_slice(&line).map(Some).map_err(|_| Stop::Broken);
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(_)) => return Err(Stop::Broken),
                Some(Ok(frame)) => {
                    self.rest.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
                }
            }
        }
    }
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().expect("every object has a name").to_owned()
}

fn revision(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str().expect("everything has a resourceVersion");
    text.parse().expect("a resourceVersion is a number here")
}
