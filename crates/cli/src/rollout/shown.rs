//! How the generations of a policy and those who follow them are shown. Decides nothing.

use std::collections::BTreeMap;

use decide::readiness::Unknown;
use plane::reports::Follower;

use super::Generation;
use crate::terminal_text::{table, wrapped};

/// How many templates are shown.
const ROWS_MAX: usize = 20;

/// Which template follows which generation; pending templates come first where not all are shown.
pub fn followers(policy: &str, newest: i64, followers: &[Follower], all: bool) -> String {
    let current = followers.iter().filter(|one| one.is_current).count();
    let of = format!("{current} of {}", followers.len());
    let mut text =
        wrapped("", &format!("{policy} is at generation {newest}: {of} templates follow it.")) + "\n";
    let mut shown: Vec<&Follower> = followers.iter().collect();
    let more = if all { 0 } else { followers.len().saturating_sub(ROWS_MAX) };
    if more > 0 {
        shown.sort_by_key(|one| one.is_current);
        shown.truncate(ROWS_MAX);
    }
    if !shown.is_empty() {
        let rows: Vec<Vec<String>> = shown.into_iter().map(row).collect();
        text += &format!("\n{}", table(&["TEMPLATE", "FOLLOWS", "STATE"], &rows));
    }
    if more > 0 {
        text += &format!("and {more} more; --all shows each\n");
    }
    let silent: BTreeMap<&str, &Unknown> = followers
        .iter()
        .flat_map(|one| one.unknown.iter().map(|one| (one.cluster.as_str(), &one.unknown)))
        .collect();
    for (cluster, unknown) in silent {
        text += &format!("\n{}\n", wrapped("", &format!("{cluster}: {unknown}")));
    }
    text
}

/// What a policy said, one row for each generation.
pub fn history(policy: &str, all: &[Generation]) -> String {
    let or_none = |text: &str| if text.is_empty() { "<none>".to_owned() } else { text.to_owned() };
    let row = |one: &Generation| {
        let until = one.past.until.map_or_else(|| "now".to_owned(), |until| until.to_string());
        vec![one.past.generation.to_string(), until, one.templates.to_string(), or_none(&one.past.cause)]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    format!("{policy}\n{}", table(&["GENERATION", "UNTIL", "TEMPLATES", "CHANGE-CAUSE"], &rows))
}

fn row(one: &Follower) -> Vec<String> {
    let state = if one.is_current { "up to date" } else { "waits for a change of the template" };
    let mut state = match one.suspended.as_slice() {
        [] => state.to_owned(),
        clusters => format!("{state}, suspended in {}", clusters.join(", ")),
    };
    if !one.unknown.is_empty() {
        let silent: Vec<&str> = one.unknown.iter().map(|one| one.cluster.as_str()).collect();
        state += &format!(", unknown in {}", silent.join(", "));
    }
    vec![one.template.clone(), one.follows.clone(), state]
}
