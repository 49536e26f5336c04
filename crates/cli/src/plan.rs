//! `longshore plan`: what a change would do, before it is made. Reads the control plane, sends dry runs and asks
//! `decide`; writes nothing but a plan file.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use controllers::gates::FeatureGates;
use controllers::snapshot::works;
use decide::admission_warnings::admission_warnings;
use decide::budget::{Subject, approval};
use decide::plan::{Breakdown, Plan, add_rendered, breakdown, plan, unsettled};
use decide::snapshot::{Change, Interpreters};
use decide::{Gates, PolicyKey, Snapshot, unknown_clusters};
use serde::Serialize;
use serde_json::Value;

use crate::connection::{Connection, Control};
use crate::kinds::Kinds;
use crate::output::{self, Format};
use crate::progress::with_progress;
use crate::terminal_text::Paint;

mod manifests;
mod order;
mod rehearsal;
mod request;
mod saved;
mod shown;

pub use manifests::Files;
pub use order::policies_first;
pub use rehearsal::{Beyond, Rehearsed, brings, rehearse};
pub use request::{Request, Verb, merged, replaced, state};
pub use saved::Saved;
pub use shown::shown;

/// The exit code of a plan that would change something.
const EXIT_CODE_CHANGES: u8 = 2;

/// Arguments of `longshore plan`.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub struct Arguments {
    #[command(flatten)]
    files: Files,
    /// Object to delete; repeatable
    #[arg(long, value_name = "KIND/NAME", group = "what")]
    delete: Vec<String>,
    /// Plan a restart of all controllers: what they have not acted on yet
    #[arg(long, group = "what", conflicts_with_all = ["filename", "kustomize", "delete", "save"])]
    restart: bool,
    /// Feature gates of that restart, where they differ from the present ones: StaticPolicy=true,Failover=false
    #[arg(long, value_name = "GATES", requires = "restart", value_parser = controllers::gates::parse)]
    feature_gates: Option<FeatureGates>,
    /// Show each template, also those that change in the same way
    #[arg(long)]
    detailed: bool,
    /// Output format, for programs
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<Format>,
    /// Write the plan to a file, for `longshore apply FILE`
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
}

/// Prints what would happen; the exit code says whether anything would.
pub async fn run(arguments: &Arguments) -> Result<ExitCode> {
    let control = arguments.connection.open().await?;
    let planned = match arguments.restart {
        true => restart(arguments, &control).await?,
        false => changed(arguments, &control).await?,
    };
    let notes = planned.notes_with("as a saved plan with `longshore apply --approve`");
    let plan = planned.plan;
    match arguments.output {
        Some(format) => {
            format.print(&Document { plan: &plan, breakdown: breakdown(&plan), notes: &notes })?;
        }
        None => {
            output::print(&shown(&plan, &notes, arguments.detailed, Paint::of_stdout()))?;
        }
    }
    Ok(if plan.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_CODE_CHANGES) })
}

/// What a restart would do, to the last Work.
async fn restarted(control: &Control) -> Result<Plan> {
    let snapshot = control.snapshot().await?;
    let mut plan = unsettled(&snapshot, Interpreters::BUILT_IN);
    let works = with_progress("reading the Works", works(&control.rest)).await.context("list the Works")?;
    let works: Vec<_> = works.into_values().collect();
    add_rendered(&mut plan, &snapshot, &works, Interpreters::BUILT_IN);
    Ok(plan)
}

/// A plan for programs.
#[derive(Serialize)]
struct Document<'p> {
    #[serde(flatten)]
    plan: &'p Plan,
    breakdown: Breakdown,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'p [String],
}

/// What a restart would do, with the gates that there are or with others.
async fn restart(arguments: &Arguments, control: &Control) -> Result<Planned> {
    let Some(feature_gates) = &arguments.feature_gates else {
        return Ok(Planned { plan: restarted(control).await?, ..Planned::default() });
    };
    let snapshot = control.snapshot().await?;
    let gates = Gates { skipped: snapshot.gates.skipped.clone(), ..feature_gates.gates.clone() };
    let plan = decide::plan::restarted(&snapshot, gates, Interpreters::BUILT_IN);
    let budget = plane::published_budget(&control.rest).await?;
    let note = plane::restart::judged(&snapshot, &plan, budget)
        .map(|(why, digest)| format!("A start with these feature gates waits for --accept={digest}: {why}"));
    Ok(Planned { plan, notes: note.into_iter().collect(), ..Planned::default() })
}

async fn changed(arguments: &Arguments, control: &Control) -> Result<Planned> {
    let requests = requests(arguments, control).await?;
    let planned = planned(control, &requests).await?;
    if let Some(path) = &arguments.save {
        let mut requests: Vec<Request> = requests.into_iter().map(|(request, _)| request).collect();
        requests.sort_by_key(order::request_rank);
        Saved::new(planned.gates.clone(), requests, &planned.plan)?.write(path)?;
        output::print_message(&format!(
            "saved; to apply exactly this plan: longshore apply {}",
            path.display()
        ));
    }
    Ok(planned)
}

async fn requests(arguments: &Arguments, control: &Control) -> Result<Vec<(Request, Option<Value>)>> {
    let manifests = arguments.files.manifests()?;
    let mut kinds = Kinds::of(&control.rest).await?;
    let mut requests = applied(control, &mut kinds, &manifests).await?;
    if !arguments.delete.is_empty() {
        for target in kinds.targets(&arguments.delete, &control.namespace)? {
            let (request, live) = Request::delete(&control.rest, &target).await?;
            rehearsal::there(&request, live.as_ref())?;
            requests.push((request, live));
        }
    }
    Ok(requests)
}

/// What `kubectl apply` of these manifests would ask for, in their order, with the objects as they are.
pub async fn applied(
    control: &Control,
    kinds: &mut Kinds,
    manifests: &[Value],
) -> Result<Vec<(Request, Option<Value>)>> {
    kinds.add_defined(manifests);
    let mut requests = Vec::new();
    for manifest in manifests {
        requests.push(Request::apply(&control.rest, kinds, &control.namespace, manifest).await?);
    }
    Ok(requests)
}

/// What requests would do.
#[derive(Default)]
pub struct Planned {
    /// What happens.
    pub plan: Plan,
    /// Notes for the user, besides those about budgets.
    pub notes: Vec<String>,
    /// Feature gates that are not at their default.
    pub gates: Vec<String>,
    /// Changes that exceed a change budget.
    pub beyond: Vec<Beyond>,
    /// What approves it, if it is one change.
    pub approval: Option<String>,
}

impl Planned {
    /// All notes for the user of a command that has `--approve`.
    pub fn notes(&self) -> Vec<String> {
        self.notes_with("with --approve")
    }

    fn notes_with(&self, way: &str) -> Vec<String> {
        // Reconcile requests are approved one by one, so there is no digest of all of them.
        let beyond = self.beyond.iter().filter(|beyond| !beyond.plan.is_empty());
        beyond.map(|beyond| beyond.note(way)).chain(self.notes.iter().cloned()).collect()
    }
}

/// What requests would do now.
pub async fn planned(control: &Control, requests: &[(Request, Option<Value>)]) -> Result<Planned> {
    let Rehearsed { changes, notes, beyond } =
        with_progress("sending the changes as a dry run", rehearse(&control.rest, requests)).await?;
    if !notes.is_empty() {
        output::print_message(
            "note: the server cannot dry-run these changes, so this command fills in the defaults:",
        );
        notes.iter().for_each(|note| output::print_message(&format!("  {note}")));
    }
    if control.computes().await? {
        return computed(control, &changes, beyond).await;
    }
    let snapshot = control.snapshot().await?;
    let gates = control.feature_gates().await?.changed();
    let plan = plan(&snapshot, &changes, Interpreters::BUILT_IN)?;
    let late = order::late_policies(&snapshot, &changes, &plan)?;
    let notes = late.into_iter().chain(remarked(&snapshot, &changes)?).collect();
    let approval = match requests {
        [(request, live)] => Some(approval(&snapshot, &plan, &subject(request, live.as_ref()))),
        _ => None,
    };
    Ok(Planned { plan, notes, gates, beyond, approval })
}

/// What a request writes, as the server judges it.
fn subject(request: &Request, live: Option<&Value>) -> Subject {
    match (request.verb, live) {
        (Verb::Delete, Some(live)) => Subject::deleted(live),
        (_, Some(live)) => Subject::written(live, Some(live)),
        (_, None) => Subject::written(&request.body, None),
    }
}

/// The same, as the control plane computes it for users who may not read everything.
async fn computed(control: &Control, changes: &[Change], beyond: Vec<Beyond>) -> Result<Planned> {
    let answer = with_progress("asking for the plan", control.computed_plan(changes)).await?;
    let hidden = (answer.hidden > 0).then(|| {
        format!("{} more templates are affected, in namespaces that you cannot read.", answer.hidden)
    });
    let notes = answer.notes.into_iter().chain(hidden).collect();
    // A user who may not read everything cannot compute the approval digest, and takes the one of the server.
    let approval = beyond.first().map(|beyond| beyond.plan.clone());
    Ok(Planned { plan: answer.plan, notes, gates: answer.gates, beyond, approval })
}

/// What there is to say about the policies among the changes.
fn remarked(snapshot: &Snapshot, changes: &[Change]) -> Result<Vec<String>> {
    let mut after = snapshot.clone();
    for change in changes {
        after.apply(change)?;
    }
    let policies = changes.iter().filter_map(|change| match change {
        Change::Put(object) => PolicyKey::of_object(object),
        Change::Delete { .. } => None,
    });
    // An unchanged policy gets no notes.
    let is_new = |key: &PolicyKey| {
        let spec = |snapshot: &Snapshot| snapshot.policies.get(key).map(|policy| policy.spec.clone());
        spec(snapshot) != spec(&after)
    };
    let mut said: Vec<String> = policies
        .filter(is_new)
        .flat_map(|policy| admission_warnings(&after, &policy, Interpreters::BUILT_IN))
        .collect();
    let others = changes.iter().filter_map(|change| match change {
        Change::Put(object) if PolicyKey::of_object(object).is_none() => Some(object),
        Change::Put(_) | Change::Delete { .. } => None,
    });
    let unknown = others.flat_map(|object| unknown_clusters::in_object(object, &after.clusters));
    said.extend(unknown.map(|unknown| unknown.to_string()));
    said.dedup();
    Ok(said)
}
