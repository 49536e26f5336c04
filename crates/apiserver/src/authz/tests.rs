//! Requests as actions, rules against actions and against other rules, and what a decision costs.

use serde_json::json;

use super::*;

/// What a request does: `user verb group/resource/part namespace name`.
#[track_caller]
fn check(method: &str, uri: &str, expected: &str) {
    let uri: http::Uri = uri.parse().expect("a URI");
    let method = Method::from_bytes(method.as_bytes()).expect("a method");
    let target = Target::parse(uri.path());
    let query = Query::parse(uri.query().unwrap_or_default());
    let action = Action::of(&method, &target, uri.path(), &query);
    let found = match &action.on {
        On::Path(path) => format!("{} {path}", action.verb),
        On::Object(Object { group, resource, subresource, namespace, name }) => {
            format!("{} {group}:{resource}:{subresource} in {namespace:?} {name:?}", action.verb)
        }
    };
    assert_eq!(found, expected, "{method} {uri}");
}

#[test]
fn requests_are_read_as_kubernetes_reads_them() {
    check("GET", "/healthz", "get /healthz");
    check("GET", "/apis/apps/v1", "get /apis/apps/v1");
    check("POST", "/metrics", "post /metrics");
    check("GET", "/api/v1/namespaces/a/pods", "list :pods: in \"a\" \"\"");
    check("GET", "/api/v1/namespaces/a/pods?watch=1", "watch :pods: in \"a\" \"\"");
    check("GET", "/api/v1/namespaces/a/pods?watch=false", "list :pods: in \"a\" \"\"");
    check("GET", "/api/v1/namespaces/a/pods/p", "get :pods: in \"a\" \"p\"");
    check("GET", "/api/v1/namespaces/a/pods/p?watch=true", "watch :pods: in \"a\" \"p\"");
    check("GET", "/api/v1/namespaces/a", "get :namespaces: in \"a\" \"a\"");
    check("PUT", "/api/v1/namespaces/a/finalize", "update :namespaces:finalize in \"a\" \"a\"");
    check("POST", "/apis/apps/v1/namespaces/a/deployments", "create apps:deployments: in \"a\" \"\"");
    check(
        "PATCH",
        "/apis/apps/v1/namespaces/a/deployments/d/scale",
        "patch apps:deployments:scale in \"a\" \"d\"",
    );
    check("DELETE", "/api/v1/namespaces/a/secrets", "deletecollection :secrets: in \"a\" \"\"");
    check("DELETE", "/api/v1/namespaces/a/secrets/s", "delete :secrets: in \"a\" \"s\"");
    check("GET", "/api/v1/namespaces/a/pods/p/proxy/x/y", "get :pods:proxy in \"a\" \"p\"");
    check("BREW", "/api/v1/pods", " :pods: in \"\" \"\"");
}

#[test]
fn a_selector_of_one_name_is_about_that_name_and_nothing_else_is() {
    let list = |selector: &str, name: &str| {
        let uri = format!("/api/v1/namespaces/a/secrets?fieldSelector={selector}");
        check("GET", &uri, &format!("list :secrets: in \"a\" {name:?}"));
    };
    list("metadata.name%3Dx", "x");
    list("metadata.name%3D%3Dx", "x");
    list("type%3Dy,metadata.name%3Dx", "x");
    list("metadata.name!%3Dx", "");
    list("metadata.name%3D", "");
    list("type%3Dy%5C,metadata.name%3Dx", "");
    list("metadata.name%3Dx%2Fy", "");
}

fn rule(rule: serde_json::Value) -> Rule {
    Rule::all_of(&json!({ "rules": [rule] })).pop().expect("a rule")
}

#[test]
fn rules_allow_what_they_name() {
    let check =
        |wanted: serde_json::Value, verb: &str, resource: &str, part: &str, name: &str, expected: bool| {
            let object = Object { group: "apps", resource, subresource: part, namespace: "a", name };
            assert_eq!(
                rule(wanted.clone()).allows(&Action::on(verb, object)),
                expected,
                "{wanted} {verb} {resource} {part} {name}"
            );
        };
    let base = |resources: serde_json::Value| json!({ "verbs": ["get"], "apiGroups": ["apps"], "resources": resources });
    check(base(json!(["d"])), "get", "d", "", "n", true);
    check(base(json!(["d"])), "list", "d", "", "n", false);
    check(base(json!(["d"])), "get", "d", "scale", "n", false);
    check(base(json!(["d/scale"])), "get", "d", "scale", "n", true);
    check(base(json!(["d/scale"])), "get", "d", "", "n", false);
    check(base(json!(["*/scale"])), "get", "d", "scale", "n", true);
    check(base(json!(["*/scale"])), "get", "d", "", "n", false);
    check(base(json!(["*"])), "get", "d", "scale", "n", true);
    check(base(json!(["d/*"])), "get", "d", "scale", "n", false);
    let named = json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["d"], "resourceNames": ["n"] });
    check(named.clone(), "delete", "d", "", "n", true);
    check(named.clone(), "delete", "d", "", "m", false);
    check(named, "list", "d", "", "", false);
    check(json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["d"] }), "get", "d", "", "n", false);
}

#[test]
fn paths_are_allowed_by_prefix() {
    let check = |url: &str, path: &str, expected: bool| {
        let rule = rule(json!({ "verbs": ["get"], "nonResourceURLs": [url] }));
        let action = Action { verb: "get".into(), on: On::Path(path) };
        assert_eq!(rule.allows(&action), expected, "{url} {path}");
    };
    check("/healthz", "/healthz", true);
    check("/healthz", "/healthz/ping", false);
    check("/healthz/*", "/healthz/ping", true);
    check("*", "/anything", true);
    check("/openapi*", "/openapi/v3", true);
    check("/openapi*", "/open", false);
}

#[test]
fn missing_permissions_are_listed_by_rule() {
    let check = |owned: serde_json::Value, wanted: serde_json::Value, expected: Option<&str>| {
        let read = |rules: &serde_json::Value| Rule::all_of(&json!({ "rules": rules }));
        assert_eq!(rules::missing(&read(&owned), &read(&wanted)).as_deref(), expected, "{owned} {wanted}");
    };
    let pods = |verbs: &[&str]| json!([{ "verbs": verbs, "apiGroups": [""], "resources": ["pods"] }]);
    check(pods(&["get", "list"]), pods(&["get"]), None);
    check(pods(&["*"]), pods(&["get", "list"]), None);
    check(
        pods(&["get"]),
        pods(&["get", "list", "watch"]),
        Some("{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}"),
    );
    let one = json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"] }]);
    check(pods(&["get"]), one.clone(), None);
    check(one, pods(&["get"]), Some("{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}"));
    let scale = json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["*/scale"] }]);
    let of_pods = json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods/scale"] }]);
    check(scale, of_pods, None);
    let all = json!([{ "verbs": ["*"], "nonResourceURLs": ["*"] }]);
    check(all.clone(), json!([{ "verbs": ["get"], "nonResourceURLs": ["/x"] }]), None);
    check(json!([]), all, Some("{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"));
}

#[test]
#[ignore = "measures time"]
fn the_cost_of_a_decision_depends_on_the_bindings_of_the_user() {
    let rbac = Rbac::default();
    let rules: Vec<serde_json::Value> = (0..50)
        .map(|number| json!({ "verbs": ["get", "list"], "apiGroups": ["g"], "resources": [format!("r{number}")] }))
        .collect();
    rbac.put("rbac.authorization.k8s.io/clusterroles", "edit", Some(&json!({ "rules": rules })));
    for number in 0..10_000 {
        let binding = json!({
            "roleRef": { "kind": "ClusterRole", "name": "edit" },
            "subjects": [{ "kind": "User", "name": format!("user{number}") }],
        });
        rbac.put("rbac.authorization.k8s.io/rolebindings", &format!("team{number}/b"), Some(&binding));
    }
    let identity = Identity::named("user77", []);
    let ask = |namespace| {
        let object = Object { group: "g", resource: "r49", namespace, ..Object::default() };
        rbac.allows(&identity, &Action::on("list", object))
    };
    let begun = std::time::Instant::now();
    for _ in 0..10_000 {
        assert!(ask("team77").is_some() && ask("team78").is_none());
    }
    let each = begun.elapsed() / 20_000;
    // A hundred times what it takes on an idle machine, and a hundredth of a look at every binding.
    assert!(each < std::time::Duration::from_micros(200), "{each:?} for a decision");
    eprintln!("a decision among 10,000 bindings takes {each:?}");
}
