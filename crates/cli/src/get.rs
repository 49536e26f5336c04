//! `longshore get`: what members have of a kind, as `kubectl get` would show it in each of them, in one table.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::connection::{Connection, Control};
use crate::get::list::{Answer, ListRequest};
use crate::get::unreachable::UnreachableCluster;
use crate::kinds::Kinds;
use crate::output::{self, Format};
use crate::progress::with_progress;
use crate::watch::{View, watch};
use crate::{Hint, members};

mod computed;
mod list;
mod shown;
mod unreachable;

pub use shown::hide;

/// Arguments of `longshore get`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Objects to list: KIND, KIND/NAME or KIND NAME...
    #[arg(value_name = "KIND", required = true)]
    what: Vec<String>,
    /// Label selector, such as app=nginx
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,
    /// Output format
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<Form>,
    /// Use all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Clusters to query [default: all]
    #[arg(long, short = 'C', value_name = "NAME", value_delimiter = ',')]
    clusters: Vec<String>,
    /// Print the table again after each change, until Ctrl-C
    #[arg(long, short)]
    watch: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Wide,
    Json,
    Yaml,
    Name,
}

/// Asks every member and prints what they say; an error if one of them did not answer.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let control = arguments.connection.open().await?;
    let kinds = Kinds::of(&control.rest).await?;
    let list_request = list_request(arguments, &control, &kinds)?;
    if arguments.watch && !matches!(arguments.output, None | Some(Form::Wide)) {
        let hint = Hint("remove -o, or use -o wide".to_owned());
        return Err(anyhow::Error::new(hint).context("--watch prints tables only"));
    }
    if control.computes().await? {
        return computed::run(arguments, &control, &list_request).await;
    }
    if arguments.watch {
        return watch(async || view(arguments, &control, &list_request).await).await;
    }
    let (answers, unreachable) = answers(arguments, &control, &list_request).await?;
    print(arguments, &list_request, &answers, &unreachable)?;
    complain(&list_request, &answers, &unreachable)
}

/// The table and the clusters that do not answer, to be shown again when more than ages changes.
async fn view(arguments: &Arguments, control: &Control, list_request: &ListRequest) -> Result<View> {
    let (answers, unreachable) = answers(arguments, control, list_request).await?;
    let unreachable: String = unreachable.iter().map(|one| format!("{one}\n")).collect();
    let is_wide = arguments.output == Some(Form::Wide);
    let table = |answers: &[(String, Answer)]| match shown::table(answers, arguments.all_namespaces, is_wide)
    {
        empty if empty.is_empty() => format!("No resources found.\n{unreachable}"),
        table => format!("{table}{unreachable}"),
    };
    let text = table(&answers);
    let ageless: Vec<(String, Answer)> =
        answers.into_iter().map(|(cluster, answer)| (cluster, answer.without_ages())).collect();
    Ok(View { text, compared: table(&ageless), is_done: false })
}

/// What every cluster says, and the clusters that do not answer.
async fn answers(
    arguments: &Arguments,
    control: &Control,
    list_request: &ListRequest,
) -> Result<(Vec<(String, Answer)>, Vec<UnreachableCluster>)> {
    let clusters = members::chosen(control, &arguments.clusters).await?;
    let asked = clusters.iter().map(|cluster| async move {
        let answer = match members::reach(control, cluster).await {
            Ok(rest) => list_request.ask(&rest).await,
            Err(error) => Err(error),
        };
        (cluster, answer)
    });
    let (mut answers, mut unreachable) = (Vec::new(), Vec::new());
    for (cluster, answer) in with_progress("asking the clusters", join_all(asked)).await {
        match answer {
            Ok(answer) => answers.push((cluster.metadata.name.clone(), answer)),
            Err(error) => unreachable.push(UnreachableCluster::of(cluster, &error)),
        }
    }
    Ok((answers, unreachable))
}

fn list_request(arguments: &Arguments, control: &Control, kinds: &Kinds) -> Result<ListRequest> {
    let (kind, names) = match arguments.what.as_slice() {
        [kind] if !kind.contains('/') => (kinds.named(kind)?.clone(), BTreeSet::new()),
        words => {
            let targets = kinds.targets(words, &control.namespace)?;
            let kind = targets[0].kind.clone();
            if targets.iter().any(|target| target.kind != kind) {
                return Err(anyhow!("get: only one kind at a time"));
            }
            (kind, targets.into_iter().map(|target| target.name).collect())
        }
    };
    if arguments.all_namespaces && !names.is_empty() {
        return Err(anyhow!("get: a resource cannot be retrieved by name across all namespaces"));
    }
    let namespace = if arguments.all_namespaces { String::new() } else { control.namespace.clone() };
    let is_whole = matches!(arguments.output, Some(Form::Json | Form::Yaml));
    Ok(ListRequest { kind, namespace, names, selector: arguments.selector.clone(), is_whole })
}

fn print(
    arguments: &Arguments,
    list_request: &ListRequest,
    answers: &[(String, Answer)],
    unreachable: &[UnreachableCluster],
) -> Result<()> {
    let form = match arguments.output {
        Some(Form::Json) => Format::Json,
        Some(Form::Yaml) => Format::Yaml,
        Some(Form::Name) => return output::print(&shown::names(list_request, answers)),
        None | Some(Form::Wide) => {
            let is_wide = arguments.output == Some(Form::Wide);
            return output::print(&shown::table(answers, arguments.all_namespaces, is_wide));
        }
    };
    let items: Vec<Value> =
        answers.iter().flat_map(|(cluster, answer)| shown::items(cluster, answer)).collect();
    let mut list = json!({ "apiVersion": "v1", "kind": "List", "metadata": {}, "items": items });
    if !unreachable.is_empty() {
        list["unknown"] = json!(unreachable);
    }
    form.print(&list)
}

/// Clusters that did not answer, and what none of the others has.
fn complain(
    list_request: &ListRequest,
    answers: &[(String, Answer)],
    unreachable: &[UnreachableCluster],
) -> Result<()> {
    if !unreachable.is_empty() {
        unreachable.iter().for_each(|one| output::print_message(&one.to_string()));
        let names: Vec<&str> = unreachable.iter().map(|one| one.cluster.as_str()).collect();
        let hint =
            Hint("`longshore status` shows since when; choose the clusters to query with -C".to_owned());
        let context = format!("get: these clusters did not answer: {}", names.join(", "));
        return Err(anyhow::Error::new(hint).context(context));
    }
    let found: BTreeSet<&str> = answers.iter().flat_map(|(_, answer)| answer.names()).collect();
    if let Some(missing) = list_request.names.iter().find(|name| !found.contains(name.as_str())) {
        let hint = Hint("`longshore why` explains why it is in no cluster".to_owned());
        return Err(anyhow::Error::new(hint)
            .context(format!("{} {missing:?} not found in any cluster", list_request.kind.plural)));
    }
    if found.is_empty() && list_request.names.is_empty() {
        let place = match list_request.namespace.as_str() {
            "" => String::new(),
            namespace if list_request.kind.namespaced => format!(" in {namespace} namespace"),
            _ => String::new(),
        };
        output::print_message(&format!("No resources found{place}."));
    }
    Ok(())
}
