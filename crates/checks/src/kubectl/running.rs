//! A command that keeps running, such as a watch, and waiting for its output.

use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// How long a line may take to appear.
const LINE_TIMEOUT: Duration = Duration::from_secs(30);
/// Lines that may wait to be looked at.
const BUFFERED_LINES_MAX: usize = 10_000;

/// A command under way; it ends when this is dropped.
pub struct Running {
    child: Child,
    line: String,
    lines: Receiver<String>,
}

impl Running {
    pub(super) fn of(mut child: Child, line: &str) -> Self {
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (sender, lines) = sync_channel(BUFFERED_LINES_MAX);
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, line: line.to_owned(), lines }
    }

    /// Waits for a line with this in it and gives the line.
    #[track_caller]
    pub fn until(&self, part: &str) -> String {
        let deadline = Instant::now() + LINE_TIMEOUT;
        let mut seen = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if line.contains(part) {
                return line;
            }
            seen.push(line);
        }
        panic!("`kubectl {}` did not print {part:?}; it printed:\n{}", self.line, seen.join("\n"));
    }

    /// Waits until the command ends by itself and gives its exit code.
    #[track_caller]
    pub fn end(&mut self) -> Option<i32> {
        let deadline = Instant::now() + LINE_TIMEOUT;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("`kubectl {}` did not end", self.line),
            }
        }
        self.child.wait().expect("the child can be waited for").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
