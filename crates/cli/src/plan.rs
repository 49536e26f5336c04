//! `longshore plan`: what a change would do, before it is made. Reads, tries and asks `decide`; writes nothing but a
//! plan file.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use decide::plan::{Plan, plan, unsettled};
use decide::world::Answers;
use serde_json::Value;

use crate::connection::{Connection, Control};
use crate::kinds::Kinds;
use crate::output::{self, Format};
use crate::progress::saying;
use crate::text::Paint;

mod manifests;
mod rehearsal;
mod request;
mod saved;
mod shown;

pub use rehearsal::{Rehearsed, rehearse};
pub use request::Request;
pub use saved::Saved;

/// The exit code of a plan that would change something.
const CHANGES: u8 = 2;

/// Arguments of `longshore plan`.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub struct Arguments {
    /// Files with the objects to be applied, directories of them, or - for stdin
    #[arg(long, short, value_name = "FILE", num_args = 1.., group = "what")]
    filename: Vec<PathBuf>,
    /// Look into directories inside of directories, too
    #[arg(long, short = 'R', requires = "filename")]
    recursive: bool,
    /// An object to be deleted; repeat it for more
    #[arg(long, value_name = "KIND/NAME", group = "what")]
    delete: Vec<String>,
    /// What a restart of all controllers would do: whatever is not settled yet
    #[arg(long, group = "what", conflicts_with_all = ["filename", "delete", "save"])]
    restart: bool,
    /// Show every template by itself, not only one of those to which the same happens
    #[arg(long)]
    detailed: bool,
    /// Print it for programs
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<Format>,
    /// Write the plan to a file that `longshore apply` takes
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
}

/// Prints what would happen; the exit code says whether anything would.
pub async fn run(arguments: &Arguments) -> Result<ExitCode> {
    let control = arguments.connection.open().await?;
    let planned = match arguments.restart {
        true => unsettled(&saying("reading the control plane", control.world()).await?, Answers::BRAIN),
        false => changed(arguments, &control).await?,
    };
    match arguments.output {
        Some(format) => format.print(&planned)?,
        None => output::print(&shown::shown(&planned, arguments.detailed, Paint::of_stdout()))?,
    }
    Ok(if planned.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(CHANGES) })
}

async fn changed(arguments: &Arguments, control: &Control) -> Result<Plan> {
    let requests = requests(arguments, control).await?;
    let (planned, gates) = planned(control, &requests).await?;
    if let Some(path) = &arguments.save {
        let requests = requests.into_iter().map(|(request, _)| request).collect();
        Saved::new(gates, requests, &planned)?.write(path)?;
        output::tell(&format!("saved; `longshore apply {}` applies exactly this", path.display()));
    }
    Ok(planned)
}

async fn requests(arguments: &Arguments, control: &Control) -> Result<Vec<(Request, Option<Value>)>> {
    let manifests = match arguments.filename.as_slice() {
        [] => Vec::new(),
        files => manifests::read(files, arguments.recursive)?,
    };
    let kinds = Kinds::of(&control.rest).await?;
    let mut requests = Vec::new();
    for manifest in &manifests {
        requests.push(Request::apply(&control.rest, &kinds, &control.namespace, manifest).await?);
    }
    if !arguments.delete.is_empty() {
        for target in kinds.targets(&arguments.delete, &control.namespace)? {
            let (request, live) = Request::delete(&control.rest, &target).await?;
            rehearsal::there(&request, live.as_ref())?;
            requests.push((request, live));
        }
    }
    Ok(requests)
}

/// What requests would do now, and the gates that are not at their default.
pub async fn planned(
    control: &Control,
    requests: &[(Request, Option<Value>)],
) -> Result<(Plan, Vec<String>)> {
    let Rehearsed { changes, notes } =
        saying("trying the changes", rehearse(&control.rest, requests)).await?;
    if !notes.is_empty() {
        output::tell("note: the server cannot try these changes, so defaults are filled in here:");
        notes.iter().for_each(|note| output::tell(&format!("  {note}")));
    }
    let world = saying("reading the control plane", control.world()).await?;
    let gates = control.switches().await?.changed();
    Ok((plan(&world, &changes, Answers::BRAIN)?, gates))
}
