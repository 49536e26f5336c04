//! `longshore status`: the whole system at a glance: clusters, policies with what waits, and what is stuck and why.

use std::fmt::Write as _;

use anyhow::Result;
use api::cluster::READY;
use api::{Cluster, ConditionStatus};
use decide::policy_status::template_counts;
use decide::{Policy, World, conditions};

use crate::connection::Connection;
use crate::output;
use crate::status::stuck::stuck;
use crate::text::{Paint, table, wrapped};

mod stuck;

/// How many things that are stuck are named.
const STUCK_MAX: usize = 20;

/// Arguments of `longshore status`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    connection: Connection,
}

/// Prints how the control plane and its members are.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let control = arguments.connection.open().await?;
    let world = control.world().await?;
    let gates = control.switches().await?.changed();
    let mut text = format!("Control plane: context {}", control.context);
    if !gates.is_empty() {
        let _ = write!(text, ", feature gates {}", gates.join(", "));
    }
    text += "\n\n";
    text += &shown(&world, Paint::of_stdout());
    output::print(&text)
}

fn shown(world: &World, paint: Paint) -> String {
    let mut text = clusters(&world.clusters);
    text += &policies(world);
    let stuck = stuck(world);
    if stuck.is_empty() {
        return text + "Nothing is stuck.\n";
    }
    let _ = writeln!(text, "{}", paint.strong("Stuck:"));
    for one in stuck.iter().take(STUCK_MAX) {
        let _ = writeln!(text, "{}", paint.red(&wrapped("  ", &format!("{}: {}", one.what, one.why))));
    }
    if let Some(more) = stuck.len().checked_sub(STUCK_MAX).filter(|more| *more > 0) {
        let _ = writeln!(text, "  and {more} more");
    }
    text + "`longshore why KIND/NAME` tells more about each.\n"
}

fn clusters(clusters: &[Cluster]) -> String {
    let row = |cluster: &Cluster| {
        let taints: Vec<String> = cluster.spec.taints.iter().map(taint).collect();
        let taints = if taints.is_empty() { "<none>".to_owned() } else { taints.join(",") };
        let version = cluster.status.kubernetes_version.clone();
        vec![cluster.metadata.name.clone(), ready(cluster).to_owned(), version, taints]
    };
    match clusters.is_empty() {
        true => "No cluster has joined.\n\n".to_owned(),
        false => {
            let rows: Vec<Vec<String>> = clusters.iter().map(row).collect();
            table(&["CLUSTER", "READY", "VERSION", "TAINTS"], &rows) + "\n"
        }
    }
}

fn ready(cluster: &Cluster) -> &'static str {
    match conditions::status(&cluster.status.conditions, READY) {
        Some(ConditionStatus::True) => "True",
        Some(ConditionStatus::False) => "False",
        Some(ConditionStatus::Unknown) | None => "Unknown",
    }
}

/// Counted from the templates and bindings themselves, so it is also true where nobody writes policies' status.
fn policies(world: &World) -> String {
    let row = |policy: &Policy| {
        let counts = template_counts(policy, world);
        let (kind, name) = match policy.key.namespace.as_str() {
            "" => ("cpp", policy.key.name.clone()),
            namespace => ("pp", format!("{namespace}/{}", policy.key.name)),
        };
        let lazy = if policy.spec.is_lazy() { "Lazy" } else { "<none>" };
        let counts = [policy.spec.priority(), counts.claimed, counts.pending_activation, counts.suspended];
        let front = [kind.to_owned(), name, lazy.to_owned()];
        front.into_iter().chain(counts.map(|count| count.to_string())).collect()
    };
    let mut rows: Vec<Vec<String>> = world.policies.iter().map(|policy| row(policy)).collect();
    rows.sort();
    match rows.is_empty() {
        true => "There is no policy.\n\n".to_owned(),
        false => {
            let header = ["KIND", "POLICY", "ACTIVATION", "PRIORITY", "CLAIMED", "PENDING", "SUSPENDED"];
            table(&header, &rows) + "\n"
        }
    }
}

/// A taint as kubectl writes it.
pub fn taint(taint: &api::Taint) -> String {
    match taint.value.as_str() {
        "" => format!("{}:{}", taint.key, taint.effect),
        value => format!("{}={value}:{}", taint.key, taint.effect),
    }
}
