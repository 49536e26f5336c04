//! A shell session of a new user: commands are extracted from documents and output, and run as they are.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::kubectl;

/// A shell with a home of its own, in which `kubectl` is the one to test with.
pub struct Shell {
    home: TempDir,
    /// What was exported so far.
    exports: String,
}

impl Shell {
    /// A shell; nothing, after saying so, where there is no kubectl.
    pub fn open() -> Option<Self> {
        let program = kubectl::program()?;
        let home = tempfile::tempdir().expect("there is room for a temporary directory");
        let found = match program.is_absolute() {
            true => program,
            false => {
                path().split(':').map(|folder| Path::new(folder).join(&program)).find(|file| file.exists())?
            }
        };
        let folder = home.path().join("bin");
        std::fs::create_dir(&folder).expect("the directory takes folders");
        std::os::unix::fs::symlink(found, folder.join("kubectl")).expect("the directory takes links");
        Some(Self { home, exports: String::new() })
    }

    /// The user's home.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// From now on this program is found by this name.
    pub fn add(&self, name: &str, program: &Path) {
        let link = self.home.path().join("bin").join(name);
        std::os::unix::fs::symlink(program, link).expect("the directory takes links");
    }

    /// Types a command and gives what it printed; it must succeed.
    #[track_caller]
    pub fn run(&mut self, command: &str) -> String {
        let output = self.output(command, "set -e\n");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "$ {command}\n{stderr}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Types a command and gives all that a terminal would show, whether it succeeds or not.
    pub fn see(&mut self, command: &str) -> String {
        let output = self.output(command, "exec 2>&1\n");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn output(&mut self, command: &str, before: &str) -> Output {
        let script = format!("{before}{}{command}\n", self.exports);
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(self.home.path())
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", format!("{}:{}", self.home.path().join("bin").display(), path()))
            .stdin(Stdio::null())
            .output()
            .expect("there is a shell on every machine");
        if output.status.success() && command.starts_with("export ") {
            self.exports += &format!("{command}\n");
        }
        output
    }
}

fn path() -> String {
    std::env::var("PATH").unwrap_or_default()
}

/// The commands in the fenced `sh` blocks of a document.
pub fn commands_of_document(text: &str) -> Vec<String> {
    let mut inside = false;
    let lines = text.lines().filter(|line| {
        if line.starts_with("```") {
            inside = *line == "```sh";
            return false;
        }
        inside
    });
    commands(lines)
}

/// The commands among indented lines, as `up` prints them.
pub fn commands_of_output(lines: &[String]) -> Vec<String> {
    commands(lines.iter().filter_map(|line| line.strip_prefix("  ")))
}

/// One per line, except that a line ending in `<<EOF` goes on until `EOF`.
fn commands<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut open = false;
    for line in lines {
        match commands.last_mut().filter(|_| open) {
            Some(command) => *command += &format!("\n{line}"),
            None if line.is_empty() => continue,
            None => commands.push(line.to_owned()),
        }
        open = if open { line != "EOF" } else { line.ends_with("<<EOF") };
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::commands_of_document;

    #[test]
    fn commands_are_what_stands_in_shell_blocks() {
        let text = "no\n```yaml\nno: 1\n```\n```sh\nls\n\ncat <<EOF\na\n\nEOF\n```\nno\n```sh\nlast\n```\n";
        assert_eq!(commands_of_document(text), ["ls", "cat <<EOF\na\n\nEOF", "last"]);
    }
}
