//! Application failover: does the application fail in a cluster, and since when? The time is kept on the binding, so
//! that a restart loses nothing (R1).

use std::collections::BTreeMap;

use api::binding::GracefulEvictionTask;
use api::failover::PurgeMode;
use api::work::Health;
use api::{Binding, Time};
use jiff::Timestamp;
use serde::Deserialize;

use super::{Evictions, UNHEALTHY_SINCE, Why};
use crate::affinity::later;
use crate::interpret::has_health;

/// How long a failing application is borne unless its policy says otherwise.
const TOLERATION_SECONDS: i32 = 300;

/// Since when, by cluster.
#[derive(Default, Deserialize)]
#[serde(transparent)]
struct Since(BTreeMap<String, Time>);

/// Adds the clusters in which the workload is unhealthy for too long, and remembers since when.
pub(super) fn evict(binding: &Binding, now: Timestamp, answer: &mut Evictions) {
    let spec = &binding.spec;
    let Some(rules) = spec.failover.as_ref().and_then(|failover| failover.application.as_ref()) else {
        return;
    };
    if !spec.propagate_deps || !has_health(&spec.resource.api_version, &spec.resource.kind) {
        return;
    }
    let Since(known) = serde_json::from_str(binding.metadata.annotation(UNHEALTHY_SINCE)).unwrap_or_default();
    let toleration_seconds = rules.decision_conditions.toleration_seconds.unwrap_or(TOLERATION_SECONDS);
    let purge_mode = rules.purge_mode.unwrap_or_default();
    let graceful = matches!(purge_mode, PurgeMode::Gracefully | PurgeMode::Graciously);
    for item in &binding.status.aggregated_status {
        let cluster = &item.cluster_name;
        let evicting = spec.graceful_eviction_tasks.iter().any(|task| task.from_cluster == *cluster);
        let chosen = spec.clusters.iter().any(|target| target.name == *cluster);
        if item.health != Some(Health::Unhealthy) || evicting || !chosen {
            continue;
        }
        let since = known.get(cluster).copied().unwrap_or(now.into());
        answer.unhealthy_since.insert(cluster.clone(), since);
        let at = later(since, toleration_seconds.into());
        if at.timestamp() > now {
            answer.look_again(at);
            continue;
        }
        let task = GracefulEvictionTask {
            purge_mode: Some(purge_mode),
            producer: producer(binding).to_owned(),
            grace_period_seconds: rules.grace_period_seconds.filter(|_| graceful),
            suppress_deletion: (purge_mode == PurgeMode::Never).then_some(true),
            ..GracefulEvictionTask::default()
        };
        answer.add(binding, cluster, Why::ApplicationFailure { since, toleration_seconds }, task);
    }
}

/// The names Karmada's controllers sign with.
fn producer(binding: &Binding) -> &'static str {
    match binding.metadata.namespace.as_str() {
        "" => "cluster-resource-binding-application-failover-controller",
        _ => "resource-binding-application-failover-controller",
    }
}
