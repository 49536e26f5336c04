//! kube-rs' own clients. They tell objects, not revisions of lists, so what is checked is that no object
//! ever goes back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::Event;
use kube::runtime::{reflector, watcher};
use kube::{Api, ResourceExt as _};

use super::{Copied, Seen};
use crate::dice::Dice;

/// How long a failed attempt waits for the next.
const PAUSE: Duration = Duration::from_millis(20);

fn entry(object: &ConfigMap) -> (String, u64) {
    let revision = object.resource_version().and_then(|text| text.parse().ok());
    (object.name_any(), revision.expect("every object has a resourceVersion"))
}

/// A watcher whose events are put together here.
pub(super) async fn watch(
    api: Api<ConfigMap>,
    config: watcher::Config,
    mut dice: Option<Dice>,
    seen: Arc<Mutex<Seen>>,
) {
    let mut events = watcher(api, config).boxed();
    // The newest revision of each name that was ever seen, and the list that is coming in.
    let (mut newest, mut coming) = (Copied::new(), Copied::new());
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => take(event, &mut newest, &mut coming, &seen),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
        super::doze(&mut dice, 20, &seen).await;
    }
}

fn take(event: Event<ConfigMap>, newest: &mut Copied, coming: &mut Copied, seen: &Mutex<Seen>) {
    let mut seen = seen.lock().expect("no one panics while holding it");
    let mut check = |object: &ConfigMap, may_repeat: bool| {
        let (name, revision) = entry(object);
        let before = newest.insert(name.clone(), revision).unwrap_or(0);
        if revision < before || (revision == before && !may_repeat) {
            seen.problems.push(format!("{name} went from {before} to {revision}"));
        }
        (name, revision)
    };
    match event {
        Event::Init => coming.clear(),
        Event::InitApply(object) => {
            let (name, revision) = check(&object, true);
            coming.insert(name, revision);
        }
        Event::InitDone => {
            seen.copy = Some(std::mem::take(coming));
            seen.lists += 1;
        }
        Event::Apply(object) => {
            let (name, revision) = check(&object, false);
            seen.copy.get_or_insert_default().insert(name, revision);
        }
        Event::Delete(object) => {
            let (name, _) = check(&object, false);
            seen.copy.get_or_insert_default().remove(&name);
        }
    }
}

/// A reflector, whose own store is the copy.
pub(super) async fn reflect(api: Api<ConfigMap>, config: watcher::Config, seen: Arc<Mutex<Seen>>) {
    let (reader, writer) = reflector::store();
    let mut events = reflector(writer, watcher(api, config)).boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                let mut seen = seen.lock().expect("no one panics while holding it");
                seen.lists += usize::from(matches!(event, Event::InitDone));
                if seen.lists > 0 {
                    seen.copy = Some(reader.state().iter().map(|object| entry(object)).collect());
                }
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
