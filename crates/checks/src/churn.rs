//! Write load: several clients create, update and delete objects concurrently.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use tokio::task::JoinHandle;

use crate::followers::{Copied, Follower};
use crate::random::SeededRandom;

const NAMES: u64 = 20;
const WRITERS: usize = 2;
/// How long followers may take to have everything when the writing has ended.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(20);

/// Writers at work.
pub struct Churn {
    api: Api<ConfigMap>,
    label: &'static str,
    stop: Arc<AtomicBool>,
    /// The revisions of acknowledged writes.
    acknowledged: Arc<Mutex<Vec<(u64, String)>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Churn {
    /// Starts writing ConfigMaps that carry this label.
    pub fn start(client: &Client, label: &'static str, random: &mut SeededRandom) -> Self {
        let api = Api::<ConfigMap>::default_namespaced(client.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::default();
        let writer = |_| {
            let (api, stop, acknowledged) = (api.clone(), stop.clone(), Arc::clone(&acknowledged));
            tokio::spawn(write(api, label, random.fork(), stop, acknowledged))
        };
        let tasks = (0..WRITERS).map(writer).collect();
        Self { api, label, stop, acknowledged, tasks }
    }

    /// Ends the writing; then every follower has to get what is there, having seen nothing impossible.
    /// Interpreters with what is there.
    pub async fn check(self, followers: &[Follower]) -> Copied {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("writers end when they are told to");
        }
        followers.iter().for_each(Follower::end);
        // A follower that has received the last object has received every event before it.
        let mut last = ConfigMap::default();
        last.metadata.name = Some("c-last".to_owned());
        last.labels_mut().insert(self.label.to_owned(), String::new());
        self.api.create(&PostParams::default(), &last).await.expect("the last object");
        let list = self.api.list(&ListParams::default().labels(self.label)).await.expect("a list");
        let there: Copied = list.items.iter().map(|object| (object.name_any(), revision(object))).collect();
        let acknowledged = self.acknowledged.lock().expect("no one panics while holding it").clone();
        assert!(acknowledged.len() > 50, "there was hardly anything to see: {}", acknowledged.len());
        for follower in followers {
            settle(follower, &there).await;
            follower.with_state(|seen| {
                assert!(seen.problems.is_empty(), "{}: {:#?}", follower.name, seen.problems);
                let known =
                    |revision: u64| seen.spans.iter().any(|(from, to)| *from < revision && revision <= *to);
                for (revision, name) in acknowledged.iter().filter(|(revision, _)| known(*revision)) {
                    assert_eq!(
                        seen.revisions.get(revision),
                        Some(name),
                        "{} missed {revision}",
                        follower.name
                    );
                }
            });
        }
        there
    }
}

async fn settle(follower: &Follower, there: &Copied) {
    let begun = std::time::Instant::now();
    while follower.with_state(|seen| seen.copy.as_ref() != Some(there)) {
        let late = begun.elapsed() > CATCH_UP_TIMEOUT;
        assert!(
            !late,
            "{} has {:#?}, there is {there:#?}",
            follower.name,
            follower.with_state(|seen| seen.copy.clone())
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn revision(object: &ConfigMap) -> u64 {
    object.resource_version().and_then(|text| text.parse().ok()).expect("every object has a resourceVersion")
}

async fn write(
    api: Api<ConfigMap>,
    label: &'static str,
    mut random: SeededRandom,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<Mutex<Vec<(u64, String)>>>,
) {
    while !stop.load(Ordering::Relaxed) {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(format!("c-{}", random.below(NAMES)));
        object.labels_mut().insert(label.to_owned(), String::new());
        object.data = Some([("value".to_owned(), random.below(1_000_000).to_string())].into());
        let name = object.name_any();
        let written = match random.below(3) {
            0 => api.create(&PostParams::default(), &object).await,
            1 => api.replace(&name, &PostParams::default(), &object).await,
            _ => {
                // What a delete is answered with does not tell its revision.
                drop(api.delete(&name, &DeleteParams::default()).await);
                continue;
            }
        };
        // What is there already or not there yet is refused, and a server that is down answers nothing.
        match written {
            Ok(object) => {
                let mut acknowledged = acknowledged.lock().expect("no one panics while holding it");
                acknowledged.push((revision(&object), name));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}
