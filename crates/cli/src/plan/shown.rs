//! A plan as text for people: the totals first, by cluster and by namespace, then what happens to which templates, those
//! to which the same happens together, whatever their replicas. Readable without colour and on 80 columns. Decides nothing.

use decide::plan::{ClaimChange, NOWHERE, Plan};

use crate::plan::shown::group::{Group, Happening, Step, groups};
use crate::terminal_text::{Paint, some_of, wrapped};

mod group;
mod totals;

/// How many names of a group, and of the clusters of a change, are shown.
const NAMES_MAX: usize = 6;
/// How many changed fields of a group are shown.
const FIELDS_MAX: usize = 5;
/// How many groups are shown.
const GROUPS_MAX: usize = 30;

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
    fn of(happening: &Happening<'_>) -> Self {
        match happening.step {
            _ if happening.suspended => Mark::Waits,
            Step::Create => Mark::Comes,
            Step::Delete => Mark::Goes,
            Step::Scale | Step::Update | Step::Resume => Mark::Changes,
            Step::Suspend => Mark::Waits,
        }
    }

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
    let (blocks, names) = if detailed { (usize::MAX, usize::MAX) } else { (GROUPS_MAX, NAMES_MAX) };
    text += &totals::tables(plan);
    let groups = groups(plan, detailed);
    for group in groups.iter().take(blocks) {
        text += "\n";
        text += &block(group, names, paint);
    }
    let more: usize = groups.iter().skip(blocks).map(Group::len).sum();
    if more > 0 {
        text += &format!("\nand {more} more templates; --detailed shows each\n");
    }
    for (place, note) in notes.iter().enumerate() {
        text += if place == 0 { "\n" } else { "" };
        text += &format!("{}\n", wrapped("Note: ", note));
    }
    text
}

fn block(group: &Group<'_>, most: usize, paint: Paint) -> String {
    let first = group.first();
    let mut lines = vec![line("", mark(group), &group.names(NAMES_MAX), paint)];
    if let Some(claim) = &first.claim {
        let mark = if matches!(claim, ClaimChange::Preempted { .. }) { Mark::Waits } else { Mark::Owner };
        lines.push(line("    ", mark, &claim.to_string(), paint));
    }
    for happening in group.happenings() {
        let (mark, what) = (Mark::of(&happening), happening.to_string());
        lines.push(line("    ", mark, &format!("{}: {what}", some_of(&happening.clusters, most)), paint));
    }
    let fields = if most == usize::MAX { usize::MAX } else { FIELDS_MAX };
    lines.extend(first.fields.iter().take(fields).map(|field| wrapped("        ", &field.to_string())));
    match first.fields.len().saturating_sub(fields) {
        0 => {}
        more => lines.push(wrapped("        ", &format!("and {more} more fields; --detailed shows each"))),
    }
    if first.nowhere {
        lines.push(line("    ", Mark::Goes, NOWHERE, paint));
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

/// The mark of a group: what comes and goes in its clusters, or else what waits.
fn mark(group: &Group<'_>) -> Mark {
    let happenings = group.happenings();
    let has = |mark: Mark| happenings.iter().any(|one| Mark::of(one) == mark);
    match (has(Mark::Comes), has(Mark::Goes)) {
        (true, false) if !has(Mark::Changes) => Mark::Comes,
        (false, true) if !has(Mark::Changes) => Mark::Goes,
        (false, false) if !has(Mark::Changes) => match has(Mark::Waits) || group.first().held.is_some() {
            true => Mark::Waits,
            false => Mark::Owner,
        },
        _ => Mark::Changes,
    }
}

#[cfg(test)]
mod tests;
