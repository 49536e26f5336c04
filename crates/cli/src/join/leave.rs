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
use super::cluster::{self, Far};
use super::{remove, secrets};
use crate::connection::Connection;
use crate::consent::approving;
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
    far: cluster::Whereabouts,
    /// How long to wait until everything is out of the member, such as 30s, 5m or 1h
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    /// If it has not gone by then, forget it, whatever is still in it
    #[arg(long)]
    force: bool,
    /// Let it go although that deletes more than a budget allows
    #[arg(long)]
    approve: bool,
    /// Only say what would be done
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
    let far = match &arguments.far.cluster_kubeconfig {
        Some(_) => Some(Far::open(&arguments.far).await?),
        None => None,
    };
    may_go(name, cluster.as_ref(), far.as_ref()).await?;
    if arguments.dry_run {
        return output::print(&format!("cluster({name}) would be let go\n"));
    }
    if let Some(cluster) = &cluster {
        delete(&control, cluster, &path, arguments.approve).await?;
        wait(&control, arguments, &path).await?;
    }
    let namespace = namespace(arguments, cluster.as_ref(), far.as_ref()).await?;
    secrets::forget(&control, &namespace, name).await?;
    let left = match &far {
        Some(far) => {
            let ended = Account::of(name, &namespace).end(&far.rest).await;
            let stays = ended.context("take our account in the cluster away")?;
            stays.map(|why| format!("; namespace {namespace} there stays: {why}")).unwrap_or_default()
        }
        None => "; our account there is left, do the same with --cluster-kubeconfig to remove it".to_owned(),
    };
    let done = match cluster {
        Some(_) => "is let go",
        None => "was no member; what joining left of it is removed",
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
            let hint =
                "nothing was changed; see `longshore plan --delete`, and add --approve to do it nevertheless";
            let why = format!("it goes beyond its budget: {}", beyond.why);
            Err(anyhow::Error::new(Hint(hint.to_owned())).context(why).context(deleting()))
        }
        None => Err(error).with_context(deleting),
    }
}

/// Where our account is. Of a member that is not known here, its own rights tell.
async fn namespace(arguments: &Unjoin, cluster: Option<&Cluster>, far: Option<&Far>) -> Result<String> {
    let usual = arguments.far.namespace(cluster);
    match (&arguments.far.cluster_namespace, cluster, far) {
        (None, None, Some(far)) => {
            let found = Account::of(&arguments.name, &usual).found(&far.rest).await?;
            Ok(found.unwrap_or(usual))
        }
        _ => Ok(usual),
    }
}

async fn may_go(name: &str, cluster: Option<&Cluster>, far: Option<&Far>) -> Result<()> {
    let id = match far {
        Some(far) => Some(far.id().await?),
        None => None,
    };
    match (cluster, id) {
        (None, None) => {
            let hint = "what a join that failed left in a cluster is removed with --cluster-kubeconfig";
            Err(anyhow::Error::new(Hint(hint.to_owned()))
                .context(format!("unjoin {name}: there is no such member")))
        }
        (Some(cluster), _) if cluster.spec.sync_mode == SyncMode::Pull => {
            bail!("unjoin {name}: it has an agent of its own, which has to unregister")
        }
        (Some(cluster), Some(id)) if !cluster.spec.id.is_empty() && cluster.spec.id != id => {
            bail!("unjoin {name}: --cluster-kubeconfig leads to another cluster (its id is {id})")
        }
        _ => Ok(()),
    }
}

async fn wait(control: &Rest, arguments: &Unjoin, path: &Path) -> Result<()> {
    let name = &arguments.name;
    let look = async || left(control, name, path).await;
    let waited = until(Awaited { what: "cluster", count: 1 }, arguments.timeout, look).await;
    let Err(error) = waited else { return Ok(()) };
    if arguments.force {
        return forget(control, name, path).await;
    }
    let hint = "do the controllers run, and does the cluster answer? wait longer with --timeout, or forget it with \
                --force";
    let why = crate::causes(&error);
    Err(anyhow::Error::new(Hint(hint.to_owned())).context(why).context(format!("unjoin {name}")))
}

/// A cluster that is still there, and how much is in it.
async fn left(control: &Rest, name: &str, path: &Path) -> Result<Vec<Pending>> {
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
async fn forget(control: &Rest, name: &str, path: &Path) -> Result<()> {
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
