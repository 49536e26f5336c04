//! A tenant who owns one namespace tries to see or touch another's, by every path that a request can take.

use http::Method;
use http_body_util::BodyExt as _;
use serde_json::json;

use crate::client::{Ask, Server};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Two namespaces, `mine` of the tenant and `theirs`, each with a secret and a map.
async fn two_tenants() -> Server {
    let server = Server::secured("t-eve,eve,u-1\n").await;
    for namespace in ["mine", "theirs"] {
        server.namespace(namespace).await;
        let object =
            json!({ "metadata": { "name": "s", "labels": { "app": "x" } }, "stringData": { "k": "hidden" } });
        server.ask(Ask::post(&format!("/api/v1/namespaces/{namespace}/secrets"), object)).await.expect(201);
        let object = json!({ "metadata": { "name": "m", "labels": { "app": "x" } } });
        server
            .ask(Ask::post(&format!("/api/v1/namespaces/{namespace}/configmaps"), object))
            .await
            .expect(201);
    }
    let binding = json!({
        "metadata": { "name": "eve" },
        "roleRef": { "kind": "ClusterRole", "name": "admin", "apiGroup": "rbac.authorization.k8s.io" },
        "subjects": [{ "kind": "User", "name": "eve" }],
    });
    server.ask(Ask::post(&format!("{RBAC}/namespaces/mine/rolebindings"), binding)).await.expect(201);
    server
}

#[tokio::test]
async fn no_path_leads_into_another_namespace() {
    let server = two_tenants().await;
    let mine = server.ask_bare(Ask::get("/api/v1/namespaces/mine/secrets/s").token("t-eve")).await;
    assert_eq!(mine.code, 200, "her own is hers");
    let paths = [
        "/api/v1/secrets",
        "/api/v1/secrets?watch=true",
        "/api/v1/secrets?fieldSelector=metadata.namespace%3Dmine",
        "/api/v1/secrets?fieldSelector=metadata.name%3Ds",
        "/api/v1/secrets?labelSelector=app%3Dx",
        "/api/v1/secrets/s",
        "/api/v1/namespaces/theirs/secrets",
        "/api/v1/namespaces/theirs/secrets/s",
        "/api/v1/namespaces/theirs/secrets?watch=1",
        "/api/v1/namespaces/theirs/secrets/s?watch=1",
        "/api/v1/namespaces/theirs",
        "/api/v1/namespaces",
        "/api/v1/watch/secrets",
        "/api/v1/watch/namespaces/theirs/secrets",
        "/api/v1/namespaces//secrets",
        "/api/v1/namespaces/%2e%2e/secrets",
        "/api/v1/namespaces/mine%2F..%2Ftheirs/secrets/s",
        "/api/v1/namespaces/theirs%2Fsecrets%2Fs",
        "/api/v1/namespaces/mine/../theirs/secrets/s",
        "/api/v1/namespaces/theirs%00/secrets",
        "/api/v1/namespaces/THEIRS/secrets/s",
        "/api/v1/nodes",
        "/api/v1/persistentvolumes",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/metrics",
    ];
    for path in paths {
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let answer = server.ask_bare(Ask::new(method.clone(), path).token("t-eve")).await;
            assert!(matches!(answer.code, 403 | 404), "{method} {path}: {} {}", answer.code, answer.text);
            assert!(!answer.text.contains("aGlkZGVu"), "{method} {path} shows a secret");
        }
    }
}

#[tokio::test]
async fn names_that_look_like_paths_stay_names() {
    let server = two_tenants().await;
    let tries =
        ["..%2Ftheirs%2Fs", "%2E%2E%2Ftheirs%2Fs", "s%2F..%2F..%2Ftheirs%2Fs", "theirs%2Fs", "%2Ftheirs%2Fs"];
    for name in tries {
        let path = format!("/api/v1/namespaces/mine/secrets/{name}");
        for method in [Method::GET, Method::DELETE] {
            let answer = server.ask_bare(Ask::new(method, &path).token("t-eve")).await;
            assert_eq!(answer.code, 404, "{name}: {}", answer.text);
        }
        let object = json!({ "metadata": { "name": name.replace("%2F", "/") } });
        let answer =
            server.ask_bare(Ask::post("/api/v1/namespaces/mine/secrets", object).token("t-eve")).await;
        assert_eq!(answer.code, 422, "{name}: {}", answer.text);
    }
    let elsewhere = json!({ "metadata": { "name": "new", "namespace": "theirs" } });
    let answer =
        server.ask_bare(Ask::post("/api/v1/namespaces/mine/secrets", elsewhere).token("t-eve")).await;
    assert_eq!(answer.code, 400, "{}", answer.text);
    server.ask(Ask::get("/api/v1/namespaces/theirs/secrets/new")).await.expect(404);
    server.ask(Ask::get("/api/v1/namespaces/theirs/secrets/s")).await.expect(200);
}

#[tokio::test]
async fn her_lists_watches_and_deletions_end_at_her_border() {
    let server = two_tenants().await;
    let selectors = [
        "",
        "?labelSelector=app%3Dx",
        "?fieldSelector=metadata.namespace%3Dtheirs",
        "?fieldSelector=metadata.namespace!%3Dmine",
    ];
    for selector in selectors {
        let list = server
            .ask_bare(Ask::get(&format!("/api/v1/namespaces/mine/secrets{selector}")).token("t-eve"))
            .await;
        assert!(!list.text.contains("theirs") || list.code != 200, "{selector}: {}", list.text);
    }
    let Server::InProcess { server: service, .. } = &server else { panic!("a server in this process") };
    let watch = "/api/v1/namespaces/mine/configmaps?watch=1&fieldSelector=metadata.namespace!%3Dx";
    let request = http::Request::get(watch).header("authorization", "Bearer t-eve");
    let request = request.body(http_body_util::Full::new(bytes::Bytes::new())).expect("a request");
    let mut body = tower::ServiceExt::oneshot(service.clone(), request).await.expect("an answer").into_body();
    for namespace in ["theirs", "mine"] {
        let object = json!({ "metadata": { "name": "fresh" } });
        server
            .ask(Ask::post(&format!("/api/v1/namespaces/{namespace}/configmaps"), object))
            .await
            .expect(201);
    }
    let mut seen = String::new();
    while !seen.contains("\"fresh\"") {
        let frame = body.frame().await.expect("more").expect("a frame");
        seen.push_str(&String::from_utf8_lossy(&frame.into_data().expect("data")));
    }
    assert!(!seen.contains("theirs"), "{seen}");
    let gone = server
        .ask_bare(Ask::delete("/api/v1/namespaces/mine/configmaps?labelSelector=app").token("t-eve"))
        .await;
    assert_eq!(gone.code, 200);
    server.ask(Ask::get("/api/v1/namespaces/theirs/configmaps/m")).await.expect(200);
}

#[tokio::test]
async fn a_namespace_admin_cannot_escalate_to_the_cluster() {
    let server = two_tenants().await;
    let as_eve = async |ask: Ask, code: u16| {
        let answer = server.ask_bare(ask.token("t-eve")).await;
        assert_eq!(answer.code, code, "{}", answer.text);
    };
    let bind = |kind: &str, name: &str| {
        json!({
            "metadata": { "name": format!("b-{name}") },
            "roleRef": { "kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io" },
            "subjects": [{ "kind": "User", "name": "eve" }],
        })
    };
    let bindings = format!("{RBAC}/namespaces/mine/rolebindings");
    as_eve(Ask::post(&bindings, bind("ClusterRole", "cluster-admin")), 403).await;
    as_eve(Ask::post(&bindings, bind("ClusterRole", "edit")), 201).await;
    as_eve(Ask::post(&format!("{RBAC}/namespaces/theirs/rolebindings"), bind("ClusterRole", "view")), 403)
        .await;
    as_eve(Ask::post(&format!("{RBAC}/clusterrolebindings"), bind("ClusterRole", "view")), 403).await;
    let star = json!({ "metadata": { "name": "star" }, "rules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }] });
    as_eve(Ask::post(&format!("{RBAC}/namespaces/mine/roles"), star), 403).await;
    // She may act as her own robots, and they are no stronger than what is bound to them.
    let robot = Ask::get("/api/v1/namespaces/mine/secrets")
        .header("impersonate-user", "system:serviceaccount:mine:default");
    as_eve(robot, 403).await;
    let robot = Ask::get("/apis").header("impersonate-user", "system:serviceaccount:theirs:default");
    as_eve(robot, 403).await;
    as_eve(Ask::get("/apis").header("impersonate-user", "admin"), 403).await;
    let token = Ask::post("/api/v1/namespaces/theirs/serviceaccounts/default/token", json!({}));
    as_eve(token, 403).await;
}
