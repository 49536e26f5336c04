//! `longshore reconcile`: policies that wait for a change of their templates act now. The wish is written on the
//! template and answered once; what was answered stands on the binding, so no restart repeats it (R1).

use anyhow::{Context as _, Result, anyhow};
use api::records::RECONCILE;
use apiserver::selector::LabelSelector;
use decide::orphans::orphans;
use decide::world::Answers;
use decide::{TemplateKey, World};
use futures::{StreamExt as _, stream};
use plane::reports::{Standing, standing};
use serde_json::json;

use crate::connection::{Connection, Control};
use crate::kinds::{Kinds, Target};
use crate::{Hint, output, policies};

mod computed;

/// How many templates are written at once.
const AT_ONCE: usize = 16;

/// Arguments of `longshore reconcile`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Templates (KIND/NAME or KIND NAME…), or with -l kinds (KIND,KIND… or all)
    #[arg(value_name = "WHAT", required_unless_present = "policy", conflicts_with = "policy")]
    what: Vec<String>,
    /// Only templates with these labels; the names of the policies that claim them count as labels
    #[arg(long, short = 'l', value_name = "SELECTOR", conflicts_with = "policy")]
    selector: Option<String>,
    /// In all namespaces
    #[arg(long, short = 'A', requires = "selector")]
    all_namespaces: bool,
    /// Everything that a policy claims, and what runs without a policy and would follow it: NAME, pp/NAME or cpp/NAME
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
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
    let world = control.world().await?;
    let chosen = chosen(arguments, &control, &kinds, &world).await?;
    let mut waiting = Vec::new();
    for key in chosen {
        let Some(target) = kinds.target(&key) else { continue };
        match standing(&world, &key) {
            Standing::Waits => waiting.push(target),
            Standing::UpToDate if arguments.policy.is_some() || arguments.selector.is_some() => {}
            settled => output::tell(&format!("{} {settled}", target.printed())),
        }
    }
    if waiting.is_empty() {
        output::tell("Nothing waits for a change of its template.");
    }
    if arguments.dry_run {
        let lines = waiting.iter().map(|target| {
            format!("{} would be reconciled{} (dry run)\n", target.printed(), place(&control, target))
        });
        return output::print(&lines.collect::<String>());
    }
    ask(&control, &waiting).await
}

/// Where it is, if that is not where one would look.
fn place(control: &Control, target: &Target) -> String {
    match target.namespace.as_str() {
        namespace if namespace.is_empty() || namespace == control.namespace => String::new(),
        namespace => format!(" in namespace {namespace}"),
    }
}

/// A value that was never there before.
async fn ask(control: &Control, waiting: &[Target]) -> Result<()> {
    let value = jiff::Timestamp::now().to_string();
    let patch = json!({ "metadata": { "annotations": { RECONCILE: value } } });
    let patch = &patch;
    let written = stream::iter(waiting)
        .map(|target| async move { (target, control.rest.merge(&target.path(), patch).await) });
    let mut written = written.buffered(AT_ONCE);
    let mut failures = Vec::new();
    while let Some((target, result)) = written.next().await {
        match result {
            Ok(_) => {
                output::print(&format!("{} reconciled{}\n", target.printed(), place(control, target)))?;
            }
            Err(error) => failures.push(error),
        }
    }
    match (failures.len(), failures.into_iter().next()) {
        (0, _) | (_, None) => Ok(()),
        (1, Some(error)) => Err(error).context("reconcile"),
        (count, Some(error)) => {
            Err(error).context(format!("reconcile: {count} of them failed, the first was"))
        }
    }
}

async fn chosen(
    arguments: &Arguments,
    control: &Control,
    kinds: &Kinds,
    world: &World,
) -> Result<Vec<TemplateKey>> {
    if let Some(name) = &arguments.policy {
        let found = policies::find(control, name).await?;
        let policy =
            world.policies.get(&found.key()).ok_or_else(|| anyhow!("{} has just gone", found.printed()))?;
        let claimed = world.templates.claimed(policy.id()).map(|key| TemplateKey::clone(key));
        // What runs without a policy would follow this one.
        let orphans = orphans(world, Answers::BRAIN).into_iter();
        let orphans = orphans.filter(|orphan| orphan.would_follow.as_ref() == Some(&policy.key));
        return Ok(sorted(claimed.chain(orphans.map(|orphan| orphan.template))));
    }
    let Some(selector) = &arguments.selector else {
        let targets = kinds.targets(&arguments.what, &control.namespace)?;
        let missing = targets.iter().find(|target| world.templates.get(&target.template()).is_none());
        if let Some(missing) = missing {
            let hint = Hint("is the name right, and the namespace (-n)?".to_owned());
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
    let matching = world.templates.iter().filter(|template| is_meant(&template.key)).filter(|template| {
        // Who claims a template is an annotation, as the name of a policy may be longer than a label may be.
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
