//! `longshore apply PLAN`: makes the changes of a saved plan, if they still do exactly what it says. `longshore apply -f`:
//! plans files with policies first, shows the plan, asks, and applies them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use controllers::rest::Error;
use serde_json::Value;

use crate::confirmation::approving;
use crate::connection::{Connection, Control};
use crate::kinds::Kinds;
use crate::plan::{
    Files, Planned, Request, Saved, Verb, applied, brings, merged, planned, policies_first, shown, state,
};
use crate::terminal_text::Paint;
use crate::wait::Wait;
use crate::{Hint, output};

/// How long to wait for a kind that was just made, and how often.
const KIND_POLL_INTERVAL: Duration = Duration::from_millis(100);
const KIND_POLLS_MAX: usize = 100;
/// How many differences are printed.
const LINES_MAX: usize = 20;

/// Arguments of `longshore apply`.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub struct Arguments {
    /// Plan file that `longshore plan --save` wrote
    #[arg(value_name = "PLAN", group = "what", conflicts_with_all = ["filename", "kustomize"])]
    plan: Option<PathBuf>,
    #[command(flatten)]
    files: Files,
    /// With -f or -k: apply without asking for confirmation
    #[arg(long, short, conflicts_with = "plan")]
    yes: bool,
    /// With -f or -k: show the plan and change nothing
    #[arg(long, conflicts_with = "plan")]
    dry_run: bool,
    /// Apply the plan even if it exceeds a change budget
    #[arg(long)]
    approve: bool,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    connection: Connection,
}

/// Applies a saved plan, or plans files and asks.
pub async fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.plan {
        Some(plan) => apply_saved(arguments, plan).await,
        None => apply_files(arguments).await,
    }
}

/// Shows what the files would do, policies before templates, asks, and applies them.
async fn apply_files(arguments: &Arguments) -> Result<()> {
    let manifests = policies_first(arguments.files.manifests()?);
    let control = arguments.connection.open_to_write().await?;
    let mut kinds = Kinds::of(&control.rest).await?;
    let requests = applied(&control, &mut kinds, &manifests).await?;
    let now = planned(&control, &requests).await?;
    output::print(&shown(&now.plan, &now.notes(), false, Paint::of_stdout()))?;
    if arguments.dry_run {
        return Ok(());
    }
    if !output::confirm(&format!("Apply {} objects?", requests.len()), arguments.yes)? {
        return Err(anyhow!("nothing was changed"));
    }
    let requests = requests.into_iter().map(|(request, _)| request).collect();
    make(&control, &approved(requests, &now, arguments.approve)?).await?;
    arguments.wait.for_plan(&control, &now.plan).await
}

/// Plans again, and applies it if nothing is different.
async fn apply_saved(arguments: &Arguments, plan: &Path) -> Result<()> {
    let saved = Saved::read(plan)?;
    let control = arguments.connection.open_to_write().await?;
    let requests = unchanged(&control, &saved).await?;
    let now = planned(&control, &requests).await?;
    let mut moved = saved.differences(&now.plan)?;
    if now.gates != saved.gates {
        moved.push(format!("feature gates: {:?} when the plan was made, {:?} now", saved.gates, now.gates));
    }
    refuse(moved)?;
    let requests = requests.into_iter().map(|(request, _)| request).collect();
    let requests = approved(requests, &now, arguments.approve)?;
    make(&control, &requests).await?;
    output::print(&format!("{}\n", now.plan.totals))?;
    arguments.wait.for_plan(&control, &now.plan).await
}

/// Makes the changes in their order, and prints each.
async fn make(control: &Control, requests: &[Request]) -> Result<()> {
    let mut done = Vec::new();
    for request in requests {
        send(control, request, requests).await.with_context(|| match done.is_empty() {
            true => format!("apply {}; nothing was changed", request.object),
            false => format!("apply {}, after {}", request.object, done.join(", ")),
        })?;
        output::print(&format!("{} {}\n", request.object, request.done()))?;
        done.push(request.object.clone());
    }
    Ok(())
}

/// Sends a change; a kind that one of the others has just made may take a moment until it is served.
async fn send(control: &Control, request: &Request, all: &[Request]) -> Result<(), Error> {
    let mut sent = request.send(&control.rest, false).await;
    for _ in 0..KIND_POLLS_MAX {
        if !matches!(sent, Err(Error::NotFound { .. })) || !all.iter().any(|other| brings(other, request)) {
            break;
        }
        tokio::time::sleep(KIND_POLL_INTERVAL).await;
        sent = request.send(&control.rest, false).await;
    }
    sent.map(drop)
}

/// The requests, with an approval where they go beyond a budget. When the plan was saved there may have been none, so
/// it is the budget that holds now which counts.
fn approved(requests: Vec<Request>, now: &Planned, approve: bool) -> Result<Vec<Request>> {
    let Some(beyond) = now.beyond.first() else { return Ok(requests) };
    let refused = |hint: &str, why: &str| {
        Err(anyhow::Error::new(Hint(hint.to_owned())).context(format!("{why}: {}", beyond.why)))
    };
    if !approve {
        return refused(
            "nothing was changed; to apply it anyway, add --approve",
            "the change exceeds its budget",
        );
    }
    let [request] = requests.as_slice() else {
        return refused(
            "plan and apply that object alone, with `longshore plan -f FILE --save PLAN` and \
             `longshore apply PLAN --approve`",
            "one of the changes exceeds its budget",
        );
    };
    if now.approval.as_deref() != Some(beyond.plan.as_str()) {
        return refused("try again in a moment", "the control plane's cache is not up to date yet");
    }
    let seen = approving(Some(&beyond.plan));
    Ok(match request.verb {
        Verb::Delete => vec![Request { verb: Verb::Patch, body: seen, ..request.clone() }, request.clone()],
        Verb::Create | Verb::Patch => {
            vec![Request { body: merged(&request.body, &seen), ..request.clone() }]
        }
    })
}

/// The requests with the objects as they are, if those are as they were.
async fn unchanged(control: &Control, saved: &Saved) -> Result<Vec<(Request, Option<Value>)>> {
    let mut requests = Vec::new();
    let mut moved = Vec::new();
    for request in &saved.requests {
        let live = request.live(&control.rest).await.with_context(|| format!("read {}", request.object))?;
        match (&live, request.before.as_str()) {
            (None, "") => {}
            (Some(_), "") => moved
                .push(format!("{}: it did not exist when the plan was made, and exists now", request.object)),
            (None, _) => moved.push(format!(
                "{}: it existed when the plan was made, and does not exist now",
                request.object
            )),
            (Some(live), before) if state(live) != before => {
                moved.push(format!("{}: it has changed since the plan was made", request.object));
            }
            (Some(_), _) => {}
        }
        requests.push((request.clone(), live));
    }
    refuse(moved)?;
    Ok(requests)
}

fn refuse(moved: Vec<String>) -> Result<()> {
    if moved.is_empty() {
        return Ok(());
    }
    let more = moved.len().saturating_sub(LINES_MAX);
    let mut lines: Vec<String> =
        moved.into_iter().take(LINES_MAX).map(|line| format!("\n  {line}")).collect();
    if more > 0 {
        lines.push(format!("\n  and {more} more"));
    }
    let hint = Hint(
        "nothing was changed; make and read a new plan with `longshore plan --save FILE`, then \
         apply that"
            .to_owned(),
    );
    Err(anyhow::Error::new(hint)
        .context(anyhow!("apply the plan: objects have changed since it was made:{}", lines.concat())))
}
