//! `longshore taint`, `cordon` and `uncordon`: what keeps workloads away from a cluster, in kubectl's syntax.

use anyhow::{Context as _, Result, anyhow};
use api::kinds::CLUSTER;
use api::taint::{NO_EXECUTE, NO_SCHEDULE};
use api::{Cluster, Taint};
use controllers::rest::{Collection, Error};
use decide::plan::Plan;
use serde_json::{Value, json};

use crate::confirmation::{Confirmation, ConfirmationFlags, approving};
use crate::connection::{Connection, Control};
use crate::plan::{Planned, Request, merged, planned};
use crate::taint::change::{TaintChange, changed_taints};
use crate::wait::Wait;
use crate::{Hint, members, output};

mod change;

/// The taint of a cordoned cluster, as Karmada's command line sets it.
const UNSCHEDULABLE: &str = "cluster.karmada.io/unschedulable";
/// How often a write is retried after a conflict.
const CONFLICT_RETRIES_MAX: usize = 5;

/// Arguments of `longshore taint`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The cluster
    #[arg(value_name = "CLUSTER")]
    cluster: String,
    /// key=value:Effect or key:Effect sets a taint; key:Effect- or key- removes taints
    #[arg(value_name = "TAINT", required = true)]
    taints: Vec<String>,
    /// Replace a taint with the same key and effect
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    confirmation: ConfirmationFlags,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    connection: Connection,
}

/// Arguments of `longshore cordon` and `longshore uncordon`.
#[derive(clap::Args)]
pub struct Cordon {
    /// The cluster
    #[arg(value_name = "CLUSTER")]
    cluster: String,
    #[command(flatten)]
    connection: Connection,
}

/// Sets and removes taints.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let changes: Vec<TaintChange> =
        arguments.taints.iter().map(|text| text.parse()).collect::<Result<_, _>>().map_err(
            |error: change::Malformed| {
                let hint = Hint("write key=value:Effect, key:Effect, key:Effect- or key-".to_owned());
                anyhow::Error::new(hint).context(error)
            },
        )?;
    let control = arguments.connection.open_to_write().await?;
    let name = &arguments.cluster;
    let wanted = |taints| changed_taints(taints, &changes, arguments.overwrite);
    let evicts =
        |change: &TaintChange| matches!(change, TaintChange::Set(taint) if taint.effect == NO_EXECUTE);
    let (mut approval, mut plan) = (None, Plan::default());
    let asks = arguments.confirmation.dry_run || changes.iter().any(evicts);
    if asks || arguments.wait.wait {
        let planned = planned_change(&control, name, wanted).await?;
        if asks {
            let question = format!("Change the taints of cluster {name}?");
            match arguments.confirmation.to(&question, &planned)? {
                Confirmation::DryRun => return Ok(()),
                Confirmation::Confirmed(given) => approval = given,
            }
        }
        plan = planned.plan;
    }
    change(&control, name, approval.as_deref(), wanted).await?;
    let (sets, removes) =
        (changes.iter().any(TaintChange::sets), changes.iter().any(|change| !change.sets()));
    let done = match (sets, removes) {
        (true, true) => "modified",
        (true, false) => "tainted",
        _ => "untainted",
    };
    output::print(&format!("cluster/{name} {done}\n"))?;
    arguments.wait.for_plan(&control, &plan).await
}

/// What other taints of a cluster would do.
async fn planned_change(
    control: &Control,
    name: &str,
    wanted: impl Fn(Vec<Taint>) -> Result<Vec<Taint>, change::Impossible>,
) -> Result<Planned> {
    let cluster = one(members::chosen(control, &[name.to_owned()]).await?)?;
    let taints =
        wanted(cluster.spec.taints).with_context(|| format!("change the taints of cluster {name}"))?;
    let path = Collection::of(&CLUSTER, "").object(name);
    let live: Option<Value> = control.rest.get(&path).await?;
    let live = live.ok_or_else(|| anyhow!("cluster {name} was deleted in the meantime"))?;
    let request = Request::change(&CLUSTER, &live, Some(json!({ "spec": { "taints": taints } })));
    planned(control, &[(request, Some(live))]).await
}

/// Keeps new workloads away from a cluster.
pub async fn cordon(arguments: &Cordon) -> Result<()> {
    let control = arguments.connection.open_to_write().await?;
    let closed = Taint { key: UNSCHEDULABLE.to_owned(), effect: NO_SCHEDULE.to_owned(), ..Taint::default() };
    let changed = change(&control, &arguments.cluster, None, |taints| {
        let already = taints.iter().any(is_cordon);
        Ok(if already { taints } else { taints.into_iter().chain([closed.clone()]).collect() })
    });
    let done = if changed.await? { "cordoned" } else { "already cordoned" };
    output::print(&format!("cluster/{} {done}\n", arguments.cluster))
}

/// Lets workloads come to a cluster again.
pub async fn uncordon(arguments: &Cordon) -> Result<()> {
    let control = arguments.connection.open_to_write().await?;
    let changed = change(&control, &arguments.cluster, None, |mut taints| {
        taints.retain(|taint| !is_cordon(taint));
        Ok(taints)
    });
    let done = if changed.await? { "uncordoned" } else { "already uncordoned" };
    output::print(&format!("cluster/{} {done}\n", arguments.cluster))
}

fn is_cordon(taint: &Taint) -> bool {
    taint.key == UNSCHEDULABLE && taint.effect == NO_SCHEDULE
}

/// Changes the taints of a cluster; false if they were so already. Its status is written all the time, so it may
/// take more than one try.
async fn change(
    control: &Control,
    name: &str,
    approval: Option<&str>,
    wanted: impl Fn(Vec<Taint>) -> Result<Vec<Taint>, change::Impossible>,
) -> Result<bool> {
    let doing = || format!("change the taints of cluster {name}");
    for _ in 0..CONFLICT_RETRIES_MAX {
        let cluster: Cluster = one(members::chosen(control, &[name.to_owned()]).await?)?;
        let before = cluster.spec.taints.clone();
        let after = wanted(before.clone()).with_context(doing)?;
        if before == after {
            return Ok(false);
        }
        let patch = json!({
            "metadata": { "resourceVersion": cluster.metadata.resource_version },
            "spec": { "taints": after },
        });
        let patch = merged(&patch, &approving(approval));
        match control.rest.merge(&Collection::of(&CLUSTER, "").object(name), &patch).await {
            Ok(_) => return Ok(true),
            Err(Error::Conflict { .. }) => continue,
            Err(error) => return Err(error).with_context(doing),
        }
    }
    let hint = Hint("other clients keep changing it; run the command again".to_owned());
    Err(anyhow::Error::new(hint).context(doing()))
}

fn one(clusters: Vec<Cluster>) -> Result<Cluster> {
    clusters.into_iter().next().ok_or_else(|| anyhow!("the cluster was deleted in the meantime"))
}
