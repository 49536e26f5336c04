//! `longshore reconcile` for users who may not read everything: the control plane reports the state of their templates,
//! and what reconciling them would do.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use api::records::RECONCILE;
use apimachinery::selector::LabelSelector;
use decide::snapshot::Change;
use plane::reports::{Standing, TemplateReport};
use serde_json::Value;

use super::{Arguments, ask, counted, place};
use crate::confirmation::Confirmation;
use crate::connection::Control;
use crate::kinds::{Kind, Kinds, Target};
use crate::plan::Planned;
use crate::{Hint, output, policy_lookup};

/// Asks for propagation by the policies as they are now.
pub async fn run(arguments: &Arguments, control: &Control, kinds: &Kinds) -> Result<()> {
    let templates = control.computed_report::<Vec<TemplateReport>>("templates").await?.report;
    let mut waiting = Vec::new();
    for one in chosen(arguments, control, kinds, templates).await? {
        let Some(target) = kinds.target(&one.template) else { continue };
        match one.standing {
            Standing::Waits => waiting.push(target),
            Standing::UpToDate if arguments.policy.is_some() || arguments.selector.is_some() => {}
            settled => output::print_message(&format!("{} {settled}", target.printed())),
        }
    }
    if waiting.is_empty() {
        output::print_message("Nothing waits.");
        return Ok(());
    }
    let changes = changes(control, &waiting).await?;
    let answer = control.computed_plan(&changes).await?;
    // The server checks the budget for each request, and counts requests with the same value together.
    let planned = Planned { plan: answer.plan, notes: answer.notes, ..Planned::default() };
    let question = format!("Reconcile {} now?", counted(waiting.len()));
    if matches!(arguments.confirmation.to(&question, &planned)?, Confirmation::DryRun) {
        let lines = waiting.iter().map(|target| {
            format!("{} would be reconciled{} (dry run)\n", target.printed(), place(control, target))
        });
        return output::print(&lines.collect::<String>());
    }
    ask(control, &waiting, arguments.confirmation.approve).await?;
    arguments.wait.for_plan(control, &planned.plan).await
}

/// The templates that the arguments mean.
async fn chosen(
    arguments: &Arguments,
    control: &Control,
    kinds: &Kinds,
    templates: Vec<TemplateReport>,
) -> Result<Vec<TemplateReport>> {
    if let Some(name) = &arguments.policy {
        let owner = policy_lookup::find(control, name).await?.key();
        return Ok(templates.into_iter().filter(|one| one.owner.as_ref() == Some(&owner)).collect());
    }
    let Some(selector) = &arguments.selector else {
        let targets = kinds.targets(&arguments.what, &control.namespace)?;
        let is = |target: &Target, one: &TemplateReport| target.template() == one.template;
        if let Some(missing) = targets.iter().find(|target| !templates.iter().any(|one| is(target, one))) {
            let hint = Hint(
                "check the name and the namespace (-n); `longshore status` lists what is propagated"
                    .to_owned(),
            );
            let context = format!("{} {:?} not found", missing.kind.plural, missing.name);
            return Err(anyhow::Error::new(hint).context(context));
        }
        let is_meant = |one: &TemplateReport| targets.iter().any(|target| is(target, one));
        return Ok(templates.into_iter().filter(is_meant).collect());
    };
    let selector = LabelSelector::parse(selector).context("read the selector")?;
    let words: Vec<&str> = arguments.what.iter().flat_map(|word| word.split(',')).collect();
    let named: Vec<Kind> = match words.as_slice() {
        ["all"] => Vec::new(),
        words => words.iter().map(|word| kinds.named(word).cloned()).collect::<Result<_>>()?,
    };
    let is_meant = |one: &TemplateReport| {
        let key = &one.template;
        let of_kind = named.iter().any(|kind| kind.kind == key.kind && kind.api_version == key.api_version);
        (named.is_empty() || of_kind) && selector.matches(|label| one.labels.get(label))
    };
    Ok(templates.into_iter().filter(is_meant).collect())
}

/// What is written, as the objects will be then.
async fn changes(control: &Control, waiting: &[Target]) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for target in waiting {
        let live: Option<Value> = control.rest.get(&target.path()).await.context("read the template")?;
        let Some(mut object) = live else { continue };
        object["metadata"]["annotations"][RECONCILE] = "planned".into();
        changes.push(Change::Put(Arc::new(object)));
    }
    Ok(changes)
}
