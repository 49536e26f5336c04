//! `longshore rollout pause|resume|approve|skip|abort`: what a person asks of the rollout of one template. Writes the
//! request on its binding, where the controllers answer it once.

use anyhow::{Context as _, Result, anyhow};
use api::Binding;
use api::records::{ROLLOUT_REQUEST, StrategyRecord};
use controllers::rest::Collection;
use decide::rollout::{Action, Request};
use serde_json::json;

use crate::Hint;
use crate::connection::Connection;
use crate::kinds::Kinds;
use crate::output;

/// The template whose rollout is meant.
#[derive(clap::Args)]
pub struct Asked {
    /// The template: KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", required = true, num_args = 1..=2)]
    what: Vec<String>,
    #[command(flatten)]
    connection: Connection,
}

/// The same with a stage.
#[derive(clap::Args)]
pub struct Approve {
    /// The stage whose end is approved [default: the current one]
    #[arg(long, value_name = "NAME")]
    stage: Option<String>,
    #[command(flatten)]
    asked: Asked,
}

/// The same with a cluster.
#[derive(clap::Args)]
pub struct Skip {
    /// The cluster that is not waited for
    #[arg(long, short = 'C', value_name = "NAME")]
    cluster: String,
    #[command(flatten)]
    asked: Asked,
}

/// Approves the end of a stage.
pub async fn approve(arguments: &Approve) -> Result<()> {
    ask(&arguments.asked, Action::Approve { stage: arguments.stage.clone() }, "approved").await
}

/// Lets the rollout go on without a cluster.
pub async fn skip(arguments: &Skip) -> Result<()> {
    ask(&arguments.asked, Action::Skip { cluster: arguments.cluster.clone() }, "goes on without the cluster")
        .await
}

/// Asks for something of the revision that is rolled out now, so that a newer one is never meant.
pub async fn ask(asked: &Asked, action: Action, done: &str) -> Result<()> {
    let control = asked.connection.open_to_write().await?;
    let target = Kinds::of(&control.rest).await?.template(&asked.what, &control.namespace)?;
    let key = target.template().binding();
    let kind = match key.namespace.as_str() {
        "" => &api::kinds::CLUSTER_RESOURCE_BINDING,
        _ => &api::kinds::RESOURCE_BINDING,
    };
    let path = Collection::of(kind, &key.namespace).object(&key.name);
    let binding: Option<Binding> = control.rest.get(&path).await.context("read the binding")?;
    let binding = binding.ok_or_else(|| anyhow!("{} is not propagated", target.printed()))?;
    let progress = binding.status.rollout.as_ref();
    let Some(progress) = progress.filter(|_| StrategyRecord::read(&binding.metadata).is_some()) else {
        let hint =
            Hint("`longshore why` says which policy it follows; rolloutStrategy makes stages".to_owned());
        return Err(
            anyhow::Error::new(hint).context(format!("{} has no rollout in stages", target.printed()))
        );
    };
    let request = Request {
        action,
        revision: Some(progress.revision.clone()),
        id: jiff::Timestamp::now().as_millisecond().to_string(),
    };
    let patch = json!({ "metadata": { "annotations": { ROLLOUT_REQUEST: request.to_string() } } });
    control.rest.merge(&path, &patch).await.context("write the request")?;
    output::print(&format!("rollout of {}: {done}\n", target.printed()))
}
