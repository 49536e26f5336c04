//! A server as a process that can be killed and started again with the same arguments; killed when it is dropped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// How long a server may take to end when it is asked to.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// How often is looked whether it has.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A program with its arguments, running or not.
pub struct Process {
    name: String,
    command: Command,
    log: PathBuf,
    child: Option<Child>,
}

impl Process {
    /// A program that is not started yet; what it says goes into `log`.
    pub fn new(name: &str, mut command: Command, log: &Path) -> Self {
        command.stdin(Stdio::null());
        Self { name: name.to_owned(), command, log: log.to_owned(), child: None }
    }

    /// Starts it, if it does not run.
    pub fn start(&mut self) -> Result<()> {
        if self.is_running() {
            return Ok(());
        }
        let log = File::options().create(true).append(true).open(&self.log).context("open a log")?;
        self.command.stdout(log.try_clone()?).stderr(log);
        self.child = Some(self.command.spawn().with_context(|| format!("start {}", self.name))?);
        Ok(())
    }

    /// Starts it again if it ended by itself; one that was killed stays dead.
    pub fn start_again(&mut self) -> Result<()> {
        if self.child.is_some() { self.start() } else { Ok(()) }
    }

    /// Whether it is there.
    pub fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Its process id, if it was started.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Asks it to end, and waits until it has; after a while it is not asked any more.
    pub fn end(&mut self) {
        let Some(pid) = self.pid().filter(|_| self.is_running()) else { return self.kill() };
        // If SIGTERM cannot be sent, the process is killed below.
        let _ = Command::new("kill").arg(pid.to_string()).status();
        let begun = Instant::now();
        while self.is_running() && begun.elapsed() < STOP_TIMEOUT {
            std::thread::sleep(POLL_INTERVAL);
        }
        self.kill();
    }

    /// Ends it as a power cut would.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself; either way it is gone afterwards.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The last lines it said.
    pub fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
