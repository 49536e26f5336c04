//! `unjoin`: deletes the Cluster first, while the controllers remove what they delivered there, then our account. The
//! same removes what a join that failed half-way left.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use api::cluster::SyncMode;
use api::kinds::{CLUSTER, WORK};
use api::{Cluster, names};
use controllers::rest::{Collection, Error, Path, Rest};
use serde_json::{Value, json};

use super::account::Account;
use super::cluster::{self, MemberCluster};
use super::{remove, secrets};
use crate::confirmation::approving;
use crate::connection::Connection;
use crate::plan::Beyond;
use crate::wait::{Awaited, Pending, duration, until};
use crate::{Hint, output};

/// Arguments of `longshore unjoin`.
#[derive(clap::Args)]
pub struct Unjoin {
    /// The member
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    member: cluster::ClusterFlags,
    /// How long to wait until the controllers have removed everything from the member, such as 30s, 5m or 1h
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    /// After the timeout, delete the Cluster without removing what is still in the member
    #[arg(long)]
    force: bool,
    /// Delete the Cluster even if that exceeds a change budget
    #[arg(long)]
    approve: bool,
    /// Print what the command would do and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Lets a member go, or removes what is left of one that is not known here.
pub async fn unjoin(arguments: &Unjoin) -> Result<()> {
    let control = arguments.connection.open_to_write().await?.rest;
    let name = &arguments.name;
    let path = Collection::of(&CLUSTER, "").object(name);
    let cluster: Option<Cluster> =
        control.get(&path).await.with_context(|| format!("read Cluster {name}"))?;
    let member = match &arguments.member.cluster_kubeconfig {
        Some(_) => Some(MemberCluster::open(&arguments.member).await?),
        None => None,
    };
    check_may_unjoin(name, cluster.as_ref(), member.as_ref()).await?;
    if arguments.dry_run {
        return output::print(&format!("cluster({name}) would be removed\n"));
    }
    if let Some(cluster) = &cluster {
        delete(&control, cluster, &path, arguments.approve).await?;
        wait(&control, arguments, &path).await?;
    }
    let namespace = namespace(arguments, cluster.as_ref(), member.as_ref()).await?;
    secrets::delete_credentials(&control, &namespace, name).await?;
    let left = match &member {
        Some(member) => {
            let ended = Account::of(name, &namespace).end(&member.rest).await;
            let stays = ended.context("remove the service account in the cluster")?;
            stays.map(|why| format!("; namespace {namespace} there stays: {why}")).unwrap_or_default()
        }
        None => "; its service account there remains: remove it with --cluster-kubeconfig".to_owned(),
    };
    let done = match cluster {
        Some(_) => "is removed",
        None => "was not a member; what an earlier join left is removed",
    };
    output::print(&format!("cluster({name}) {done}{left}\n"))
}

/// Deletes the Cluster; beyond a budget only with an approval, which comes first.
async fn delete(control: &Rest, cluster: &Cluster, path: &Path, approve: bool) -> Result<()> {
    let uid = Some(cluster.metadata.uid.as_str());
    let deleting = || format!("delete Cluster {}", cluster.metadata.name);
    let Err(error) = control.delete(path, uid).await else { return Ok(()) };
    match Beyond::of(&error) {
        Some(beyond) if approve => {
            let approved = control.merge(path, &approving(Some(&beyond.plan))).await;
            approved.context("approve the deletion").with_context(deleting)?;
            control.delete(path, uid).await.with_context(deleting)
        }
        Some(beyond) => {
            let hint = "nothing was changed; see the plan with `longshore plan --delete cluster/NAME`, and add \
                 --approve to delete it anyway";
            let why = format!("the change exceeds its budget: {}", beyond.why);
            Err(anyhow::Error::new(Hint(hint.to_owned())).context(why).context(deleting()))
        }
        None => Err(error).with_context(deleting),
    }
}

/// Where our account is. Of a member that is not known here, its own rights tell.
async fn namespace(
    arguments: &Unjoin,
    cluster: Option<&Cluster>,
    member: Option<&MemberCluster>,
) -> Result<String> {
    let usual = arguments.member.namespace(cluster);
    match (&arguments.member.cluster_namespace, cluster, member) {
        (None, None, Some(member)) => {
            let found = Account::of(&arguments.name, &usual).found(&member.rest).await?;
            Ok(found.unwrap_or(usual))
        }
        _ => Ok(usual),
    }
}

async fn check_may_unjoin(
    name: &str,
    cluster: Option<&Cluster>,
    member: Option<&MemberCluster>,
) -> Result<()> {
    let id = match member {
        Some(member) => Some(member.id().await?),
        None => None,
    };
    match (cluster, id) {
        (None, None) => {
            let hint = "to remove what a failed join left in a cluster, add --cluster-kubeconfig";
            Err(anyhow::Error::new(Hint(hint.to_owned()))
                .context(format!("unjoin {name}: there is no such member")))
        }
        (Some(cluster), _) if cluster.spec.sync_mode == SyncMode::Pull => {
            bail!("unjoin {name}: it is a Pull member, whose agent has to unregister it")
        }
        (Some(cluster), Some(id)) if !cluster.spec.id.is_empty() && cluster.spec.id != id => {
            bail!("unjoin {name}: --cluster-kubeconfig leads to another cluster (its id is {id})")
        }
        _ => Ok(()),
    }
}

async fn wait(control: &Rest, arguments: &Unjoin, path: &Path) -> Result<()> {
    let name = &arguments.name;
    let poll = async || remaining(control, name, path).await;
    let waited = until(Awaited { what: "cluster", count: 1 }, arguments.timeout, poll).await;
    let Err(error) = waited else { return Ok(()) };
    if arguments.force {
        return force_remove(control, name, path).await;
    }
    let hint = "check with `longshore status` that the controllers run and the cluster answers; wait longer \
                with --timeout, or give up what is in the cluster with --force";
    let why = crate::causes(&error);
    Err(anyhow::Error::new(Hint(hint.to_owned())).context(why).context(format!("unjoin {name}")))
}

/// A cluster that is still there, and how much is in it.
async fn remaining(control: &Rest, name: &str, path: &Path) -> Result<Vec<Pending>> {
    if control.get::<Value>(path).await?.is_none() {
        return Ok(Vec::new());
    }
    let lacks = match works(control, name).await?.len() {
        0 => "it is empty and not yet gone".to_owned(),
        1 => "1 object is not yet removed".to_owned(),
        count => format!("{count} objects are not yet removed"),
    };
    Ok(vec![Pending { what: format!("cluster {name}"), lacks, explained_by: "longshore status".to_owned() }])
}

/// The names of the Works for a member.
async fn works(control: &Rest, name: &str) -> Result<Vec<String>> {
    let works = Collection::of(&WORK, &names::execution_namespace(name));
    let mut found = Vec::new();
    let each = |item: api::Unread| {
        let work: Value = item.read().unwrap_or_default();
        found.extend(work["metadata"]["name"].as_str().map(str::to_owned));
    };
    control.pages(&works, "", each).await.context("list the Works")?;
    Ok(found)
}

/// Takes away whatever keeps the Cluster: what is in the member stays there.
async fn force_remove(control: &Rest, name: &str, path: &Path) -> Result<()> {
    let namespace = names::execution_namespace(name);
    let collection = Collection::of(&WORK, &namespace);
    for work in works(control, name).await? {
        release(control, &collection.object(&work)).await.with_context(|| format!("release Work {work}"))?;
    }
    remove(control, &Collection::new("v1", "namespaces", "").object(&namespace)).await?;
    release(control, path).await.with_context(|| format!("release Cluster {name}"))
}

async fn release(control: &Rest, path: &Path) -> Result<()> {
    let patch = json!({ "metadata": { "finalizers": null } });
    match control.merge(path, &patch).await {
        Ok(_) | Err(Error::NotFound { .. }) => remove(control, path).await,
        Err(error) => Err(error.into()),
    }
}
