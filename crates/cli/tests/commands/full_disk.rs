//! A disk that is full and has room again, as clients and the operator of a real `longshore up` see it. A limit of the
//! size of its files, which can be lifted while it runs, stands for the size of the disk.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use checks::client::ApiClient;
use checks::process::Longshore;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::terminal::{BINARY, Terminal};

/// The largest file that there is room for.
const FILE_BYTES_MAX: usize = 8 << 20;
/// What one object has.
const VALUE_BYTES: usize = 900 << 10;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Several times as long as the server waits before it looks for room, and as it keeps history here.
const SEVERAL_RETRY_INTERVALS: Duration = Duration::from_millis(3_500);

/// The binary under a limit; none where the tool for that is missing.
fn limited(directory: &Path) -> Option<PathBuf> {
    Command::new("prlimit").arg("--version").output().ok()?;
    let script = directory.join("limited");
    // A file that must not grow is an error then, and no signal.
    let text =
        format!("#!/bin/sh\ntrap '' XFSZ\nexec prlimit --fsize={FILE_BYTES_MAX}:unlimited {BINARY} \"$@\"\n");
    std::fs::write(&script, text).expect("there is room");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    Some(script)
}

/// A client that remembers what was acknowledged.
struct Client {
    api_client: ApiClient,
    runtime: Runtime,
    acknowledged: Vec<String>,
}

impl Client {
    fn open(kubeconfig: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { api_client: ApiClient::open(kubeconfig), runtime, acknowledged: Vec::new() }
    }

    fn get(&self, path: &str) -> (StatusCode, Value) {
        self.runtime.block_on(self.api_client.request(Method::GET, path, ""))
    }

    fn create(&mut self, name: &str, bytes: usize) -> (StatusCode, Value) {
        let object = json!({ "metadata": { "name": name }, "data": { "value": "x".repeat(bytes) } });
        let answer = self.runtime.block_on(self.api_client.request(Method::POST, MAPS, object.to_string()));
        if answer.0 == StatusCode::CREATED {
            self.acknowledged.push(name.to_owned());
        }
        answer
    }

    /// Whether it is ready, and whether it is alive.
    fn health(&self) -> (bool, bool) {
        let is_well = |probe: &str| self.get(probe).0 == StatusCode::OK;
        (is_well("/readyz"), is_well("/livez"))
    }
}

/// How many lines of the log say this.
fn count(server: &Longshore, words: &str) -> usize {
    server.logged().lines().filter(|line| line.contains(words)).count()
}

#[test]
fn a_full_disk_is_told_until_there_is_room_and_nothing_acknowledged_is_lost() {
    let home = tempfile::tempdir().expect("there is room for a temporary directory");
    let Some(binary) = limited(home.path()) else {
        checks::client_is_missing("there is no prlimit to fill a disk with");
        return;
    };
    let data = home.path().join(".local/share/longshore");
    let data = data.to_str().expect("temporary paths are readable").to_owned();
    let arguments =
        ["--port=0", "--members=0", "--history-seconds=1", "--log-format=json", "--data-dir", &data];
    let server = Longshore::start(&binary, &arguments).expect("it starts");
    let terminal = Terminal { home, server };
    let mut client = Client::open(&terminal.server.kubeconfig);

    fill(&mut client, &terminal);
    let pid = terminal.server.pid().to_string();
    let lifted = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited:unlimited"]).status();
    assert!(lifted.expect("it runs").success());
    terminal.until("status", |said| said.code == Some(0) && !said.stdout.contains("Not ready"));
    assert_eq!(client.health(), (true, true));
    let (status, answer) = client.create("after", VALUE_BYTES);
    assert_eq!(status, StatusCode::CREATED, "{answer}");
    let told = (count(&terminal.server, "writes fail"), count(&terminal.server, "writes succeed again"));
    assert_eq!(told, (1, 1), "{}", terminal.server.logged());

    let acknowledged = std::mem::take(&mut client.acknowledged);
    let Terminal { home: _home, server } = terminal;
    server.kill();
    let server = Longshore::start(Path::new(BINARY), &arguments).expect("it starts again");
    let client = Client::open(&server.kubeconfig);
    for name in &acknowledged {
        assert_eq!(client.get(&format!("{MAPS}/{name}")).0, StatusCode::OK, "{name} of {acknowledged:?}");
    }
}

/// Writes until the disk is full, and checks that the answer, `/readyz`, `status` and the log report it.
fn fill(client: &mut Client, terminal: &Terminal) {
    let mut write = |number: usize| client.create(&format!("large-{number}"), VALUE_BYTES);
    let refused = (0..20).map(&mut write).find(|(status, _)| *status != StatusCode::CREATED);
    let (status, answer) = refused.expect("there is a limit");
    assert_eq!(status, StatusCode::INSUFFICIENT_STORAGE, "{answer}");
    let message = answer["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.starts_with("the disk of the control plane is full: "), "{message}");
    assert!(message.contains("; hint: free some room on it"), "{message}");
    assert_eq!(client.health(), (false, true));
    let (status, read) = client.get(&format!("{MAPS}/large-0"));
    assert_eq!((status, read["data"]["value"].as_str().map(str::len)), (StatusCode::OK, Some(VALUE_BYTES)));
    let said = terminal.ok("status");
    assert!(said.contains("Not ready: store failed"), "{said}");
    // Small writes may find room; that makes it neither ready nor worth a line each.
    for number in 0..50 {
        let (status, answer) = client.create(&format!("small-{number}"), 10);
        assert!(matches!(status.as_u16(), 201 | 507), "{answer}");
    }
    std::thread::sleep(SEVERAL_RETRY_INTERVALS);
    assert_eq!(client.create("still-too-large", VALUE_BYTES).0, StatusCode::INSUFFICIENT_STORAGE);
    assert_eq!(client.health(), (false, true));
    let logged = terminal.server.logged();
    let lines: Vec<&str> = logged.lines().filter(|line| line.contains("writes ")).collect();
    let [line] = lines.as_slice() else { panic!("one line is enough: {logged}") };
    let line: Value = serde_json::from_str(line).expect("a line of JSON");
    assert_eq!(line["level"], "ERROR", "{line}");
}
