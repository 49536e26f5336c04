//! `longshore status`: the whole system at a glance: clusters, policies with what waits, and what is stuck and why.

use anyhow::Result;
use controllers::rest::{Error, Path};

use crate::connection::{Connection, Control};
use crate::output::{self, Format};
use crate::terminal_text::{Paint, labelled};
use crate::watch::{View, watch};
use plane::reports::{Report, report};

mod shown;
mod storage;
#[cfg(test)]
mod tests;

/// A health check that our API server has and Kubernetes' has not, whose metrics say nothing of limits and are long.
const STORAGE_CHECK: &str = "]storage-limit ";

/// Arguments of `longshore status`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Show every cluster, policy and stuck template, without a limit
    #[arg(long)]
    all: bool,
    /// Output format, for programs
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<Format>,
    /// Print it again after each change, until Ctrl-C
    #[arg(long, short, conflicts_with = "output")]
    watch: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Prints how the control plane and its members are.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let control = arguments.connection.open().await?;
    let text = |report: &Report| shown::shown(report, arguments.all, Paint::of_stdout());
    if let Some(why) = plane::restart::published_held_start(&control.rest).await.unwrap_or_default() {
        output::print_message(&labelled(
            "warning: ",
            &format!("the controllers do not run, because with their feature gates {why}"),
        ));
    }
    // Said once, however often the report is shown.
    let mut is_noted = false;
    let mut look = async || {
        let (report, is_of_namespace) = seen(&control).await?;
        if is_of_namespace && !is_noted {
            output::print_message(&format!(
                "note: you may read namespace {} only, so this is its status",
                control.namespace
            ));
            is_noted = true;
        }
        anyhow::Ok(report)
    };
    match arguments.output {
        Some(format) => format.print(&look().await?),
        None if arguments.watch => watch(async || Ok(View::of(text(&look().await?), false))).await,
        None => output::print(&text(&look().await?)),
    }
}

/// The report, and whether it is only about the namespace of the connection: what a user may see who may not read
/// everything.
async fn seen(control: &Control) -> Result<(Report, bool)> {
    if control.computes().await? {
        let answer = control.computed_report::<Report>("status").await?;
        let report = Report { context: control.context.clone(), ..answer.report };
        return Ok((report, answer.is_of_namespace));
    }
    let snapshot = control.snapshot().await?;
    let gates = control.feature_gates().await?.changed();
    let mut report = report(&snapshot, control.context.clone(), gates);
    let ready = control.rest.fetch_text(&Path::fixed("/readyz").with("verbose", "")).await;
    report.problems = ready.as_ref().err().map(problems).unwrap_or_default();
    let checks = ready.unwrap_or_else(|error| error.to_string());
    if checks.contains(STORAGE_CHECK) {
        // Users who may not read metrics are not warned.
        let metrics = control.rest.fetch_text(&Path::fixed("/metrics")).await.unwrap_or_default();
        report.warnings = storage::warnings(&metrics);
    }
    Ok((report, false))
}

/// What a server that is not ready says of itself; nothing about one that does not let us ask.
fn problems(error: &Error) -> Vec<String> {
    let Error::Refused { code: 500.., message, .. } = error else { return Vec::new() };
    let failed = message.lines().filter_map(|line| line.strip_prefix("[-]"));
    failed.map(str::to_owned).collect()
}
