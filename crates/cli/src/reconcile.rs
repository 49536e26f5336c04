//! `longshore reconcile`: applies pending policy changes (lazy activation) now. The request is an annotation on the
//! template and is answered once; the answer is on the binding, so no restart repeats it (R1).

use anyhow::{Context as _, Result, anyhow};
use api::records::RECONCILE;
use apimachinery::selector::LabelSelector;
use controllers::rest::Error;
use decide::budget::{Effects, excess};
use decide::orphans::orphans;
use decide::plan::plan;
use decide::snapshot::{Change, Interpreters};
use decide::{Snapshot, TemplateKey};
use futures::{StreamExt as _, stream};
use plane::reports::{Standing, standing};
use serde_json::{Value, json};

use crate::confirmation::{Confirmation, ConfirmationFlags, approving};
use crate::connection::{Connection, Control};
use crate::kinds::{Kinds, Target};
use crate::plan::{Beyond, Planned, merged};
use crate::wait::Wait;
use crate::{Hint, output, policy_lookup};

mod computed;

/// How many templates are written at once.
const CONCURRENT_WRITES_MAX: usize = 16;

/// Arguments of `longshore reconcile`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Templates: KIND/NAME or KIND NAME…; with -l, kinds: KIND,KIND… or all
    #[arg(value_name = "WHAT", required_unless_present = "policy", conflicts_with = "policy")]
    what: Vec<String>,
    /// Label selector for templates; the labels that name the claiming policy count, too
    #[arg(long, short = 'l', value_name = "SELECTOR", conflicts_with = "policy")]
    selector: Option<String>,
    /// Use all namespaces
    #[arg(long, short = 'A', requires = "selector")]
    all_namespaces: bool,
    /// All templates that a policy claims, and orphaned ones that it would claim: NAME, pp/NAME or cpp/NAME
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    #[command(flatten)]
    confirmation: ConfirmationFlags,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    connection: Connection,
}

/// Asks for propagation by the policies as they are now.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let control = arguments.connection.open_to_write().await?;
    let kinds = Kinds::of(&control.rest).await?;
    if control.computes().await? {
        return computed::run(arguments, &control, &kinds).await;
    }
    let snapshot = control.snapshot().await?;
    let chosen = chosen(arguments, &control, &kinds, &snapshot).await?;
    let mut waiting = Vec::new();
    for key in chosen {
        let Some(target) = kinds.target(&key) else { continue };
        match standing(&snapshot, &key) {
            Standing::Waits => waiting.push(target),
            Standing::UpToDate if arguments.policy.is_some() || arguments.selector.is_some() => {}
            settled => output::print_message(&format!("{} {settled}", target.printed())),
        }
    }
    if waiting.is_empty() {
        output::print_message("Nothing waits.");
    }
    let planned = planned(&control, &snapshot, &waiting).await?;
    let question = format!("Reconcile {} now?", counted(waiting.len()));
    if !waiting.is_empty() && matches!(arguments.confirmation.to(&question, &planned)?, Confirmation::DryRun)
    {
        let lines = waiting.iter().map(|target| {
            format!("{} would be reconciled{} (dry run)\n", target.printed(), place(&control, target))
        });
        return output::print(&lines.collect::<String>());
    }
    ask(&control, &waiting, arguments.confirmation.approve).await?;
    arguments.wait.for_plan(&control, &planned.plan).await
}

fn counted(templates: usize) -> String {
    if templates == 1 { "1 template".to_owned() } else { format!("{templates} templates") }
}

/// What the reconcile requests would do together. The server checks the budget for each; here it is checked for all.
async fn planned(control: &Control, snapshot: &Snapshot, waiting: &[Target]) -> Result<Planned> {
    let changes = waiting.iter().filter_map(|target| {
        let mut object = snapshot.templates.get(&target.template())?.object();
        object["metadata"]["annotations"][RECONCILE] = "planned".into();
        Some(Change::Put(object.into()))
    });
    let plan = plan(snapshot, &changes.collect::<Vec<_>>(), Interpreters::BUILT_IN)?;
    let budget = plane::published_budget(&control.rest).await.context("read the budget")?;
    let excess = excess(snapshot, &plan, budget, |_| Effects::default());
    let beyond = excess.map(|excess| Beyond { why: excess.to_string(), plan: String::new() });
    // Each request is approved by itself, with the digest from the server's refusal.
    Ok(Planned {
        plan,
        beyond: beyond.into_iter().collect(),
        approval: Some(String::new()),
        ..Planned::default()
    })
}

/// Writes the reconcile annotation on one template; with an approval where the server asks for one and it is given.
async fn write(control: &Control, target: &Target, patch: &Value, approve: bool) -> Result<(), Error> {
    let path = target.path();
    match control.rest.merge(&path, patch).await {
        Err(error) if approve && let Some(beyond) = Beyond::of(&error) => {
            let patch = merged(patch, &approving(Some(&beyond.plan)));
            control.rest.merge(&path, &patch).await.map(drop)
        }
        written => written.map(drop),
    }
}

/// Where it is, if that is not where one would look.
fn place(control: &Control, target: &Target) -> String {
    match target.namespace.as_str() {
        namespace if namespace.is_empty() || namespace == control.namespace => String::new(),
        namespace => format!(" in namespace {namespace}"),
    }
}

/// A value that was never there before.
async fn ask(control: &Control, waiting: &[Target], approve: bool) -> Result<()> {
    let value = jiff::Timestamp::now().to_string();
    let patch = json!({ "metadata": { "annotations": { RECONCILE: value } } });
    let patch = &patch;
    let written = stream::iter(waiting)
        .map(|target| async move { (target, write(control, target, patch, approve).await) });
    let mut written = written.buffered(CONCURRENT_WRITES_MAX);
    let mut failures = Vec::new();
    while let Some((target, result)) = written.next().await {
        match result {
            Ok(()) => {
                output::print(&format!("{} reconciled{}\n", target.printed(), place(control, target)))?;
            }
            Err(error) => failures.push(error),
        }
    }
    match (failures.len(), failures.into_iter().next()) {
        (0, _) | (_, None) => Ok(()),
        (1, Some(error)) => Err(error).context("reconcile"),
        (count, Some(error)) => Err(error).context(format!("reconcile: {count} of them failed, first")),
    }
}

async fn chosen(
    arguments: &Arguments,
    control: &Control,
    kinds: &Kinds,
    snapshot: &Snapshot,
) -> Result<Vec<TemplateKey>> {
    if let Some(name) = &arguments.policy {
        let found = policy_lookup::find(control, name).await?;
        let policy = snapshot
            .policies
            .get(&found.key())
            .ok_or_else(|| anyhow!("{} was deleted in the meantime", found.printed()))?;
        let claimed = snapshot.templates.claimed(policy.id()).map(|key| TemplateKey::clone(key));
        // What runs without a policy would follow this one.
        let orphans = orphans(snapshot, Interpreters::BUILT_IN).into_iter();
        let orphans = orphans.filter(|orphan| orphan.would_follow.as_ref() == Some(&policy.key));
        return Ok(sorted(claimed.chain(orphans.map(|orphan| orphan.template))));
    }
    let Some(selector) = &arguments.selector else {
        let targets = kinds.targets(&arguments.what, &control.namespace)?;
        let missing = targets.iter().find(|target| snapshot.templates.get(&target.template()).is_none());
        if let Some(missing) = missing {
            let hint = Hint(
                "check the name and the namespace (-n); `longshore status` lists what is propagated"
                    .to_owned(),
            );
            let context = format!("{} {:?} not found", missing.kind.plural, missing.name);
            return Err(anyhow::Error::new(hint).context(context));
        }
        return Ok(targets.iter().map(Target::template).collect());
    };
    let selector = LabelSelector::parse(selector).context("read the selector")?;
    let words: Vec<&str> = arguments.what.iter().flat_map(|word| word.split(',')).collect();
    let named = match words.as_slice() {
        ["all"] => Vec::new(),
        words => words.iter().map(|word| kinds.named(word).cloned()).collect::<Result<Vec<_>>>()?,
    };
    let is_meant = |key: &TemplateKey| {
        let of_kind = named.iter().any(|kind| kind.kind == key.kind && kind.api_version == key.api_version);
        let in_reach =
            arguments.all_namespaces || key.namespace.is_empty() || key.namespace == control.namespace;
        in_reach && (named.is_empty() || of_kind)
    };
    let matching = snapshot.templates.iter().filter(|template| is_meant(&template.key)).filter(|template| {
        // The claiming policy is an annotation, as the name of a policy may be longer than a label may be.
        let annotation = |key: &str| template.annotations.get(key).filter(|_| is_claim(key));
        selector.matches(|key| template.labels.get(key).or_else(|| annotation(key)))
    });
    Ok(sorted(matching.map(|template| TemplateKey::clone(&template.key))))
}

fn sorted(keys: impl Iterator<Item = TemplateKey>) -> Vec<TemplateKey> {
    let mut keys: Vec<TemplateKey> = keys.collect();
    keys.sort_by(|a, b| (&a.namespace, &a.kind, &a.name).cmp(&(&b.namespace, &b.kind, &b.name)));
    keys
}

fn is_claim(key: &str) -> bool {
    use api::annotations::{
        CLUSTER_PROPAGATION_POLICY_NAME, PROPAGATION_POLICY_NAME, PROPAGATION_POLICY_NAMESPACE,
    };
    [CLUSTER_PROPAGATION_POLICY_NAME, PROPAGATION_POLICY_NAME, PROPAGATION_POLICY_NAMESPACE].contains(&key)
}
