//! What members have of a kind, for users who may not ask members themselves: their own copies, as the control plane
//! collects them.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow};
use apimachinery::selector::LabelSelector;
use plane::reports::{CopyReport, Delivery, TemplateReport};
use serde_json::{Value, json};

use super::list::ListRequest;
use super::{Arguments, Form};
use crate::connection::Control;
use crate::output::{self, Format};
use crate::watch::{View, watch};
use crate::{Hint, terminal_text};

/// Prints the copies that the control plane reports.
pub async fn run(arguments: &Arguments, control: &Control, list_request: &ListRequest) -> Result<()> {
    if arguments.watch {
        return watch(async || {
            let copies = copies(arguments, control, list_request).await?;
            Ok(View::of(table(&copies, arguments.all_namespaces), false))
        })
        .await;
    }
    let copies = copies(arguments, control, list_request).await?;
    if let Some(missing) =
        list_request.names.iter().find(|name| !copies.iter().any(|copy| copy.template.name == **name))
    {
        let hint = Hint("`longshore why` explains why it is in no cluster".to_owned());
        let what = format!("{} {missing:?} not found in any cluster", list_request.kind.plural);
        return Err(anyhow::Error::new(hint).context(what));
    }
    match arguments.output {
        Some(Form::Json) => {
            Format::Json.print(&json!({ "apiVersion": "v1", "kind": "List", "items": copies }))
        }
        Some(Form::Yaml) => {
            Format::Yaml.print(&json!({ "apiVersion": "v1", "kind": "List", "items": copies }))
        }
        Some(Form::Name) => {
            let names: BTreeSet<&str> = copies.iter().map(|copy| copy.template.name.as_str()).collect();
            let kind = list_request.kind.printed();
            output::print(&names.into_iter().map(|name| format!("{kind}/{name}\n")).collect::<String>())
        }
        None | Some(Form::Wide) => match copies.is_empty() {
            true => {
                output::print_message("No resources found.");
                Ok(())
            }
            false => output::print(&table(&copies, arguments.all_namespaces)),
        },
    }
}

/// The copies that are asked for.
async fn copies(
    arguments: &Arguments,
    control: &Control,
    list_request: &ListRequest,
) -> Result<Vec<CopyReport>> {
    let answer = control.computed_report::<Vec<CopyReport>>("copies").await?;
    let mut copies: Vec<CopyReport> =
        answer.report.into_iter().filter(|copy| is_meant(copy, list_request)).collect();
    if !arguments.clusters.is_empty() {
        copies.retain(|copy| arguments.clusters.contains(&copy.cluster));
    }
    if let Some(selector) = &list_request.selector {
        let selector =
            LabelSelector::parse(selector).map_err(|error| anyhow!("read the selector: {error}"))?;
        let templates = control.computed_report::<Vec<TemplateReport>>("templates").await?.report;
        let selected = templates.into_iter().filter(|one| selector.matches(|key| one.labels.get(key)));
        let selected: BTreeSet<_> = selected.map(|one| one.template).collect();
        copies.retain(|copy| selected.contains(&copy.template));
    }
    Ok(copies)
}

fn is_meant(copy: &CopyReport, list_request: &ListRequest) -> bool {
    let key = &copy.template;
    key.kind == list_request.kind.kind
        && key.group() == list_request.kind.group()
        && (list_request.namespace.is_empty()
            || !list_request.kind.namespaced
            || key.namespace == list_request.namespace)
        && (list_request.names.is_empty() || list_request.names.contains(&key.name))
}

fn table(copies: &[CopyReport], with_namespace: bool) -> String {
    if copies.is_empty() {
        return "No resources found.\n".to_owned();
    }
    let namespace = with_namespace.then_some("NAMESPACE");
    let header: Vec<&str> = namespace.into_iter().chain(["NAME", "CLUSTER", "READY", "STATE"]).collect();
    let rows: Vec<Vec<String>> = copies
        .iter()
        .map(|copy| {
            let place = with_namespace.then(|| copy.template.namespace.clone());
            let cells = [
                copy.template.name.clone(),
                copy.cluster.clone(),
                ready(&copy.status),
                state(&copy.delivery),
            ];
            place.into_iter().chain(cells).collect()
        })
        .collect();
    terminal_text::table(&header, &rows)
}

/// What became of a copy; while it is suspended it is not what the template says.
fn state(delivery: &Delivery) -> String {
    let suspended = if delivery.suspended { "suspended; " } else { "" };
    format!("{suspended}{delivery}")
}

/// `1/2` where replicas are counted.
fn ready(status: &Value) -> String {
    let number = |field: &str| status.get(field).and_then(Value::as_i64);
    match number("replicas") {
        Some(all) => format!("{}/{all}", number("readyReplicas").unwrap_or(0)),
        None => "<none>".to_owned(),
    }
}
