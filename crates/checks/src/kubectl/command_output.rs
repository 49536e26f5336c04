//! Output and exit code of a finished command, with assertions on them.

use std::io::Read;
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

/// No single command takes this long unless it hangs.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// What came of a command.
pub struct CommandOutput {
    /// What was typed.
    pub line: String,
    /// The exit code, if it was not a signal.
    pub code: Option<i32>,
    /// Everything on standard output.
    pub stdout: String,
    /// Everything on standard error.
    pub stderr: String,
}

impl CommandOutput {
    /// Waits for the end of a command.
    pub(super) fn of(mut child: Child, line: &str) -> Self {
        let stdout = collect(child.stdout.take().expect("stdout is piped"));
        let stderr = collect(child.stderr.take().expect("stderr is piped"));
        let (Ok(stdout), Ok(stderr)) =
            (stdout.recv_timeout(COMMAND_TIMEOUT), stderr.recv_timeout(COMMAND_TIMEOUT))
        else {
            let _ = child.kill();
            let _ = child.wait();
            panic!("`kubectl {line}` did not end within {COMMAND_TIMEOUT:?}");
        };
        let code = child.wait().expect("the child can be waited for").code();
        Self { line: line.to_owned(), code, stdout, stderr }
    }

    /// Fails the test unless the exit code is this.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert!(self.code == Some(code), "{}\nexpected exit code {code}", self.shown());
        self
    }

    /// Fails the test unless standard output is exactly this.
    #[track_caller]
    pub fn prints(self, expected: &str) -> Self {
        assert!(self.stdout == expected, "{}\nexpected on stdout:\n{expected}", self.shown());
        self
    }

    /// Fails the test unless this is somewhere on standard output.
    #[track_caller]
    pub fn shows(self, part: &str) -> Self {
        assert!(self.stdout.contains(part), "{}\nexpected somewhere on stdout:\n{part}", self.shown());
        self
    }

    /// Fails the test if this is somewhere on standard output.
    #[track_caller]
    pub fn hides(self, part: &str) -> Self {
        assert!(!self.stdout.contains(part), "{}\nexpected nowhere on stdout:\n{part}", self.shown());
        self
    }

    /// Fails the test unless this is somewhere on standard error.
    #[track_caller]
    pub fn complains(self, part: &str) -> Self {
        assert!(self.stderr.contains(part), "{}\nexpected somewhere on stderr:\n{part}", self.shown());
        self
    }

    /// Fails the test unless standard output has exactly these rows, where the width of columns does not
    /// matter and `*` stands for any one word.
    #[track_caller]
    pub fn lists(self, rows: &[&str]) -> Self {
        let printed: Vec<&str> = self.stdout.lines().collect();
        let same =
            printed.len() == rows.len() && printed.iter().zip(rows).all(|(line, row)| same_words(line, row));
        assert!(same, "{}\nexpected rows:\n{}", self.shown(), rows.join("\n"));
        self
    }

    /// Fails the test unless one line of standard output has exactly these words.
    #[track_caller]
    pub fn has_row(self, row: &str) -> Self {
        let found = self.stdout.lines().any(|line| same_words(line, row));
        assert!(found, "{}\nexpected row:\n{row}", self.shown());
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{}\n{error}", self.shown()))
    }

    fn shown(&self) -> String {
        let Self { line, code, stdout, stderr } = self;
        format!("$ kubectl {line}\n{stdout}--- stderr:\n{stderr}--- exit code: {code:?}")
    }
}

fn same_words(line: &str, row: &str) -> bool {
    let (mut line, mut row) = (line.split_whitespace(), row.split_whitespace());
    loop {
        match (line.next(), row.next()) {
            (None, None) => return true,
            (Some(word), Some(expected)) if expected == "*" || word == expected => {}
            _ => return false,
        }
    }
}

fn collect(mut stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still what was printed.
        let _ = stream.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::same_words;

    #[test]
    fn rows_are_compared_word_by_word() {
        let check = |line: &str, row: &str, expected: bool| assert_eq!(same_words(line, row), expected);
        check("web   1/1   5s", "web 1/1 *", true);
        check("web   1/1   5s", "web 1/1", false);
        check("web   1/1", "web 1/1 *", false);
        check("web   0/1   5s", "web 1/1 *", false);
    }
}
