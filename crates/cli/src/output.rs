//! Output of commands: stdout, as text for people or as JSON or YAML for programs, and prompts.

use std::io::{IsTerminal as _, Write as _};

use anyhow::{Context as _, Result, anyhow};
use serde::Serialize;

use crate::Hint;
use crate::terminal_text::wrapped;

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

/// Prints a message to stderr.
#[expect(clippy::print_stderr, reason = "stderr is for talk")]
pub fn print_message(text: &str) {
    eprintln!("{text}");
}

/// Asks whether to go on; scripts have to say so before.
pub fn confirm(question: &str, yes: bool) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        let hint = Hint("to make the change without confirmation, add --yes".to_owned());
        return Err(anyhow::Error::new(hint).context("ask for confirmation: stdin is not a terminal"));
    }
    let mut stderr = std::io::stderr();
    write!(stderr, "{} ", wrapped("", &format!("{question} [y/N]")))
        .and_then(|()| stderr.flush())
        .context("ask")?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("read the answer")?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(true),
        "" | "n" | "no" => Ok(false),
        other => Err(anyhow!("{other:?} is neither yes nor no: nothing was changed")),
    }
}
