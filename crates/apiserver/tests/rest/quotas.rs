//! ResourceQuotas of object counts: concurrent creates by any clients never exceed the limit, and the status of a
//! quota reports the usage.

use futures::future::join_all;
use serde_json::{Value, json};
use store::{Options, Store};

use crate::client::{Answer, Ask, Server};

const QUOTAS: &str = "/api/v1/namespaces/team/resourcequotas";
const QUOTA: &str = "/api/v1/namespaces/team/resourcequotas/q";
const SECRETS: &str = "/api/v1/namespaces/team/secrets";

fn named(name: &str) -> Value {
    json!({ "metadata": { "name": name } })
}

fn quota(hard: Value) -> Value {
    json!({ "metadata": { "name": "q" }, "spec": { "hard": hard } })
}

async fn create(server: &Server, collection: &str, name: &str) -> Answer {
    server.ask(Ask::post(collection, named(name))).await
}

/// A server with a namespace and a quota.
async fn limited(hard: Value) -> Server {
    let server = Server::on(Store::in_memory()).await;
    server.namespace("team").await;
    server.ask(Ask::post(QUOTAS, quota(hard))).await.expect(201);
    server
}

#[tokio::test]
async fn a_create_beyond_a_quota_is_refused_in_the_words_of_kubernetes() {
    let server = limited(json!({ "count/secrets": "2", "secrets": "5" })).await;
    create(&server, SECRETS, "a").await.expect(201);
    let dry = format!("{SECRETS}?dryRun=All");
    for name in ["b", "c", "d"] {
        create(&server, &dry, name).await.expect(201);
    }
    create(&server, SECRETS, "b").await.expect(201);
    let message = |name: &str| {
        format!(
            "secrets \"{name}\" is forbidden: exceeded quota: q, requested: count/secrets=1, \
             used: count/secrets=2, limited: count/secrets=2"
        )
    };
    let refused = create(&server, SECRETS, "c").await;
    assert_eq!(refused.refusal(), (403, "Forbidden", message("c").as_str()));
    assert_eq!(create(&server, &dry, "c").await.refusal(), (403, "Forbidden", message("c").as_str()));
    let applied = Ask::patch(
        "apply",
        &format!("{SECRETS}/c?fieldManager=test"),
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "c" } }),
    );
    assert_eq!(server.ask(applied).await.refusal(), (403, "Forbidden", message("c").as_str()));
    server.ask(Ask::merge(&format!("{SECRETS}/a"), json!({ "stringData": { "k": "v" } }))).await.expect(200);
    create(&server, "/api/v1/namespaces/default/secrets", "c").await.expect(201);
    server.ask(Ask::delete(&format!("{SECRETS}/a"))).await.expect(200);
    create(&server, SECRETS, "c").await.expect(201);
    create(&server, SECRETS, "d").await.expect(403);
}

#[tokio::test]
async fn a_quota_can_be_raised_lowered_joined_by_another_and_deleted() {
    let server = limited(json!({ "secrets": "1" })).await;
    let hard = |count: &str| Ask::merge(QUOTA, json!({ "spec": { "hard": { "secrets": count } } }));
    create(&server, SECRETS, "a").await.expect(201);
    create(&server, SECRETS, "b").await.expect(403);
    server.ask(hard("3")).await.expect(200);
    create(&server, SECRETS, "b").await.expect(201);
    server.ask(hard("1")).await.expect(200);
    let refused = create(&server, SECRETS, "c").await;
    assert!(refused.refusal().2.ends_with("requested: secrets=1, used: secrets=2, limited: secrets=1"));
    server.ask(Ask::delete(&format!("{SECRETS}/a"))).await.expect(200);
    create(&server, SECRETS, "c").await.expect(403);
    server.ask(hard("1k")).await.expect(200);
    let other = json!({ "metadata": { "name": "r" }, "spec": { "hard": { "count/secrets": "1" } } });
    server.ask(Ask::post(QUOTAS, other)).await.expect(201);
    let refused = create(&server, SECRETS, "c").await;
    assert!(refused.refusal().2.contains("exceeded quota: r, requested: count/secrets=1"), "{refused:?}");
    server.ask(Ask::delete(&format!("{QUOTAS}/r"))).await.expect(200);
    create(&server, SECRETS, "c").await.expect(201);
}

#[tokio::test]
async fn quotas_count_themselves_and_kinds_of_definitions() {
    let server = limited(json!({ "resourcequotas": "1", "count/widgets.example.com": "1" })).await;
    create(&server, QUOTAS, "another").await.expect(403);
    server.start_controllers();
    let used = |count: Value| {
        move |answer: &Answer| answer.body["status"]["used"]["count/widgets.example.com"] == count
    };
    server.until(QUOTA, used(Value::Null)).await;
    server.define(definition()).await;
    server.until(QUOTA, used("0".into())).await;
    let widgets = "/apis/example.com/v1/namespaces/team/widgets";
    create(&server, widgets, "a").await.expect(201);
    let refused = create(&server, widgets, "b").await;
    let message = "widgets.example.com \"b\" is forbidden: exceeded quota: q, requested: \
                   count/widgets.example.com=1, used: count/widgets.example.com=1, \
                   limited: count/widgets.example.com=1";
    assert_eq!(refused.refusal(), (403, "Forbidden", message));
    server.until(QUOTA, used("1".into())).await;
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    })
}

/// Pods that have ended leave room, and a Service may grow into a quota by an update.
#[tokio::test]
async fn quotas_count_active_pods_node_ports_and_load_balancers() {
    let server =
        limited(json!({ "pods": "1", "services.loadbalancers": "0", "services.nodeports": "1" })).await;
    let pods = "/api/v1/namespaces/team/pods";
    let pod = |name: &str| {
        let containers = json!([{ "name": "c", "image": "i" }]);
        Ask::post(pods, json!({ "metadata": { "name": name }, "spec": { "containers": containers } }))
    };
    server.ask(pod("a")).await.expect(201);
    server.ask(pod("b")).await.expect(403);
    let ended = json!({ "status": { "phase": "Succeeded" } });
    server.ask(Ask::merge(&format!("{pods}/a/status"), ended)).await.expect(200);
    server.ask(pod("b")).await.expect(201);
    server.ask(pod("c")).await.expect(403);
    let services = "/api/v1/namespaces/team/services";
    let spec = json!({ "ports": [{ "name": "a", "port": 80 }, { "name": "b", "port": 81 }] });
    server.ask(Ask::post(services, json!({ "metadata": { "name": "s" }, "spec": spec }))).await.expect(201);
    let kind = |kind: &str| Ask::merge(&format!("{services}/s"), json!({ "spec": { "type": kind } }));
    let refused = server.ask(kind("NodePort")).await;
    let message = "services \"s\" is forbidden: exceeded quota: q, requested: services.nodeports=2, \
                   used: services.nodeports=0, limited: services.nodeports=1";
    assert_eq!(refused.refusal(), (403, "Forbidden", message));
    let refused = server.ask(kind("LoadBalancer")).await;
    assert!(
        refused.refusal().2.contains("requested: services.loadbalancers=1,services.nodeports=2"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn the_status_reports_usage() {
    let server = limited(json!({ "count/secrets": "3", "configmaps": "9", "cpu": "1" })).await;
    server.start_controllers();
    let status = |used: Value, hard: Value| {
        let wanted = json!({ "hard": hard, "used": used });
        move |answer: &Answer| answer.body["status"] == wanted
    };
    let hard = json!({ "count/secrets": "3", "configmaps": "9", "cpu": "1" });
    // Every namespace has a ConfigMap of its own.
    server.until(QUOTA, status(json!({ "count/secrets": "0", "configmaps": "1" }), hard.clone())).await;
    join_all(["a", "b"].map(|name| create(&server, SECRETS, name))).await;
    server.until(QUOTA, status(json!({ "count/secrets": "2", "configmaps": "1" }), hard.clone())).await;
    server.ask(Ask::delete(&format!("{SECRETS}/a"))).await.expect(200);
    server.until(QUOTA, status(json!({ "count/secrets": "1", "configmaps": "1" }), hard)).await;
    let less = json!({ "spec": { "hard": { "configmaps": null, "cpu": null } } });
    server.ask(Ask::merge(QUOTA, less)).await.expect(200);
    let left = status(json!({ "count/secrets": "1" }), json!({ "count/secrets": "3" }));
    server.until(QUOTA, &left).await;
    let forged = json!({ "status": { "used": { "count/secrets": "0" } } });
    server.ask(Ask::merge(&format!("{QUOTA}/status"), forged)).await.expect(200);
    server.until(QUOTA, &left).await;
}

#[tokio::test]
async fn what_is_not_enforced_is_warned_about() {
    let server = Server::with_namespace("team").await;
    let answer = server.ask(Ask::post(QUOTAS, quota(json!({ "requests.cpu": "1", "pods": "4" })))).await;
    assert_eq!(answer.code, 201);
    assert!(answer.warnings[0].contains("spec.hard: requests.cpu is stored and not enforced"), "{answer:?}");
}

/// The server itself is not held to a quota: a namespace gets what every namespace has.
#[tokio::test]
async fn a_quota_takes_no_namespace_its_default_objects() {
    let server = limited(json!({ "configmaps": "0" })).await;
    server.start_controllers();
    let own = "/api/v1/namespaces/team/configmaps/kube-root-ca.crt";
    server.until(own, |answer| answer.code == 200).await;
    server.ask(Ask::delete(own)).await.expect(200);
    server.until(own, |answer| answer.code == 200).await;
    create(&server, "/api/v1/namespaces/team/configmaps", "own").await.expect(403);
}

/// Creates and deletes at once: never more than the quota allows, and all of it can be used. On disk, where writes share
/// syncs, and after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_creates_use_a_quota_up_and_never_exceed_it() {
    let folder = tempfile::tempdir().expect("there is room for a temporary directory");
    let open = || Store::open(folder.path(), Options::default()).expect("a store");
    let store = open();
    let server = Server::on(store.clone()).await;
    server.namespace("team").await;
    server.ask(Ask::post(QUOTAS, quota(json!({ "count/secrets": "10" })))).await.expect(201);
    for round in 0..5 {
        let ask = |number: usize| {
            let server = server.clone();
            tokio::spawn(async move {
                let name = format!("s-{round}-{number}");
                let answer = create(&server, SECRETS, &name).await;
                assert!(matches!(answer.code, 201 | 403), "{answer:?}");
                assert!(server.store().tally("/secrets", "team").entries <= 10);
                (answer.code == 201).then_some(name)
            })
        };
        let made = join_all((0..100).map(ask)).await;
        let made: Vec<String> = made.into_iter().filter_map(|name| name.expect("no panic")).collect();
        assert_eq!(server.store().tally("/secrets", "team").entries, 10, "in round {round}");
        for name in made.iter().take(6) {
            server.ask(Ask::delete(&format!("{SECRETS}/{name}"))).await.expect(200);
        }
    }
    for name in ["a", "b", "c", "d", "e"] {
        create(&server, SECRETS, name).await.expect(201);
    }
    drop(server);
    store.close().await.expect("it closes");
    let server = Server::on(open()).await;
    create(&server, SECRETS, "f").await.expect(201);
    let refused = create(&server, SECRETS, "g").await;
    assert!(refused.refusal().2.contains("used: count/secrets=10, limited: count/secrets=10"), "{refused:?}");
    server.start_controllers();
    server.until(QUOTA, |answer| answer.body["status"]["used"]["count/secrets"] == "10").await;
}
