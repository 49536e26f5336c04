//! Admission webhooks: what they are sent, what they may change, what their failure means.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::client::{Ask, Server};
use crate::tls::Authority;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A test webhook with a programmable response that records the requests it gets.
pub struct Webhook {
    pub url: String,
    pub authority: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Webhook {
    async fn new(response: Value) -> Self {
        Self::answering(move |request| {
            let mut response = response.clone();
            response["uid"] = request["uid"].clone();
            json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response })
        })
        .await
    }

    /// A webhook that makes its answer from the request in a review.
    pub async fn answering(answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        let answer = Arc::new(answer);
        let authority = Authority::new("webhooks");
        let shown = authority.server();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
        let config =
            config.with_single_cert(vec![shown.certificate.clone()], shown.key()).expect("a certificate");
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("https://{}/check", listener.local_addr().expect("an address"));
        let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
        let seen = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(stream) = acceptor.accept(stream).await else { continue };
                let (seen, answer) = (seen.clone(), answer.clone());
                let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                    let (seen, answer) = (seen.clone(), answer.clone());
                    async move {
                        let body = request.into_body().collect().await.expect("a body").to_bytes();
                        let review: Value = serde_json::from_slice(&body).expect("a review");
                        seen.lock().expect("no one panics").push(review["request"].clone());
                        let answer = answer(&review["request"]);
                        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(answer.to_string()))))
                    }
                });
                let served = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                drop(served.await);
            }
        });
        Self { url, authority: STANDARD.encode(authority.certificate.pem()), asked }
    }

    async fn register(&self, server: &Server, kind: &str, more: Value) {
        let configuration = json!({ "metadata": { "name": "hooks" }, "webhooks": [self.described(more)] });
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
        server.ask(Ask::post(&path, configuration)).await.expect(201);
    }

    fn described(&self, more: Value) -> Value {
        let mut hook = json!({
            "name": "check.example.io",
            "clientConfig": { "url": self.url, "caBundle": self.authority },
            "rules": [{ "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"] }],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        });
        more.as_object().into_iter().flatten().for_each(|(key, value)| hook[key] = value.clone());
        hook
    }

    pub fn asked(&self) -> Vec<Value> {
        self.asked.lock().expect("no one panics").clone()
    }
}

fn map(name: &str) -> Value {
    json!({ "metadata": { "name": name, "labels": { "app": "x" } } })
}

#[tokio::test]
async fn a_webhook_changes_and_comments_on_what_is_written() {
    let server = Server::new().await;
    let patch = json!([{ "op": "add", "path": "/data", "value": { "added": "yes" } }]).to_string();
    let response = json!({ "allowed": true, "warnings": ["careful"], "patchType": "JSONPatch", "patch": STANDARD.encode(patch) });
    let webhook = Webhook::new(response).await;
    webhook.register(&server, "mutating", json!({})).await;
    let made = server.ask(Ask::post(MAPS, map("m"))).await;
    assert_eq!(made.warnings, ["299 - \"careful\""]);
    assert_eq!(made.expect(201)["data"], json!({ "added": "yes" }));
    let asked = webhook.asked();
    let question = &asked[0];
    assert_eq!(
        (&question["operation"], &question["namespace"], &question["name"]),
        (&json!("CREATE"), &json!("default"), &json!("m"))
    );
    assert_eq!(question["kind"], json!({ "group": "", "version": "v1", "kind": "ConfigMap" }));
    assert_eq!(question["resource"], json!({ "group": "", "version": "v1", "resource": "configmaps" }));
    assert_eq!((&question["oldObject"], &question["dryRun"]), (&Value::Null, &json!(false)));
    assert_eq!(question["userInfo"]["username"], "test");
    server
        .ask(Ask::post("/api/v1/namespaces/default/secrets", json!({ "metadata": { "name": "s" } })))
        .await
        .expect(201);
    assert_eq!(webhook.asked().len(), 1, "it did not ask for secrets");
}

/// A webhook that adds a field to the data of maps, unless it is there.
async fn adding(key: &'static str) -> Webhook {
    Webhook::answering(move |request| {
        let data = &request["object"]["data"];
        let patch = match (data.is_null(), data.get(key)) {
            (_, Some(_)) => json!([]),
            (true, None) => json!([{ "op": "add", "path": "/data", "value": { key: "" } }]),
            (false, None) => json!([{ "op": "add", "path": format!("/data/{key}"), "value": "" }]),
        };
        let patch = STANDARD.encode(patch.to_string());
        let response =
            json!({ "uid": request["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch });
        json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response })
    })
    .await
}

/// A webhook with `reinvocationPolicy: IfNeeded` is called again, once, and only if a later webhook changed the
/// object.
#[tokio::test]
async fn webhooks_are_asked_again_if_needed() {
    let check = async |policies: [&str; 3], data: Value, times: [usize; 3]| {
        let server = Server::new().await;
        let hooks = [adding("a").await, adding("b").await, adding("c").await];
        let described: Vec<Value> = (0..3)
            .map(|number| {
                let name = format!("{number}.example.io");
                hooks[number].described(json!({ "name": name, "reinvocationPolicy": policies[number] }))
            })
            .collect();
        let configuration = json!({ "metadata": { "name": "hooks" }, "webhooks": described });
        let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
        server.ask(Ask::post(path, configuration)).await.expect(201);
        let made = server.ask(Ask::post(MAPS, json!({ "metadata": { "name": "m" }, "data": data }))).await;
        assert_eq!(made.expect(201)["data"], json!({ "a": "", "b": "", "c": "" }));
        let asked = hooks.each_ref().map(|hook| hook.asked().len());
        assert_eq!(asked, times, "{policies:?}");
    };
    check(["Never", "Never", "Never"], json!({}), [1, 1, 1]).await;
    check(["IfNeeded", "IfNeeded", "IfNeeded"], json!({}), [2, 2, 1]).await;
    check(["IfNeeded", "Never", "Never"], json!({}), [2, 1, 1]).await;
    check(["Never", "IfNeeded", "Never"], json!({ "c": "" }), [1, 1, 1]).await;
    check(["IfNeeded", "IfNeeded", "Never"], json!({ "b": "", "c": "" }), [1, 1, 1]).await;
}

#[tokio::test]
async fn a_webhook_refuses_and_can_be_taken_away() {
    let server = Server::new().await;
    server.ask(Ask::post(MAPS, map("old"))).await.expect(201);
    let webhook =
        Webhook::new(json!({ "allowed": false, "status": { "message": "not today", "code": 403 } })).await;
    webhook.register(&server, "validating", json!({})).await;
    let message = "admission webhook \"check.example.io\" denied the request: not today";
    let asks = [
        Ask::post(MAPS, map("m")),
        Ask::merge(&format!("{MAPS}/old"), json!({ "data": { "k": "v" } })),
        Ask::delete(&format!("{MAPS}/old")),
        Ask::patch(
            "apply",
            &format!("{MAPS}/applied?fieldManager=t"),
            json!({ "apiVersion": "v1", "kind": "ConfigMap" }),
        ),
    ];
    for ask in asks {
        let refused = server.ask(ask).await;
        assert_eq!((refused.code, refused.body["message"].as_str()), (403, Some(message)));
    }
    let operations: Vec<Value> = webhook.asked().iter().map(|asked| asked["operation"].clone()).collect();
    assert_eq!(operations, ["CREATE", "UPDATE", "DELETE", "CREATE"]);
    assert_eq!(webhook.asked()[2]["object"], Value::Null, "what goes has no new state");
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hooks";
    server.ask(Ask::delete(path)).await.expect(200);
    server.ask(Ask::post(MAPS, map("m"))).await.expect(201);
}

#[tokio::test]
async fn selectors_say_what_a_webhook_wants_to_see() {
    let server = Server::new().await;
    let webhook = Webhook::new(json!({ "allowed": false })).await;
    let more = json!({
        "objectSelector": { "matchLabels": { "app": "y" } },
        "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": "default" } },
    });
    webhook.register(&server, "validating", more).await;
    server.ask(Ask::post(MAPS, map("m"))).await.expect(201);
    let other = json!({ "metadata": { "name": "o", "labels": { "app": "y" } } });
    server.ask(Ask::post(MAPS, other.clone())).await.expect(400);
    server.namespace("elsewhere").await;
    server.ask(Ask::post("/api/v1/namespaces/elsewhere/configmaps", other)).await.expect(201);
    assert_eq!(webhook.asked().len(), 1);
}

#[tokio::test]
async fn an_unreachable_webhook_counts_by_its_failure_policy() {
    let nowhere = |policy: &str| json!({ "failurePolicy": policy, "clientConfig": { "url": "https://127.0.0.1:1/x", "caBundle": "" } });
    for (policy, code) in [("Ignore", 201), ("Fail", 500)] {
        let server = Server::new().await;
        let webhook = Webhook::new(json!({})).await;
        webhook.register(&server, "validating", nowhere(policy)).await;
        let answer = server.ask(Ask::post(MAPS, map("m"))).await;
        assert_eq!(answer.code, code, "{policy}: {}", answer.text);
        let begins =
            "Internal error occurred: failed calling webhook \"check.example.io\": failed to call webhook: ";
        assert!(code == 201 || answer.refusal().2.starts_with(begins), "{}", answer.text);
    }
    let server = Server::new().await;
    let webhook = Webhook::new(json!({ "allowed": true })).await;
    webhook.register(&server, "validating", json!({ "sideEffects": "NoneOnDryRun" })).await;
    server.ask(Ask::post(&format!("{MAPS}?dryRun=All"), map("m"))).await.expect(201);
    assert_eq!(webhook.asked()[0]["dryRun"], true);
}

#[tokio::test]
async fn a_webhook_is_found_by_its_service() {
    let server = Server::new().await;
    let webhook = Webhook::new(json!({ "allowed": false, "status": { "message": "no" } })).await;
    let port: u16 =
        webhook.url.rsplit(':').next().and_then(|rest| rest.split('/').next()?.parse().ok()).expect("a port");
    let by_service = json!({ "clientConfig": { "service": { "namespace": "default", "name": "localhost", "path": "/check" }, "caBundle": webhook.authority } });
    webhook.register(&server, "validating", by_service).await;
    let why = async |expected: &str| {
        let refused = server.ask(Ask::post(MAPS, map("m"))).await;
        assert!(refused.text.contains(expected), "{expected}: {}", refused.text);
        refused.code
    };
    assert_eq!(why("service \\\"localhost\\\" not found").await, 500);
    let services = "/api/v1/namespaces/default/services";
    let service = json!({ "metadata": { "name": "localhost" }, "spec": { "ports": [{ "port": 443, "targetPort": 8443 }] } });
    server.ask(Ask::post(services, service)).await.expect(201);
    assert_eq!(why("no endpoints available for service").await, 500);
    let slice = json!({
        "metadata": { "name": "localhost-1", "labels": { "kubernetes.io/service-name": "localhost" } }, "addressType": "IPv4",
        "endpoints": [{ "addresses": ["127.0.0.1"] }], "ports": [{ "name": "", "port": port }],
    });
    server
        .ask(Ask::post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice))
        .await
        .expect(201);
    // It is reached, and shows a certificate for another name than that of the Service.
    assert_eq!(why("localhost.default.svc").await, 500);
    assert!(webhook.asked().is_empty(), "a webhook with an untrusted certificate gets no request");
}

#[tokio::test]
async fn conditions_say_which_writes_a_webhook_sees() {
    let server = Server::new().await;
    let webhook = Webhook::new(json!({ "allowed": false })).await;
    let wanted = json!({ "matchConditions": [
        { "name": "not-by-kubelet", "expression": "!('system:nodes' in request.userInfo.groups)" },
        { "name": "with-data", "expression": "has(object.data) && object.data.kind == 'seen'" },
    ] });
    webhook.register(&server, "validating", wanted).await;
    server.ask(Ask::post(MAPS, map("m"))).await.expect(201);
    let seen = |kind: &str| json!({ "metadata": { "name": "n" }, "data": { "kind": kind } });
    server.ask(Ask::post(&format!("{MAPS}?dryRun=All"), seen("unseen"))).await.expect(201);
    server.ask(Ask::post(&format!("{MAPS}?dryRun=All"), seen("seen"))).await.expect(400);
    let failing = json!({ "metadata": { "name": "n" }, "data": { "other": "x" } });
    let refused = server.ask(Ask::post(MAPS, failing)).await;
    assert_eq!(refused.code, 403, "{}", refused.text);
    assert!(
        refused.text.contains("match condition 'with-data' failed: no such key: kind"),
        "{}",
        refused.text
    );
    assert_eq!(webhook.asked().len(), 1);
}
