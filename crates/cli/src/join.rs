//! `longshore join` and `longshore unjoin`: a real cluster becomes a member in push mode, and leaves again. What lies
//! where, and under which names, is as Karmada has it.

use anyhow::{Context as _, Result, bail};
use api::Cluster;
use api::cluster::SyncMode;
use api::kinds::CLUSTER;
use controllers::rest::{Collection, Error, Path, Rest};
use decide::Gates;
use decide::admission::{Operation, Review, admission};
use decide::readiness::unknown;
use http::Method;
use serde_json::{Value, json};

use crate::connection::{Connection, Control};
use crate::progress::with_progress;
use crate::wait::{Awaited, Pending, Wait};
use crate::{Hint, output};

mod account;
mod cluster;
mod contents;
mod endpoint;
mod secrets;
mod unjoin;

use account::{Account, RoleScope, ScopeFlags};
use cluster::MemberCluster;
use endpoint::MemberEndpoint;
pub use unjoin::{Unjoin, unjoin};

/// Arguments of `longshore join`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Name of the cluster in the control plane
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    member: cluster::ClusterFlags,
    /// Provider of the cluster
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    cluster_provider: String,
    /// Region of the cluster
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    cluster_region: String,
    /// Zones of the cluster
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    cluster_zones: Vec<String>,
    #[command(flatten)]
    scope: ScopeFlags,
    /// Lifetime of the control plane's credentials in the cluster; the controllers renew them after half of it
    #[arg(long, value_name = "DURATION", default_value = "720h", value_parser = crate::security::token_life)]
    token_expiration: i64,
    /// Replace the credentials of a member that has already joined, and revoke the old ones
    #[arg(long)]
    rotate: bool,
    /// Print what the command would do and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    connection: Connection,
}

/// Makes a cluster a member, or gives a member new credentials.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let control = arguments.connection.open_to_write().await?;
    let member = MemberCluster::open(&arguments.member).await?;
    let joining = Joining::prepare(arguments, &control, &member).await?;
    if arguments.dry_run {
        let id = &joining.id;
        return output::print(&format!("cluster({}) would join, with id {id}\n", arguments.name));
    }
    let are_old_ones_void = joining.execute().await.map_err(|error| match joining.before {
        Some(_) => error,
        None => with_cleanup_hint(&error),
    })?;
    let name = &arguments.name;
    output::print(&match (&joining.before, are_old_ones_void) {
        (None, _) => format!("cluster({name}) is joined successfully\n"),
        (Some(_), true) => format!("cluster({name}) has new credentials\n"),
        (Some(_), false) => format!(
            "cluster({name}) has new credentials; the old ones are still valid, because the new ones have \
             not been used yet: {} cannot be reached from here, and the controllers have not connected with \
             them. Run the command again when they have\n",
            joining.place.endpoint
        ),
    })?;
    let awaited = Awaited { what: "cluster", count: 1 };
    arguments.wait.until(awaited, async || unready(&control.rest, name).await).await
}

/// A cluster that is not ready, and why.
async fn unready(control: &Rest, name: &str) -> Result<Vec<Pending>> {
    let cluster: Option<Cluster> = control.get(&Collection::of(&CLUSTER, "").object(name)).await?;
    let lacks = match cluster.as_ref().map(unknown) {
        None => Some("its Cluster does not exist any more".to_owned()),
        Some(unknown) => unknown.map(|unknown| unknown.because),
    };
    let pending = lacks.map(|lacks| Pending {
        what: format!("cluster {name}"),
        lacks,
        explained_by: "longshore status".to_owned(),
    });
    Ok(pending.into_iter().collect())
}

/// Adds a hint how to clean up: what a join that failed half-way left is known only in the member.
fn with_cleanup_hint(error: &anyhow::Error) -> anyhow::Error {
    let hint = "run the command again, or remove what it has created with `longshore unjoin NAME \
                --cluster-kubeconfig FILE`";
    anyhow::Error::new(Hint(hint.to_owned())).context(format!("{error:#}"))
}

/// A join of which everything is known, and nothing is done.
struct Joining<'j> {
    control: &'j Rest,
    member: &'j MemberCluster,
    /// The id of the control plane.
    home: String,
    /// The id of the cluster.
    id: String,
    /// The member as it has joined.
    before: Option<Cluster>,
    namespace: String,
    /// Where account and credentials were until now, if that is elsewhere.
    former: Option<String>,
    place: MemberEndpoint,
    account: Account,
    /// What the account may do.
    scope: RoleScope,
    /// How many seconds its tokens hold.
    token_seconds: i64,
    /// The Cluster to be written.
    cluster: Value,
}

impl<'j> Joining<'j> {
    /// Looks at both sides and makes sure that nothing stands in the way, before anything is written.
    async fn prepare(arguments: &Arguments, control: &'j Control, member: &'j MemberCluster) -> Result<Self> {
        let (name, control) = (&arguments.name, &control.rest);
        let id = member.id().await?;
        let home = cluster::identity(control).await.context("read the id of the control plane")?;
        let home = home.unwrap_or_default();
        check_not_control_plane(name, &home, &id)?;
        let before = find_registered(control, name, &id).await?;
        check_may_join(name, before.as_ref(), arguments.rotate)?;
        let known = match &before {
            Some(before) => MemberEndpoint::known(control, before).await?,
            None => None,
        };
        let place = MemberEndpoint::choose(&arguments.member, &member.kubeconfig_cluster, known.as_ref())?;
        let namespace = arguments.member.namespace(before.as_ref());
        let cluster = manifest(arguments, &namespace, &place, &id, before.as_ref());
        validate_cluster(control, name, &cluster).await.with_context(|| format!("join {name}"))?;
        let former = before.as_ref().and_then(|before| before.spec.secret_ref.as_ref());
        let former = former.map(|reference| reference.namespace.clone());
        let former = former.filter(|former| !former.is_empty() && *former != namespace);
        let account = Account::of(name, &namespace).moved_from(former.clone());
        if before.is_none() {
            account.is_free(&member.rest, &home).await.with_context(|| format!("join {name}"))?;
        }
        let scope = match (arguments.scope.wanted()?, &before) {
            (Some(scope), _) => scope,
            (None, Some(_)) => account.scope(&member.rest).await?.unwrap_or(RoleScope::Full),
            (None, None) => RoleScope::Full,
        };
        let token_seconds = arguments.token_expiration;
        Ok(Self {
            control,
            member,
            home,
            id,
            before,
            namespace,
            former,
            place,
            account,
            scope,
            token_seconds,
            cluster,
        })
    }

    /// Does it; false if old credentials are still valid because the new ones may not work.
    async fn execute(&self) -> Result<bool> {
        let member = &self.member.rest;
        let tokens = self.account.make(member, &self.home, &self.scope, self.token_seconds).await?;
        let credentials = secrets::credentials(&self.place, &tokens);
        let accepts_credentials = match self.before {
            // No Cluster exists yet, so no controller uses what an earlier attempt may have left.
            None => Ok(true),
            Some(_) => self.place.accepts_credentials(&self.cluster, &credentials).await,
        };
        let are_good = match accepts_credentials {
            Ok(accepts_credentials) => accepts_credentials,
            Err(error) => {
                self.account.revoke_new_tokens(member, tokens).await?;
                return Err(error);
            }
        };
        secrets::write_credentials(self.control, &self.namespace, &self.place, &tokens, &self.cluster)
            .await?;
        let name = self.cluster["metadata"]["name"].as_str().unwrap_or_default();
        let kept = Collection::new("v1", "secrets", &self.namespace).object(name);
        let is_used = self.account.is_used(member, &tokens, self.control, &kept);
        if !are_good && !with_progress("waiting for the controllers", is_used).await? {
            return Ok(false);
        }
        self.account.revoke_other_tokens(member, &self.home, &self.scope, &tokens).await?;
        if let (Some(former), Some(before)) = (&self.former, &self.before) {
            secrets::delete_credentials(self.control, former, &before.metadata.name).await?;
        }
        Ok(true)
    }
}

/// A control plane that were its own member would deliver templates to where they lie.
fn check_not_control_plane(name: &str, home: &str, id: &str) -> Result<()> {
    if home != id {
        return Ok(());
    }
    let hint = "pass the kubeconfig of another cluster with --cluster-kubeconfig, or another context in it \
                with --cluster-context; --kubeconfig and --context choose the control plane";
    Err(anyhow::Error::new(Hint(hint.to_owned()))
        .context(format!("join {name}: this cluster is the control plane itself (its id is {id})")))
}

/// Fails if the name belongs to another cluster or the cluster has joined under another name; returns the Cluster if it
/// is this one.
async fn find_registered(control: &Rest, name: &str, id: &str) -> Result<Option<Cluster>> {
    let mut found = None;
    let mut other = None;
    let each = |item: api::Unread| {
        let Ok(cluster) = item.read::<Cluster>() else { return };
        if cluster.metadata.name == name {
            found = Some(cluster);
        } else if cluster.spec.id == id {
            other = Some(cluster.metadata.name);
        }
    };
    control.pages(&Collection::of(&CLUSTER, ""), "", each).await.context("list the clusters")?;
    if let Some(other) = other {
        bail!("join {name}: the same cluster has joined as {other} already (its id is {id})");
    }
    let known = found.as_ref().map_or("", |found| found.spec.id.as_str());
    if !known.is_empty() && known != id {
        let hint = "choose another name, or remove that member first with `longshore unjoin`";
        return Err(anyhow::Error::new(Hint(hint.to_owned())).context(format!(
            "join {name}: another cluster has that name (its id is {known}, this one's is {id})"
        )));
    }
    Ok(found)
}

fn check_may_join(name: &str, before: Option<&Cluster>, rotate: bool) -> Result<()> {
    let Some(before) = before else { return Ok(()) };
    if !rotate {
        let hint = "replace its credentials with --rotate, or remove it first with `longshore unjoin`";
        return Err(
            anyhow::Error::new(Hint(hint.to_owned())).context(format!("join {name}: it has joined already"))
        );
    }
    if before.spec.sync_mode == SyncMode::Pull {
        bail!("join {name}: it is a Pull member, whose agent manages its own credentials");
    }
    Ok(())
}

/// The fields of the Cluster that `join` manages. A rotation of credentials keeps values that no flag sets.
fn manifest(
    arguments: &Arguments,
    namespace: &str,
    place: &MemberEndpoint,
    id: &str,
    before: Option<&Cluster>,
) -> Value {
    let name = &arguments.name;
    let known = before.map(|before| before.spec.clone()).unwrap_or_default();
    let mut spec = json!({
        "id": id,
        "syncMode": "Push",
        "apiEndpoint": place.endpoint,
        "insecureSkipTLSVerification": place.insecure,
        "secretRef": { "namespace": namespace, "name": name },
        "impersonatorSecretRef": { "namespace": namespace, "name": secrets::impersonator(name) },
    });
    let or = |said: &String, known: String| if said.is_empty() { known } else { said.clone() };
    let texts = [
        ("provider", or(&arguments.cluster_provider, known.provider)),
        ("region", or(&arguments.cluster_region, known.region)),
    ];
    for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        spec[key] = text.into();
    }
    let zones =
        if arguments.cluster_zones.is_empty() { known.zones } else { arguments.cluster_zones.clone() };
    if !zones.is_empty() {
        spec["zones"] = zones.into();
    }
    // Removing a proxy takes an explicit empty value: another client may have written it.
    if !place.proxy.is_empty() || !known.proxy_url.is_empty() {
        spec["proxyURL"] = place.proxy.as_str().into();
    }
    json!({
        "apiVersion": CLUSTER.api_version(), "kind": CLUSTER.kind,
        "metadata": { "name": name }, "spec": spec,
    })
}

/// Makes sure that the Cluster can be written before there is an account that it would need: first by the rules,
/// because its name becomes part of paths, then by the control plane itself, whose webhooks may not answer.
async fn validate_cluster(control: &Rest, name: &str, cluster: &Value) -> Result<()> {
    admission(&Review {
        operation: Operation::Create,
        object: cluster,
        old: None,
        gates: &Gates::default(),
        is_cluster_scoped: &|_, _| false,
    })?;
    let path = Collection::of(&CLUSTER, "").object(name);
    let tried = path.with("fieldManager", "longshore").with("force", "true").with("dryRun", "All");
    let answer =
        control.send::<Value>(Method::PATCH, &tried, "application/apply-patch+yaml", Some(cluster)).await;
    answer.map(drop).with_context(|| format!("validate Cluster {name} with a dry run"))
}

/// Deletes something that may be gone already.
async fn remove(rest: &Rest, path: &Path) -> Result<()> {
    match rest.delete(path, None).await {
        Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
