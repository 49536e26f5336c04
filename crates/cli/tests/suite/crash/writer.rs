//! A client that writes to names of its own and remembers what the server acknowledged.

use std::collections::BTreeMap;

use checks::client::{ApiClient, Connection};
use checks::random::SeededRandom;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{COLLECTION, revision};

const NAMES: u64 = 8;

/// What a name is known to hold.
#[derive(Debug, Clone, PartialEq)]
enum Known {
    Absent,
    /// The counter of its last write, and the revision of it.
    Present(u64, u64),
}

pub struct Writer {
    index: usize,
    random: SeededRandom,
    counter: u64,
    known: BTreeMap<String, Known>,
    /// The write that was under way when the server died, and what it would have made.
    pending: Option<(String, Option<u64>)>,
    /// The revisions and names of acknowledged writes (deletes do not tell theirs).
    pub acknowledged: Vec<(u64, String)>,
}

impl Writer {
    pub fn new(index: usize, random: SeededRandom) -> Self {
        Self { index, random, counter: 0, known: BTreeMap::new(), pending: None, acknowledged: Vec::new() }
    }

    /// Writes until the server is gone.
    pub async fn work(&mut self, api_client: &ApiClient) {
        let Ok(mut connection) = api_client.connect().await else { return };
        while self.write_once(&mut connection).await.is_some() {}
    }

    async fn write_once(&mut self, connection: &mut Connection) -> Option<()> {
        let name = format!("w{}-{}", self.index, self.random.below(NAMES));
        let known = self.known.get(&name).cloned().unwrap_or(Known::Absent);
        let path = format!("{COLLECTION}/{name}");
        self.counter += 1;
        let counter = self.counter;
        let delete = known != Known::Absent && self.random.below(4) == 0;
        self.pending = Some((name.clone(), (!delete).then_some(counter)));
        let (wanted, answer) = match (&known, delete) {
            (_, true) => (StatusCode::OK, connection.json(Method::DELETE, &path, "").await),
            (Known::Absent, _) => (
                StatusCode::CREATED,
                connection.json(Method::POST, COLLECTION, body(&name, counter, None)).await,
            ),
            (Known::Present(_, revision), _) => {
                // Half of the updates insist on the state that was acknowledged last.
                let pinned = counter.is_multiple_of(2).then_some(*revision);
                (StatusCode::OK, connection.json(Method::PUT, &path, body(&name, counter, pinned)).await)
            }
        };
        // An answer that was cut off is no answer.
        let (status, object) = answer.ok().filter(|(_, object)| !object.is_null())?;
        assert_eq!(status, wanted, "{name} is {known:?}: {object}");
        self.pending = None;
        let next = match delete {
            true => Known::Absent,
            false => {
                let revision = revision(&object["metadata"]);
                let before = self.acknowledged.last().map_or(0, |(revision, _)| *revision);
                assert!(revision > before, "writes one after another get growing revisions");
                self.acknowledged.push((revision, name.clone()));
                Known::Present(counter, revision)
            }
        };
        self.known.insert(name, next);
        Some(())
    }

    /// After a restart every name holds what was acknowledged last, or what was under way.
    pub fn check(&mut self, list: &Value, round: usize) {
        let mine = format!("w{}-", self.index);
        let mut found = BTreeMap::new();
        for item in list["items"].as_array().expect("items") {
            let name = item["metadata"]["name"].as_str().expect("a name");
            if name.starts_with(&mine) {
                found.insert(name.to_owned(), Known::Present(whole(item), revision(&item["metadata"])));
            }
        }
        let pending = self.pending.take();
        for index in 0..NAMES {
            let name = format!("{mine}{index}");
            let known = self.known.get(&name).cloned().unwrap_or(Known::Absent);
            let now = found.get(&name).cloned().unwrap_or(Known::Absent);
            let was_pending = pending.as_ref().filter(|(one, _)| *one == name).map(|(_, counter)| *counter);
            let happened = match (was_pending, &now) {
                (Some(None), Known::Absent) => true,
                (Some(Some(counter)), Known::Present(found, revision)) => {
                    let newer = !matches!(known, Known::Present(_, old) if *revision <= old);
                    counter == *found && newer
                }
                _ => false,
            };
            assert!(
                now == known || happened,
                "round {round}: {name} was {known:?}, is {now:?}, {was_pending:?}"
            );
            self.known.insert(name, now);
        }
    }
}

fn body(name: &str, counter: u64, pinned: Option<u64>) -> String {
    let mut metadata = json!({ "name": name, "labels": { "crash": "" } });
    if let Some(revision) = pinned {
        metadata["resourceVersion"] = revision.to_string().into();
    }
    let filling = counter.to_string().repeat(100);
    let data = json!({ "first": counter.to_string(), "filling": filling, "last": counter.to_string() });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data }).to_string()
}

/// The counter of an object, all of whose parts belong to the same write.
pub fn whole(object: &Value) -> u64 {
    let data = &object["data"];
    let counter = data["first"].as_str().expect("a counter");
    assert_eq!(data["last"], counter, "half an object: {object}");
    assert_eq!(data["filling"], counter.repeat(100), "half an object: {object}");
    counter.parse().expect("a number")
}
