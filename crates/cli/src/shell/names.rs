//! Names for shell completion, answered by the control plane while the user types. Prints nothing on errors, and has a
//! short timeout.

use std::time::Duration;

use anyhow::Result;
use api::kinds::{CLUSTER, CLUSTER_PROPAGATION_POLICY, PROPAGATION_POLICY};
use controllers::rest::{Collection, Rest};
use serde::Deserialize;

use crate::connection::Connection;
use crate::kinds::Kinds;
use crate::output;

/// How long a shell waits.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(3);

/// Arguments of `longshore complete-names`.
#[derive(clap::Args)]
pub struct Names {
    /// Words of the command line after `longshore`; the last word is the one to complete
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// What the word to complete names.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Clusters,
    Policies,
    Namespaces,
    Contexts,
    /// Objects of a kind, with this in front of each name.
    Objects(String, String),
}

/// Prints the names that may stand in the place of the last word, one in each line.
pub async fn run(arguments: &Names) -> Result<()> {
    let Some(wanted) = wanted(&arguments.words) else { return Ok(()) };
    let connection = Connection::of_words(&arguments.words);
    // Completion prints no errors.
    let found = tokio::time::timeout(COMPLETION_TIMEOUT, names(&connection, &wanted)).await;
    let mut names = found.ok().and_then(Result::ok).unwrap_or_default();
    names.sort();
    names.dedup();
    output::print(&names.iter().map(|name| format!("{name}\n")).collect::<String>())
}

fn wanted(words: &[String]) -> Option<Wanted> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (word, before) = words.split_last()?;
    match before {
        [.., "-C" | "--cluster" | "--clusters"] => Some(Wanted::Clusters),
        [.., "-n" | "--namespace"] => Some(Wanted::Namespaces),
        [.., "--context"] => Some(Wanted::Contexts),
        [.., "--policy"] => Some(Wanted::Policies),
        ["cordon" | "uncordon" | "taint" | "unjoin"] => Some(Wanted::Clusters),
        ["rollout", "status" | "history" | "undo"] => Some(Wanted::Policies),
        ["why" | "suspend" | "resume" | "reconcile" | "promote" | "get", ..] => objects(&before[1..], word),
        _ => None,
    }
}

/// `deploy/we`, or `we` behind `deploy`.
fn objects(before: &[&str], word: &str) -> Option<Wanted> {
    match (word.split_once('/'), before) {
        (Some((kind, _)), _) => Some(Wanted::Objects(kind.to_owned(), format!("{kind}/"))),
        (None, [kind]) if !kind.starts_with('-') && !kind.contains('/') => {
            Some(Wanted::Objects((*kind).to_owned(), String::new()))
        }
        _ => None,
    }
}

async fn names(connection: &Connection, wanted: &Wanted) -> Result<Vec<String>> {
    if *wanted == Wanted::Contexts {
        return connection.contexts();
    }
    let control = connection.open().await?;
    let (rest, namespace) = (&control.rest, control.namespace.as_str());
    match wanted {
        Wanted::Contexts => Ok(Vec::new()),
        Wanted::Clusters => listed(rest, &Collection::of(&CLUSTER, "")).await,
        Wanted::Namespaces => listed(rest, &Collection::new("v1", "namespaces", "")).await,
        Wanted::Policies => {
            let mut names = listed(rest, &Collection::of(&PROPAGATION_POLICY, namespace)).await?;
            names.extend(listed(rest, &Collection::of(&CLUSTER_PROPAGATION_POLICY, "")).await?);
            Ok(names)
        }
        Wanted::Objects(kind, front) => {
            let kinds = Kinds::of(rest).await?;
            let names = listed(rest, &kinds.named(kind)?.collection(namespace)).await?;
            Ok(names.into_iter().map(|name| format!("{front}{name}")).collect())
        }
    }
}

#[derive(Deserialize)]
struct List {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

async fn listed(rest: &Rest, collection: &Collection) -> Result<Vec<String>> {
    let list: List = rest.fetch(collection.path()).await?;
    Ok(list.items.into_iter().map(|item| item.metadata.name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completion_follows_the_words_before_the_cursor() {
        let check = |line: &str, expected: Option<Wanted>| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(wanted(&words), expected, "{line:?}");
        };
        let objects = |kind: &str, front: &str| Some(Wanted::Objects(kind.to_owned(), front.to_owned()));
        check("cordon me", Some(Wanted::Clusters));
        check("why deploy/nginx -C ", Some(Wanted::Clusters));
        check("resume --policy ", Some(Wanted::Policies));
        check("rollout undo w", Some(Wanted::Policies));
        check("status --context ", Some(Wanted::Contexts));
        check("get deploy -n ", Some(Wanted::Namespaces));
        check("why deploy/ng", objects("deploy", "deploy/"));
        check("reconcile deploy/a cm/b", objects("cm", "cm/"));
        check("get deploy ng", objects("deploy", ""));
        check("get de", None);
        check("up ", None);
    }
}
