//! RBAC: roles, bindings, aggregation, and privilege escalation prevention.

use serde_json::{Value, json};

use crate::client::{Answer, Ask, Server};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const TOKENS: &str = "t-alice,alice,u-1,\"devs\"\nt-bob,bob,u-2\n";

async fn grant(server: &Server, place: &str, role: &str, user: &str) -> Answer {
    let kind = if place.is_empty() { "clusterrolebindings" } else { "rolebindings" };
    let binding = json!({
        "metadata": { "name": format!("{user}-{role}") },
        "roleRef": { "kind": "ClusterRole", "name": role, "apiGroup": "rbac.authorization.k8s.io" },
        "subjects": [{ "kind": "User", "name": user }],
    });
    server.ask(Ask::post(&format!("{RBAC}{place}/{kind}"), binding)).await
}

async fn role(server: &Server, name: &str, rules: Value) {
    let role = json!({ "metadata": { "name": name }, "rules": rules });
    server.renew(&format!("{RBAC}/clusterroles"), role).await;
}

#[tokio::test]
async fn a_role_counts_where_and_as_long_as_it_is_bound() {
    let server = Server::secured(TOKENS).await;
    server.namespace("a").await;
    server.namespace("b").await;
    let pods = |namespace: &str| Ask::get(&format!("/api/v1/namespaces/{namespace}/pods")).token("t-alice");
    let refused = server.ask_bare(pods("a")).await;
    let message = "pods is forbidden: User \"alice\" cannot list resource \"pods\" in API group \"\" in the namespace \"a\"";
    assert_eq!(refused.refusal(), (403, "Forbidden", message));
    assert_eq!(refused.body["details"], json!({ "kind": "pods" }));
    grant(&server, "/namespaces/a", "view", "alice").await.expect(201);
    assert_eq!(server.ask_bare(pods("a")).await.code, 200);
    assert_eq!(server.ask_bare(pods("b")).await.code, 403);
    let secrets = server.ask_bare(Ask::get("/api/v1/namespaces/a/secrets").token("t-alice")).await;
    assert_eq!(secrets.code, 403, "who may view sees no secrets");
    server.ask(Ask::delete(&format!("{RBAC}/namespaces/a/rolebindings/alice-view"))).await.expect(200);
    assert_eq!(server.ask_bare(pods("a")).await.code, 403);
    grant(&server, "", "view", "alice").await.expect(201);
    assert_eq!(server.ask_bare(pods("b")).await.code, 200);
    server.ask(Ask::delete(&format!("{RBAC}/clusterroles/view"))).await.expect(200);
    assert_eq!(server.ask_bare(pods("b")).await.code, 403, "the role behind the binding is gone");
}

#[tokio::test]
async fn a_changed_binding_counts_at_once() {
    let server = Server::secured(TOKENS).await;
    grant(&server, "", "view", "alice").await.expect(201);
    let path = format!("{RBAC}/clusterrolebindings/alice-view");
    let subjects =
        json!({ "subjects": [{ "kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io" }] });
    server.ask(Ask::merge(&path, subjects)).await.expect(200);
    assert_eq!(server.ask_bare(Ask::get("/api/v1/pods").token("t-alice")).await.code, 403);
    assert_eq!(server.ask_bare(Ask::get("/api/v1/pods").token("t-bob")).await.code, 200);
}

#[tokio::test]
async fn names_limit_what_a_rule_is_about() {
    let server = Server::secured(TOKENS).await;
    let rules = json!([{ "verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"] }]);
    role(&server, "one", rules).await;
    grant(&server, "", "one", "alice").await.expect(201);
    let maps = "/api/v1/namespaces/default/configmaps";
    for name in ["mine", "other"] {
        server.ask(Ask::post(maps, json!({ "metadata": { "name": name } }))).await.expect(201);
    }
    let check = async |path: &str, code: u16| {
        let answer = server.ask_bare(Ask::get(&format!("{maps}{path}")).token("t-alice")).await;
        assert_eq!(answer.code, code, "{path}: {}", answer.text);
        answer
    };
    check("/mine", 200).await;
    check("/other", 403).await;
    check("", 403).await;
    let seen = check("?fieldSelector=metadata.name%3Dmine", 200).await;
    assert_eq!(seen.body["items"].as_array().map(Vec::len), Some(1));
    check("?fieldSelector=metadata.name%3Dother", 403).await;
    check("?fieldSelector=metadata.name!%3Dmine", 403).await;
    check("?fieldSelector=metadata.namespace%3Da%5C,metadata.name%3Dmine", 403).await;
    check("?labelSelector=metadata.name%3Dmine", 403).await;
    check("?fieldSelector=metadata.name%3Dmine&fieldSelector=metadata.name%3Dother", 200).await;
}

#[tokio::test]
async fn roles_gather_the_rules_of_others() {
    let server = Server::secured(TOKENS).await;
    server.start_controllers();
    let widgets = json!([{ "verbs": ["get"], "apiGroups": ["example.io"], "resources": ["widgets"] }]);
    let labels = json!({ "rbac.authorization.k8s.io/aggregate-to-view": "true" });
    let added = json!({ "metadata": { "name": "widgets", "labels": labels }, "rules": widgets });
    server.ask(Ask::post(&format!("{RBAC}/clusterroles"), added)).await.expect(201);
    let has = |answer: &Answer| answer.text.contains("example.io");
    for role in ["view", "edit", "admin"] {
        server.until(&format!("{RBAC}/clusterroles/{role}"), has).await;
    }
    server.ask(Ask::delete(&format!("{RBAC}/clusterroles/widgets"))).await.expect(200);
    for role in ["view", "edit", "admin"] {
        server.until(&format!("{RBAC}/clusterroles/{role}"), |answer| !has(answer)).await;
    }
}

#[tokio::test]
async fn rbac_prevents_privilege_escalation() {
    let server = Server::secured(TOKENS).await;
    server.namespace("a").await;
    let rules = json!([
        { "verbs": ["*"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"] },
        { "verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"] },
    ]);
    // All of RBAC but the two verbs that set the checks aside.
    let mut rules = rules;
    rules[0]["verbs"] = json!(["create", "update", "patch", "get", "list", "delete"]);
    role(&server, "keeper", rules).await;
    grant(&server, "", "keeper", "alice").await.expect(201);
    let check = async |ask: Ask, code: u16, message: &str| {
        let answer = server.ask_bare(ask.token("t-alice")).await;
        assert_eq!((answer.code, answer.body["message"].as_str().unwrap_or_default()), (code, message));
    };
    let own = |verbs: Value| json!({ "metadata": { "name": "r" }, "rules": [{ "verbs": verbs, "apiGroups": [""], "resources": ["pods"] }] });
    let held = "is attempting to grant RBAC permissions not currently held:";
    let who = "user \"alice\" (groups=[\"devs\" \"system:authenticated\"])";
    let roles = format!("{RBAC}/namespaces/a/roles");
    let missing = "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"watch\"]}";
    let refused = format!("roles.rbac.authorization.k8s.io \"r\" is forbidden: {who} {held}\n{missing}");
    check(Ask::post(&roles, own(json!(["get", "delete", "watch"]))), 403, &refused).await;
    check(Ask::post(&roles, own(json!(["get", "list"]))), 201, "").await;
    let wider = json!([{ "op": "add", "path": "/rules/0/verbs/-", "value": "delete" }]);
    let missing = "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\"]}";
    let refused = format!("roles.rbac.authorization.k8s.io \"r\" is forbidden: {who} {held}\n{missing}");
    check(Ask::patch("json", &format!("{roles}/r"), wider), 403, &refused).await;
    let bind = |kind: &str, name: &str| {
        json!({
            "metadata": { "name": "b" },
            "roleRef": { "kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io" },
            "subjects": [{ "kind": "User", "name": "alice" }],
        })
    };
    let missing =
        "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}";
    let refused =
        format!("clusterrolebindings.rbac.authorization.k8s.io \"b\" is forbidden: {who} {held}\n{missing}");
    check(
        Ask::post(&format!("{RBAC}/clusterrolebindings"), bind("ClusterRole", "cluster-admin")),
        403,
        &refused,
    )
    .await;
    let bindings = format!("{RBAC}/namespaces/a/rolebindings");
    check(
        Ask::post(&bindings, bind("Role", "nowhere")),
        404,
        "rolebindings.rbac.authorization.k8s.io \"nowhere\" not found",
    )
    .await;
    check(Ask::post(&bindings, bind("Role", "r")), 201, "").await;
    let gathers = json!({ "metadata": { "name": "g" }, "rules": null, "aggregationRule": { "clusterRoleSelectors": [{}] } });
    let refused = "clusterroles.rbac.authorization.k8s.io \"g\" is forbidden: must have cluster-admin privileges to use the aggregationRule";
    check(Ask::post(&format!("{RBAC}/clusterroles"), gathers), 403, refused).await;
}

#[tokio::test]
async fn the_verbs_escalate_and_bind_skip_the_escalation_check() {
    let server = Server::secured(TOKENS).await;
    server.namespace("a").await;
    let rules = json!([
        { "verbs": ["create"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"] },
        { "verbs": ["escalate"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"] },
        { "verbs": ["bind"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "resourceNames": ["admin"] },
    ]);
    role(&server, "maker", rules).await;
    grant(&server, "/namespaces/a", "maker", "alice").await.expect(201);
    let wide = json!({ "metadata": { "name": "r" }, "rules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }] });
    let made = server.ask_bare(Ask::post(&format!("{RBAC}/namespaces/a/roles"), wide).token("t-alice")).await;
    assert_eq!(made.code, 201, "{}", made.text);
    for (name, code) in [("admin", 201), ("cluster-admin", 403)] {
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io" },
        });
        let ask = Ask::post(&format!("{RBAC}/namespaces/a/rolebindings"), binding).token("t-alice");
        assert_eq!(server.ask_bare(ask).await.code, code, "{name}");
    }
}

#[tokio::test]
async fn reviews_say_what_would_be_decided() {
    let server = Server::secured(TOKENS).await;
    server.namespace("a").await;
    grant(&server, "/namespaces/a", "view", "alice").await.expect(201);
    let path = "/apis/authorization.k8s.io/v1";
    let ask = |verb: &str, resource: &str| json!({ "namespace": "a", "verb": verb, "resource": resource });
    let own = |spec: Value| {
        Ask::post(&format!("{path}/selfsubjectaccessreviews"), json!({ "spec": spec })).token("t-alice")
    };
    let seen = server.ask_bare(own(json!({ "resourceAttributes": ask("list", "pods") }))).await.expect(201);
    let reason = "RBAC: allowed by RoleBinding \"alice-view/a\" of ClusterRole \"view\" to User \"alice\"";
    assert_eq!(seen["status"], json!({ "allowed": true, "reason": reason }));
    let seen = server.ask_bare(own(json!({ "resourceAttributes": ask("get", "secrets") }))).await.expect(201);
    assert_eq!(seen["status"], json!({ "allowed": false }));
    let seen = server
        .ask_bare(own(json!({ "nonResourceAttributes": { "path": "/apis", "verb": "get" } })))
        .await
        .expect(201);
    assert_eq!(seen["status"]["allowed"], true);
    assert_eq!(server.ask_bare(own(json!({}))).await.code, 422);
    let others = Ask::post(&format!("{path}/subjectaccessreviews"), json!({ "spec": {} })).token("t-alice");
    assert_eq!(server.ask_bare(others).await.code, 403, "asking about others is a right");
    let spec = json!({ "user": "alice", "resourceAttributes": ask("list", "pods") });
    let seen = server
        .ask(Ask::post(&format!("{path}/subjectaccessreviews"), json!({ "spec": spec })))
        .await
        .expect(201);
    assert_eq!(seen["status"]["allowed"], true);
    let local = |namespace: &str| {
        let path = format!("{path}/namespaces/{namespace}/localsubjectaccessreviews");
        Ask::post(&path, json!({ "metadata": { "namespace": namespace }, "spec": spec }))
    };
    assert_eq!(server.ask(local("a")).await.expect(201)["status"]["allowed"], true);
    assert_eq!(server.ask(local("default")).await.code, 422);
    let rules =
        Ask::post(&format!("{path}/selfsubjectrulesreviews"), json!({ "spec": { "namespace": "a" } }));
    let seen = server.ask_bare(rules.token("t-alice")).await.expect(201);
    let text = seen["status"].to_string();
    assert!(text.contains("\"selfsubjectrulesreviews\"") && text.contains("\"pods\""), "{text}");
    assert!(text.contains("/openapi/*") && !text.contains("\"secrets\""), "{text}");
}

#[tokio::test]
async fn default_roles_come_back_and_keep_what_was_added() {
    let server = Server::secured(TOKENS).await;
    let path = format!("{RBAC}/clusterroles/system:basic-user");
    let added = json!([{ "verbs": ["get"], "apiGroups": ["x"], "resources": ["y"] }]);
    server.ask(Ask::merge(&path, json!({ "rules": added }))).await.expect(200);
    server.ask(Ask::delete(&format!("{RBAC}/clusterroles/system:discovery"))).await.expect(200);
    let security =
        apiserver::Security { roles: Some(Vec::new()), ..apiserver::Security::bare().expect("keys") };
    let again = Server::with(server.store().clone(), Some(security)).await;
    let basic = again.ask(Ask::get(&path)).await.expect(200);
    assert_eq!(basic["rules"].as_array().map(Vec::len), Some(3), "{basic}");
    again.ask(Ask::get(&format!("{RBAC}/clusterroles/system:discovery"))).await.expect(200);
}

#[tokio::test]
async fn applying_a_new_object_needs_the_permission_to_create() {
    let server = Server::secured(TOKENS).await;
    let rule = |verbs: Value| json!([{ "verbs": verbs, "apiGroups": [""], "resources": ["configmaps"] }]);
    role(&server, "patcher", rule(json!(["patch", "get"]))).await;
    grant(&server, "", "patcher", "alice").await.expect(201);
    let maps = "/api/v1/namespaces/default/configmaps";
    let apply = |name: &str, token: &str| {
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "k": "v" } });
        Ask::patch("apply", &format!("{maps}/{name}?fieldManager=t"), map).token(token)
    };
    let refused = server.ask_bare(apply("new", "t-alice")).await;
    let message = "configmaps \"new\" is forbidden: User \"alice\" cannot create resource \"configmaps\" in API group \"\" \
                   in the namespace \"default\"";
    assert_eq!(refused.refusal(), (403, "Forbidden", message));
    assert_eq!(server.ask(Ask::get(&format!("{maps}/new"))).await.code, 404);
    server.ask(Ask::post(maps, json!({ "metadata": { "name": "old" } }))).await.expect(201);
    assert_eq!(server.ask_bare(apply("old", "t-alice")).await.code, 200, "what is there is only patched");
    role(&server, "creator", rule(json!(["create"]))).await;
    grant(&server, "", "creator", "bob").await.expect(201);
    assert_eq!(server.ask_bare(apply("new", "t-bob")).await.code, 403, "to create alone is not to patch");
    grant(&server, "", "creator", "alice").await.expect(201);
    assert_eq!(server.ask_bare(apply("new", "t-alice")).await.code, 201);
}
