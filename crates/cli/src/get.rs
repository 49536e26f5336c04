//! `longshore get`: what members have of a kind, as `kubectl get` would show it in each of them, in one table.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::connection::{Connection, Control};
use crate::get::asked::{Answer, Question};
use crate::get::silent::Silent;
use crate::kinds::Kinds;
use crate::output::{self, Format};
use crate::progress::saying;
use crate::watch::{View, watch};
use crate::{Hint, members};

mod asked;
mod computed;
mod shown;
mod silent;

pub use shown::hide;

/// Arguments of `longshore get`.
#[derive(clap::Args)]
pub struct Arguments {
    /// What to get: KIND, KIND/NAME or KIND NAME...
    #[arg(value_name = "KIND", required = true)]
    what: Vec<String>,
    /// Only objects with these labels, such as app=nginx
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,
    /// How to print
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<Form>,
    /// In all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Only in these clusters [default: all]
    #[arg(long, short = 'C', value_name = "NAME", value_delimiter = ',')]
    clusters: Vec<String>,
    /// Show the table again whenever it changes, until Ctrl-C
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
    let question = question(arguments, &control, &kinds)?;
    if arguments.watch && !matches!(arguments.output, None | Some(Form::Wide)) {
        let hint = Hint("leave -o out, or write -o wide".to_owned());
        return Err(anyhow::Error::new(hint).context("--watch shows a table"));
    }
    if control.computes().await? {
        return computed::run(arguments, &control, &question).await;
    }
    if arguments.watch {
        return watch(async || view(arguments, &control, &question).await).await;
    }
    let (answers, silent) = answers(arguments, &control, &question).await?;
    print(arguments, &question, &answers, &silent)?;
    complain(&question, &answers, &silent)
}

/// The table and the clusters that do not answer, to be shown again when more than ages changes.
async fn view(arguments: &Arguments, control: &Control, question: &Question) -> Result<View> {
    let (answers, silent) = answers(arguments, control, question).await?;
    let silent: String = silent.iter().map(|one| format!("{one}\n")).collect();
    let is_wide = arguments.output == Some(Form::Wide);
    let table = |answers: &[(String, Answer)]| match shown::table(answers, arguments.all_namespaces, is_wide)
    {
        empty if empty.is_empty() => format!("No resources found.\n{silent}"),
        table => format!("{table}{silent}"),
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
    question: &Question,
) -> Result<(Vec<(String, Answer)>, Vec<Silent>)> {
    let clusters = members::chosen(control, &arguments.clusters).await?;
    let asked = clusters.iter().map(|cluster| async move {
        let answer = match members::reach(control, cluster).await {
            Ok(rest) => question.ask(&rest).await,
            Err(error) => Err(error),
        };
        (cluster, answer)
    });
    let (mut answers, mut silent) = (Vec::new(), Vec::new());
    for (cluster, answer) in saying("asking the clusters", join_all(asked)).await {
        match answer {
            Ok(answer) => answers.push((cluster.metadata.name.clone(), answer)),
            Err(error) => silent.push(Silent::of(cluster, &error)),
        }
    }
    Ok((answers, silent))
}

fn question(arguments: &Arguments, control: &Control, kinds: &Kinds) -> Result<Question> {
    let (kind, names) = match arguments.what.as_slice() {
        [kind] if !kind.contains('/') => (kinds.named(kind)?.clone(), BTreeSet::new()),
        words => {
            let targets = kinds.targets(words, &control.namespace)?;
            let kind = targets[0].kind.clone();
            if targets.iter().any(|target| target.kind != kind) {
                return Err(anyhow!("one kind at a time, please"));
            }
            (kind, targets.into_iter().map(|target| target.name).collect())
        }
    };
    if arguments.all_namespaces && !names.is_empty() {
        return Err(anyhow!("a resource cannot be retrieved by name across all namespaces"));
    }
    let namespace = if arguments.all_namespaces { String::new() } else { control.namespace.clone() };
    let is_whole = matches!(arguments.output, Some(Form::Json | Form::Yaml));
    Ok(Question { kind, namespace, names, selector: arguments.selector.clone(), is_whole })
}

fn print(
    arguments: &Arguments,
    question: &Question,
    answers: &[(String, Answer)],
    silent: &[Silent],
) -> Result<()> {
    let form = match arguments.output {
        Some(Form::Json) => Format::Json,
        Some(Form::Yaml) => Format::Yaml,
        Some(Form::Name) => return output::print(&shown::names(question, answers)),
        None | Some(Form::Wide) => {
            let is_wide = arguments.output == Some(Form::Wide);
            return output::print(&shown::table(answers, arguments.all_namespaces, is_wide));
        }
    };
    let items: Vec<Value> =
        answers.iter().flat_map(|(cluster, answer)| shown::items(cluster, answer)).collect();
    let mut list = json!({ "apiVersion": "v1", "kind": "List", "metadata": {}, "items": items });
    if !silent.is_empty() {
        list["unknown"] = json!(silent);
    }
    form.print(&list)
}

/// Clusters that did not answer, and what none of the others has.
fn complain(question: &Question, answers: &[(String, Answer)], silent: &[Silent]) -> Result<()> {
    if !silent.is_empty() {
        silent.iter().for_each(|one| output::tell(&one.to_string()));
        let names: Vec<&str> = silent.iter().map(|one| one.cluster.as_str()).collect();
        let hint = Hint("`longshore status` shows since when; -C names the clusters to ask".to_owned());
        let context = format!("what these clusters have is unknown: {}", names.join(", "));
        return Err(anyhow::Error::new(hint).context(context));
    }
    let found: BTreeSet<&str> = answers.iter().flat_map(|(_, answer)| answer.names()).collect();
    if let Some(missing) = question.names.iter().find(|name| !found.contains(name.as_str())) {
        let hint = Hint("`longshore why` tells why it is in no cluster".to_owned());
        return Err(anyhow::Error::new(hint)
            .context(format!("{} {missing:?} not found in any cluster", question.kind.plural)));
    }
    if found.is_empty() && question.names.is_empty() {
        let place = match question.namespace.as_str() {
            "" => String::new(),
            namespace if question.kind.namespaced => format!(" in {namespace} namespace"),
            _ => String::new(),
        };
        output::tell(&format!("No resources found{place}."));
    }
    Ok(())
}
