//! docs/reference/metrics.md has every metric that the binary prints. `UPDATE_EXPECT=1` writes it anew.

use std::fmt::Write as _;
use std::path::Path;

use checks::client::ApiClient;
use checks::process::Longshore;
use expect_test::expect_file;
use http::Method;

const HEAD: &str = "\
# Metrics

Printed at `/metrics` of `longshore up`. `longshore controllers` prints the same without those that begin with `apiserver_`
and `longshore_store_`. Names and labels are Karmada's where it has them; its labels are in
[section 3.11](../behaviour/karmada/3-detector.md#311-events-and-metrics). Alerts and a dashboard are in `deploy/monitoring`.

Generated from the binary: `UPDATE_EXPECT=1 cargo test -p cli --test commands metrics`

| metric | type | what |
|---|---|---|
";

/// A row for each metric, from its `# HELP` and `# TYPE` lines.
fn rows(printed: &str) -> Vec<String> {
    let mut lines = printed.lines();
    let mut rows = Vec::new();
    while let Some(line) = lines.next() {
        let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let kind = lines.next().and_then(|line| line.strip_prefix(&format!("# TYPE {name} ")));
        rows.push(format!("| `{name}` | {} | {help} |", kind.expect("the type follows the help")));
    }
    rows.sort_unstable();
    rows
}

#[tokio::test]
async fn every_metric_is_in_the_reference() {
    let folder = tempfile::tempdir().expect("a directory");
    let audit = format!("--audit-log-path={}", folder.path().join("audit.log").display());
    let arguments = ["--port=0", "--members=1", "--ephemeral", &audit];
    let up = Longshore::start(Path::new(env!("CARGO_BIN_EXE_longshore")), &arguments).expect("it starts");
    let mut connection = ApiClient::open(&up.kubeconfig).connect().await.expect("a connection");
    let (_, printed) = connection.raw(Method::GET, "/metrics", "").await.expect("an answer");
    let mut text = HEAD.to_owned();
    for row in rows(&String::from_utf8_lossy(&printed)) {
        let _ = writeln!(text, "{row}");
    }
    expect_file!["../../../../docs/reference/metrics.md"].assert_eq(&text);
}
