//! A plan as text for people: the totals first, then what happens to which templates, those to which the same happens
//! together. Readable without colour and on 80 columns. Decides nothing.

use std::collections::BTreeMap;

use decide::plan::{Action, ClaimChange, ClusterPlan, Plan, TemplatePlan};

use crate::text::{Paint, some_of, wrapped};

/// How many names of a group, and of the clusters of a change, are shown.
const NAMES: usize = 6;
/// How many groups are shown.
const BLOCKS: usize = 30;

/// What kind of thing happens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Comes,
    Goes,
    Changes,
    Waits,
    Owner,
}

impl Mark {
    fn sign(self) -> &'static str {
        match self {
            Mark::Comes => "+",
            Mark::Goes => "-",
            Mark::Changes => "~",
            Mark::Waits => "!",
            Mark::Owner => "=",
        }
    }

    fn painted(self, paint: Paint) -> String {
        match self {
            Mark::Comes => paint.green(self.sign()),
            Mark::Goes => paint.red(self.sign()),
            Mark::Changes | Mark::Waits => paint.yellow(self.sign()),
            Mark::Owner => paint.strong(self.sign()),
        }
    }
}

/// The whole plan and what else there is to say; `detailed` shows every template by itself, and every cluster.
pub fn shown(plan: &Plan, notes: &[String], detailed: bool, paint: Paint) -> String {
    let mut text = format!("{}\n", paint.strong(&wrapped("", &plan.totals.to_string())));
    let (blocks, names) = if detailed { (usize::MAX, usize::MAX) } else { (BLOCKS, NAMES) };
    let groups = groups(plan, detailed);
    for group in groups.iter().take(blocks) {
        text += "\n";
        text += &block(group, names, paint);
    }
    let more: usize = groups.iter().skip(blocks).map(Vec::len).sum();
    if more > 0 {
        text += &format!("\nand {more} more templates; --detailed shows each\n");
    }
    for (place, note) in notes.iter().enumerate() {
        text += if place == 0 { "\n" } else { "" };
        text += &format!("{}\n", wrapped("Note: ", note));
    }
    text
}

/// Templates to which the same happens, in the order of the first of them.
fn groups(plan: &Plan, detailed: bool) -> Vec<Vec<&TemplatePlan>> {
    let mut groups: Vec<Vec<&TemplatePlan>> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for one in plan.templates.values() {
        let TemplatePlan { template, claim, held, clusters, why } = one;
        let same = match detailed {
            true => template.to_string(),
            false => format!("{} {claim:?} {held:?} {clusters:?} {why}", template.kind),
        };
        let index = *known.entry(same).or_insert(groups.len());
        match groups.get_mut(index) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

fn block(group: &[&TemplatePlan], most: usize, paint: Paint) -> String {
    let [first, ..] = group else { return String::new() };
    let mut lines = vec![line("", mark(first), &names(group), paint)];
    if let Some(claim) = &first.claim {
        let mark = if matches!(claim, ClaimChange::Preempted { .. }) { Mark::Waits } else { Mark::Owner };
        lines.push(line("    ", mark, &claim.to_string(), paint));
    }
    for (change, clusters) in by_change(&first.clusters) {
        let (mark, what) = said(&change);
        lines.push(line("    ", mark, &format!("{}: {what}", some_of(&clusters, most)), paint));
    }
    match &first.held {
        Some(held) => lines.push(line("    ", Mark::Waits, &format!("waits: {held}"), paint)),
        None => lines.push(wrapped("      ", &format!("because {}", first.why))),
    }
    lines.join("\n") + "\n"
}

fn line(indent: &str, mark: Mark, text: &str, paint: Paint) -> String {
    let plain = wrapped(&format!("{indent}{} ", mark.sign()), text);
    let rest = plain.get(indent.len() + 1..).unwrap_or_default();
    format!("{indent}{}{rest}", mark.painted(paint))
}

fn names(group: &[&TemplatePlan]) -> String {
    let name = |one: &&TemplatePlan| match one.template.namespace.as_str() {
        "" => one.template.name.clone(),
        namespace => format!("{namespace}/{}", one.template.name),
    };
    let [first, rest @ ..] = group else { return String::new() };
    if rest.is_empty() {
        return first.template.to_string();
    }
    let names: Vec<String> = group.iter().map(name).collect();
    format!("{} × {}: {}", group.len(), first.template.kind, some_of(&names, NAMES))
}

/// Changes with the clusters in which they happen, in the order of the first cluster.
fn by_change(clusters: &BTreeMap<String, ClusterPlan>) -> Vec<(ClusterPlan, Vec<&str>)> {
    let mut changes: Vec<(ClusterPlan, Vec<&str>)> = Vec::new();
    for (cluster, change) in clusters {
        match changes.iter_mut().find(|(known, _)| known == change) {
            Some((_, names)) => names.push(cluster),
            None => changes.push((change.clone(), vec![cluster])),
        }
    }
    changes
}

fn said(change: &ClusterPlan) -> (Mark, String) {
    let replicas = |verb: &str, replicas: i32| match replicas {
        0 => verb.to_owned(),
        1 => format!("{verb} with 1 replica"),
        more => format!("{verb} with {more} replicas"),
    };
    let (mark, text) = match change.action {
        Action::Create { replicas: count } => (Mark::Comes, replicas("create", count)),
        Action::Delete { replicas: count } => (Mark::Goes, replicas("delete", count)),
        Action::Scale { from, to } => (Mark::Changes, format!("scale from {from} to {to} replicas")),
        Action::Update => (Mark::Changes, "update".to_owned()),
        Action::Suspend => return (Mark::Waits, "suspend".to_owned()),
        Action::Resume => (Mark::Changes, "resume".to_owned()),
    };
    match change.suspended {
        true => (Mark::Waits, format!("{text}, held back until it is resumed")),
        false => (mark, text),
    }
}

/// The mark of a template: what comes and goes in its clusters, or else what waits.
fn mark(plan: &TemplatePlan) -> Mark {
    let has = |mark: Mark| plan.clusters.values().any(|change| said(change).0 == mark);
    match (has(Mark::Comes), has(Mark::Goes)) {
        (true, false) if !has(Mark::Changes) => Mark::Comes,
        (false, true) if !has(Mark::Changes) => Mark::Goes,
        (false, false) if !has(Mark::Changes) => match has(Mark::Waits) || plan.held.is_some() {
            true => Mark::Waits,
            false => Mark::Owner,
        },
        _ => Mark::Changes,
    }
}

#[cfg(test)]
mod tests;
