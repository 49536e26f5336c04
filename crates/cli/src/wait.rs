//! `--wait`: a command ends when the members have what it set off, and prints the progress. `decide` says what is pending.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use api::Work;
use controllers::cache::binding_of_work;
use controllers::snapshot::works;
use decide::plan::Plan;
use decide::progress::{Progress, progress};
use decide::snapshot::Interpreters;
use decide::{BindingKey, TemplateKey};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::connection::Control;
use crate::terminal_text::columns;
use crate::{Hint, output, progress as progress_line};

/// How often the progress is polled; less often if one poll takes long.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How many times longer than a poll the pause after it is.
const POLL_PAUSE_FACTOR: u32 = 2;
/// How many pending items an error lists.
const LINES_MAX: usize = 20;

/// Options of commands that set something off.
#[derive(clap::Args)]
pub struct Wait {
    /// Wait until the controllers have carried out the change in the member clusters
    #[arg(long)]
    pub wait: bool,
    /// With --wait: fail after this time, such as 30s, 5m or 1h
    #[arg(long, value_name = "DURATION", default_value = "5m", requires = "wait", value_parser = duration)]
    timeout: Duration,
}

/// An awaited item that is not done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pending {
    /// What: `Deployment default/web`.
    pub what: String,
    /// What it lacks.
    pub lacks: String,
    /// The command that explains it.
    pub explained_by: String,
}

impl Wait {
    /// Waits for every template of a plan that was carried out, if anything happens to it in a cluster.
    pub async fn for_plan(&self, control: &Control, plan: &Plan) -> Result<()> {
        let concerned = plan.templates.values().filter(|one| !one.clusters.is_empty());
        self.for_templates(control, concerned.map(|one| Arc::clone(&one.template))).await
    }

    /// Waits for templates.
    pub async fn for_templates(
        &self,
        control: &Control,
        templates: impl Iterator<Item = Arc<TemplateKey>>,
    ) -> Result<()> {
        let templates: BTreeSet<Arc<TemplateKey>> = templates.collect();
        if !self.wait {
            return Ok(());
        }
        if templates.is_empty() {
            output::print_message("nothing to wait for");
            return Ok(());
        }
        let computes = control.computes().await?;
        let poll = async || {
            let all = match computes {
                true => control.computed_progress(&templates).await?,
                false => read_progress(control, &templates).await?,
            };
            Ok(all.into_iter().filter_map(|one| pending(&one)).collect())
        };
        until(Awaited { what: "template", count: templates.len() }, self.timeout, poll).await
    }

    /// Polls until nothing is pending.
    pub async fn until(
        &self,
        awaited: Awaited,
        poll: impl AsyncFnMut() -> Result<Vec<Pending>>,
    ) -> Result<()> {
        if self.wait { until(awaited, self.timeout, poll).await } else { Ok(()) }
    }
}

/// The progress of templates, for users who may read everything.
async fn read_progress(control: &Control, keys: &BTreeSet<Arc<TemplateKey>>) -> Result<Vec<Progress>> {
    let snapshot = control.snapshot().await?;
    let mut by_binding: BTreeMap<BindingKey, Vec<Work>> = BTreeMap::new();
    for work in works(&control.rest).await.context("list the Works")?.into_values() {
        if let Some(binding) = binding_of_work(&work.metadata) {
            by_binding.entry(binding).or_default().push(work);
        }
    }
    let works_of = |key: &TemplateKey| by_binding.get(&key.binding()).cloned().unwrap_or_default();
    Ok(progress(&snapshot, keys, Interpreters::BUILT_IN, works_of))
}

fn pending(progress: &Progress) -> Option<Pending> {
    let lacks: Vec<String> = progress.pending.iter().map(ToString::to_string).collect();
    let TemplateKey { kind, namespace, name, .. } = &progress.template;
    let group = match progress.template.group() {
        "" => String::new(),
        group => format!(".{group}"),
    };
    let place = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
    (!lacks.is_empty()).then(|| Pending {
        what: progress.template.to_string(),
        lacks: lacks.join("; "),
        explained_by: format!("longshore why {}{group}/{name}{place}", kind.to_lowercase()),
    })
}

/// What is waited for.
#[derive(Clone, Copy)]
pub struct Awaited {
    /// What one of them is called.
    pub what: &'static str,
    /// How many there are.
    pub count: usize,
}

/// Polls until nothing is pending. A poll that fails is repeated, unless it is the first one: that would fail again.
pub async fn until(
    awaited: Awaited,
    timeout: Duration,
    mut poll: impl AsyncFnMut() -> Result<Vec<Pending>>,
) -> Result<()> {
    let deadline = Instant::now() + timeout;
    let mut printer = Printer::new(awaited);
    loop {
        let polled = Instant::now();
        let failed = match timeout_at(deadline, poll()).await {
            Ok(Ok(pending)) => {
                printer.show(&pending);
                if pending.is_empty() {
                    return Ok(());
                }
                (Instant::now() >= deadline).then(|| unfinished(awaited, timeout, pending))
            }
            Ok(Err(error)) => (printer.is_first || Instant::now() >= deadline).then_some(error),
            Err(_) => Some(unfinished(awaited, timeout, printer.last())),
        };
        if let Some(error) = failed {
            printer.clear();
            return Err(error);
        }
        let pause = POLL_INTERVAL.max(polled.elapsed() * POLL_PAUSE_FACTOR);
        // The last poll is at the deadline.
        sleep_until((Instant::now() + pause).min(deadline)).await;
    }
}

fn unfinished(awaited: Awaited, timeout: Duration, pending: Vec<Pending>) -> anyhow::Error {
    let explained_by = pending.first().map(|first| first.explained_by.clone()).unwrap_or_default();
    let more = pending.len().saturating_sub(LINES_MAX);
    let count = pending.len();
    let mut lines: Vec<String> = pending
        .into_iter()
        .take(LINES_MAX)
        .map(|Pending { what, lacks, .. }| format!("\n  {what}: {lacks}"))
        .collect();
    if more > 0 {
        lines.push(format!("\n  and {more} more"));
    }
    let hint = match explained_by.as_str() {
        "" => "the change is made; to wait longer, raise --timeout".to_owned(),
        command => format!("`{command}` explains why; the change is made; to wait longer, raise --timeout"),
    };
    let what = awaited.counted();
    let seconds = timeout.as_secs();
    anyhow::Error::new(Hint(hint))
        .context(anyhow!("wait: {count} of {what} not done within {seconds} s:{}", lines.concat()))
}

impl Awaited {
    fn counted(self) -> String {
        format!("{} {}{}", self.count, self.what, if self.count == 1 { "" } else { "s" })
    }
}

/// Prints the progress: on a terminal one line that is rewritten, elsewhere a line for each change.
struct Printer {
    awaited: Awaited,
    begun: Instant,
    /// What was pending at the last poll, by name.
    pending: BTreeMap<String, Pending>,
    is_first: bool,
}

impl Printer {
    fn new(awaited: Awaited) -> Self {
        Self { awaited, begun: Instant::now(), pending: BTreeMap::new(), is_first: true }
    }

    fn show(&mut self, pending: &[Pending]) {
        let (is_terminal, seconds) = (std::io::stderr().is_terminal(), self.begun.elapsed().as_secs());
        let Awaited { count, .. } = self.awaited;
        let done = count.saturating_sub(pending.len());
        if let Some(first) = pending.first().filter(|_| is_terminal) {
            let line =
                format!("waiting, {seconds} s: {done} of {count} done; {}: {}", first.what, first.lacks);
            let line: String = line.chars().take(columns().saturating_sub(1)).collect();
            progress_line::write_raw(&format!("\r\u{1b}[K{line}"));
        }
        if !is_terminal {
            self.changes(pending).iter().for_each(|line| output::print_message(line));
        }
        if pending.is_empty() {
            self.clear();
            output::print_message(&format!("done after {seconds} s: {}", self.awaited.counted()));
        }
        self.remember(pending);
    }

    /// Remembers what is pending, to compare it with the next poll.
    fn remember(&mut self, pending: &[Pending]) {
        self.pending = pending.iter().map(|one| (one.what.clone(), one.clone())).collect();
        self.is_first = false;
    }

    /// A line for each difference to the last poll.
    fn changes(&self, pending: &[Pending]) -> Vec<String> {
        let now: BTreeMap<&str, &Pending> = pending.iter().map(|one| (one.what.as_str(), one)).collect();
        let ended = self.pending.keys().filter(|what| !now.contains_key(what.as_str()));
        let ended = ended.map(|what| format!("{what}: done"));
        let changed = now.iter().filter(|(what, one)| self.pending.get(**what) != Some(one));
        let changed = changed.map(|(what, one)| format!("{what}: {}", one.lacks));
        ended.chain(changed).collect()
    }

    fn last(&self) -> Vec<Pending> {
        self.pending.values().cloned().collect()
    }

    fn clear(&self) {
        if std::io::stderr().is_terminal() && !self.is_first {
            progress_line::write_raw("\r\u{1b}[K");
        }
    }
}

/// A time to wait, such as 90s, 5m or 1h.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("{text:?} is not a duration; write seconds, minutes or hours, such as 30s, 5m or 1h");
    let duration: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(duration).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(what: &str, lacks: &str) -> Pending {
        Pending { what: what.to_owned(), lacks: lacks.to_owned(), explained_by: format!("explain {what}") }
    }

    fn templates(count: usize) -> Awaited {
        Awaited { what: "template", count }
    }

    #[test]
    fn each_change_is_told_once() {
        let mut printer = Printer::new(templates(2));
        let mut check = |pending: &[Pending], expected: &[&str]| {
            assert_eq!(printer.changes(pending), expected);
            printer.remember(pending);
        };
        check(&[open("a", "x"), open("b", "x")], &["a: x", "b: x"]);
        check(&[open("a", "x"), open("b", "x")], &[]);
        check(&[open("b", "y")], &["a: done", "b: y"]);
        check(&[], &["b: done"]);
    }

    #[test]
    fn an_error_names_what_is_missing_and_the_command_that_explains_it() {
        let many: Vec<Pending> = (0..22).map(|number| open(&format!("t{number}"), "x")).collect();
        let error = unfinished(templates(30), Duration::from_secs(300), many);
        let text = crate::causes(&error);
        assert!(text.starts_with("wait: 22 of 30 templates not done within 300 s:\n  t0: x\n"), "{text}");
        assert!(text.ends_with("\n  t19: x\n  and 2 more"), "{text}");
        let hint = error.chain().find_map(|cause| cause.downcast_ref::<Hint>()).expect("a hint");
        assert!(hint.0.starts_with("`explain t0` explains why; "), "{}", hint.0);
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_later_poll_may_fail() {
        let mut polls = vec![Ok(vec![]), Err(anyhow!("gone")), Ok(vec![open("a", "x")])];
        let waited = until(templates(1), Duration::from_secs(9), async || polls.pop().expect("another poll"));
        assert!(waited.await.is_ok());
        let begun = Instant::now();
        let refused = until(templates(1), Duration::from_secs(9), async || Err(anyhow!("forbidden"))).await;
        assert_eq!(
            (refused.map_err(|error| error.to_string()), begun.elapsed().as_secs()),
            (Err("forbidden".to_owned()), 0)
        );
        let stuck = until(templates(1), Duration::from_secs(9), async || Ok(vec![open("a", "x")])).await;
        assert_eq!((stuck.is_err(), begun.elapsed().as_secs()), (true, 9));
    }

    #[test]
    fn times_are_written_as_elsewhere() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(duration(text).ok().map(|found| found.as_secs()), expected, "{text}");
        };
        check("30s", Some(30));
        check("5m", Some(300));
        check("1h", Some(3_600));
        for wrong in ["", "5", "soon", "-5m"] {
            check(wrong, None);
        }
    }
}
