//! Installation files: the chart renders to the plain manifests and refuses unknown values, and every metric that
//! alerts and dashboard query exists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use checks::client::ApiClient;
use checks::process::Longshore;
use http::Method;
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
/// Names Helm, as `checks/helm/build` made it.
const HELM: &str = "LONGSHORE_HELM";

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(deploy(path)).expect("it is in the repository")
}

fn helm(words: &[&str]) -> Option<Output> {
    let Some(program) = std::env::var_os(HELM) else {
        checks::client_is_missing(&format!("there is no Helm: {HELM} does not name it"));
        return None;
    };
    Some(Command::new(program).args(words).output().expect("Helm starts"))
}

/// What the chart makes of these values.
fn rendered(settings: &[&str]) -> Option<Vec<Value>> {
    let chart = deploy("chart");
    let mut words = vec!["template", "longshore", chart.to_str().expect("a path"), "-n", "karmada-system"];
    words.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let output = helm(&words)?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(objects(&String::from_utf8(output.stdout).expect("text")))
}

fn objects(text: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
    let mut all: Vec<Value> = all.into_iter().filter(|object| !object.is_null()).collect();
    all.sort_by_key(|object| (object["kind"].to_string(), object["metadata"].to_string()));
    all
}

#[track_caller]
fn check(settings: &[&str], manifests: &str) {
    let Some(rendered) = rendered(settings) else { return };
    let expected = objects(&read(manifests));
    for (found, expected) in rendered.iter().zip(&expected) {
        assert_eq!(found, expected, "{:#}", found);
    }
    assert_eq!(rendered.len(), expected.len());
}

#[test]
fn the_chart_renders_to_the_manifests() {
    check(&["namespace.create=true"], "manifests/controllers.yaml");
    check(
        &["namespace.create=true", "controllers.enabled=false", "server.enabled=true"],
        "manifests/server.yaml",
    );
}

#[test]
fn helm_finds_nothing_wrong_with_the_chart() {
    let chart = deploy("chart");
    let Some(output) = helm(&["lint", "--strict", chart.to_str().expect("a path")]) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn values_decide() {
    let settings = [
        "controllers.replicas=5",
        "controllers.featureGates.StaticPolicy=true",
        "controllers.kubeconfigSecret=elsewhere",
        "controllers.webhookURL=https://10.0.0.5:9443",
        "server.enabled=true",
        "server.port=7000",
        "server.names={longshore.example}",
        "monitoring.enabled=true",
    ];
    let Some(objects) = rendered(&settings) else { return };
    let text = serde_json::to_string(&objects).expect("it serialises");
    for part in [
        r#""replicas":5"#,
        r#""--feature-gates=StaticPolicy=true""#,
        r#""--kubeconfig=/etc/longshore/kubeconfig""#,
        r#""secretName":"elsewhere""#,
        r#""--webhook-url=https://10.0.0.5:9443""#,
        r#""--port=7000""#,
        r#"longshore-server.karmada-system.svc,longshore.example""#,
        r#""kind":"ServiceMonitor""#,
        r#""kind":"PrometheusRule""#,
        r#""grafana_dashboard":"1""#,
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn unknown_values_are_refused() {
    let chart = deploy("chart");
    for setting in ["controllers.replicas=0", "controllers.replica=3", "controllers.webhookURL=http://x"] {
        let words = ["template", "longshore", chart.to_str().expect("a path"), "--set", setting];
        let Some(output) = helm(&words) else { return };
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains("schema"), "{setting}: {stderr}");
    }
}

/// The names of metrics in an expression of Prometheus: words that are neither functions nor labels.
fn metrics(expression: &str) -> BTreeSet<String> {
    let outside =
        regex::Regex::new(r#"\{[^}]*\}|\b(by|without)\s*\([^)]*\)|"[^"]*"|\[[^\]]*\]"#).expect("a pattern");
    let rest = outside.replace_all(expression, " ");
    let words = regex::Regex::new(r"[a-z_]+[a-z_0-9]*\s*\(?").expect("a pattern");
    let words = words.find_iter(&rest).map(|word| word.as_str().trim());
    words.filter(|word| !word.ends_with('(') && word.contains('_')).map(str::to_owned).collect()
}

fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("expr").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| expressions(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| expressions(value, found)),
        _ => {}
    }
}

#[tokio::test]
async fn everything_that_is_watched_is_measured() {
    let mut asked = Vec::new();
    expressions(&serde_json::from_str(&read("monitoring/dashboard.json")).expect("JSON"), &mut asked);
    objects(&read("monitoring/alerts.yaml")).iter().for_each(|object| expressions(object, &mut asked));
    assert!(asked.len() > 20, "{asked:?}");
    let server = Longshore::start(Path::new(BINARY), &["--port=0", "--members=1", "--ephemeral"]);
    let server = server.expect("it starts");
    let mut connection = ApiClient::open(&server.kubeconfig).connect().await.expect("a connection");
    let (_, text) = connection.raw(Method::GET, "/metrics", "").await.expect("an answer");
    let text = String::from_utf8_lossy(&text);
    let typed: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for expression in &asked {
        for metric in metrics(expression) {
            let family = metric.strip_suffix("_bucket").unwrap_or(&metric);
            assert!(typed.contains(family), "{metric} of {expression} is not measured: {typed:?}");
        }
    }
}

#[test]
fn metrics_are_told_from_labels_and_functions() {
    let expected = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    let check =
        |expression: &str, names: &[&str]| assert_eq!(metrics(expression), expected(names), "{expression}");
    check("max by (member_cluster) (cluster_ready_state) == 0", &["cluster_ready_state"]);
    check("histogram_quantile(0.99, sum by (le) (rate(a_b_bucket[5m])))", &["a_b_bucket"]);
    check("sum(x_y{some_label=\"a_b\"}) / count(z_z)", &["x_y", "z_z"]);
}
