//! The ClusterTaintPolicy controller: sets the taints that follow from a cluster's conditions, as `decide` says.
//! NoExecute taints are only ever set here or by a user (C8).

use api::{Cluster, Taint, kinds};
use decide::eviction::taints;
use serde_json::json;

use crate::ctx::Ctx;
use crate::events::{EventType, Regarding};
use crate::rest::{Collection, Error};
use crate::runtime::Action;

const COMPONENT: &str = "cluster-taint-policy-controller";

/// Brings the taints of one cluster in line; without policies there is nothing to say, health taints are
/// set where health is known.
pub async fn reconcile(ctx: &Ctx, name: &str) -> Result<Action, Error> {
    let policies = ctx.cache.taint_policies();
    let cluster = ctx.cache.cluster(name).filter(|cluster| cluster.metadata.deletion_timestamp.is_none());
    let Some(cluster) = cluster.filter(|_| ctx.feature_gates.gates.failover && !policies.is_empty()) else {
        return Ok(Action::AwaitChange);
    };
    let wanted = taints(&cluster, &policies, (ctx.now)());
    if wanted == cluster.spec.taints {
        return Ok(Action::AwaitChange);
    }
    let patch = json!({
        "metadata": { "resourceVersion": cluster.metadata.resource_version },
        "spec": { "taints": wanted },
    });
    let written = ctx.control.merge(&Collection::of(&kinds::CLUSTER, "").object(name), &patch).await;
    record_events(ctx, &cluster, &wanted, written.as_ref().err());
    written?;
    Ok(Action::AwaitChange)
}

fn record_events(ctx: &Ctx, cluster: &Cluster, taints: &[Taint], error: Option<&Error>) {
    let about = [Regarding::from(cluster)];
    match error {
        Some(error) if error.is_conflict() => {}
        Some(error) => {
            ctx.record_event(about, COMPONENT, EventType::Warning, "TaintClusterFailed", &error.to_string());
        }
        None => {
            let name = &cluster.metadata.name;
            let message = format!("Update Cluster({name}) with taints({}) succeed", spoken(taints));
            ctx.record_event(about, COMPONENT, EventType::Normal, "TaintClusterSucceed", &message);
        }
    }
}

/// The list as Karmada prints it.
pub fn spoken(taints: &[Taint]) -> String {
    let one = |taint: &Taint| match taint.value.as_str() {
        "" => format!("{{Key:{},Effect:{}}}", taint.key, taint.effect),
        value => format!("{{Key:{},Value:{value},Effect:{}}}", taint.key, taint.effect),
    };
    match taints {
        [] => "cluster now does not have taints".to_owned(),
        taints => taints.iter().map(one).collect::<Vec<_>>().join(","),
    }
}
