//! Clients that keep a copy of a collection, as informers do: kube-rs watchers and reflectors, and list and watch as in
//! client-go. Each reports its copy, and every impossible event that it saw.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::task::JoinHandle;

use crate::log::Log;
use crate::random::SeededRandom;

mod account;
mod kube_rs;
mod list_watch;

use account::Stretch;

/// How long a follower that dozes does not look.
const DOZE_TIME: Duration = Duration::from_millis(1_700);

/// The names of objects and their revisions.
pub type Copied = BTreeMap<String, u64>;

/// What a follower has and saw.
#[derive(Debug, Default)]
pub struct FollowerState {
    /// Whether the writing has ended: what is left has to be read without dozing, however much it is.
    ended: bool,
    /// Its copy, absent until it has one.
    pub copy: Option<Copied>,
    /// How often it had to relist.
    pub lists: usize,
    /// What cannot be: events twice, out of order or missing.
    pub problems: Vec<String>,
    /// Revisions whose events it has seen, where it can tell.
    pub revisions: BTreeMap<u64, String>,
    /// The spans of revisions, after the first and up to the second, in which it claims to know every event.
    pub spans: Vec<(u64, u64)>,
    /// What it was told from one list to the next, where it does not tell revisions of lists.
    stretches: Vec<Stretch>,
}

/// A follower that runs until it is dropped.
pub struct Follower {
    /// What kind it is.
    pub name: &'static str,
    seen: Arc<Mutex<FollowerState>>,
    task: JoinHandle<()>,
}

impl Follower {
    fn spawn<Running>(name: &'static str, run: impl FnOnce(Arc<Mutex<FollowerState>>) -> Running) -> Self
    where
        Running: Future<Output = ()> + Send + 'static,
    {
        let seen = Arc::new(Mutex::new(FollowerState::default()));
        Self { name, task: tokio::spawn(run(seen.clone())), seen }
    }

    /// Looks at what it has.
    pub fn with_state<Answer>(&self, read: impl FnOnce(&FollowerState) -> Answer) -> Answer {
        read(&self.seen.lock().expect("no one panics while holding it"))
    }

    /// Holds what it saw against the log, which has to be whole; answers with how many changes it was told.
    pub fn check(&self, log: &Log) -> usize {
        self.with_state(|seen| {
            let changes = match seen.stretches.is_empty() {
                true => account::judge_spans(&seen.spans, &seen.revisions, log),
                false => account::judge_stretches(&seen.stretches, log),
            };
            changes.unwrap_or_else(|why| panic!("{}: {why}", self.name))
        })
    }

    /// Signals the followers that writing has ended.
    pub fn end(&self) {
        self.seen.lock().expect("no one panics while holding it").ended = true;
    }
}

/// Now and then, while there is still something written, one that dozes does not look for a while.
async fn doze(random: &mut Option<SeededRandom>, one_in: u64, seen: &Mutex<FollowerState>) {
    let dozes = random.as_mut().is_some_and(|random| random.below(one_in) == 0);
    if dozes && !seen.lock().expect("no one panics while holding it").ended {
        tokio::time::sleep(DOZE_TIME).await;
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One follower of each kind, of the ConfigMaps that carry this label.
pub fn all(client: &Client, label: &'static str, random: &mut SeededRandom) -> Vec<Follower> {
    let api = Api::<ConfigMap>::default_namespaced(client.clone());
    let config = || watcher::Config::default().labels(label).timeout(1);
    let watch = |name, config, doze: Option<SeededRandom>| {
        let api = api.clone();
        Follower::spawn(name, |seen| kube_rs::watch(api, config, doze, seen))
    };
    vec![
        watch("kube-rs watcher", config(), None),
        watch("kube-rs watcher in pages", config().page_size(3), None),
        watch("kube-rs watcher with streaming lists", config().streaming_lists(), None),
        watch("kube-rs watcher that dozes", config().page_size(3), Some(random.fork())),
        Follower::spawn("kube-rs reflector", |seen| kube_rs::reflect(api.clone(), config(), seen)),
        Follower::spawn("list and watch", |seen| list_watch::run(client.clone(), label, None, seen)),
        Follower::spawn("list and watch that dozes", |seen| {
            list_watch::run(client.clone(), label, Some(random.fork()), seen)
        }),
    ]
}
