//! The Python client against the real binary: it sees the same as a list does, through restarts and
//! compaction. Skipped, after saying so, where the client is not installed.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use checks::client::ApiClient;
use checks::process::Longshore;
use http::{Method, StatusCode};
use serde_json::json;

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The interpreter that has the client.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("LONGSHORE_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let found = Command::new(&python).args(["-c", "import kubernetes"]).output();
    match found {
        Ok(output) if output.status.success() => Some(python),
        _ => {
            checks::client_is_missing("python3 cannot import kubernetes");
            None
        }
    }
}

fn start(data: &Path, more: &[&str]) -> Longshore {
    let arguments =
        [&["--port=0", "--members=0", "--data-dir", data.to_str().expect("a plain name")], more].concat();
    Longshore::start(Path::new(BINARY), &arguments).expect("it starts")
}

fn script(python: &Path, name: &str, kubeconfig: &Path) -> Command {
    let mut command = Command::new(python);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    command.arg("-B").arg(folder.join(name)).arg(kubeconfig);
    command
}

/// Runs a script to its end.
fn run(python: &Path, name: &str, kubeconfig: &Path) {
    let output = script(python, name, kubeconfig).stdin(Stdio::null()).output().expect("python runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n", "{name}: {stderr}");
}

#[test]
fn create_read_update_delete() {
    let Some(python) = python() else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    let server = start(home.path(), &[]);
    run(&python, "crud.py", &server.kubeconfig);
}

#[test]
fn a_watch_that_comes_too_late_is_told_so() {
    let Some(python) = python() else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    let server = start(home.path(), &["--history-seconds=1"]);
    run(&python, "compaction.py", &server.kubeconfig);
}

/// The mirror script under way.
struct Mirror {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Mirror {
    fn start(python: &Path, kubeconfig: &Path) -> Self {
        let mut child = script(python, "mirror.py", kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python runs");
        let stdin = child.stdin.take().expect("stdin is piped");
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        Self { child, stdin, lines }
    }

    /// What the script says once its mirror is what a list shows.
    fn settled(&mut self) -> String {
        writeln!(self.stdin, "compare").expect("the script listens");
        self.lines.next().and_then(Result::ok).expect("the script answers; what went wrong stands above")
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes ten objects, changes each and removes every second one.
async fn churn(api_client: &ApiClient, round: usize) {
    for number in 0..10 {
        let name = format!("r{round}-{number}");
        let body = json!({ "metadata": { "name": name }, "data": { "colour": "blue" } }).to_string();
        let (status, answer) = api_client.request(Method::POST, MAPS, body).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
        let path = format!("{MAPS}/{name}");
        let body = json!({ "data": { "colour": "green" } }).to_string();
        assert_eq!(api_client.request(Method::PATCH, &path, body).await.0, StatusCode::OK);
        if number % 2 == 1 {
            assert_eq!(api_client.request(Method::DELETE, &path, "").await.0, StatusCode::OK);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_survives_restarts_without_listing_again() {
    let Some(python) = python() else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut server = start(home.path(), &[]);
    let mut mirror = Mirror::start(&python, &server.kubeconfig);
    // Every namespace has one config map of its own.
    let own = 1;
    churn(&ApiClient::open(&server.kubeconfig), 0).await;
    assert_eq!(mirror.settled(), format!("{} objects after 1 lists", own + 5));
    for round in 1..=4 {
        match round % 2 {
            0 => server.kill(),
            _ => assert_eq!(server.interrupt(), Some(0)),
        }
        server = start(home.path(), &[]);
        churn(&ApiClient::open(&server.kubeconfig), round).await;
        assert_eq!(mirror.settled(), format!("{} objects after 1 lists", own + 5 * (round + 1)));
    }
}
