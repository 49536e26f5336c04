//! `longshore crds`: prints the CustomResourceDefinitions, for installation by other means.

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::connection::Connection;
use crate::output;

/// Precedes the definition of a kind that Karmada serves without one.
const NOT_WITH_KARMADA: &str = "\
# Not for a control plane that Karmada made: an APIService serves this kind there (kubectl get apiservices). \
Do not install
# it beside that, and where both are there, do not delete it: every Cluster would be deleted with it.
";

/// Arguments of `longshore crds`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    connection: Connection,
}

/// Prints all of them as one YAML stream; if a kubeconfig or a context is named, those that its API server needs.
pub async fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.connection.is_named() {
        return api::crd::crds().iter().try_for_each(print);
    }
    let control = arguments.connection.open().await?;
    let definitions = plane::wanted_definitions(&control.rest).await.context("list the APIServices")?;
    for skipped in &definitions.aggregated {
        let name = skipped["metadata"]["name"].as_str().unwrap_or_default();
        output::print_message(&format!("{name} is not printed: an APIService serves this kind"));
    }
    definitions.wanted.iter().try_for_each(print)
}

fn print(definition: &Value) -> Result<()> {
    let text = serde_saphyr::to_string(definition).context("write a definition")?;
    let is_cluster = definition["metadata"]["name"] == api::kinds::CLUSTER.crd_name();
    output::print(&format!("---\n{}{text}", if is_cluster { NOT_WITH_KARMADA } else { "" }))
}
