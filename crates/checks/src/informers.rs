//! Informers of other languages as processes that print their events, compared with the revisions of the write-ahead
//! log: while an informer watches, it sees every change of the log once and in order.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::followers::Copied;
use crate::log::Log;

/// How long an informer may take to have everything when the writing has ended.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(120);

/// An informer under way.
pub struct Informer {
    /// What it is.
    pub name: &'static str,
    child: Child,
    stdin: ChildStdin,
    account: Arc<Mutex<Account>>,
}

/// What an informer printed, read against itself.
#[derive(Debug, Default)]
pub struct Account {
    /// Where its watch is; none before the first list.
    position: Option<u64>,
    /// Whether a watch (WatchList) still sends its initial events.
    in_initial: bool,
    /// What its watches brought since the last list, by revision.
    events: Vec<(u64, String)>,
    /// The stretches of the log that it followed: after the first revision, up to the second, these events.
    stretches: Vec<Stretch>,
    /// What its handlers were told, where it has any.
    handled: Option<Handled>,
    store: Option<Copied>,
    lists: usize,
    problems: Vec<String>,
}

#[derive(Debug, Default)]
struct Handled {
    copy: Copied,
    revisions: Vec<u64>,
    /// How often they were told of an object as they already had it. They may be told after further lists, so which list
    /// it was is not known.
    repeated: BTreeMap<String, usize>,
}

#[derive(Debug)]
struct Stretch {
    after: u64,
    until: u64,
    events: Vec<(u64, String)>,
}

/// What came of following.
#[derive(Debug, PartialEq, Eq)]
pub struct Summary {
    /// How often it had to read everything.
    pub lists: usize,
    /// How many changes its watches brought.
    pub events: usize,
}

impl Account {
    /// Takes one line of what an informer prints.
    pub fn take(&mut self, line: &Value) {
        let revision = line["rv"].as_str().and_then(|text| text.parse::<u64>().ok());
        let name = line["name"].as_str().unwrap_or_default();
        match (line["what"].as_str().unwrap_or_default(), revision) {
            ("list", Some(revision)) => self.begin(revision),
            ("watch", _) if line["type"] == "all" => self.in_initial = true,
            ("watch", revision) => {
                self.in_initial = false;
                if revision != self.position {
                    self.problems.push(format!("watches from {revision:?}, was at {:?}", self.position));
                }
            }
            ("event", revision) => self.event(line["type"].as_str().unwrap_or_default(), name, revision),
            ("store", _) => {
                let entries = line["store"].as_object().into_iter().flatten();
                let number = |value: &Value| value.as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
                self.store = Some(entries.map(|(name, value)| (name.clone(), number(value))).collect());
            }
            (what, Some(revision)) => self.handle(what, name, revision),
            _ => self.problems.push(format!("says {line}")),
        }
    }

    fn begin(&mut self, revision: u64) {
        self.end_stretch();
        self.position = Some(revision);
        self.lists += 1;
        self.stretches.push(Stretch { after: revision, until: revision, events: Vec::new() });
    }

    fn end_stretch(&mut self) {
        let events = std::mem::take(&mut self.events);
        if let (Some(stretch), Some(position)) = (self.stretches.last_mut(), self.position) {
            (stretch.until, stretch.events) = (position, events);
        }
    }

    fn event(&mut self, kind: &str, name: &str, revision: Option<u64>) {
        match (kind, revision) {
            ("ERROR", _) => {}
            ("BOOKMARK", Some(revision)) if self.in_initial => {
                self.in_initial = false;
                self.begin(revision);
            }
            (_, Some(_)) if self.in_initial => {}
            ("BOOKMARK", Some(revision)) => {
                if self.position.is_none_or(|position| revision < position) {
                    self.problems.push(format!("a bookmark at {revision} after {:?}", self.position));
                }
                self.position = Some(revision);
            }
            (_, Some(revision)) => {
                if self.position.is_none_or(|position| revision <= position) {
                    self.problems.push(format!("{kind} of {name} at {revision} after {:?}", self.position));
                }
                self.position = Some(revision);
                self.events.push((revision, name.to_owned()));
            }
            (_, None) => self.problems.push(format!("an event {kind} without a revision")),
        }
    }

    /// Checks a handler call: handlers get existing objects, and only those are updated or deleted.
    fn handle(&mut self, what: &str, name: &str, revision: u64) {
        let handled = self.handled.get_or_insert_default();
        let before = match what {
            "add" | "update" => handled.copy.insert(name.to_owned(), revision),
            _ => handled.copy.remove(name),
        };
        handled.revisions.push(revision);
        let fits = match (what, before) {
            ("add", before) => before.is_none(),
            // client-go says "update" of everything that a list after the first brings unchanged.
            ("update", Some(before)) if before == revision => {
                let times = handled.repeated.entry(name.to_owned()).or_default();
                *times += 1;
                *times < self.lists
            }
            ("update", before) => before.is_some_and(|before| before < revision),
            ("delete", before) => before.is_some_and(|before| before < revision),
            // An object deleted between watches arrives with its last known state (DeletedFinalStateUnknown).
            ("lost", before) => before.is_some(),
            _ => false,
        };
        if !fits {
            self.problems.push(format!("{what} of {name} at {revision} after {before:?}"));
        }
    }

    /// Holds it against the log, which says what there was to see from its first list on.
    pub fn judge(mut self, log: &Log) -> Result<Summary, String> {
        self.end_stretch();
        let mut seen = 0;
        for stretch in &self.stretches {
            let expected = log.range(stretch.after..).filter(|(revision, _)| **revision > stretch.after);
            let expected = expected.take_while(|(revision, _)| **revision <= stretch.until);
            let mut expected = expected.map(|(revision, change)| (*revision, change.name.clone()));
            for found in &stretch.events {
                match expected.next() {
                    Some(wanted) if wanted == *found => seen += 1,
                    other => return Err(format!("saw {found:?} where the log has {other:?}")),
                }
            }
            if let Some(missed) = expected.next() {
                return Err(format!("missed {missed:?} between {} and {}", stretch.after, stretch.until));
            }
        }
        if let Some(handled) = &self.handled {
            let told: std::collections::BTreeSet<u64> = handled.revisions.iter().copied().collect();
            let brought = self.stretches.iter().flat_map(|stretch| &stretch.events);
            for (revision, name) in brought {
                if !told.contains(revision) {
                    return Err(format!("no handler was told of {name} at {revision}"));
                }
            }
        }
        match self.problems.is_empty() {
            true => Ok(Summary { lists: self.lists, events: seen }),
            false => Err(self.problems.join("\n")),
        }
    }

    fn has(&self, there: &Copied) -> bool {
        let handlers_agree = self.handled.as_ref().is_none_or(|handled| &handled.copy == there);
        self.store.as_ref() == Some(there) && handlers_agree
    }
}

impl Informer {
    /// Starts the process, which prints a line for everything it does.
    pub fn start(name: &'static str, command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("an informer runs");
        let stdin = child.stdin.take().expect("stdin is piped");
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let account: Arc<Mutex<Account>> = Arc::default();
        let told = account.clone();
        // It ends with the process.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or_else(|_| Value::String(line.clone()));
                told.lock().expect("no one panics while holding it").take(&line);
            }
        });
        Self { name, child, stdin, account }
    }

    /// Makes it stop reading from the server (`hold`) or resume (`go`).
    pub fn tell(&mut self, what: &str) {
        writeln!(self.stdin, "{what}").expect("the informer listens");
    }

    /// Waits until it has what is there, then holds what it saw against the log.
    pub fn check(&mut self, there: &Copied, log: &Log) -> Summary {
        let begun = Instant::now();
        loop {
            self.tell("store");
            std::thread::sleep(Duration::from_millis(100));
            let account = self.account.lock().expect("no one panics while holding it");
            if account.has(there) {
                break;
            }
            let late = begun.elapsed() > CATCH_UP_TIMEOUT;
            assert!(!late, "{} has {:?}, there is {there:?}", self.name, account.store);
        }
        let account = std::mem::take(&mut *self.account.lock().expect("no one panics while holding it"));
        account.judge(log).unwrap_or_else(|why| panic!("{}: {why}", self.name))
    }
}

impl Drop for Informer {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests;
