//! `longshore up` as a user meets it: what it prints, what it keeps, how it ends and how it fails.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use checks::client::ApiClient;
use checks::process::Longshore;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");

fn directory() -> TempDir {
    tempfile::tempdir().expect("there is room for a temporary directory")
}

fn start(data: &Path) -> Longshore {
    Longshore::start(
        Path::new(BINARY),
        &["--port=0", "--members=0", "--data-dir", data.to_str().expect("temporary paths are readable")],
    )
    .expect("it starts")
}

/// Runs `up` where it cannot start, and gives what it left.
fn refused(arguments: &[&str]) -> Output {
    Command::new(BINARY).arg("up").args(arguments).stdin(Stdio::null()).output().expect("it runs")
}

/// An error is one line that says what failed and one that says what to do.
#[track_caller]
fn check_refused(arguments: &[&str], what: &str, hint: &str) {
    let output = refused(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "stdout is for data");
    assert_eq!(lines.len(), 2, "{stderr}");
    assert!(lines[0].starts_with("error: ") && lines[0].contains(what), "{stderr}");
    assert!(lines[1].starts_with("hint: ") && lines[1].contains(hint), "{stderr}");
}

#[tokio::test]
async fn it_says_where_it_is_and_what_to_type_next() {
    let home = directory();
    let data = home.path().join("data");
    let server = start(&data);
    let said = server.said();
    assert_eq!(
        said[0],
        format!("Longshore is up on https://{} (data in {}).", server.address, data.display())
    );
    assert!(said.contains(&format!("  export KUBECONFIG={}", data.join("kubeconfig").display())), "{said:?}");
    assert!(said.iter().any(|line| line.trim().starts_with("kubectl ")), "{said:?}");
    assert!(said.iter().any(|line| line.contains("Ctrl-C")), "{said:?}");
    let text = std::fs::read_to_string(&server.kubeconfig).unwrap();
    assert!(text.contains("current-context: longshore\n"), "{text}");
    let (status, version) = ApiClient::open(&server.kubeconfig).request(Method::GET, "/version", "").await;
    assert_eq!((status, &version["major"]), (StatusCode::OK, &json!("1")));
    assert_eq!(server.interrupt(), Some(0));
}

#[test]
fn it_says_goodbye_and_tells_the_first_steps_once() {
    let home = directory();
    let data = home.path().join("data");
    let goodbye = start(&data).farewell();
    assert!(goodbye.contains("Longshore has stopped. Everything is kept in "), "{goodbye}");
    let again = start(&data);
    let said = again.said();
    assert!(said.contains(&format!("  export KUBECONFIG={}", data.join("kubeconfig").display())), "{said:?}");
    assert!(said.iter().all(|line| !line.contains("kubectl ")), "{said:?}");
}

#[test]
fn only_the_owner_can_read_what_it_keeps() {
    let home = directory();
    let data = home.path().join("data");
    let server = start(&data);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&server.kubeconfig), 0o600);
    assert_eq!(mode(&data.join("ca.key")), 0o600);
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("store")), 0o700);
}

#[tokio::test]
async fn a_second_start_finds_everything_as_it_was() {
    let home = directory();
    let first = start(home.path());
    let api_client = ApiClient::open(&first.kubeconfig);
    let path = "/api/v1/namespaces/default/configmaps";
    let body = json!({ "metadata": { "name": "a" }, "data": { "colour": "blue" } }).to_string();
    let (status, created) = api_client.request(Method::POST, path, body).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let definition = json!({
        "metadata": { "name": "ships.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "plural": "ships", "kind": "Ship" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                           "schema": { "openAPIV3Schema": { "type": "object" } } }],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (status, answer) = api_client.request(Method::POST, definitions, definition.to_string()).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
    let authority = std::fs::read(home.path().join("ca.crt")).unwrap();
    let mut before = everything(&api_client).await;
    // Every namespace gets its config map and service account some moments after it is there.
    while before[..3].iter().any(|list| list.as_array().map_or(0, Vec::len) < NAMESPACES.len()) {
        before = everything(&api_client).await;
    }
    assert_eq!(first.interrupt(), Some(0));

    let second = start(home.path());
    assert_eq!(std::fs::read(home.path().join("ca.crt")).unwrap(), authority, "clients go on trusting it");
    let api_client = ApiClient::open(&second.kubeconfig);
    assert_eq!(everything(&api_client).await, before);
    let (status, list) = api_client.request(Method::GET, "/apis/example.com/v1/ships", "").await;
    assert_eq!((status, &list["kind"]), (StatusCode::OK, &json!("ShipList")));
}

/// The namespaces that every control plane has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Every object that a fresh server and this test make, without the revision of the lists.
async fn everything(api_client: &ApiClient) -> Vec<Value> {
    let mut lists = Vec::new();
    for path in [
        "/api/v1/namespaces",
        "/api/v1/configmaps",
        "/api/v1/serviceaccounts",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ] {
        lists.push(api_client.request(Method::GET, path, "").await.1["items"].take());
    }
    lists
}

#[tokio::test]
async fn ctrl_c_ends_it_cleanly_while_clients_watch() {
    let home = directory();
    let server = start(home.path());
    let api_client = ApiClient::open(&server.kubeconfig);
    let mut bodies = Vec::new();
    for _ in 0..3 {
        let mut connection = api_client.connect().await.unwrap();
        let request = Request::get("/api/v1/namespaces?watch=true").header("host", "localhost");
        let response = connection.send(request.body(Full::default()).unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let mut body = response.into_body();
        body.frame().await.expect("the namespaces that are there").expect("come first");
        bodies.push((connection, body));
    }
    let code = tokio::task::spawn_blocking(|| server.interrupt()).await.unwrap();
    assert_eq!(code, Some(0));
    for (_connection, mut body) in bodies {
        while let Some(frame) = body.frame().await {
            frame.expect("the watch ends and does not break");
        }
    }
}

#[test]
fn being_told_to_end_is_no_error_either() {
    let home = directory();
    assert_eq!(start(home.path()).terminate(), Some(0));
}

#[test]
fn ephemeral_leaves_nothing_behind() {
    let home = directory();
    let server =
        Longshore::start_in(Path::new(BINARY), &["--port=0", "--members=0", "--ephemeral"], home.path())
            .unwrap();
    assert!(server.said()[0].contains("nothing is kept after it stops"), "{:?}", server.said());
    assert!(server.kubeconfig.starts_with(home.path()), "{:?}", server.kubeconfig);
    assert_eq!(server.interrupt(), Some(0));
    let left: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn other_machines_reach_it_by_the_names_it_is_given() {
    let home = directory();
    let data = home.path().to_str().expect("temporary paths are readable");
    let names = "--tls-san=longshore-server.karmada-system.svc,10.0.0.5";
    let arguments = ["--port=0", "--members=0", "--bind-address=0.0.0.0", names, "--data-dir", data];
    let server = Longshore::start(Path::new(BINARY), &arguments).expect("it starts");
    assert!(server.address.starts_with("127.0.0.1:"), "{}", server.address);
    let warned = "Other machines can reach it; clients need credentials.";
    assert!(server.said().iter().any(|line| line == warned), "{:?}", server.said());
    for name in ["longshore-server.karmada-system.svc", "10.0.0.5", "localhost"] {
        let api_client = ApiClient::open(&server.kubeconfig).called(name);
        let (status, _) = api_client.request(Method::GET, "/api/v1/namespaces", "").await;
        assert_eq!(status, StatusCode::OK, "{name}");
    }
    assert!(ApiClient::open(&server.kubeconfig).called("elsewhere.example").connect().await.is_err());
    let port = server.address.rsplit(':').next().expect("a port").to_owned();
    let elsewhere = Command::new(BINARY)
        .args(["kubeconfig", "--data-dir", data, "--server", "https://longshore.example:6500"])
        .output()
        .expect("it runs");
    let printed = String::from_utf8_lossy(&elsewhere.stdout);
    assert!(printed.contains("server: https://longshore.example:6500\n"), "{printed}");
    assert!(!printed.contains(&port), "{printed}");
}

#[test]
fn a_name_that_no_certificate_can_have() {
    let home = directory();
    let output = refused(&["--port=0", "--tls-san=no name", "--data-dir", home.path().to_str().unwrap()]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("\"no name\""), "{stderr}");
}

#[test]
fn a_port_that_is_taken() {
    let home = directory();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let data = home.path().join("data");
    let arguments = ["--port", &port, "--data-dir", data.to_str().unwrap()];
    check_refused(&arguments, &format!("listen on 127.0.0.1:{port}: "), "--port");
}

#[test]
fn a_directory_that_cannot_be_written() {
    let home = directory();
    let file = home.path().join("file");
    std::fs::write(&file, "no directory").unwrap();
    let below = file.join("data");
    check_refused(&["--port=0", "--data-dir", below.to_str().unwrap()], "make directory", "--data-dir");
}

#[test]
fn two_processes_on_one_directory() {
    let home = directory();
    let first = start(home.path());
    let arguments = ["--port=0", "--data-dir", home.path().to_str().unwrap()];
    check_refused(&arguments, "open the store in", "stop the other `longshore up`");
    assert_eq!(first.interrupt(), Some(0), "the first one goes on");
}

#[test]
fn a_damaged_authority() {
    let home = directory();
    start(home.path()).interrupt();
    std::fs::write(home.path().join("ca.crt"), "no certificate").unwrap();
    let arguments = ["--port=0", "--data-dir", home.path().to_str().unwrap()];
    check_refused(&arguments, "ca.crt", "remove ca.crt and ca.key");
    assert_eq!(std::fs::read_to_string(home.path().join("ca.crt")).unwrap(), "no certificate", "it is kept");
}

#[tokio::test]
async fn a_damaged_store() {
    let home = directory();
    let server = start(home.path());
    let api_client = ApiClient::open(&server.kubeconfig);
    for number in 0..20 {
        let body = json!({ "metadata": { "name": format!("c{number}") } }).to_string();
        api_client.request(Method::POST, "/api/v1/namespaces/default/configmaps", body).await;
    }
    assert_eq!(server.interrupt(), Some(0));
    let store = home.path().join("store");
    let files = || {
        let entries = std::fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.metadata().is_ok_and(|data| data.len() > 100)).collect::<Vec<_>>()
    };
    for file in files() {
        let mut bytes = std::fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        std::fs::write(&file, bytes).unwrap();
    }
    let damaged: Vec<Vec<u8>> = files().iter().map(|file| std::fs::read(file).unwrap()).collect();
    let arguments = ["--port=0", "--data-dir", home.path().to_str().unwrap()];
    check_refused(&arguments, "open the store in", "nothing was changed");
    let after: Vec<Vec<u8>> = files().iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert_eq!(after, damaged, "what can be rescued is not touched");
}

const PATHS: [&str; 14] = [
    "/",
    "/api",
    "/apis",
    "/api/v1/namespaces",
    "/api/v1/namespaces/default/secrets?watch=true",
    "/apis/apps/v1/deployments",
    "/healthz",
    "/livez",
    "/metrics",
    "/readyz?verbose",
    "/version",
    "/openapi/v2",
    "/openapi/v3",
    "/no/such/path",
];

/// The paths that are open to unauthenticated clients: health and version.
const PUBLIC: [&str; 4] = ["/healthz", "/livez", "/readyz?verbose", "/version"];

/// Every path and method, and even a path that is no path, is closed, but for these.
async fn check_locked_out(api_client: &ApiClient, but_for: &[&str]) {
    for path in PATHS.into_iter().filter(|path| !but_for.contains(path)) {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            let (status, answer) = api_client.request(method.clone(), path, "{}").await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{method} {path}");
            let expected = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "Unauthorized", "reason": "Unauthorized", "code": 401,
            });
            assert_eq!(answer, expected, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn clients_without_a_certificate_are_rejected() {
    let home = directory();
    let server = start(home.path());
    let api_client = ApiClient::anonymous(&server.kubeconfig);
    check_locked_out(&api_client, &PUBLIC).await;
    let mut connection = api_client.connect().await.unwrap();
    for path in PUBLIC {
        let (status, _) = connection.raw(Method::GET, path, "").await.unwrap();
        assert_eq!(status, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn clients_with_a_foreign_certificate_are_rejected() {
    let (home, abroad) = (directory(), directory());
    let (server, foreign) = (start(home.path()), start(abroad.path()));
    check_locked_out(&ApiClient::with_credentials_of(&server.kubeconfig, &foreign.kubeconfig), &[]).await;
}

#[tokio::test]
async fn metrics_are_for_those_who_are_let_in() {
    let home = directory();
    let server = start(home.path());
    let mut connection = ApiClient::open(&server.kubeconfig).connect().await.unwrap();
    connection.raw(Method::GET, "/version", "").await.unwrap();
    let (status, body) = connection.raw(Method::GET, "/metrics", "").await.unwrap();
    let text = String::from_utf8_lossy(&body);
    assert_eq!(status, StatusCode::OK, "{text}");
    for line in ["# TYPE workqueue_depth gauge", "# TYPE apiserver_request_total counter"] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    assert!(text.contains("workqueue_depth{name=\"detector\"} "), "{text}");
    assert!(text.contains("\nlongshore_store_revision "), "{text}");
}

#[test]
fn feature_gates_that_differ_are_told() {
    let home = directory();
    let data = home.path().to_str().unwrap();
    let gates = "--feature-gates=StaticPolicy=true,Failover=true";
    let arguments = ["--port=0", "--members=0", gates, "--data-dir", data];
    let server = Longshore::start(Path::new(BINARY), &arguments).unwrap();
    let told: Vec<&String> = server.said().iter().filter(|line| line.contains("gates")).collect();
    assert_eq!(told, ["Feature gates: StaticPolicy=true."]);
}

#[test]
fn an_unknown_feature_gate() {
    let output = refused(&["--feature-gates=PolicyPreemption=true"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("unknown feature gate \"PolicyPreemption\""), "{stderr}");
    assert!(stderr.contains("PropagationPolicyPreemption, "), "{stderr}");
}

#[test]
fn what_is_left_out_and_cannot_be_read() {
    for (flag, why) in [
        ("--skipped-propagating-namespaces=team-(", "\"team-(\" is not a regular expression"),
        ("--skipped-propagating-apis=apps/Deployment", "\"apps/Deployment\" is not of the form group, "),
    ] {
        let output = refused(&[flag]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(why), "{stderr}");
    }
}

fn print_kubeconfig(arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.arg("kubeconfig").args(arguments).stdin(Stdio::null()).output().expect("it runs")
}

#[tokio::test]
async fn one_context_is_a_kubeconfig_of_its_own() {
    let home = directory();
    let data = home.path().join("data");
    let data = data.to_str().unwrap();
    let server =
        Longshore::start(Path::new(BINARY), &["--port=0", "--members=2", "--data-dir", data]).unwrap();
    let check = |name: Option<&str>, expected: &str| {
        let arguments: Vec<&str> = ["--data-dir", data].into_iter().chain(name).collect();
        let output = print_kubeconfig(&arguments);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains(&format!("current-context: {expected}\n")), "{text}");
        assert_eq!(text.matches("server: ").count(), 1, "{text}");
        let file = home.path().join(expected);
        std::fs::write(&file, text).unwrap();
        ApiClient::open(&file)
    };
    let control = check(None, "longshore");
    assert_eq!(control.request(Method::GET, "/apis/cluster.karmada.io", "").await.0, StatusCode::OK);
    let member = check(Some("member2"), "member2");
    let (_, nodes) = member.request(Method::GET, "/api/v1/nodes", "").await;
    assert_eq!(nodes["items"][0]["metadata"]["name"], "member2-node1");
    let output = print_kubeconfig(&["member3", "--data-dir", data]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("\"member3\""), "{stderr}");
    assert!(stderr.ends_with("hint: there are longshore, member1, member2\n"), "{stderr}");
    drop(server);
}

#[test]
fn a_kubeconfig_before_the_first_start() {
    let home = directory();
    let output = print_kubeconfig(&["--data-dir", home.path().to_str().unwrap()]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("error: read "), "{stderr}");
    assert!(stderr.contains("\nhint: start `longshore up` first"), "{stderr}");
}

/// A policy that selects all Services takes that of a user and not that of the API server.
#[tokio::test]
async fn the_service_of_the_api_server_is_there_and_no_template() {
    let server = Longshore::start(Path::new(BINARY), &["--port=0", "--members=1", "--ephemeral"]).unwrap();
    let control = ApiClient::open(&server.kubeconfig);
    let member = ApiClient::of_context(&server.kubeconfig, "member1");
    let services = "/api/v1/namespaces/default/services";
    let own = format!("{services}/kubernetes");
    for api_client in [&control, &member] {
        until(api_client, &own, |service| service["spec"]["ports"][0]["port"] == 443).await;
    }
    let uid = control.request(Method::GET, &own, "").await.1["metadata"]["uid"].take();
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
        "metadata": { "name": "services" },
        "spec": {
            "resourceSelectors": [{ "apiVersion": "v1", "kind": "Service" }],
            "placement": { "clusterAffinity": { "clusterNames": ["member1"] } },
        },
    });
    let policies = "/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies";
    assert!(control.request(Method::POST, policies, policy.to_string()).await.0.is_success());
    let web = json!({ "metadata": { "name": "web" }, "spec": { "ports": [{ "port": 80 }] } });
    assert!(control.request(Method::POST, services, web.to_string()).await.0.is_success());
    until(&member, &format!("{services}/web"), |service| service["spec"]["ports"][0]["port"] == 80).await;
    let (_, service) = control.request(Method::GET, &own, "").await;
    assert_eq!(service["metadata"]["annotations"], Value::Null, "it is claimed: {service}");
    assert!(control.request(Method::DELETE, &own, "").await.0.is_success());
    until(&control, &own, |service| {
        service["metadata"]["uid"].is_string() && service["metadata"]["uid"] != uid
    })
    .await;
}

async fn until(api_client: &ApiClient, path: &str, wanted: impl Fn(&Value) -> bool) {
    let begun = std::time::Instant::now();
    loop {
        let (_, answer) = api_client.request(Method::GET, path, "").await;
        if wanted(&answer) {
            return;
        }
        assert!(begun.elapsed().as_secs() < 30, "{path}: {answer}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
