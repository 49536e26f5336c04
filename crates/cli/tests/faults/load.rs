//! Background load during faults: creates and updates ConfigMaps, also suspended ones, and edits the policy of lazy
//! ones.

use std::collections::BTreeMap;
use std::time::Duration;

use checks::client::ApiClient;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::objects::{CONFIG_MAPS, POLICIES, config_map, policy, write};

/// One in so many is made for a policy that is suspended.
const SUSPENDED_ONE_IN: usize = 10;
/// How many others are made before one is changed.
const CREATES_BETWEEN_CHANGES: usize = 20;
/// Policies are edited once in so many.
const POLICY_EDITED: usize = 25;

/// A client that writes until it is stopped.
pub struct Load {
    stop: watch::Sender<bool>,
    task: JoinHandle<Made>,
}

/// What was made.
#[derive(Default)]
pub struct Made {
    /// ConfigMaps that have to arrive, and how often each was changed.
    pub acts: BTreeMap<String, usize>,
    /// How many must not arrive.
    pub held: usize,
    /// How often a policy was edited that is lazy.
    pub edits: usize,
}

impl Load {
    /// Begins; between two writes it pauses for so long.
    pub fn start(api_client: ApiClient, pause: Duration) -> Self {
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(async move {
            let mut made = Made::default();
            let mut number = 0;
            while !*stopped.borrow() {
                step(&api_client, number, &mut made).await;
                number += 1;
                tokio::time::sleep(pause).await;
            }
            made
        });
        Self { stop, task }
    }

    /// Stops, and returns what was created.
    pub async fn end(self) -> Made {
        self.stop.send_replace(true);
        self.task.await.expect("everything was taken in the end")
    }
}

async fn step(api_client: &ApiClient, number: usize, made: &mut Made) {
    if number.is_multiple_of(SUSPENDED_ONE_IN) {
        write(api_client, Method::POST, CONFIG_MAPS, &config_map(&format!("held-{number}"), "held")).await;
        made.held += 1;
    } else {
        let name = format!("acts-{number}");
        write(api_client, Method::POST, CONFIG_MAPS, &config_map(&name, "acts")).await;
        made.acts.insert(name, 0);
    }
    if let Some(earlier) = number.checked_sub(CREATES_BETWEEN_CHANGES)
        && let Some(changes) = made.acts.get_mut(&format!("acts-{earlier}"))
    {
        *changes += 1;
        let patch = json!({ "data": { "key": changes.to_string() } });
        write(api_client, Method::PATCH, &format!("{CONFIG_MAPS}/acts-{earlier}"), &patch).await;
    }
    if number.is_multiple_of(POLICY_EDITED) {
        made.edits += 1;
        let clusters: &[&str] =
            if made.edits.is_multiple_of(2) { &["member1"] } else { &["member1", "member2"] };
        let lazy: Value = policy("lazy", clusters, json!({}))["spec"]["placement"].clone();
        let patch = json!({ "spec": { "placement": lazy } });
        write(api_client, Method::PATCH, &format!("{POLICIES}/lazy"), &patch).await;
    }
}
