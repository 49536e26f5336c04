//! `longshore rollout`: which generation of a policy each template follows, earlier generations and rollback, and what a
//! person asks of a change that spreads in stages.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, anyhow};
use api::ObjectMeta;
use api::records::Past;
use controllers::rest::{Collection, Error, Written};
use decide::rollout::Action;
use plane::reports::{Follower, TemplateReport, followers};
use serde::Serialize;
use serde_json::{Value, json};

use crate::Hint;
use crate::confirmation::{Confirmation, ConfirmationFlags, approving};
use crate::connection::{Connection, Control};
use crate::output::{self, Format};
use crate::plan::{Request, merged, planned, replaced};
use crate::policy_lookup::{self, FoundPolicy};
use crate::wait::Wait;
use crate::watch::{View, watch};

mod request;
mod shown;
#[cfg(test)]
mod tests;

/// How often a write is retried after a conflict.
const CONFLICT_RETRIES_MAX: usize = 5;

/// Arguments of `longshore rollout`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show which generation of a policy each of its templates follows.
    Status(Status),
    /// Show earlier generations of a policy, and how many templates still follow each.
    History(History),
    /// Restore the spec of an earlier generation of a policy.
    Undo(Undo),
    /// Let no further cluster get the change of a template that spreads in stages.
    Pause(request::Asked),
    /// Let a paused rollout go on; clusters that failed are judged anew.
    Resume(request::Asked),
    /// Approve the end of a stage that waits for it.
    Approve(request::Approve),
    /// Let a rollout go on without waiting for a cluster.
    Skip(request::Skip),
    /// End a rollout: clusters that have not started keep what they have.
    Abort(request::Asked),
}

#[derive(clap::Args)]
struct Asked {
    /// Policy: NAME, pp/NAME or cpp/NAME
    #[arg(value_name = "POLICY")]
    policy: String,
    /// Output format
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    connection: Connection,
}

#[derive(clap::Args)]
struct Status {
    /// Show every template, without a limit
    #[arg(long)]
    all: bool,
    /// Print it again after each change, until every template follows the newest generation
    #[arg(long, short, conflicts_with = "output")]
    watch: bool,
    #[command(flatten)]
    asked: Asked,
}

#[derive(clap::Args)]
struct History {
    /// Print the spec of this generation
    #[arg(long, value_name = "N")]
    generation: Option<i64>,
    #[command(flatten)]
    asked: Asked,
}

#[derive(clap::Args)]
struct Undo {
    /// Policy: NAME, pp/NAME or cpp/NAME
    #[arg(value_name = "POLICY")]
    policy: String,
    /// Generation to restore [default: the last one with another spec]
    #[arg(long, value_name = "N")]
    to_generation: Option<i64>,
    #[command(flatten)]
    confirmation: ConfirmationFlags,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    connection: Connection,
}

/// One generation of a policy.
#[derive(Serialize)]
struct Generation {
    #[serde(flatten)]
    past: Past,
    /// How many templates follow it.
    templates: usize,
}

/// Runs one of them.
pub async fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        Command::Status(arguments) => status(arguments).await,
        Command::History(history) => self::history(history).await,
        Command::Undo(undo) => self::undo(undo).await,
        Command::Pause(asked) => request::ask(asked, Action::Pause, "paused").await,
        Command::Resume(asked) => request::ask(asked, Action::Resume, "resumed").await,
        Command::Approve(approve) => request::approve(approve).await,
        Command::Skip(skip) => request::skip(skip).await,
        Command::Abort(asked) => request::ask(asked, Action::Abort, "aborted").await,
    }
}

async fn status(arguments: &Status) -> Result<()> {
    let asked = &arguments.asked;
    let control = asked.connection.open().await?;
    if let Some(format) = asked.output {
        let found = policy_lookup::find(&control, &asked.policy).await?;
        let followers = followed(&control, &found).await?;
        let newest = generation(&found.object);
        return format.print(&json!({ "generation": newest, "templates": followers }));
    }
    watch(async || {
        let found = policy_lookup::find(&control, &asked.policy).await?;
        let followers = followed(&control, &found).await?;
        let newest = generation(&found.object);
        let text = shown::followers(&found.printed(), newest, &followers, arguments.all);
        let is_done = !arguments.watch || followers.iter().all(|one| one.is_current);
        Ok(View::of(text, is_done))
    })
    .await
}

async fn history(arguments: &History) -> Result<()> {
    let asked = &arguments.asked;
    let control = asked.connection.open().await?;
    let found = policy_lookup::find(&control, &asked.policy).await?;
    let all = generations(&found);
    if let Some(wanted) = arguments.generation {
        let past = pick(&found, &all, wanted)?;
        return asked.output.unwrap_or(Format::Yaml).print(&past.spec);
    }
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    for follower in followed(&control, &found).await? {
        *counts.entry(follower.own_generation.unwrap_or(0)).or_default() += 1;
    }
    let all = all.into_iter().map(|past| {
        let templates = counts.get(&past.generation).copied().unwrap_or(0);
        Generation { past, templates }
    });
    let all: Vec<Generation> = all.collect();
    if let Some(format) = asked.output {
        return format.print(&all);
    }
    if all.len() == 1 && all[0].past.generation > 1 {
        output::print_message(
            "No earlier generation is recorded: only the control plane of `longshore up` keeps the \
             history.",
        );
    }
    output::print(&shown::history(&found.printed(), &all))
}

async fn undo(arguments: &Undo) -> Result<()> {
    let control = arguments.connection.open_to_write().await?;
    let found = policy_lookup::find(&control, &arguments.policy).await?;
    let all = generations(&found);
    let past = match arguments.to_generation {
        Some(wanted) => pick(&found, &all, wanted)?,
        None => {
            all.iter().rev().skip(1).find(|past| said(&past.spec) != said(&found.object["spec"])).ok_or_else(
                || {
                    let hint = Hint("`longshore rollout history` shows what is recorded".to_owned());
                    anyhow::Error::new(hint)
                        .context(format!("{} has no earlier generation with another spec", found.printed()))
                },
            )?
        }
    };
    if said(&past.spec) == said(&found.object["spec"]) {
        let text = format!("{} already has the spec of generation {}\n", found.printed(), past.generation);
        return output::print(&text);
    }
    let mut object = found.object.clone();
    object["spec"] = said(&past.spec);
    // A rollback must not dispatch what is suspended now.
    if let Some(suspension) = found.object["spec"].get("suspension") {
        object["spec"]["suspension"] = suspension.clone();
    }
    let spec = replaced(&found.object["spec"], &object["spec"]);
    let request = Request::change(&found.kind, &found.object, Some(json!({ "spec": spec })));
    let planned = planned(&control, &[(request, Some(found.object.clone()))]).await?;
    let question = format!("Roll {} back to generation {}?", found.printed(), past.generation);
    match arguments.confirmation.to(&question, &planned)? {
        Confirmation::DryRun => return Format::Yaml.print(&object["spec"]),
        Confirmation::Confirmed(approval) => object = merged(&object, &approving(approval.as_deref())),
    }
    let written = write(&control, &found, &object).await?;
    let (now, back) = (written.metadata.generation, past.generation);
    output::print(&format!("{} rolled back to generation {back}, as generation {now}\n", found.printed()))?;
    if planned.plan.templates.values().any(|template| template.held.is_some()) {
        let command = format!("longshore reconcile --policy {}", arguments.policy);
        output::print_message(&format!(
            "Templates follow when they change; to let them follow now: {command}"
        ));
    }
    arguments.wait.for_plan(&control, &planned.plan).await
}

/// Writes the policy. Its status is written all the time, so it may take more than one try.
async fn write(control: &Control, found: &FoundPolicy, object: &Value) -> Result<Written> {
    let path = Collection::of(&found.kind, &found.namespace).object(&found.name);
    let mut object = object.clone();
    let mut written = control.rest.replace(&path, &object).await;
    for _ in 1..CONFLICT_RETRIES_MAX {
        if !matches!(written, Err(Error::Conflict { .. })) {
            break;
        }
        let now: Option<Value> = control.rest.get(&path).await?;
        let Some(now) = now.filter(|now| now["spec"] == found.object["spec"]) else { break };
        object["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
        written = control.rest.replace(&path, &object).await;
    }
    written.map_err(|error| {
        let hint = match &error {
            Error::Conflict { .. } => "another client has just changed it: read it and run the command again",
            _ => "nothing was changed",
        };
        anyhow::Error::new(Hint(hint.to_owned())).context(error).context("write the policy")
    })
}

/// A spec without its suspension.
fn said(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("suspension");
    }
    spec
}

/// Every generation that is known, oldest first; the last is the one that counts.
fn generations(found: &FoundPolicy) -> Vec<Past> {
    let metadata: ObjectMeta = serde_json::from_value(found.object["metadata"].clone()).unwrap_or_default();
    let mut all = Past::read(&metadata);
    all.push(Past {
        generation: metadata.generation,
        until: None,
        cause: metadata.annotation("kubernetes.io/change-cause").to_owned(),
        spec: found.object["spec"].clone(),
    });
    all
}

fn pick<'p>(found: &FoundPolicy, all: &'p [Past], wanted: i64) -> Result<&'p Past> {
    all.iter().find(|past| past.generation == wanted).ok_or_else(|| {
        let known: Vec<String> = all.iter().map(|past| past.generation.to_string()).collect();
        let hint = Hint(format!("recorded are {}", known.join(", ")));
        anyhow::Error::new(hint).context(format!("find generation {wanted} of {}", found.printed()))
    })
}

async fn followed(control: &Control, found: &FoundPolicy) -> Result<Vec<Follower>> {
    if control.computes().await? {
        let answer = control.computed_report::<Vec<TemplateReport>>("templates").await?;
        let owned = answer.report.into_iter().filter(|one| one.owner == Some(found.key()));
        return Ok(owned.filter_map(|one| one.follower).collect());
    }
    let snapshot = control.snapshot().await.context("compute which templates follow the policy")?;
    let policy = snapshot
        .policies
        .get(&found.key())
        .ok_or_else(|| anyhow!("{} was deleted in the meantime", found.printed()))?;
    Ok(followers(&snapshot, policy))
}

fn generation(policy: &Value) -> i64 {
    policy.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0)
}
