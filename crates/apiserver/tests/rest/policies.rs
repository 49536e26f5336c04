//! ValidatingAdmissionPolicies: which are accepted, and what they say about writes.

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::client::{Ask, Server};
use crate::table::Table;

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const MAPS: &str = "/api/v1/namespaces/governed/configmaps";

fn policy(more: Value) -> Value {
    let rule =
        json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"] });
    // Others may use the same server.
    let only = json!({ "matchLabels": { "kubernetes.io/metadata.name": "governed" } });
    let mut spec = json!({ "matchConstraints": { "resourceRules": [rule], "namespaceSelector": only } });
    more.as_object().into_iter().flatten().for_each(|(key, value)| spec[key] = value.clone());
    json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": { "name": "p.example.com" }, "spec": spec })
}

fn binding(more: Value) -> Value {
    let mut spec = json!({ "policyName": "p.example.com", "validationActions": ["Deny"] });
    more.as_object().into_iter().flatten().for_each(|(key, value)| spec[key] = value.clone());
    json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": { "name": "b.example.com" }, "spec": spec })
}

#[tokio::test]
async fn definitions() {
    let server = Server::new().await;
    let mut table = Table::new(&server);
    let valid = |expression: &str| json!({ "validations": [{ "expression": expression }] });
    for spec in [
        json!({}),
        valid("true"),
        valid("object.spec.x > 1 && request.operation == 'CREATE'"),
        valid(""),
        valid("1 + 1"),
        valid("object."),
        valid("params.x == 1"),
        valid("request.nothing == 1"),
        valid("variables.x == 1"),
        json!({ "validations": [{ "expression": "true", "reason": "Because", "message": "a\nb" }] }),
        json!({ "validations": [{ "expression": "true", "messageExpression": "1" }] }),
        json!({ "validations": [{ "expression": "variables.a == 1" }], "variables": [{ "name": "a", "expression": "1" }] }),
        json!({ "validations": [{ "expression": "variables.a == 'x'" }], "variables": [{ "name": "a", "expression": "1" }] }),
        json!({ "validations": [{ "expression": "true" }], "variables": [{ "name": "a-b", "expression": "" }] }),
        json!({ "auditAnnotations": [{ "key": "k", "valueExpression": "1" }] }),
        json!({ "validations": [{ "expression": "true" }], "matchConditions": [{ "name": "", "expression": "" }, { "name": "x", "expression": "'a'" }] }),
        json!({ "validations": [{ "expression": "true" }], "failurePolicy": "Perhaps" }),
    ] {
        table.ask(Ask::post(&format!("{POLICIES}?dryRun=All"), policy(spec))).await;
    }
    for spec in [
        json!({}),
        json!({ "validationActions": [] }),
        json!({ "validationActions": ["Deny", "Warn"] }),
        json!({ "validationActions": ["Deny", "Deny"] }),
        json!({ "validationActions": ["Shout"] }),
        json!({ "policyName": "" }),
        json!({ "paramRef": {} }),
        json!({ "paramRef": { "name": "x", "parameterNotFoundAction": "Maybe" } }),
    ] {
        table.ask(Ask::post(&format!("{BINDINGS}?dryRun=All"), binding(spec))).await;
    }
    table.is(expect_file!["answers/policies-definitions.txt"]);
}

/// Puts a policy into effect and waits until it is, which a real server takes its time for.
async fn put_into_effect(server: &Server, spec: Value, bound: Value) {
    server.ask(Ask::delete(&format!("{BINDINGS}/b.example.com"))).await;
    server.ask(Ask::delete(&format!("{POLICIES}/p.example.com"))).await;
    server.ask(Ask::post(POLICIES, policy(spec))).await.expect(201);
    server.ask(Ask::post(BINDINGS, binding(bound))).await.expect(201);
    if std::env::var("KUBE_APISERVER").is_ok() {
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    }
}

fn map(name: &str, data: Value) -> Value {
    json!({ "metadata": { "name": name }, "data": data })
}

fn post(data: Value) -> Ask {
    Ask::post(&format!("{MAPS}?dryRun=All"), map("m", data))
}

#[tokio::test]
async fn decisions() {
    let server = Server::with_namespace("governed").await;
    let mut table = Table::new(&server);
    let spec = json!({
        "variables": [
            { "name": "data", "expression": "has(object.data) ? object.data : {}" },
            { "name": "level", "expression": "'level' in variables.data ? int(variables.data.level) : 0" },
        ],
        "matchConditions": [{ "name": "not-deleted", "expression": "request.operation != 'DELETE'" }],
        "validations": [
            { "expression": "variables.level < 5", "messageExpression": "'level is ' + string(variables.level)" },
            { "expression": "!('secret' in variables.data)", "message": "no secrets here", "reason": "Forbidden" },
            { "expression": "namespaceObject.metadata.name == 'governed'" },
            { "expression": "oldObject == null || object.metadata.name == oldObject.metadata.name" },
            { "expression": "!('user' in variables.data) || request.userInfo.username == variables.data.user" },
        ],
    });
    put_into_effect(&server, spec, json!({})).await;
    table.ask(post(json!({}))).await;
    table.ask(post(json!({ "level": "4" }))).await;
    table.ask(post(json!({ "level": "5" }))).await;
    table.ask(post(json!({ "level": "high" }))).await;
    table.ask(post(json!({ "secret": "s" }))).await;
    table.ask(post(json!({ "user": "nobody" }))).await;
    put_into_effect(
        &server,
        json!({ "failurePolicy": "Ignore", "validations": [{ "expression": "object.data.x == '1'" }] }),
        json!({}),
    )
    .await;
    table.ask(post(json!({ "x": "1" }))).await;
    table.ask(post(json!({ "x": "2" }))).await;
    table.ask(post(json!({}))).await;
    let spec = json!({ "validations": [{ "expression": "object.data.x == '1'" }] });
    put_into_effect(&server, spec, json!({ "validationActions": ["Warn"] })).await;
    table.ask(post(json!({ "x": "2" }))).await;
    let name = "p.example.com";
    let exempt = json!({ "spec": { "validations": [{ "expression": "false" }], "matchConstraints": { "resourceRules": [{ "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"] }] } } });
    table.ask(Ask::merge(&format!("{POLICIES}/{name}?dryRun=All"), exempt)).await;
    table.is(expect_file!["answers/policies-decisions.txt"]);
    server.ask(Ask::delete(&format!("{BINDINGS}/b.example.com"))).await.expect(200);
    server.ask(Ask::delete(&format!("{POLICIES}/{name}"))).await.expect(200);
}

#[tokio::test]
async fn parameters_come_from_objects() {
    let server = Server::with_namespace("governed").await;
    let spec = json!({
        "paramKind": { "apiVersion": "v1", "kind": "Secret" },
        "validations": [{ "expression": "size(object.metadata.name) <= int(params.metadata.labels.most)" }],
    });
    let bound = json!({ "paramRef": { "name": "limits", "parameterNotFoundAction": "Deny" } });
    put_into_effect(&server, spec.clone(), bound).await;
    let refused = server.ask(Ask::post(MAPS, map("abc", json!({})))).await;
    let message = "configmaps \"abc\" is forbidden: ValidatingAdmissionPolicy 'p.example.com' with binding \
                   'b.example.com' denied request: failed to configure binding: no params found for policy binding \
                   with `Deny` parameterNotFoundAction";
    assert_eq!(refused.refusal(), (422, "Invalid", message));
    let limits = |name: &str, most: &str| json!({ "metadata": { "name": name, "labels": { "most": most, "app": "limits" } } });
    let secrets = "/api/v1/namespaces/governed/secrets";
    server.ask(Ask::post(secrets, limits("limits", "3"))).await.expect(201);
    server.ask(Ask::post(MAPS, map("abc", json!({})))).await.expect(201);
    server.ask(Ask::post(MAPS, map("abcd", json!({})))).await.expect(422);
    let bound = json!({ "paramRef": { "selector": { "matchLabels": { "app": "limits" } }, "parameterNotFoundAction": "Allow" } });
    put_into_effect(&server, spec, bound).await;
    server.ask(Ask::post(MAPS, map("abd", json!({})))).await.expect(201);
    server.ask(Ask::post(secrets, limits("stricter", "2"))).await.expect(201);
    server.ask(Ask::post(MAPS, map("abe", json!({})))).await.expect(422);
    server.ask(Ask::delete(&format!("{secrets}/limits"))).await.expect(200);
    server.ask(Ask::delete(&format!("{secrets}/stricter"))).await.expect(200);
    server.ask(Ask::post(MAPS, map("abe", json!({})))).await.expect(201);
}

/// Variables that lean on each other, and expressions that never end, stop within their bounds.
#[tokio::test]
async fn bombs_in_policies_are_bounded() {
    let server = Server::with_namespace("governed").await;
    let chain = (0..2_000).map(|index| match index {
        0 => json!({ "name": "v0", "expression": "1" }),
        _ => json!({ "name": format!("v{index}"), "expression": format!("variables.v{} + 1", index - 1) }),
    });
    let chain: Vec<Value> = chain.collect();
    let spec = json!({ "variables": chain, "validations": [{ "expression": "variables.v1999 > 0" }] });
    put_into_effect(&server, spec, json!({})).await;
    let refused = server.ask(Ask::post(MAPS, map("m", json!({})))).await;
    assert_eq!(refused.code, 422, "{}", refused.text);
    let text = "a".repeat(1_000);
    let nested =
        "object.data.all(a, object.data.all(b, object.data.all(c, object.data[a] == object.data[b])))";
    put_into_effect(&server, json!({ "validations": [{ "expression": nested }] }), json!({})).await;
    let data: serde_json::Map<String, Value> =
        (0..500).map(|key| (format!("k{key}"), text.as_str().into())).collect();
    let begun = std::time::Instant::now();
    let refused = server.ask(Ask::post(MAPS, map("m", Value::Object(data)))).await;
    assert!(refused.text.contains("actual cost limit exceeded"), "{}", refused.text);
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
    server.ask(Ask::delete(&format!("{BINDINGS}/b.example.com"))).await.expect(200);
    server.ask(Ask::post(MAPS, map("m", json!({})))).await.expect(201);
}
