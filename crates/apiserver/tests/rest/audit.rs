//! The audit log, and that it contains no Secrets.

use std::sync::Arc;

use apiserver::Security;
use apiserver::audit::{Audit, AuditFile, AuditPolicy, Rotation};
use apiserver::authn::StaticTokens;
use serde_json::{Value, json};
use store::Store;

use crate::client::{Ask, Server};

struct Written {
    server: Server,
    path: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

impl Written {
    async fn new(rules: &str) -> Self {
        let folder = tempfile::tempdir().expect("there is room for a temporary directory");
        let path = folder.path().join("audit.log");
        let policy = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: {rules}");
        let policy = AuditPolicy::parse(&policy).expect("a policy");
        let file = AuditFile::open(&path, Rotation::default()).expect("a file");
        let security = Security {
            tokens: StaticTokens::parse("t-root,root,u-0,\"system:masters\"\nt-eve,eve,u-1").expect("tokens"),
            roles: Some(Vec::new()),
            audit: Some(Arc::new(Audit::new(policy, file))),
            ..Security::bare().expect("keys")
        };
        Self { server: Server::with(Store::in_memory(), Some(security)).await, path, _folder: folder }
    }

    fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.path).expect("the log");
        text.lines().map(|line| serde_json::from_str(line).expect("a line is an event")).collect()
    }
}

#[tokio::test]
async fn audit_events_name_user_verb_object_and_status() {
    let written = Written::new("[{ level: RequestResponse }]").await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({ "metadata": { "name": "m" }, "data": { "k": "v" } });
    let ask = Ask::post(maps, map).token("t-root").header("user-agent", "test/1");
    written.server.ask_bare(ask).await.expect(201);
    let events = written.events();
    let stages: Vec<&str> = events.iter().filter_map(|event| event["stage"].as_str()).collect();
    assert_eq!(stages, ["RequestReceived", "ResponseComplete"]);
    let event = &events[1];
    assert_eq!(events[0]["auditID"], event["auditID"]);
    assert_eq!((&event["kind"], &event["apiVersion"]), (&json!("Event"), &json!("audit.k8s.io/v1")));
    assert_eq!((&event["verb"], &event["requestURI"]), (&json!("create"), &json!(maps)));
    assert_eq!(event["user"]["username"], "root");
    assert_eq!(event["userAgent"], "test/1");
    assert_eq!(
        event["objectRef"],
        json!({ "resource": "configmaps", "namespace": "default", "apiVersion": "v1", "name": "m" })
    );
    assert_eq!(event["responseStatus"], json!({ "metadata": {}, "code": 201 }));
    assert_eq!(event["requestObject"]["data"]["k"], "v");
    assert_eq!(event["responseObject"]["data"]["k"], "v");
    assert_eq!(event["annotations"]["authorization.k8s.io/decision"], "allow");
}

#[tokio::test]
async fn refusals_and_impersonation_are_audited() {
    let written = Written::new("[{ level: Metadata }]").await;
    let refused = written.server.ask_bare(Ask::get("/api/v1/secrets").token("t-eve")).await;
    let ask = Ask::get("/api/v1/pods").token("t-root").header("impersonate-user", "eve");
    written.server.ask_bare(ask).await.expect(403);
    let events = written.events();
    assert_eq!(events[1]["responseStatus"]["message"], refused.body["message"]);
    assert_eq!(events[1]["responseStatus"]["code"], 403);
    assert_eq!(events[1]["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(events[3]["user"]["username"], "root");
    assert_eq!(events[3]["impersonatedUser"]["username"], "eve");
}

#[tokio::test]
async fn no_value_of_a_secret_is_written_down_whatever_the_policy_says() {
    let written = Written::new("[{ level: RequestResponse }]").await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "k": "hidden" } });
    written.server.ask_bare(Ask::post(secrets, secret).token("t-root")).await.expect(201);
    let patch = json!({ "stringData": { "k": "hidden" } });
    written.server.ask_bare(Ask::merge(&format!("{secrets}/s"), patch).token("t-root")).await.expect(200);
    written.server.ask_bare(Ask::get(secrets).token("t-root")).await.expect(200);
    let account = json!({ "metadata": { "name": "robot" } });
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    written.server.ask_bare(Ask::post(accounts, account).token("t-root")).await.expect(201);
    let made = written
        .server
        .ask_bare(Ask::post(&format!("{accounts}/robot/token"), json!({})).token("t-root"))
        .await;
    let token = made.expect(201)["status"]["token"].as_str().expect("a token").to_owned();
    let review = json!({ "spec": { "token": token } });
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    written.server.ask_bare(Ask::post(reviews, review).token("t-root")).await.expect(201);
    let log = std::fs::read_to_string(&written.path).expect("the log");
    for hidden in ["hidden", "aGlkZGVu", token.as_str(), "t-root"] {
        assert!(!log.contains(hidden), "{hidden} is in the log");
    }
    assert_eq!(log.lines().count(), 12);
}

#[tokio::test]
async fn a_watch_is_written_down_when_it_begins_and_ends() {
    let written = Written::new("[{ level: Metadata, omitStages: [RequestReceived] }]").await;
    let ask = Ask::get("/api/v1/configmaps?watch=1&timeoutSeconds=1").token("t-root");
    written.server.ask_bare(ask).await.expect(200);
    let events = written.events();
    let stages: Vec<&str> = events.iter().filter_map(|event| event["stage"].as_str()).collect();
    assert_eq!(stages, ["ResponseStarted", "ResponseComplete"]);
    assert_eq!(events[0]["verb"], "watch");
}

#[tokio::test]
async fn the_name_of_what_is_created_is_written_down() {
    let written = Written::new("[{ level: Metadata, omitStages: [RequestReceived] }]").await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let generated = json!({ "metadata": { "generateName": "job-" } });
    let made = written.server.ask_bare(Ask::post(maps, generated).token("t-root")).await.expect(201);
    let named = json!({ "metadata": { "name": "m" } });
    written.server.ask_bare(Ask::post(maps, named.clone()).token("t-root")).await.expect(201);
    written.server.ask_bare(Ask::post(maps, named).token("t-root")).await.expect(409);
    let names: Vec<Value> = written.events().iter().map(|event| event["objectRef"]["name"].clone()).collect();
    assert_eq!(names, [made["metadata"]["name"].clone(), json!("m"), json!("m")]);
}

#[tokio::test]
async fn refusals_of_unauthenticated_clients_are_sampled_and_bounded() {
    let written = Written::new("[{ level: Metadata }]").await;
    let long = format!("/api/v1/secrets?fieldSelector={}", "x".repeat(20_000));
    for _ in 0..300 {
        written.server.ask_bare(Ask::get(&long).header("user-agent", &"a".repeat(5_000))).await.expect(401);
    }
    let events = written.events();
    assert!((100..200).contains(&events.len()), "{} events", events.len());
    let first = &events[0];
    assert_eq!((&first["stage"], &first["verb"]), (&json!("ResponseComplete"), &json!("list")));
    assert_eq!(first["responseStatus"]["code"], 401);
    assert_eq!(first["user"]["username"], "system:anonymous");
    assert_eq!(first["objectRef"]["resource"], "secrets");
    assert!(events.iter().all(|event| event.to_string().len() < 4_000), "a line is short");
    let metrics = written.server.ask_bare(Ask::get("/metrics").token("t-root")).await.text;
    let dropped =
        metrics.lines().find_map(|line| line.strip_prefix("apiserver_audit_refusals_dropped_total "));
    let dropped: usize = dropped.and_then(|count| count.parse().ok()).expect("it is counted");
    assert_eq!(dropped + events.len(), 300);
}

#[tokio::test]
async fn control_characters_are_escaped() {
    let written = Written::new("[{ level: Metadata }]").await;
    let user = "eve\n{\"kind\":\"Event\"}\u{1b}[2J\u{9b}31m\u{7f}\u{2028}";
    // A header cannot say it, but a role binding, a token or a certificate can: here it is the object's name.
    let name = json!({ "metadata": { "name": user } });
    let maps = "/api/v1/namespaces/default/configmaps";
    written.server.ask_bare(Ask::post(maps, name).token("t-root")).await.expect(422);
    let log = std::fs::read_to_string(&written.path).expect("the log");
    assert!(log.chars().all(|character| character == '\n' || !character.is_control()), "{log:?}");
    assert!(!log.contains('\u{2028}'), "{log:?}");
    assert_eq!(written.events().last().expect("an event")["objectRef"]["name"], user);
}
