//! Values of Secrets never leak: not into output or saved files of any command, nor into warnings, events, metrics or
//! logs at any level.

use base64::Engine as _;
use checks::client::ApiClient;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::terminal::{Terminal, policy, run};

/// Secret values that no output may contain, in plain text or in base64 as in `data`.
const VALUES: [&str; 4] =
    ["hunter-Zq7vXw-data", "hunter-Zq7vXw-string", "hunter-Zq7vXw-next", "hunter-Zq7vXw-broken"];

/// Everything that says something about a Secret that is propagated.
const LINES: [&str; 28] = [
    "plan -f next.yaml",
    "plan -f next.yaml --detailed",
    "plan -f next.yaml -o json",
    "plan -f next.yaml -o yaml",
    "plan -f next.yaml --save next.plan",
    "plan -f broken.yaml",
    "plan -f op.yaml",
    "plan -f move.yaml -o json --save move.plan",
    "plan --delete secret/key -o yaml --save gone.plan",
    "plan --restart -o json",
    "why secret/key",
    "why secret/key -C member2",
    "why secret/key -o json",
    "why secret/key -o yaml",
    "status",
    "status -o json",
    "get secrets",
    "get secrets -o wide",
    "get secret key -o json",
    "get secret key -o yaml",
    "rollout status pp -o json",
    "rollout history pp -o yaml",
    "suspend secret/key",
    "resume secret/key --yes",
    "reconcile secret/key --yes",
    "reconcile all -l a=b --dry-run",
    "cordon member2",
    "uncordon member2",
];

fn encoded(value: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(value)
}

#[track_caller]
fn hides(what: &str, text: &str) {
    for value in VALUES {
        for form in [value.to_owned(), encoded(value)] {
            let Some(place) = text.find(&form) else { continue };
            let start = text[..place].char_indices().rev().nth(300).map_or(0, |(start, _)| start);
            panic!("{what} shows {form}: …{}", &text[start..place + form.len()]);
        }
    }
}

/// The Secret as `kubectl apply` writes it, with a copy of itself.
fn secret(name: &str, data: &str, string: &str) -> Value {
    let mut secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": "default" },
        "data": { "password": encoded(data) }, "stringData": { "token": string },
    });
    let copy = secret.to_string();
    secret["metadata"]["annotations"] = json!({ "kubectl.kubernetes.io/last-applied-configuration": copy });
    secret
}

fn propagating(clusters: &[&str]) -> Value {
    let mut policy = policy("pp", clusters);
    policy["spec"]["resourceSelectors"] = json!([{ "apiVersion": "v1", "kind": "Secret" }]);
    policy
}

fn overriding(path: &str) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
        "metadata": { "name": "op", "namespace": "default" },
        "spec": {
            "resourceSelectors": [{ "apiVersion": "v1", "kind": "Secret", "name": "key" }],
            "overrideRules": [{ "overriders": { "plaintext": [{ "path": path, "operator": "replace", "value": "eA==" }] } }],
        },
    })
}

fn write(terminal: &Terminal, name: &str, object: &Value) {
    std::fs::write(terminal.home.path().join(name), object.to_string()).expect("it can be written");
}

/// Runs it at the highest log level, and checks all output.
fn look(terminal: &Terminal, line: &str) -> String {
    let said = run(terminal.home.path(), line, &[("LONGSHORE_LOG", "trace")]);
    let all = said.stdout + &said.stderr;
    hides(&format!("longshore {line}"), &all);
    all
}

/// What is planned later on.
fn files(terminal: &Terminal) {
    write(terminal, "next.yaml", &secret("key", VALUES[2], VALUES[1]));
    write(terminal, "move.yaml", &propagating(&["member2"]));
    write(terminal, "op.yaml", &overriding("/data/nothing"));
    let broken = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "broken" },
        "data": { "password": VALUES[3] }, "stringData": [VALUES[3]],
    });
    write(terminal, "broken.yaml", &broken);
}

#[test]
fn values_are_in_nothing_that_is_printed_saved_or_logged() {
    let terminal = Terminal::open_loud(2);
    terminal.apply(&[
        propagating(&["member1"]),
        overriding("/data/password"),
        secret("key", VALUES[0], VALUES[1]),
    ]);
    terminal.until("get secret key", |said| said.stdout.contains("member1"));
    terminal.until("plan --restart", |said| said.code == Some(0));
    files(&terminal);
    for line in LINES {
        look(&terminal, line);
    }
    // The world moves: a saved plan says how, and is applied after all.
    terminal.apply(&[secret("second", VALUES[2], VALUES[1])]);
    terminal.until("get secret second", |said| said.stdout.contains("member1"));
    terminal.until("plan --restart", |said| said.code == Some(0));
    assert!(look(&terminal, "apply move.plan").contains("objects have changed since it was made"));
    look(&terminal, "plan -f move.yaml --save move.plan");
    assert!(look(&terminal, "apply move.plan").contains("configured"));
    look(&terminal, "plan -f op.yaml --save op.plan");
    look(&terminal, "apply op.plan");
    terminal.until("why secret/key -C member2", |said| said.stdout.contains("gets nothing new"));
    look(&terminal, "why secret/key");
    look(&terminal, "status");
    look(&terminal, "plan --delete secret/second --save gone.plan");
    look(&terminal, "apply gone.plan");
    for file in std::fs::read_dir(terminal.home.path()).expect("a directory").flatten() {
        if file.path().extension().is_some_and(|extension| extension == "plan") {
            let text = std::fs::read_to_string(file.path()).expect("it can be read");
            hides(&file.path().display().to_string(), &text);
        }
    }
    what_servers_tell(&terminal);
}

/// Warnings, metrics, events, bindings, policies, the log, and what is taken over from a member.
fn what_servers_tell(terminal: &Terminal) {
    let member = ApiClient::of_context(&terminal.server.kubeconfig, "member1");
    let control = ApiClient::open(&terminal.server.kubeconfig);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let own = secret("own", VALUES[0], VALUES[1]);
    let (status, _) =
        runtime.block_on(member.request(Method::POST, "/api/v1/namespaces/default/secrets", own.to_string()));
    assert!(status.is_success());
    look(terminal, "promote secret/own -C member1 --dry-run");
    let (_, events) = runtime.block_on(control.request(Method::GET, "/api/v1/events", ""));
    assert!(events["items"].as_array().is_some_and(|items| items.len() > 3), "{events}");
    hides("an event", &events.to_string());
    for collection in ["resourcebindings", "policies"] {
        let path = match collection {
            "policies" => "/apis/policy.karmada.io/v1alpha1/propagationpolicies".to_owned(),
            bindings => format!("/apis/work.karmada.io/v1alpha2/{bindings}"),
        };
        let (_, list) = runtime.block_on(control.request(Method::GET, &path, ""));
        hides(&path, &list.to_string());
    }
    runtime.block_on(warnings_and_metrics(&control));
    let logged = terminal.server.logged();
    assert!(logged.contains("TRACE"), "it logs everything: {}", &logged[..logged.len().min(2_000)]);
    hides("the log", &logged);
}

/// What kubectl prints beside the answer when the policy of Secrets is changed, and what monitoring reads.
async fn warnings_and_metrics(control: &ApiClient) {
    let policies = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies";
    // Another policy for the same Secrets, which the first one shadows.
    let mut rival = propagating(&["member1"]);
    rival["metadata"]["name"] = "rival".into();
    let request = Request::post(format!("{policies}?dryRun=All"))
        .header(http::header::HOST, "localhost")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Full::from(rival.to_string()))
        .expect("a well-formed request");
    let mut connection = control.connect().await.expect("a connection");
    let answer = connection.send(request).await.expect("an answer");
    let warnings = answer.headers().get_all(http::header::WARNING);
    let warnings: Vec<&str> = warnings.iter().filter_map(|warning| warning.to_str().ok()).collect();
    assert!(!warnings.is_empty());
    hides("a warning", &warnings.join("\n"));
    let mut connection = control.connect().await.expect("a connection");
    let (status, metrics) = connection.raw(Method::GET, "/metrics", "").await.expect("an answer");
    assert!(status.is_success());
    hides("a metric", &String::from_utf8_lossy(&metrics));
}
