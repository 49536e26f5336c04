//! A client that watches through all restarts, always from the last revision it has seen.

use std::collections::BTreeMap;

use bytes::Bytes;
use checks::client::ApiClient;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;

use super::{SELECTED, revision, writer};

pub struct Watcher {
    last: u64,
    /// Every event by its revision: whose it was.
    pub seen: BTreeMap<u64, String>,
    /// What the events, put together, say is there.
    state: BTreeMap<String, u64>,
}

impl Watcher {
    /// A watcher of everything after a revision at which there is nothing yet.
    pub fn new(revision: u64) -> Self {
        Self { last: revision, seen: BTreeMap::new(), state: BTreeMap::new() }
    }

    /// Follows until the server is gone or, where one is given, the revision has been reached.
    pub async fn follow(&mut self, api_client: &ApiClient, until: Option<u64>) {
        let Ok(mut connection) = api_client.connect().await else { return };
        let timeout = if until.is_some() { "&timeoutSeconds=2" } else { "" };
        let path =
            format!("{SELECTED}&watch=true&allowWatchBookmarks=true&resourceVersion={}{timeout}", self.last);
        let request =
            Request::get(path).header(http::header::HOST, "localhost").body(Full::new(Bytes::new()));
        let Ok(response) = connection.send(request.expect("a request")).await else { return };
        assert_eq!(response.status(), 200);
        let mut body = response.into_body();
        let mut text = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            text.extend_from_slice(frame.data_ref().map_or(&[], |bytes| bytes));
            // Only whole lines count: the rest of one that was cut off comes again.
            let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let lines: Vec<u8> = text.drain(..end).collect();
            for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                self.take(&serde_json::from_slice(line).expect("an event per line"));
            }
            if until.is_some_and(|revision| self.last >= revision) {
                return;
            }
        }
    }

    fn take(&mut self, event: &Value) {
        let object = &event["object"];
        let revision = revision(&object["metadata"]);
        if event["type"] == "BOOKMARK" {
            assert!(revision >= self.last, "a bookmark goes forward");
            self.last = revision;
            return;
        }
        assert!(revision > self.last, "seen twice or out of order: {event}");
        self.last = revision;
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        let before = match event["type"].as_str() {
            Some("DELETED") => self.state.remove(&name).is_some(),
            Some(_) => self.state.insert(name.clone(), writer::whole(object)).is_some(),
            None => panic!("an event without type: {event}"),
        };
        assert_eq!(before, event["type"] != "ADDED", "an event between is missing: {event}");
        self.seen.insert(revision, name);
    }

    /// What the events say is there is there.
    pub fn check(&self, list: &Value) {
        let items = list["items"].as_array().expect("items").iter();
        let there = items
            .map(|item| (item["metadata"]["name"].as_str().expect("a name").to_owned(), writer::whole(item)));
        assert_eq!(self.state, there.collect());
    }
}
