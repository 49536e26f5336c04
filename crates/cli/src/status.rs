//! `longshore status`: the whole system at a glance: clusters, policies with what waits, and what is stuck and why.

use anyhow::Result;

use crate::connection::Connection;
use crate::output::{self, Format};
use crate::status::report::report;
use crate::text::Paint;

mod report;
mod shown;
mod stuck;
#[cfg(test)]
mod tests;

/// Arguments of `longshore status`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Show every cluster, every policy and everything that is stuck, however many there are
    #[arg(long)]
    all: bool,
    /// Print it for programs
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    connection: Connection,
}

/// Prints how the control plane and its members are.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let control = arguments.connection.open().await?;
    let world = control.world().await?;
    let gates = control.switches().await?.changed();
    let report = report(&world, control.context.clone(), gates);
    match arguments.output {
        Some(format) => format.print(&report),
        None => output::print(&shown::shown(&report, arguments.all, Paint::of_stdout())),
    }
}
