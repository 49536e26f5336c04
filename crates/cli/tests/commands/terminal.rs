//! A shell that runs `longshore`: a control plane with members, a home of its own, a clean environment.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use checks::process::Longshore;
use tempfile::TempDir;

pub const BINARY: &str = env!("CARGO_BIN_EXE_longshore");

/// A terminal in front of a running control plane.
pub struct Terminal {
    pub home: TempDir,
    pub server: Longshore,
}

/// What a command left.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    /// Without the line that names the server.
    pub stderr: String,
    /// The server that a command writes to, as it says on stderr; empty for one that only reads.
    pub server: String,
}

impl Terminal {
    /// A control plane with so many members, all of them ready.
    pub fn open(members: u8, more: &[&str]) -> Self {
        Self::open_with(Longshore::start, members, more)
    }

    /// The same, and it logs everything there is to log.
    pub fn open_loud(members: u8) -> Self {
        Self::open_with(Longshore::start_loud, members, &[])
    }

    fn open_with(
        start: fn(&Path, &[&str]) -> Result<Longshore, checks::process::Failed>,
        members: u8,
        more: &[&str],
    ) -> Self {
        let home = tempfile::tempdir().expect("there is room for a temporary directory");
        let data = home.path().join(".local/share/longshore");
        let members = format!("--members={members}");
        let data = data.to_str().expect("temporary paths are readable");
        let arguments: Vec<&str> =
            ["--port=0", "--data-dir", data, &members].into_iter().chain(more.iter().copied()).collect();
        let server = start(Path::new(BINARY), &arguments).expect("it starts");
        let terminal = Self { home, server };
        terminal.until("status", |said| !said.stdout.contains("Unknown") && !said.stdout.contains("False"));
        terminal
    }

    /// Types `longshore` and these words.
    pub fn run(&self, line: &str) -> Said {
        run(self.home.path(), line, &[])
    }

    /// The same; it has to succeed.
    #[track_caller]
    pub fn ok(&self, line: &str) -> String {
        let said = self.run(line);
        assert_eq!(said.code, Some(0), "longshore {line}\n{}{}", said.stdout, said.stderr);
        said.stdout
    }

    /// Types it until what it says is as wanted.
    #[track_caller]
    pub fn until(&self, line: &str, wanted: impl Fn(&Said) -> bool) -> Said {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let said = self.run(line);
            if wanted(&said) {
                return said;
            }
            assert!(Instant::now() < deadline, "longshore {line} still says {said:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Writes objects, as `kubectl apply --server-side` does.
    pub fn apply(&self, manifests: &[serde_json::Value]) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let api_client = checks::client::ApiClient::open(&self.server.kubeconfig);
        for manifest in manifests {
            let path = path(manifest);
            let (status, answer) =
                runtime.block_on(api_client.request(http::Method::POST, &path, manifest.to_string()));
            assert!(status.is_success(), "{path}: {answer}");
        }
    }

    /// Merges a patch into an object.
    pub fn patch(&self, path: &str, patch: &serde_json::Value) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let api_client = checks::client::ApiClient::open(&self.server.kubeconfig);
        let (status, answer) =
            runtime.block_on(api_client.request(http::Method::PATCH, path, patch.to_string()));
        assert!(status.is_success(), "{path}: {answer}");
    }
}

/// Where objects like this one are created.
fn path(manifest: &serde_json::Value) -> String {
    let text =
        |pointer: &str| manifest.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or_default();
    let version = text("/apiVersion");
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let kind = text("/kind").to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    };
    match text("/metadata/namespace") {
        "" => format!("{root}/{version}/{plural}"),
        namespace => format!("{root}/{version}/namespaces/{namespace}/{plural}"),
    }
}

/// Types `longshore` in this home with these variables.
pub fn run(home: &Path, line: &str, variables: &[(&str, &str)]) -> Said {
    let output = Command::new(BINARY)
        .args(line.split_whitespace())
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let stderr = text(output.stderr);
    let (server, stderr) = match stderr.strip_prefix("server: ").and_then(|rest| rest.split_once('\n')) {
        Some((server, rest)) => (server.to_owned(), rest.to_owned()),
        None => (String::new(), stderr),
    };
    Said { code: output.status.code(), stdout: text(output.stdout), stderr, server }
}

/// A policy that sends Deployments to these clusters.
pub fn policy(name: &str, clusters: &[&str]) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment" }],
            "placement": { "clusterAffinity": { "clusterNames": clusters } },
        },
    })
}

/// A Deployment of so many replicas.
pub fn deployment(name: &str, replicas: i32) -> serde_json::Value {
    let labels = serde_json::json!({ "app": name });
    let containers = serde_json::json!([{ "name": name, "image": name }]);
    serde_json::json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "namespace": "default", "labels": labels },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": containers } },
        },
    })
}
