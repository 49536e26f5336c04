//! `longshore status`: the whole system at a glance.

use anyhow::Result;
use api::cluster::READY;
use api::{Cluster, ConditionStatus};
use decide::conditions;

use crate::connection::Connection;
use crate::text::table;
use crate::{members, output};

/// Arguments of `longshore status`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    connection: Connection,
}

/// Prints how the control plane and its members are.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let control = arguments.connection.open().await?;
    let gates = control.switches().await?.changed();
    let clusters = members::clusters(&control).await?;
    let mut text = format!("Control plane: context {}", control.context);
    if !gates.is_empty() {
        text += &format!(", feature gates {}", gates.join(", "));
    }
    let rows: Vec<Vec<String>> = clusters.iter().map(row).collect();
    text += &match rows.is_empty() {
        true => "\nClusters: none has joined.\n".to_owned(),
        false => format!("\n\n{}", table(&["CLUSTER", "READY", "VERSION", "TAINTS"], &rows)),
    };
    output::print(&text)
}

fn row(cluster: &Cluster) -> Vec<String> {
    let ready = match conditions::status(&cluster.status.conditions, READY) {
        Some(ConditionStatus::True) => "True",
        Some(ConditionStatus::False) => "False",
        Some(ConditionStatus::Unknown) | None => "Unknown",
    };
    let taints: Vec<String> = cluster.spec.taints.iter().map(taint).collect();
    let taints = if taints.is_empty() { "<none>".to_owned() } else { taints.join(",") };
    let version = cluster.status.kubernetes_version.clone();
    vec![cluster.metadata.name.clone(), ready.to_owned(), version, taints]
}

/// A taint as kubectl writes it.
fn taint(taint: &api::Taint) -> String {
    match taint.value.as_str() {
        "" => format!("{}:{}", taint.key, taint.effect),
        value => format!("{}={value}:{}", taint.key, taint.effect),
    }
}
