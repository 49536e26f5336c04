//! Runs the real kubectl with the command lines that a user types. Finds and runs it; tests check the output.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::process::Longshore;

mod command_output;
mod running;

pub use command_output::CommandOutput;
pub use running::Running;

/// Names the kubectl to use instead of the one on PATH.
const PROGRAM: &str = "LONGSHORE_KUBECTL";
/// Points the tests at another API server, to see where ours differs from it.
const ORACLE: &str = "LONGSHORE_TEST_KUBECONFIG";

/// kubectl in a directory of its own, pointed at one server.
pub struct Kubectl {
    program: PathBuf,
    /// Home and working directory: the kubeconfig, the discovery cache and the manifests of a test.
    home: TempDir,
    server: Option<Longshore>,
}

impl Kubectl {
    /// A fresh server of this binary and a kubectl for it; nothing where there is no kubectl.
    pub fn with_server(binary: &str) -> Option<Self> {
        Self::with_members(binary, 0)
    }

    /// The same with so many local members.
    pub fn with_members(binary: &str, members: u8) -> Option<Self> {
        let program = program()?;
        let home = tempfile::tempdir().expect("there is room for a temporary directory");
        let data = home.path().join("data");
        let data = data.to_str().expect("temporary directories have plain names");
        let server = Longshore::start(
            Path::new(binary),
            &["--port=0", "--data-dir", data, &format!("--members={members}")],
        )
        .expect("the server starts in an empty directory");
        std::fs::copy(&server.kubeconfig, home.path().join("config")).expect("the kubeconfig is there");
        Some(Self { program, home, server: Some(server) })
    }

    /// As [`Self::with_server`], but on the server that `LONGSHORE_TEST_KUBECONFIG` names, if it does: in
    /// a namespace of its own there.
    pub fn with_any_server(binary: &str) -> Option<Self> {
        let Some(kubeconfig) = std::env::var_os(ORACLE) else { return Self::with_server(binary) };
        let program = program()?;
        let home = tempfile::Builder::new().prefix("test-").rand_bytes(8).tempdir();
        let home = home.expect("there is room for a temporary directory");
        std::fs::copy(kubeconfig, home.path().join("config")).expect("the kubeconfig is there");
        let namespace = home.path().file_name().and_then(|name| name.to_str()).expect("a plain name");
        let namespace = namespace.to_lowercase();
        let kubectl = Self { program, home, server: None };
        kubectl.ok(&format!("create namespace {namespace}"));
        kubectl.ok(&format!("config set-context --current --namespace={namespace}"));
        Some(kubectl)
    }

    /// Whether the server is ours, and so also collects garbage and empties namespaces.
    pub fn is_ours(&self) -> bool {
        self.server.is_some()
    }

    /// Writes a file next to which kubectl runs, so that commands can name it.
    pub fn write(&self, name: &str, content: &str) {
        std::fs::write(self.home.path().join(name), as_yaml(content)).expect("the directory takes files");
    }

    /// What a file says now.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.home.path().join(name)).expect("the file is there")
    }

    /// Runs a command line and gives what came of it, whatever that is.
    pub fn run(&self, line: &str) -> CommandOutput {
        self.run_with(line, "")
    }

    /// Runs a command line that reads this from standard input.
    pub fn run_with(&self, line: &str, input: &str) -> CommandOutput {
        let mut child = self.command(line).stdin(Stdio::piped()).spawn().expect("kubectl starts");
        let mut stdin = child.stdin.take().expect("stdin is piped");
        // A command that does not read it may have ended already.
        let _ = stdin.write_all(as_yaml(input).as_bytes());
        drop(stdin);
        CommandOutput::of(child, line)
    }

    /// Runs a command line that must succeed.
    pub fn ok(&self, line: &str) -> CommandOutput {
        self.run(line).expect_code(0)
    }

    /// Runs a command line that must succeed and reads this from standard input.
    pub fn ok_with(&self, line: &str, input: &str) -> CommandOutput {
        self.run_with(line, input).expect_code(0)
    }

    /// Runs a command line that must fail with exit code 1.
    pub fn fails(&self, line: &str) -> CommandOutput {
        self.run(line).expect_code(1)
    }

    /// Starts a command line that goes on until it is dropped.
    pub fn start(&self, line: &str) -> Running {
        let child = self.command(line).stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        Running::of(child.expect("kubectl starts"), line)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words(line))
            .current_dir(self.home.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("KUBECONFIG", self.home.path().join("config"))
            .env("KUBE_EDITOR", "sh ./editor")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// The kubectl to test with, or nothing where there is none and that is acceptable.
pub(crate) fn program() -> Option<PathBuf> {
    let program = std::env::var_os(PROGRAM).map_or_else(|| PathBuf::from("kubectl"), PathBuf::from);
    let found = Command::new(&program).args(["version", "--client"]).output();
    match found {
        Ok(output) if output.status.success() => Some(program),
        _ => {
            crate::client_is_missing("kubectl is not on PATH");
            None
        }
    }
}

/// YAML may begin with a brace, but kubectl before 1.33 takes whatever does for JSON.
fn as_yaml(text: &str) -> String {
    let marker = if text.starts_with('{') { "---\n" } else { "" };
    format!("{marker}{text}")
}

/// A command line as a shell would split it: at spaces, except between quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for character in line.chars() {
        match quote {
            Some(open) if character == open => quote = None,
            None if character == '\'' || character == '"' => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            None if character == ' ' => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn command_lines_are_split_at_unquoted_spaces() {
        let check = |line: &str, expected: &[&str]| assert_eq!(words(line), expected, "{line}");
        check("get pods", &["get", "pods"]);
        check("  get   pods ", &["get", "pods"]);
        check("patch -p '{\"a\": 1}' x", &["patch", "-p", "{\"a\": 1}", "x"]);
        check("-o=jsonpath=\"{.a b}\" ''", &["-o=jsonpath={.a b}", ""]);
    }
}
