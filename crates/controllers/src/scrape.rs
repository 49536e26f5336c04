//! The text of `/metrics`: what controllers counted, and the gauges that are computed on scrape: the work queues, the
//! clusters in the informer cache, and leadership. Contains no server.

use std::fmt::Write as _;

use api::Cluster;
use api::cluster::READY;
use api::{ConditionStatus, quantity::ResourceList};
use decide::conditions;
use decide::quantity::Amount;

use crate::ctx::Ctx;
use crate::leader_election::LEASE;
use crate::metrics::families::{
    CLUSTER_GAUGES, EVICTION_QUEUE_DEPTH, Family, LEADER, WORKQUEUE_ADDS, WORKQUEUE_DELAYED, WORKQUEUE_DEPTH,
    WORKQUEUE_FAILING, WORKQUEUE_RETRIES, WORKQUEUE_WORKING,
};
use crate::metrics::head;
use crate::runtime::QueueStats;

/// Every metric of the controllers in Prometheus' text format.
pub fn render(ctx: &Ctx) -> String {
    let mut text = ctx.metrics.text();
    queues(ctx, &mut text);
    clusters(ctx, &mut text);
    leader_election(ctx, &mut text);
    text
}

/// The state of every queue; none on a replica that does not lead, since no worker takes what waits there.
fn queues(ctx: &Ctx, text: &mut String) {
    if !ctx.control.may_write_now() {
        return;
    }
    let stats = ctx.queues.stats();
    let mut gauge = |family: Family, value: fn(&QueueStats) -> u64| {
        head(text, &family);
        for (name, stats) in &stats {
            let _ = writeln!(text, "{}{{name=\"{name}\"}} {}", family.name, value(stats));
        }
    };
    gauge(WORKQUEUE_DEPTH, |stats| stats.depth as u64);
    gauge(WORKQUEUE_DELAYED, |stats| stats.delayed as u64);
    gauge(WORKQUEUE_WORKING, |stats| stats.working as u64);
    gauge(WORKQUEUE_ADDS, |stats| stats.adds);
    gauge(WORKQUEUE_RETRIES, |stats| stats.retries);
    gauge(WORKQUEUE_FAILING, |stats| stats.failing as u64);
    head(text, &EVICTION_QUEUE_DEPTH);
    let depth = ctx.queues.failover.stats().depth;
    let _ = writeln!(text, "{}{{name=\"binding-eviction\"}} {depth}", EVICTION_QUEUE_DEPTH.name);
}

/// The state of every cluster.
fn clusters(ctx: &Ctx, text: &mut String) {
    let clusters = ctx.cache.snapshot().clusters.clone();
    for (index, family) in CLUSTER_GAUGES.iter().enumerate() {
        head(text, family);
        for cluster in clusters.iter() {
            if let Some(value) = values(cluster)[index] {
                let name = &cluster.metadata.name;
                let _ = writeln!(text, "{}{{member_cluster=\"{name}\"}} {value}", family.name);
            }
        }
    }
}

/// Whether this replica may write; one that has no others beside it always may.
fn leader_election(ctx: &Ctx, text: &mut String) {
    head(text, &LEADER);
    let _ = writeln!(text, "{}{{name=\"{LEASE}\"}} {}", LEADER.name, u8::from(ctx.control.may_write_now()));
}

/// In the order of [`CLUSTER_GAUGES`]; none for what is not known yet.
fn values(cluster: &Cluster) -> [Option<f64>; 9] {
    let status = &cluster.status;
    let ready = conditions::status(&status.conditions, READY) == Some(ConditionStatus::True);
    let nodes = status.node_summary.as_ref();
    let resources = status.resource_summary.as_ref();
    let of = |list: Option<&ResourceList>, name: &str| {
        let amount = Amount::of(list?.get(name)?)?;
        // The precision of a float is enough for a graph.
        Some(amount.milli_units() as f64 / 1000.0)
    };
    let (can, has) = (resources.map(|all| &all.allocatable), resources.map(|all| &all.allocated));
    [
        Some(if ready { 1.0 } else { 0.0 }),
        nodes.map(|nodes| nodes.total_num.into()),
        nodes.map(|nodes| nodes.ready_num.into()),
        of(can, "memory"),
        of(can, "cpu"),
        of(can, "pods"),
        of(has, "memory"),
        of(has, "cpu"),
        of(has, "pods"),
    ]
}
