//! `longshore handback`: prepares a control plane for Karmada's return, after the controllers were stopped. Removes
//! what would break Karmada and reports what Karmada would do differently. It is idempotent and can be interrupted.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use controllers::rest::Path;
use decide::handback::caveats;
use serde_json::Value;

use crate::connection::{Connection, Control};
use crate::{Hint, output};

mod lease;
mod steps;
#[cfg(test)]
mod tests;

use steps::{Step, steps, take};

/// The exit code of a check that found something.
const EXIT_CODE_LEFT: u8 = 2;

/// Arguments of `longshore handback`.
#[derive(clap::Args)]
pub struct Arguments {
    /// List what is left and change nothing; works while the controllers run. Exit code 0: nothing, 2: something, 1:
    /// error
    #[arg(long, conflicts_with = "yes")]
    check: bool,
    /// Print what the command would do and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Make the change without asking for confirmation
    #[arg(long)]
    yes: bool,
    /// Namespace of the leader election Lease and of the Secret with the webhooks' certificates
    #[arg(long, value_name = "NAMESPACE", default_value = "karmada-system")]
    system_namespace: String,
    #[command(flatten)]
    connection: Connection,
}

/// Takes away what is ours.
pub async fn run(arguments: &Arguments) -> Result<ExitCode> {
    let control = arguments.connection.open().await?;
    is_kubernetes(&control).await?;
    if !arguments.check {
        lease::check_no_leader(&control.rest, &arguments.system_namespace).await?;
    }
    let snapshot = control.snapshot().await?;
    let steps = steps(&control.rest, &snapshot, &arguments.system_namespace).await?;
    for caveat in caveats(&snapshot) {
        output::print_message(&format!("note: {caveat}"));
    }
    if arguments.check || arguments.dry_run {
        return shown(arguments, &steps);
    }
    if steps.is_empty() {
        output::print("Nothing of Longshore is left; Karmada can start.\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let question =
        format!("Remove what Longshore left in context {} ({} steps)?", control.context, steps.len());
    if !output::confirm(&question, arguments.yes)? {
        output::print("nothing was changed\n")?;
        return Ok(ExitCode::FAILURE);
    }
    for step in &steps {
        take(&control.rest, step).await.map_err(|error| {
            let hint = Hint("run `longshore handback` again; it continues where it stopped".to_owned());
            anyhow::Error::new(hint).context(format!("{error:#}")).context("hand back")
        })?;
        output::print(&format!("{}\n", step.says))?;
    }
    output::print_message(
        "Start Karmada after you restored its own definitions and webhook configurations: see \
         docs/operate.md",
    );
    Ok(ExitCode::SUCCESS)
}

fn shown(arguments: &Arguments, steps: &[Step]) -> Result<ExitCode> {
    let suffix = if arguments.check { "" } else { " (dry run)" };
    for step in steps {
        output::print(&format!("{}{suffix}\n", step.says))?;
    }
    if steps.is_empty() {
        output::print("Nothing of Longshore is left.\n")?;
    }
    Ok(match arguments.check && !steps.is_empty() {
        true => ExitCode::from(EXIT_CODE_LEFT),
        false => ExitCode::SUCCESS,
    })
}

/// `longshore up` has its controllers in the server itself, and Karmada cannot take that over.
async fn is_kubernetes(control: &Control) -> Result<()> {
    let version: Value = control.rest.fetch(&Path::fixed("/version")).await.context("ask for the version")?;
    if version["compiler"] != "rustc" {
        return Ok(());
    }
    let hint = "choose the API server on which `longshore controllers` ran with --kubeconfig or --context";
    let context = format!(
        "hand back: context {:?} is a control plane of `longshore up`, which Karmada cannot run on",
        control.context
    );
    Err(anyhow::Error::new(Hint(hint.to_owned())).context(context))
}
