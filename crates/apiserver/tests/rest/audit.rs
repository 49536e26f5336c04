//! What is written down about requests, and that secrets are not.

use std::sync::Arc;

use apiserver::Security;
use apiserver::audit::{Audit, AuditFile, AuditPolicy, Rotation};
use apiserver::auth::StaticTokens;
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
async fn who_did_what_with_what_outcome() {
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
        json!({ "resource": "configmaps", "namespace": "default", "apiVersion": "v1" })
    );
    assert_eq!(event["responseStatus"], json!({ "metadata": {}, "code": 201 }));
    assert_eq!(event["requestObject"]["data"]["k"], "v");
    assert_eq!(event["responseObject"]["data"]["k"], "v");
    assert_eq!(event["annotations"]["authorization.k8s.io/decision"], "allow");
}

#[tokio::test]
async fn refusals_and_whom_somebody_acts_as_are_written_down() {
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
