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
const LEFT: u8 = 2;

/// Arguments of `longshore handback`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only say what is left, also while the controllers run: 0 nothing, 2 something, 1 error
    #[arg(long, conflicts_with = "yes")]
    check: bool,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
    /// Where the lease and the webhooks' certificates are kept
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
        lease::nobody_leads(&control.rest, &arguments.system_namespace).await?;
    }
    let snapshot = control.snapshot().await?;
    let steps = steps(&control.rest, &snapshot, &arguments.system_namespace).await?;
    for caveat in caveats(&snapshot) {
        output::tell(&format!("note: {caveat}"));
    }
    if arguments.check || arguments.dry_run {
        return shown(arguments, &steps);
    }
    if steps.is_empty() {
        output::print("nothing of Longshore is left; Karmada can start\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let question =
        format!("Take away what Longshore left in context {} ({} steps)?", control.context, steps.len());
    if !output::confirm(&question, arguments.yes)? {
        output::print("nothing was changed\n")?;
        return Ok(ExitCode::FAILURE);
    }
    for step in &steps {
        take(&control.rest, step).await.map_err(|error| {
            let hint = Hint("run it again: what is done stays done".to_owned());
            anyhow::Error::new(hint).context(format!("{error:#}")).context("hand back")
        })?;
        output::print(&format!("{}\n", step.says))?;
    }
    output::tell(
        "Karmada can start once its own definitions and webhook configurations are back: see docs/operate.md",
    );
    Ok(ExitCode::SUCCESS)
}

fn shown(arguments: &Arguments, steps: &[Step]) -> Result<ExitCode> {
    let suffix = if arguments.check { "" } else { " (dry run)" };
    for step in steps {
        output::print(&format!("{}{suffix}\n", step.says))?;
    }
    if steps.is_empty() {
        output::print("nothing of Longshore is left\n")?;
    }
    Ok(match arguments.check && !steps.is_empty() {
        true => ExitCode::from(LEFT),
        false => ExitCode::SUCCESS,
    })
}

/// `longshore up` has its controllers in the server itself, and Karmada cannot take that over.
async fn is_kubernetes(control: &Control) -> Result<()> {
    let version: Value = control.rest.fetch(&Path::fixed("/version")).await.context("ask for the version")?;
    if version["compiler"] != "rustc" {
        return Ok(());
    }
    let hint = "name the API server that `longshore controllers` ran on with --kubeconfig or --context";
    let context = format!("hand back: context {:?} is that of `longshore up`", control.context);
    Err(anyhow::Error::new(Hint(hint.to_owned())).context(context))
}
