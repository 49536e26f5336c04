//! Followers with kube-rs' own clients. They report objects, not revisions of lists: checked at once is that no object
//! goes back to an older revision, and that they relist only after the server said that their revision is gone (410).
//! Events between lists are kept, to be compared with the log.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::{Error, Event};
use kube::runtime::{reflector, watcher};
use kube::{Api, ResourceExt as _};

use super::account::Stretch;
use super::{Copied, FollowerState};
use crate::log::Change;
use crate::random::SeededRandom;

/// How long a failed attempt waits for the next.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

fn entry(object: &ConfigMap) -> (String, u64) {
    let revision = object.resource_version().and_then(|text| text.parse().ok());
    (object.name_any(), revision.expect("every object has a resourceVersion"))
}

/// What a stream of events has told so far.
#[derive(Default)]
struct Told {
    /// The newest revision of each name that was ever seen.
    newest: Copied,
    /// The list that is coming in.
    coming: Copied,
    /// Whether a list is complete and changes follow it.
    is_following: bool,
    /// Whether the server has just said that the revision is gone.
    is_expired: bool,
}

/// A watcher whose events are put together here.
pub(super) async fn watch(
    api: Api<ConfigMap>,
    config: watcher::Config,
    mut random: Option<SeededRandom>,
    seen: Arc<Mutex<FollowerState>>,
) {
    let mut events = watcher(api, config).boxed();
    let mut told = Told::default();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                let mut seen = seen.lock().expect("no one panics while holding it");
                told.take(&event, &mut seen);
                put_together(event, &mut seen);
            }
            Err(error) => {
                told.is_expired = is_expiry(&error);
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
        super::doze(&mut random, 20, &seen).await;
    }
}

/// kube-rs relists after this error and after no other, once it has listed.
fn is_expiry(error: &Error) -> bool {
    matches!(error, Error::WatchError(status) if status.code == 410)
}

impl Told {
    fn check(&mut self, object: &ConfigMap, may_repeat: bool, seen: &mut FollowerState) -> (String, u64) {
        let (name, revision) = entry(object);
        let before = self.newest.insert(name.clone(), revision).unwrap_or(0);
        if revision < before || (revision == before && !may_repeat) {
            seen.problems.push(format!("{name} went from {before} to {revision}"));
        }
        (name, revision)
    }

    fn take(&mut self, event: &Event<ConfigMap>, seen: &mut FollowerState) {
        match event {
            Event::Init => {
                if self.is_following && !self.is_expired {
                    seen.problems.push("started anew, though its revision was not gone".to_owned());
                }
                self.is_following = false;
                self.coming.clear();
            }
            Event::InitApply(object) => {
                let (name, revision) = self.check(object, true, seen);
                self.coming.insert(name, revision);
            }
            Event::InitDone => {
                self.is_following = true;
                seen.lists += 1;
                let listed = std::mem::take(&mut self.coming);
                seen.stretches.push(Stretch { listed, events: Vec::new() });
            }
            Event::Apply(object) | Event::Delete(object) => {
                let (name, revision) = self.check(object, false, seen);
                let change = Change { name, is_gone: matches!(event, Event::Delete(_)) };
                match seen.stretches.last_mut() {
                    Some(stretch) => stretch.events.push((revision, change)),
                    None => seen.problems.push(format!("{change:?} at {revision} before any list")),
                }
            }
        }
        self.is_expired = false;
    }
}

fn put_together(event: Event<ConfigMap>, seen: &mut FollowerState) {
    match event {
        Event::Init | Event::InitApply(_) => {}
        Event::InitDone => seen.copy = seen.stretches.last().map(|stretch| stretch.listed.clone()),
        Event::Apply(object) => {
            let (name, revision) = entry(&object);
            seen.copy.get_or_insert_default().insert(name, revision);
        }
        Event::Delete(object) => {
            seen.copy.get_or_insert_default().remove(&object.name_any());
        }
    }
}

/// A reflector, whose own store is the copy.
pub(super) async fn reflect(api: Api<ConfigMap>, config: watcher::Config, seen: Arc<Mutex<FollowerState>>) {
    let (reader, writer) = reflector::store();
    let mut events = reflector(writer, watcher(api, config)).boxed();
    let mut told = Told::default();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                let mut seen = seen.lock().expect("no one panics while holding it");
                told.take(&event, &mut seen);
                if seen.lists > 0 {
                    seen.copy = Some(reader.state().iter().map(|object| entry(object)).collect());
                }
            }
            Err(error) => {
                told.is_expired = is_expiry(&error);
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
    }
}
