//! Where answers go: stdout, as text for people or as JSON or YAML for programs, and questions to people.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use serde::Serialize;

/// A form for programs, as `-o` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

impl Format {
    /// Prints a document in this form.
    pub fn print(self, document: &impl Serialize) -> Result<()> {
        let text = match self {
            Format::Json => serde_json::to_string_pretty(document).context("write JSON")? + "\n",
            Format::Yaml => serde_saphyr::to_string(document).context("write YAML")?,
        };
        print(&text)
    }
}

/// Prints to stdout; a reader that went away has read enough.
pub fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("print"),
    }
}

/// Talks to whoever is in front of the terminal.
#[expect(clippy::print_stderr, reason = "stderr is for talk")]
pub fn tell(text: &str) {
    eprintln!("{text}");
}
