//! `longshore join` and `longshore unjoin`: a real cluster becomes a member in push mode, and leaves again. What lies
//! where, and under which names, is as Karmada has it.

use anyhow::{Context as _, Result, bail};
use api::kinds::CLUSTER;
use api::{Cluster, labels};
use controllers::rest::{Collection, Error, Rest};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::connection::{Connection, Control};
use crate::{Hint, output};

mod account;
mod cluster;
mod leave;

use account::{Account, Tokens};
use cluster::Far;
pub use leave::{Unjoin, unjoin};

/// Arguments of `longshore join`.
#[derive(clap::Args)]
pub struct Arguments {
    /// How the cluster is called from now on
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    far: cluster::Whereabouts,
    /// Who provides the cluster
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    cluster_provider: String,
    /// The region it is in
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    cluster_region: String,
    /// The zones it is in
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    cluster_zones: Vec<String>,
    /// Give a member that has joined already new credentials, and make the old ones void
    #[arg(long)]
    rotate: bool,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Makes a cluster a member.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let control = arguments.connection.open().await?;
    let far = Far::open(&arguments.far).await?;
    let id = far.id().await?;
    let before = is_free(&control, &arguments.name, &id).await?;
    if before.is_some() && !arguments.rotate {
        let hint = "give it new credentials with --rotate, or let it go with `longshore unjoin` first";
        return Err(anyhow::Error::new(Hint(hint.to_owned()))
            .context(format!("join {}: it has joined already", arguments.name)));
    }
    if arguments.dry_run {
        return output::print(&format!("cluster({}) would join, with id {id}\n", arguments.name));
    }
    let account = Account::of(&arguments.name, &arguments.far.cluster_namespace);
    let tokens = account.make(&far.rest).await?;
    let cluster = manifest(arguments, &far, &id, before.as_ref());
    keep(&control.rest, arguments, &far, &tokens, &cluster).await?;
    // Whoever used the old ones has the new ones now.
    account.remove_other_tokens(&far.rest, &tokens).await?;
    output::print(&match before {
        None => format!("cluster({}) is joined successfully\n", arguments.name),
        Some(_) => format!("cluster({}) has new credentials\n", arguments.name),
    })
}

/// Makes sure that neither the name nor the cluster is somebody else's; answers with the Cluster if it is this one.
async fn is_free(control: &Control, name: &str, id: &str) -> Result<Option<Value>> {
    let mut found = None;
    let mut other = None;
    let each = |item: api::Unread| {
        let Ok(cluster) = item.read::<Cluster>() else { return };
        if cluster.metadata.name == name {
            found = item.read::<Value>().ok();
        } else if cluster.spec.id == id {
            other = Some(cluster.metadata.name);
        }
    };
    control.rest.pages(&Collection::of(&CLUSTER, ""), "", each).await.context("list the clusters")?;
    if let Some(other) = other {
        bail!("join {name}: the same cluster has joined as {other} already (its id is {id})");
    }
    let known = found.as_ref().and_then(|found| found["spec"]["id"].as_str()).unwrap_or_default();
    if !known.is_empty() && known != id {
        let hint = "choose another name, or let that one go with `longshore unjoin` first";
        return Err(anyhow::Error::new(Hint(hint.to_owned())).context(format!(
            "join {name}: another cluster has that name (its id is {known}, this one's is {id})"
        )));
    }
    Ok(found)
}

/// The Cluster, as far as joining decides about it.
fn manifest(arguments: &Arguments, far: &Far, id: &str, before: Option<&Value>) -> Value {
    let (name, namespace) = (&arguments.name, &arguments.far.cluster_namespace);
    let mut spec = json!({
        "id": id,
        "syncMode": "Push",
        "apiEndpoint": far.endpoint,
        "secretRef": { "namespace": namespace, "name": name },
        "impersonatorSecretRef": { "namespace": namespace, "name": impersonator(name) },
    });
    if far.insecure {
        spec["insecureSkipTLSVerification"] = true.into();
    }
    let zones = json!(arguments.cluster_zones);
    let texts = [
        ("proxyURL", json!(far.proxy)),
        ("provider", json!(arguments.cluster_provider)),
        ("region", json!(arguments.cluster_region)),
        ("zones", zones),
    ];
    for (key, value) in texts {
        let is_said = value.as_str().is_some_and(|text| !text.is_empty())
            || value.as_array().is_some_and(|list| !list.is_empty());
        let known = before.map(|before| &before["spec"][key]).filter(|known| !known.is_null());
        // Who gives new credentials need not say the rest again.
        if is_said {
            spec[key] = value;
        } else if let Some(known) = known {
            spec[key] = known.clone();
        }
    }
    json!({
        "apiVersion": CLUSTER.api_version(), "kind": CLUSTER.kind,
        "metadata": { "name": name }, "spec": spec,
    })
}

/// The Secret of the account that acts for users.
fn impersonator(name: &str) -> String {
    format!("{name}-impersonator")
}

/// Writes the credentials and then the Cluster, so that nobody finds a Cluster without credentials; the Cluster takes
/// them along when it goes.
async fn keep(
    control: &Rest,
    arguments: &Arguments,
    far: &Far,
    tokens: &Tokens,
    cluster: &Value,
) -> Result<()> {
    let (name, namespace) = (&arguments.name, &arguments.far.cluster_namespace);
    let marks = [(labels::SYSTEM, labels::TRUE)];
    plane::ensure_namespace(control, namespace, &marks)
        .await
        .with_context(|| format!("make namespace {namespace}"))?;
    let bytes = |bytes: &[u8]| json!(ByteString(bytes.to_vec()));
    let own = json!({ "caBundle": bytes(&far.authority), "token": bytes(tokens.controllers.as_bytes()) });
    let users = json!({ "token": bytes(tokens.impersonator.as_bytes()) });
    let secrets = [(name.clone(), own), (impersonator(name), users)];
    let secret = |name: &str, data: &Value, owners: &Value| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
            "metadata": {
                "name": name, "namespace": namespace, "ownerReferences": owners,
                "labels": { labels::SYSTEM: labels::TRUE },
            },
        })
    };
    let collection = Collection::new("v1", "secrets", namespace);
    for (name, data) in &secrets {
        let written = control.apply(&collection.object(name), &secret(name, data, &json!([])), true).await;
        written.with_context(|| format!("write Secret {namespace}/{name}"))?;
    }
    let path = Collection::of(&CLUSTER, "").object(name);
    let joined =
        control.apply(&path, cluster, true).await.with_context(|| format!("write Cluster {name}"))?;
    let owners = json!([{
        "apiVersion": CLUSTER.api_version(), "kind": CLUSTER.kind,
        "name": name, "uid": joined["metadata"]["uid"],
    }]);
    for (name, data) in &secrets {
        let written = control.apply(&collection.object(name), &secret(name, data, &owners), true).await;
        written.with_context(|| format!("write Secret {namespace}/{name}"))?;
    }
    Ok(())
}

/// Deletes something that may be gone already.
async fn remove(rest: &Rest, path: &str) -> Result<()> {
    match rest.delete(path, None).await {
        Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
