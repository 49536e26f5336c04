//! Prints the state of a system: all of it where it fits on a screen, else totals and the rows that need attention.
//! Decides nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use decide::orphans::Orphan;
use plane::reports::{ClusterReport, PolicyReport, Report};

use crate::terminal_text::{Paint, some_of, table, wrapped};

/// How many rows of one kind are shown.
const ROWS_MAX: usize = 20;
/// How many names with the same trouble are shown.
const NAMES_MAX: usize = 6;
/// How to see all of them.
const ALL: &str = "`longshore status --all` shows each";

/// The report as text; `all` leaves nothing out.
pub fn shown(report: &Report, all: bool, paint: Paint) -> String {
    let most = if all { usize::MAX } else { ROWS_MAX };
    let mut first = format!("Control plane: context {}", report.context);
    if !report.feature_gates.is_empty() {
        let _ = write!(first, ", feature gates {}", report.feature_gates.join(", "));
    }
    let problem = |why: &String| paint.red(&wrapped("", &format!("Not ready: {why}"))) + "\n";
    let problems: String = report.problems.iter().map(problem).collect();
    let warning = |why: &String| paint.yellow(&wrapped("", &format!("Warning: {why}"))) + "\n";
    let warnings: String = report.warnings.iter().map(warning).collect();
    let parts = [
        wrapped("", &first) + "\n" + &problems + &warnings,
        clusters(report, most),
        policies(report, most),
        unknown(report, most, paint),
        orphaned(report, most, paint),
        stuck(report, most, paint),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn clusters(report: &Report, most: usize) -> String {
    let all = &report.clusters;
    // A user who may not read clusters gets no empty columns.
    let columns = if all.iter().all(|one| one.hidden) { 2 } else { 4 };
    let row = |one: &ClusterReport| {
        let taints = if one.taints.is_empty() { "<none>".to_owned() } else { one.taints.join(", ") };
        let ready = match one.since {
            Some(since) => format!("{} since {since}", one.ready),
            None => one.ready.clone(),
        };
        let cells = [one.name.clone(), ready, one.version.clone(), taints];
        cells.into_iter().take(columns).collect()
    };
    let header = &["CLUSTER", "READY", "VERSION", "TAINTS"][..columns];
    let ready = all.iter().filter(|one| one.ready == "True").count();
    let tainted = all.iter().filter(|one| !one.taints.is_empty()).count();
    let summary = || match (all.len() - ready, tainted) {
        (0, 0) => format!("{} clusters, all of them ready and without taints; {ALL}.", all.len()),
        (not, tainted) => {
            format!("{} clusters, of which {not} are not ready and {tainted} have taints; {ALL}.", all.len())
        }
    };
    let is_striking = |one: &&ClusterReport| one.ready != "True" || !one.taints.is_empty();
    match all.len() {
        0 => "No cluster has joined.\n".to_owned(),
        count if count <= most => table(header, &all.iter().map(row).collect::<Vec<_>>()),
        _ => excerpt(header, &summary(), all.iter().filter(is_striking).map(row), most),
    }
}

fn policies(report: &Report, most: usize) -> String {
    let all = &report.policies;
    let row = |one: &PolicyReport| {
        let name = match one.namespace.as_str() {
            "" => one.name.clone(),
            namespace => format!("{namespace}/{}", one.name),
        };
        let lazy = if one.lazy { "Lazy" } else { "<none>" };
        let counts = [one.priority, one.claimed, one.pending, one.suspended].map(|count| count.to_string());
        [one.kind.clone(), name, lazy.to_owned()].into_iter().chain(counts).collect()
    };
    let header = ["KIND", "POLICY", "ACTIVATION", "PRIORITY", "CLAIMED", "PENDING", "SUSPENDED"];
    let sum = |count: fn(&PolicyReport) -> i64| all.iter().map(count).sum::<i64>();
    let summary = || {
        format!(
            "{} policies claim {} templates, of which {} are pending and {} suspended; {ALL}.",
            all.len(),
            sum(|one| one.claimed),
            sum(|one| one.pending),
            sum(|one| one.suspended)
        )
    };
    let is_striking = |one: &&PolicyReport| one.pending > 0 || one.suspended > 0;
    match all.len() {
        0 => "There is no policy.\n".to_owned(),
        count if count <= most => table(&header, &all.iter().map(row).collect::<Vec<_>>()),
        _ => excerpt(&header, &summary(), all.iter().filter(is_striking).map(row), most),
    }
}

/// The numbers, and the rows that need attention.
fn excerpt(
    header: &[&str],
    summary: &str,
    striking: impl Iterator<Item = Vec<String>>,
    most: usize,
) -> String {
    let mut rows: Vec<Vec<String>> = striking.collect();
    let more = rows.len().saturating_sub(most);
    rows.truncate(most);
    let mut text = wrapped("", summary) + "\n";
    if !rows.is_empty() {
        text += &table(header, &rows);
    }
    if more > 0 {
        let _ = writeln!(text, "and {more} more");
    }
    text
}

/// Clusters that do not answer, and what is therefore not known.
fn unknown(report: &Report, most: usize, paint: Paint) -> String {
    let concerned: Vec<_> = report.unknown.iter().filter(|one| !one.templates.is_empty()).collect();
    if concerned.is_empty() {
        return String::new();
    }
    let names_max = if most == usize::MAX { most } else { NAMES_MAX };
    let mut text = format!("{}\n", paint.strong("Unknown:"));
    for one in concerned.iter().take(most) {
        let count = counted(one.templates.len(), "template");
        let said = wrapped("  ", &format!("{count} in {}: {}", one.cluster, one.unknown));
        let named = wrapped("    ", &some_of(&one.templates, names_max));
        let _ = writeln!(text, "{}", paint.yellow(&format!("{said}\n{named}")));
    }
    match concerned.len().saturating_sub(most) {
        0 => {}
        more => drop(writeln!(text, "  and {more} more clusters; {ALL}")),
    }
    text
}

/// Templates that run although no policy claims them.
fn orphaned(report: &Report, most: usize, paint: Paint) -> String {
    if report.orphaned.is_empty() {
        return String::new();
    }
    let names_max = if most == usize::MAX { most } else { NAMES_MAX };
    let mut text = format!(
        "{}\n",
        paint.strong("Orphaned: no policy claims these templates; their copies stay as they are.")
    );
    let (reachable, others): (Vec<&Orphan>, Vec<&Orphan>) =
        report.orphaned.iter().partition(|orphan| orphan.would_follow.is_some());
    let parts = [
        (reachable, "a policy matches; it acts after the next change or `longshore reconcile`"),
        (others, "no policy matches"),
    ];
    for (orphans, why) in parts.into_iter().filter(|(orphans, _)| !orphans.is_empty()) {
        let names: Vec<String> = orphans.iter().map(|orphan| orphan.template.to_string()).collect();
        let said = wrapped("  ", &format!("{}: {why}", counted(names.len(), "template")));
        let named = wrapped("    ", &some_of(&names, names_max));
        let _ = writeln!(text, "{}", paint.yellow(&format!("{said}\n{named}")));
    }
    text
}

/// A number with its noun.
fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn stuck(report: &Report, most: usize, paint: Paint) -> String {
    if report.stuck.is_empty() {
        let is_known = report.unknown.iter().all(|one| one.templates.is_empty());
        let other = if is_known { "Nothing" } else { "As far as is known, nothing" };
        return format!("{other} is stuck.\n");
    }
    // Those with the same trouble stand together.
    let mut alike: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in &report.stuck {
        alike.entry(&one.why).or_default().push(&one.what);
    }
    let mut alike: Vec<(&str, Vec<&str>)> = alike.into_iter().collect();
    alike.sort_by(|a, b| a.1.cmp(&b.1));
    let names_max = if most == usize::MAX { most } else { NAMES_MAX };
    let mut text = format!("{}\n", paint.strong("Stuck:"));
    for (why, names) in alike.iter().take(most) {
        let said = match names.as_slice() {
            [name] => wrapped("  ", &format!("{name}: {why}")),
            names => {
                let named = wrapped("    ", &some_of(names, names_max));
                format!("{}\n{named}", wrapped("  ", &format!("{} templates: {why}", names.len())))
            }
        };
        let _ = writeln!(text, "{}", paint.red(&said));
    }
    let more: usize = alike.iter().skip(most).map(|(_, names)| names.len()).sum();
    if more > 0 {
        let _ = writeln!(text, "  and {more} more; {ALL}");
    }
    text + "`longshore why KIND/NAME` explains each.\n"
}
