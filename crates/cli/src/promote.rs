//! `longshore promote`: adopts an object that already runs in a member: creates its template, and a policy that keeps
//! it where it is. Plans the effect before anything is written.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use api::kinds::{CLUSTER_PROPAGATION_POLICY, PROPAGATION_POLICY};
use api::{labels, names};
use controllers::rest::{Collection, Error};
use controllers::snapshot::is_secret;
use decide::snapshot::{Change, Interpreters};
use decide::why::why;
use decide::works::prune;
use decide::{PolicyKey, Snapshot};
use serde_json::{Value, json};

use crate::connection::{Connection, Control};
use crate::get::hide;
use crate::kinds::{Kinds, Target};
use crate::output::{self, Format};
use crate::wait::Wait;
use crate::{Hint, members};

/// Arguments of `longshore promote`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Object in the member: KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", required = true, num_args = 1..=2)]
    what: Vec<String>,
    /// Cluster in which the object runs
    #[arg(long, short = 'C', value_name = "NAME")]
    cluster: String,
    /// Print the template and the policy and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    connection: Connection,
}

/// Takes an object over.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let control = arguments.connection.open_to_write().await?;
    let target = Kinds::of(&control.rest).await?.template(&arguments.what, &control.namespace)?;
    let found = found(&control, &target, &arguments.cluster).await?;
    let template = template(&target, &arguments.cluster, found)?;
    let policy = policy(&target, &arguments.cluster);
    is_free(&control, &target).await?;
    is_kept(&control.snapshot().await?, &target, &template, &policy)?;
    if arguments.dry_run {
        return shown(template, &policy);
    }
    // The policy goes first, so that no other one has the template even for a moment.
    let collection = Collection::of(kind_of_policy(&target), &target.namespace);
    create(&control, &collection, &policy, "policy").await?;
    let name = policy["metadata"]["name"].as_str().unwrap_or_default();
    let kind = kind_of_policy(&target);
    output::print(&format!("{}.{}/{name} created\n", kind.singular(), kind.group))?;
    create(&control, &target.kind.collection(&target.namespace), &template, "template").await?;
    output::print(&format!("{} promoted from {}\n", target.printed(), arguments.cluster))?;
    arguments.wait.for_templates(&control, std::iter::once(Arc::new(target.template()))).await
}

async fn found(control: &Control, target: &Target, cluster: &str) -> Result<Value> {
    let clusters = members::chosen(control, &[cluster.to_owned()]).await?;
    let cluster = clusters.first().context("the cluster was deleted in the meantime")?;
    let member = members::reach(control, cluster).await?;
    let found: Option<Value> = member.get(&target.path()).await.context("read the object in the cluster")?;
    found.ok_or_else(|| {
        let hint = Hint("`longshore get` lists what members have; check the namespace (-n)".to_owned());
        let name = &cluster.metadata.name;
        anyhow::Error::new(hint)
            .context(format!("{} {:?} not found in cluster {name}", target.kind.plural, target.name))
    })
}

/// The object without what belongs to the member.
fn template(target: &Target, cluster: &str, mut object: Value) -> Result<Value> {
    let label = |key: &str| object.pointer("/metadata/labels").and_then(|all| all.get(key)).is_some();
    if label(labels::MANAGED) {
        let hint = Hint("`longshore why` shows which policy delivered it".to_owned());
        return Err(anyhow::Error::new(hint).context(format!(
            "{} in cluster {cluster} is already managed by a control plane",
            target.printed()
        )));
    }
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    if let Some(owner) = owners.into_iter().flatten().find(|owner| owner["controller"] == true) {
        let text = |key: &str| owner[key].as_str().unwrap_or_default().to_owned();
        let hint = Hint(format!("promote {} {} instead", text("kind"), text("name")));
        return Err(anyhow::Error::new(hint)
            .context(format!("{} is owned by another object in the cluster", target.printed())));
    }
    prune(&mut object);
    object["apiVersion"] = json!(target.kind.api_version);
    object["kind"] = json!(target.kind.kind);
    Ok(object)
}

fn kind_of_policy(target: &Target) -> &'static api::kinds::Kind {
    if target.namespace.is_empty() { &CLUSTER_PROPAGATION_POLICY } else { &PROPAGATION_POLICY }
}

/// A policy for this one object in this one cluster, which may take over what is there.
fn policy(target: &Target, cluster: &str) -> Value {
    let Target { kind, namespace, name } = target;
    let of = kind_of_policy(target);
    let mut selector = json!({ "apiVersion": kind.api_version, "kind": kind.kind, "name": name });
    let mut metadata = json!({ "name": names::policy_name(&kind.api_version, &kind.kind, namespace, name) });
    if !namespace.is_empty() {
        selector["namespace"] = json!(namespace);
        metadata["namespace"] = json!(namespace);
    }
    json!({
        "apiVersion": of.api_version(),
        "kind": of.kind,
        "metadata": metadata,
        "spec": {
            "resourceSelectors": [selector],
            "conflictResolution": "Overwrite",
            "placement": { "clusterAffinity": { "clusterNames": [cluster] } },
        },
    })
}

async fn is_free(control: &Control, target: &Target) -> Result<()> {
    let there: Option<Value> = control.rest.get(&target.path()).await?;
    if there.is_none() {
        return Ok(());
    }
    let hint =
        Hint("let its policy select the cluster instead, with conflictResolution Overwrite".to_owned());
    Err(anyhow::Error::new(hint).context(format!("{} already exists as a template", target.printed())))
}

/// Plans which policy would claim it: only the new policy keeps it where it is.
fn is_kept(snapshot: &Snapshot, target: &Target, template: &Value, policy: &Value) -> Result<()> {
    let mut then = snapshot.clone();
    let mut policy = policy.clone();
    policy["metadata"]["uid"] = json!("promoted");
    policy["metadata"]["generation"] = json!(1);
    for object in [&policy, template] {
        then.apply(&Change::Put(object.clone().into()))?;
    }
    let key = target.template();
    then.settle(&[key.clone().into()].into(), Interpreters::BUILT_IN);
    let own = PolicyKey {
        namespace: target.namespace.clone(),
        name: policy["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
    };
    let Some(why) = why(&then, &key, Interpreters::BUILT_IN) else { return Ok(()) };
    if why.owner.as_ref() == Some(&own) {
        return Ok(());
    }
    let hint = Hint(
        "exclude it in that policy, or create the template with kubectl and let that policy claim it"
            .to_owned(),
    );
    let owner = why.owner.map_or_else(|| "no policy".to_owned(), |owner| owner.to_string());
    Err(anyhow::Error::new(hint)
        .context(format!("{owner} would claim {} instead of a policy of its own", target.printed())))
}

fn shown(mut template: Value, policy: &Value) -> Result<()> {
    if is_secret(&template) {
        hide(&mut template);
    }
    Format::Yaml.print(policy)?;
    output::print("---\n")?;
    Format::Yaml.print(&template)
}

async fn create(control: &Control, collection: &Collection, object: &Value, what: &str) -> Result<()> {
    control.rest.create(collection, object).await.map(drop).map_err(|error| {
        let hint = match &error {
            Error::NotFound { .. } => {
                "the namespace does not exist in the control plane: create it with \
                 `kubectl create namespace`"
            }
            Error::Conflict { .. } => "it already exists: see it with `kubectl get`",
            _ => "see what exists with `kubectl get`, and run the command again",
        };
        anyhow::Error::new(Hint(hint.to_owned())).context(error).context(format!("create the {what}"))
    })
}
