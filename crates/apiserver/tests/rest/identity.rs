//! Authentication: no route without a credential; tokens are valid as long as the objects they are bound to;
//! impersonation only with permission.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use apiserver::Security;
use http::Method;
use serde_json::{Value, json};
use store::Store;

use crate::client::{Ask, Server};

const TOKENS: &str = "t-alice,alice,u-1,\"devs\"\nt-admin,root,u-0,\"system:masters\"\n";

/// Every path that is registered: documents, collections, objects and their parts.
async fn routes(server: &Server) -> BTreeSet<String> {
    let paths = server.ask(Ask::get("/")).await.expect(200);
    let paths = paths["paths"].as_array().expect("paths").iter();
    let mut routes: BTreeSet<String> = paths.map(|path| path.as_str().expect("a path").to_owned()).collect();
    for base in routes.clone().iter().filter(|path| path.starts_with("/api")) {
        let list = server.ask(Ask::get(base)).await.expect(200);
        for resource in list["resources"].as_array().into_iter().flatten() {
            let name = resource["name"].as_str().expect("a name");
            let (plural, part) = name.split_once('/').unwrap_or((name, ""));
            let inner = if resource["namespaced"] == true { "/namespaces/default" } else { "" };
            let object = format!("{base}{inner}/{plural}/x");
            routes.insert(format!("{base}{inner}/{plural}"));
            routes.insert(format!("{base}/{plural}"));
            routes.insert(if part.is_empty() { object } else { format!("{object}/{part}") });
        }
    }
    for group in ["/openapi/v3/apis/apps/v1", "/livez/ping", "/readyz/ping", "/debug/pprof", "/", "/nowhere"]
    {
        routes.insert(group.to_owned());
    }
    routes
}

#[tokio::test]
async fn every_route_refuses_requests_without_credentials() {
    let server = Server::secured(TOKENS).await;
    let routes = routes(&server).await;
    assert!(routes.len() > 200, "{} routes", routes.len());
    let public = ["/healthz", "/livez", "/readyz", "/version"];
    for path in &routes {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"] {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            let answer = server.ask_bare(Ask::new(method.clone(), path)).await;
            let expected: &[u16] = match (&method, public.contains(&path.as_str())) {
                (&Method::GET, true) => &[200],
                (_, true) => &[403],
                (_, false) => &[401],
            };
            assert!(expected.contains(&answer.code), "{method} {path}: {}", answer.text);
        }
    }
    for path in ["/%68ealthz", "//healthz", "/healthz/../api/v1/secrets", "/version/", "/healthz%2F..%2Fapi"]
    {
        assert_eq!(server.ask_bare(Ask::get(path)).await.code, 401, "{path}");
    }
}

#[tokio::test]
async fn no_header_makes_an_identity() {
    let server = Server::secured(TOKENS).await;
    let claims = [
        ("x-remote-user", "root"),
        ("x-remote-group", "system:masters"),
        ("x-remote-extra-scopes", "all"),
        ("x-forwarded-user", "root"),
        ("x-forwarded-client-cert", "Subject=\"O=system:masters\""),
        ("x-user", "root"),
        ("impersonate-user", "root"),
        ("authorization", "Basic cm9vdDpyb290"),
        ("authorization", "Bearer "),
        ("authorization", "Bearer nobody"),
        ("cookie", "session=root"),
    ];
    for (name, value) in claims {
        let ask = Ask::get("/api/v1/secrets").header(name, value);
        assert_eq!(server.ask_bare(ask).await.code, 401, "{name}: {value}");
    }
    let all = claims.iter().fold(Ask::get("/api/v1/secrets").token("t-alice"), |ask, (name, value)| {
        if *name == "authorization" { ask } else { ask.header(name, value) }
    });
    assert_eq!(server.ask_bare(all).await.code, 403, "she stays who she is");
    // Wrong credentials are worse than none.
    assert_eq!(server.ask_bare(Ask::get("/version").token("nobody")).await.code, 401);
}

#[tokio::test]
async fn a_token_of_the_file_says_who_it_is() {
    let server = Server::secured(TOKENS).await;
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let seen = server.ask_bare(Ask::post(path, review).token("t-alice")).await.expect(201);
    let expected = json!({ "username": "alice", "uid": "u-1", "groups": ["devs", "system:authenticated"] });
    assert_eq!(seen["status"]["userInfo"], expected);
    assert_eq!(server.ask_bare(Ask::get("/api/v1/secrets").token("t-admin")).await.code, 200);
    assert_eq!(server.ask_bare(Ask::get("/apis").token("t-alice")).await.code, 200, "discovery is for all");
    let refused = server.ask_bare(Ask::get("/metrics").token("t-alice")).await;
    let message = "forbidden: User \"alice\" cannot get path \"/metrics\"";
    assert_eq!(refused.refusal(), (403, "Forbidden", message));
}

async fn account(server: &Server, name: &str) -> String {
    let path = "/api/v1/namespaces/default/serviceaccounts";
    let made = server.renew(path, json!({ "metadata": { "name": name } })).await;
    made["metadata"]["uid"].as_str().expect("a uid").to_owned()
}

async fn token(server: &Server, account: &str, spec: Value) -> Value {
    let path = format!("/api/v1/namespaces/default/serviceaccounts/{account}/token");
    let kind = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec });
    server.ask(Ask::post(&path, kind)).await.expect(201)
}

async fn code(server: &Server, token: &Value) -> u16 {
    let token = token["status"]["token"].as_str().expect("a token");
    server.ask_bare(Ask::get("/apis").token(token)).await.code
}

#[tokio::test]
async fn a_service_account_is_who_its_token_says_until_it_is_gone() {
    let server = Server::secured(TOKENS).await;
    let uid = account(&server, "robot").await;
    let made = token(&server, "robot", json!({})).await;
    assert_eq!(made["spec"]["expirationSeconds"], 3_600);
    let text = made["status"]["token"].as_str().expect("a token");
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let seen = server.ask_bare(Ask::post(path, json!({})).token(text)).await.expect(201);
    let user = &seen["status"]["userInfo"];
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
    assert_eq!(user["uid"], uid.as_str());
    let groups = ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"];
    assert_eq!(user["groups"], json!(groups));
    assert!(
        user["extra"]["authentication.kubernetes.io/credential-id"][0]
            .as_str()
            .expect("an id")
            .starts_with("JTI=")
    );
    // The same name is not the same account.
    account(&server, "robot").await;
    assert_eq!(code(&server, &made).await, 401);
    let again = token(&server, "robot", json!({})).await;
    assert_eq!(code(&server, &again).await, 200);
    server.ask(Ask::delete("/api/v1/namespaces/default/serviceaccounts/robot")).await.expect(200);
    assert_eq!(code(&server, &again).await, 401);
}

#[tokio::test]
async fn a_token_is_for_its_audience_and_ends_with_what_it_is_bound_to() {
    let server = Server::secured(TOKENS).await;
    account(&server, "robot").await;
    let elsewhere = token(&server, "robot", json!({ "audiences": ["vault"] })).await;
    assert_eq!(code(&server, &elsewhere).await, 401);
    let review = |audiences: Value| {
        let spec = json!({ "token": elsewhere["status"]["token"], "audiences": audiences });
        Ask::post("/apis/authentication.k8s.io/v1/tokenreviews", json!({ "spec": spec }))
    };
    let seen = server.ask(review(json!(["vault", "x"]))).await.expect(201);
    assert_eq!(seen["status"]["authenticated"], true);
    assert_eq!(seen["status"]["audiences"], json!(["vault"]));
    let seen = server.ask(review(json!(["y"]))).await.expect(201);
    assert_eq!(seen["status"].get("authenticated"), None);
    let secrets = "/api/v1/namespaces/default/secrets";
    server.ask(Ask::post(secrets, json!({ "metadata": { "name": "lease" } }))).await.expect(201);
    let reference = json!({ "apiVersion": "v1", "kind": "Secret", "name": "lease" });
    let bound = token(&server, "robot", json!({ "boundObjectRef": reference })).await;
    assert_eq!(code(&server, &bound).await, 200);
    server.ask(Ask::delete(&format!("{secrets}/lease"))).await.expect(200);
    assert_eq!(code(&server, &bound).await, 401);
}

#[tokio::test]
async fn token_requests_are_refused_in_kubernetes_words() {
    let server = Server::secured(TOKENS).await;
    let uid = account(&server, "robot").await;
    let check = async |body: Value, expected: (u16, &str, String)| {
        let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
        let answer = server.ask(Ask::post(path, body)).await;
        let (code, reason, message) = answer.refusal();
        assert_eq!((code, reason, message.to_owned()), expected);
    };
    let kind = "TokenRequest.authentication.k8s.io";
    check(
        json!({ "spec": { "expirationSeconds": 599 } }),
        (422, "Invalid", format!("{kind} \"\" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes")),
    )
    .await;
    check(
        json!({ "metadata": { "name": "other" } }),
        (422, "Invalid", format!("{kind} \"robot\" is invalid: metadata.name: Invalid value: \"other\": must match the service account name if specified")),
    )
    .await;
    check(
        json!({ "metadata": { "uid": "x" } }),
        (409, "Conflict", format!("Operation cannot be fulfilled on {kind} \"robot\": the UID in the token request (x) does not match the UID of the service account ({uid})")),
    )
    .await;
    check(
        json!({ "spec": { "boundObjectRef": { "apiVersion": "v1", "kind": "Pod", "name": "p" } } }),
        (404, "NotFound", "pods \"p\" not found".to_owned()),
    )
    .await;
}

#[tokio::test]
async fn acting_as_another_takes_the_right_for_every_part() {
    let server = Server::secured(TOKENS).await;
    let rules = json!([
        { "verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"] },
        { "verbs": ["impersonate"], "apiGroups": [""], "resources": ["groups"], "resourceNames": ["ops"] },
        { "verbs": ["impersonate"], "apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes"] },
    ]);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({ "metadata": { "name": "actor" }, "rules": rules });
    server.ask(Ask::post(&format!("{rbac}/clusterroles"), role)).await.expect(201);
    let binding = json!({
        "metadata": { "name": "actor" },
        "roleRef": { "kind": "ClusterRole", "name": "actor", "apiGroup": "rbac.authorization.k8s.io" },
        "subjects": [{ "kind": "User", "name": "alice" }],
    });
    server.ask(Ask::post(&format!("{rbac}/clusterrolebindings"), binding)).await.expect(201);
    let check = async |headers: &[(&str, &str)], expected: Result<Value, (u16, &str)>| {
        let ask = Ask::post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json!({})).token("t-alice");
        let ask = headers.iter().fold(ask, |ask, (name, value)| ask.header(name, value));
        let answer = server.ask_bare(ask).await;
        match expected {
            Ok(user) => assert_eq!(answer.expect(201)["status"]["userInfo"], user, "{headers:?}"),
            Err((code, message)) => {
                assert_eq!(
                    (answer.code, answer.body["message"].as_str()),
                    (code, Some(message)),
                    "{headers:?}"
                )
            }
        }
    };
    let bob = json!({ "username": "bob", "groups": ["system:authenticated"] });
    check(&[("impersonate-user", "bob")], Ok(bob)).await;
    let groups = ["ops", "system:authenticated"];
    let with_group = json!({ "username": "bob", "groups": groups, "extra": { "scopes": ["a"] } });
    check(
        &[("Impersonate-User", "bob"), ("Impersonate-Group", "ops"), ("Impersonate-Extra-Scopes", "a")],
        Ok(with_group),
    )
    .await;
    let refused = "users \"carol\" is forbidden: User \"alice\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope";
    check(&[("impersonate-user", "carol")], Err((403, refused))).await;
    let refused = "groups \"system:masters\" is forbidden: User \"alice\" cannot impersonate resource \"groups\" in API group \"\" at the cluster scope";
    check(&[("impersonate-user", "bob"), ("impersonate-group", "system:masters")], Err((403, refused))).await;
    let refused = "serviceaccounts \"d\" is forbidden: User \"alice\" cannot impersonate resource \"serviceaccounts\" in API group \"\" in the namespace \"n\"";
    check(&[("impersonate-user", "system:serviceaccount:n:d")], Err((403, refused))).await;
    let refused = "uids.authentication.k8s.io \"u\" is forbidden: User \"alice\" cannot impersonate resource \"uids\" in API group \"authentication.k8s.io\" at the cluster scope";
    check(&[("impersonate-user", "bob"), ("impersonate-uid", "u")], Err((403, refused))).await;
    let answer = server.ask_bare(Ask::get("/apis").token("t-alice").header("impersonate-group", "ops")).await;
    let message = "requested [{Group  ops    }] without impersonating a user";
    assert_eq!(answer.refusal(), (400, "BadRequest", message));
}

/// A token is good for its time and a minute for clocks that disagree, again and again, and then no more, though its
/// signature has been seen before.
#[tokio::test]
async fn a_token_that_has_expired_is_worth_nothing_however_often_it_is_sent() {
    let begun = jiff::Timestamp::now();
    let passed = Arc::new(AtomicI64::new(0));
    let clock = passed.clone();
    let now = move || begun + jiff::SignedDuration::from_secs(clock.load(Ordering::SeqCst));
    let security = Security { roles: Some(Vec::new()), ..Security::bare().expect("keys") };
    let server = Server::at(Store::in_memory(), Some(security), Arc::new(now)).await;
    account(&server, "robot").await;
    let short = token(&server, "robot", json!({ "expirationSeconds": 600 })).await;
    let long = token(&server, "robot", json!({ "expirationSeconds": 3_600 })).await;
    for (seconds, codes) in [(0, [200, 200]), (655, [200, 200]), (661, [401, 200]), (3_661, [401, 401])] {
        passed.store(seconds, Ordering::SeqCst);
        for _ in 0..2 {
            assert_eq!(
                [code(&server, &short).await, code(&server, &long).await],
                codes,
                "after {seconds} seconds"
            );
        }
    }
    let review = json!({ "spec": { "token": short["status"]["token"] } });
    let seen = server.ask(Ask::post("/apis/authentication.k8s.io/v1/tokenreviews", review)).await.expect(201);
    assert_eq!(seen["status"].get("authenticated"), None);
}

#[tokio::test]
async fn a_token_lives_no_longer_than_the_server_allows() {
    let security = Security {
        roles: Some(Vec::new()),
        token_seconds_max: Some(7_200),
        ..Security::bare().expect("keys")
    };
    let server = Server::with(Store::in_memory(), Some(security)).await;
    account(&server, "robot").await;
    let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
    for (asked, given) in [(600, 600), (7_200, 7_200), (86_400, 7_200)] {
        let answer = server.ask(Ask::post(path, json!({ "spec": { "expirationSeconds": asked } }))).await;
        let warning =
            format!("299 - \"requested expiration of {asked} seconds shortened to {given} seconds\"");
        assert_eq!(answer.warnings.contains(&warning), asked != given, "{:?}", answer.warnings);
        let made = answer.expect(201);
        assert_eq!(made["spec"]["expirationSeconds"], given);
    }
}
