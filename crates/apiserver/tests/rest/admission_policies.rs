//! ValidatingAdmissionPolicies: which are accepted, and what they decide about writes.

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
    let refused = server.ask(Ask::post(MAPS, map("m", Value::Object(data)))).await;
    assert!(refused.text.contains("actual cost limit exceeded"), "{}", refused.text);
    server.ask(Ask::delete(&format!("{BINDINGS}/b.example.com"))).await.expect(200);
    server.ask(Ask::post(MAPS, map("m", json!({})))).await.expect(201);
}

/// A user whom roles let do everything to maps, and read one secret.
async fn with_rights() -> Server {
    let server = Server::secured("t-ann,ann,u-ann\n").await;
    server
        .ask(Ask::post("/api/v1/namespaces", json!({ "metadata": { "name": "governed" } })))
        .await
        .expect(201);
    let roles = "/apis/rbac.authorization.k8s.io/v1";
    let role = |name: &str, rules: Value| json!({ "metadata": { "name": name }, "rules": rules });
    let maps = json!([{ "verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"] }, { "verbs": ["get"], "nonResourceURLs": ["/looked/*"] }]);
    let secrets =
        json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"] }]);
    server.ask(Ask::post(&format!("{roles}/clusterroles"), role("maps", maps))).await.expect(201);
    server.ask(Ask::post(&format!("{roles}/clusterroles"), role("secrets", secrets))).await.expect(201);
    let group = "rbac.authorization.k8s.io";
    for (role, subject) in [
        ("maps", json!({ "kind": "User", "name": "ann", "apiGroup": group })),
        ("secrets", json!({ "kind": "ServiceAccount", "name": "robot", "namespace": "governed" })),
    ] {
        let bound = json!({ "metadata": { "name": role }, "roleRef": { "kind": "ClusterRole", "name": role, "apiGroup": group }, "subjects": [subject] });
        server.ask(Ask::post(&format!("{roles}/clusterrolebindings"), bound)).await.expect(201);
    }
    server
}

/// Policies check permissions through `authorizer`, which asks RBAC.
#[tokio::test]
async fn permission_checks_are_decided_by_the_activation() {
    let server = with_rights().await;
    let check = async |expression: &str, expected: bool| {
        put_into_effect(&server, json!({ "validations": [{ "expression": expression }] }), json!({})).await;
        let answer = server.ask_bare(post(json!({})).token("t-ann")).await;
        assert_eq!(answer.code == 201, expected, "{expression}: {}", answer.text);
    };
    check("authorizer.requestResource.check('create').allowed()", true).await;
    check("authorizer.requestResource.check('approve').allowed()", true).await;
    check("authorizer.requestResource.subresource('status').check('update').allowed()", false).await;
    check("authorizer.group('').resource('secrets').namespace('governed').check('get').allowed()", false)
        .await;
    check("authorizer.group('apps').resource('configmaps').check('get').allowed()", false).await;
    check("authorizer.path('/looked/at').check('get').allowed()", true).await;
    check("authorizer.path('/other').check('get').allowed()", false).await;
    let robot =
        "authorizer.serviceAccount('governed', 'robot').group('').resource('secrets').namespace('governed')";
    check(&format!("{robot}.name('one').check('get').allowed()"), true).await;
    check(&format!("{robot}.name('two').check('get').allowed()"), false).await;
    check(
        &format!("{robot}.name('one').check('get').reason().contains('ClusterRoleBinding \"secrets\"')"),
        true,
    )
    .await;
    check("!authorizer.requestResource.check('create').errored()", true).await;
    check("authorizer.requestResource.check('x').error() == ''", true).await;
    // Administrators may do everything.
    put_into_effect(
        &server,
        json!({ "validations": [{ "expression": "authorizer.path('/other').check('get').allowed()" }] }),
        json!({}),
    )
    .await;
    server.ask(post(json!({}))).await.expect(201);
}

/// Conditions and variables ask too; messages do not.
#[tokio::test]
async fn rights_are_asked_about_in_conditions_and_variables() {
    let server = with_rights().await;
    let exempt = "!authorizer.group('').resource('configmaps').check('exempt').allowed()";
    let spec = json!({
        "matchConditions": [{ "name": "exempt", "expression": exempt }],
        "validations": [{ "expression": "false" }],
    });
    put_into_effect(&server, spec, json!({})).await;
    assert_eq!(
        server.ask_bare(post(json!({})).token("t-ann")).await.code,
        201,
        "the condition does not hold"
    );
    let spec = json!({
        "variables": [{ "name": "may", "expression": "authorizer.requestResource.check('delete').allowed()" }],
        "validations": [{ "expression": "!variables.may", "message": "who may delete may not create" }],
    });
    put_into_effect(&server, spec, json!({})).await;
    let refused = server.ask_bare(post(json!({})).token("t-ann")).await;
    assert!(refused.code == 422 && refused.text.contains("who may delete"), "{}", refused.text);
    let three = ["authorizer.requestResource.check('create').allowed()"; 3].join(" && ");
    put_into_effect(&server, json!({ "validations": [{ "expression": three }] }), json!({})).await;
    let refused = server.ask_bare(post(json!({})).token("t-ann")).await;
    assert!(refused.text.contains("actual cost limit exceeded"), "{}", refused.text);
    let told = json!({ "validations": [{ "expression": "true", "messageExpression": "string(authorizer.path('/').check('get').allowed())" }] });
    server.ask(Ask::delete(&format!("{POLICIES}/p.example.com"))).await.expect(200);
    let refused = server.ask(Ask::post(POLICIES, policy(told))).await;
    assert!(
        refused.code == 422 && refused.text.contains("undeclared reference to 'authorizer'"),
        "{}",
        refused.text
    );
}

/// Expressions that fail type checking for a matched kind are reported in the policy's status.
#[tokio::test]
async fn types_are_checked() {
    let server = Server::with_namespace("governed").await;
    let Server::InProcess { server: service, .. } = &server else { panic!("a server in this process") };
    server.start_controllers();
    let path = format!("{POLICIES}/p.example.com");
    let checked = async |spec: Value| {
        server.ask(Ask::delete(&path)).await;
        server.ask(Ask::post(POLICIES, policy(spec))).await.expect(201);
        service.controllers_idle().await;
        let found = server.ask(Ask::get(&path)).await.body;
        assert_eq!(found["status"]["observedGeneration"], found["metadata"]["generation"]);
        found["status"]["typeChecking"].clone()
    };
    let rule = |group: &str, resources: Value| json!({ "apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"], "resources": resources });
    let rules = |rules: Value| json!({ "resourceRules": rules });
    let good = json!({
        "variables": [{ "name": "data", "expression": "has(object.data) ? object.data : {}" }],
        "validations": [{ "expression": "variables.data.all(k, k.size() < 5) && object.metadata.name == 'x' && oldObject == null" }],
    });
    assert_eq!(checked(good).await, json!({}));
    let found = checked(json!({
        "matchConstraints": rules(json!([rule("apps", json!(["deployments", "deployments/scale"])), rule("", json!(["configmaps"]))])),
        "validations": [
            { "expression": "object.spec.replicas > 1" },
            { "expression": "object.metadata.nothing == ''", "messageExpression": "string(object.data.x)" },
        ],
    }))
    .await;
    let warning = |kind: &str, what: &str| format!("{kind}: compilation failed: ERROR: <input>:{what}");
    let warnings = found["expressionWarnings"].as_array().expect("warnings").clone();
    let fields: Vec<&str> = warnings.iter().filter_map(|one| one["fieldRef"].as_str()).collect();
    assert_eq!(
        fields,
        [
            "spec.validations[0].expression",
            "spec.validations[1].expression",
            "spec.validations[1].messageExpression"
        ]
    );
    let told = |index: usize| warnings[index]["warning"].as_str().expect("a text");
    let first = warning(
        "/v1, Kind=ConfigMap",
        "1:7: undefined field 'spec'\n | object.spec.replicas > 1\n | ......^\n",
    );
    assert_eq!(told(0), first);
    assert!(
        told(1).contains("Kind=ConfigMap") && told(1).contains("apps/v1, Kind=Deployment"),
        "{}",
        told(1)
    );
    assert!(told(2).contains("undefined field 'data'") && !told(2).contains("ConfigMap"), "{}", told(2));
    // Wildcards name no kind, so nothing can be type checked and no warning is reported.
    let any = json!({
        "matchConstraints": rules(json!([rule("*", json!(["configmaps"]))])),
        "validations": [{ "expression": "object.spec.nothing" }],
    });
    assert_eq!(checked(any).await, json!({}));
    // The next generation is looked at again.
    let change = json!({ "spec": { "matchConstraints": rules(json!([rule("", json!(["configmaps"]))])) } });
    server.ask(Ask::merge(&path, change)).await.expect(200);
    service.controllers_idle().await;
    let found = server.ask(Ask::get(&path)).await.body;
    assert_eq!(
        (&found["metadata"]["generation"], &found["status"]["observedGeneration"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(found["status"]["typeChecking"]["expressionWarnings"].as_array().map(Vec::len), Some(1));
}
