//! `longshore why`: the chain from a template to its members in one screen. Reads the control plane once and asks
//! `decide`; what it prints are the reasons of the decisions themselves.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use api::{Work, labels};
use controllers::rest::{Collection, Rest};
use decide::snapshot::Interpreters;
use decide::why::{Why, steps, why};
use decide::{Snapshot, TemplateKey};
use plane::reports::{Delivery, Explanation, Onto, deliveries};
use serde::{Deserialize, Serialize};

use crate::Hint;
use crate::connection::Connection;
use crate::kinds::{Kinds, Target};
use crate::output::{self, Format};
use crate::terminal_text::Paint;

mod shown;
#[cfg(test)]
mod tests;

/// Arguments of `longshore why`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Template: KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", required = true, num_args = 1..=2)]
    what: Vec<String>,
    /// Explain this cluster only, and what it takes to run the template there
    #[arg(long, short = 'C', value_name = "NAME")]
    cluster: Option<String>,
    /// Output format
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    connection: Connection,
}

/// Everything there is to say.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Story {
    #[serde(flatten)]
    why: Why,
    /// What became of it in each member, by cluster.
    members: BTreeMap<String, Delivery>,
    /// What it would take to place it in the cluster that `-C` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    onto: Option<Onto>,
}

/// Prints why a template is where it is.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let control = arguments.connection.open().await?;
    let target = Kinds::of(&control.rest).await?.template(&arguments.what, &control.namespace)?;
    let cluster = arguments.cluster.as_deref();
    let story = match control.computes().await? {
        true => {
            let Explanation { why, members, onto } = control.computed_explanation(&target, cluster).await?;
            Story { why, members, onto }
        }
        false => {
            let (snapshot, key) = (control.snapshot().await?, target.template());
            let works = works(&control.rest, &snapshot, &key).await?;
            story(&snapshot, &key, cluster, &works).ok_or_else(|| missing(&target))?
        }
    };
    match arguments.output {
        Some(format) => format.print(&story),
        None => output::print(&shown::shown(&story, Paint::of_stdout())),
    }
}

fn story(snapshot: &Snapshot, key: &TemplateKey, cluster: Option<&str>, works: &[Work]) -> Option<Story> {
    let why = why(snapshot, key, Interpreters::BUILT_IN)?;
    let onto = cluster.map(|cluster| Onto {
        cluster: cluster.to_owned(),
        steps: steps(snapshot, key, cluster, Interpreters::BUILT_IN).unwrap_or_default(),
    });
    Some(Story { why, members: deliveries(works, &snapshot.clusters), onto })
}

fn missing(target: &Target) -> anyhow::Error {
    let hint = match target.namespace.as_str() {
        "" => "check the name".to_owned(),
        namespace => format!("the search was in namespace {namespace}; choose another with -n"),
    };
    let context = format!("{} {:?} not found among the templates", target.kind.plural, target.name);
    anyhow::Error::new(Hint(hint)).context(context)
}

#[derive(Deserialize)]
struct List {
    items: Vec<Work>,
}

/// The Works of a template's binding; their manifests are of no interest here and may hold secrets.
async fn works(control: &Rest, snapshot: &Snapshot, key: &TemplateKey) -> Result<Vec<Work>> {
    let Some(binding) = snapshot.bindings.get(&key.binding()) else { return Ok(Vec::new()) };
    let label = match key.namespace.as_str() {
        "" => labels::CLUSTER_RESOURCE_BINDING_PERMANENT_ID,
        _ => labels::RESOURCE_BINDING_PERMANENT_ID,
    };
    let Some(id) = binding.metadata.labels.get(label) else { return Ok(Vec::new()) };
    let works = Collection::of(&api::kinds::WORK, "");
    let path = works.path().with("labelSelector", &format!("{label}={id}"));
    let mut list: List = control.fetch(&path).await.context("list the Works")?;
    list.items.iter_mut().for_each(|work| work.spec.workload.manifests.clear());
    Ok(list.items)
}
