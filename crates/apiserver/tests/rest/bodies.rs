//! Request bodies that a server must refuse: broken encodings, wrong kinds, unknown fields, too large.

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::client::{Ask, Server};
use crate::table::Table;

const MAPS: &str = "/api/v1/namespaces/bodies/configmaps";

#[tokio::test]
async fn languages() {
    let server = Server::with_namespace("bodies").await;
    let mut table = Table::new(&server);
    let post = |body: &[u8]| Ask::post(MAPS, body);
    table.ask(post(b"")).await;
    table.ask(post(b"{")).await;
    table.ask(post(b"{\"metadata\":{\"name\":\"a\"}} x")).await;
    table.ask(post(b"[]")).await;
    table.ask(post(b"\"text\"")).await;
    table.ask(post(b"null")).await;
    table.ask(post(b"42")).await;
    table.ask(post(b"\xff\xfe{}")).await;
    table.ask(post(b"kind: ConfigMap")).await;
    let yaml = |body: &str| Ask::post(MAPS, body).content_type("application/yaml");
    table.ask(yaml("a: [")).await;
    table.ask(yaml("a:\n\t- b")).await;
    table.ask(yaml("just a text")).await;
    table.ask(yaml("- a\n- b")).await;
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n";
    table.ask(yaml(bomb)).await;
    let protobuf = |body: &[u8]| Ask::post(MAPS, body).content_type("application/vnd.kubernetes.protobuf");
    for body in
        [&b"k8s\0"[..], b"k8s\0\xff\xff\xff\xff", b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x01\xff"]
    {
        let answer = server.ask(protobuf(body)).await;
        assert_eq!((answer.code, answer.refusal().1), (400, "BadRequest"), "{body:?}");
    }
    table.ask(protobuf(b"not protobuf")).await;
    table.is(expect_file!["answers/bodies-languages.txt"]);
}

#[tokio::test]
async fn media_types() {
    let server = Server::with_namespace("bodies").await;
    let mut table = Table::new(&server);
    let body = json!({ "metadata": { "name": "x" } });
    let post = |kind: &str| Ask::post(MAPS, body.clone()).content_type(kind);
    table.ask(post("text/plain")).await;
    table.ask(post("application/xml")).await;
    table.ask(post("application/merge-patch+json")).await;
    table.ask(post(";;;")).await;
    // The words of these depend on which of its layers a real server refuses them in.
    for kind in ["application/json", "text/plain", ""] {
        let patch = Ask::patch("merge", &format!("{MAPS}/x"), body.clone()).content_type(kind);
        let answer = server.ask(patch).await;
        assert_eq!((answer.code, answer.refusal().1), (415, "UnsupportedMediaType"), "{kind}");
    }
    for accept in [
        "text/html",
        "application/xml, image/*",
        "application/json;as=Nothing;g=meta.k8s.io;v=v1",
        "application/json;as=Table;g=meta.k8s.io;v=v9",
    ] {
        let answer = server.ask(Ask::get(MAPS).accept(accept)).await;
        assert_eq!((answer.code, answer.refusal().1), (406, "NotAcceptable"), "{accept}");
    }
    let get = |accept: &str| Ask::get(&format!("{MAPS}?labelSelector=a")).accept(accept);
    table.ask(get("text/html, application/json;q=0.1")).await;
    table.ask(get("")).await;
    table.is(expect_file!["answers/bodies-media-types.txt"]);
}

#[tokio::test]
async fn kinds() {
    let server = Server::with_namespace("bodies").await;
    let mut table = Table::new(&server);
    let post = |api_version: &str, kind: &str| {
        Ask::post(MAPS, json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "k" } }))
    };
    table.ask(post("v1", "Secret")).await;
    table.ask(post("v2", "ConfigMap")).await;
    table.ask(post("apps/v1", "ConfigMap")).await;
    table.ask(post("apps/v1", "Deployment")).await;
    table.ask(post("v1", "Nothing")).await;
    table.ask(post("a/b/c", "ConfigMap")).await;
    table.ask(post("v1", "ConfigMapList")).await;
    table.ask(post("v1", "Status")).await;
    let typed = |body: Value| Ask::post(MAPS, body);
    table.ask(typed(json!({ "apiVersion": 1, "kind": "ConfigMap" }))).await;
    table.ask(typed(json!({ "apiVersion": "v1", "kind": ["ConfigMap"] }))).await;
    table.is(expect_file!["answers/bodies-kinds.txt"]);
}

#[tokio::test]
async fn types() {
    let server = Server::with_namespace("bodies").await;
    let mut table = Table::new(&server);
    let post = |mut body: Value| {
        body["apiVersion"] = "v1".into();
        body["kind"] = "ConfigMap".into();
        Ask::post(MAPS, body)
    };
    table.ask(post(json!({ "metadata": [] }))).await;
    table.ask(post(json!({ "metadata": "x" }))).await;
    table.ask(post(json!({ "metadata": { "name": 7 } }))).await;
    table.ask(post(json!({ "metadata": { "name": "t", "labels": ["a"] } }))).await;
    table.ask(post(json!({ "metadata": { "name": "t", "labels": { "a": 1 } } }))).await;
    table.ask(post(json!({ "metadata": { "name": "t" }, "data": "x" }))).await;
    table.ask(post(json!({ "metadata": { "name": "t" }, "data": { "a": 1 } }))).await;
    table.ask(post(json!({ "metadata": { "name": "t" }, "immutable": "yes" }))).await;
    table.ask(post(json!({ "metadata": { "name": "t" }, "binaryData": { "a": "%%" } }))).await;
    table.ask(post(json!({ "metadata": { "name": "t", "creationTimestamp": "soon" } }))).await;
    let deployments = "/apis/apps/v1/namespaces/bodies/deployments";
    let deployment = |spec: Value| {
        let body = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" }, "spec": spec });
        Ask::post(deployments, body)
    };
    table.ask(deployment(json!({ "replicas": "two" }))).await;
    table.ask(deployment(json!({ "replicas": 1.5 }))).await;
    table.ask(deployment(json!({ "replicas": 99999999999_u64 }))).await;
    table.is(expect_file!["answers/bodies-types.txt"]);
}

#[tokio::test]
async fn unknown_fields() {
    let server = Server::with_namespace("bodies").await;
    let mut table = Table::new(&server);
    let ask = |validation: &str, body: &str| {
        let path = format!("{MAPS}?dryRun=All&fieldValidation={validation}");
        let body = body.replacen('{', r#"{"apiVersion":"v1","kind":"ConfigMap","#, 1);
        Ask::post(&path, body)
    };
    let unknown = r#"{"metadata":{"name":"u","nickname":"x"}}"#;
    table.ask(ask("Ignore", unknown)).await;
    table.ask(ask("Warn", unknown)).await;
    table.ask(ask("", unknown)).await;
    table.ask(ask("Strict", unknown)).await;
    let duplicate = r#"{"metadata":{"name":"u","name":"v"},"data":{"a":"1","a":"2"}}"#;
    table.ask(ask("Ignore", duplicate)).await;
    table.ask(ask("Warn", duplicate)).await;
    table.ask(ask("Strict", duplicate)).await;
    let case = r#"{"Metadata":{"name":"u"},"metadata":{"name":"u"}}"#;
    table.ask(ask("Strict", case)).await;
    let deep = r#"{"metadata":{"name":"u","ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x","uid":"u","extra":1}]}}"#;
    table.ask(ask("Strict", deep)).await;
    table.is(expect_file!["answers/bodies-unknown-fields.txt"]);
}

#[tokio::test]
async fn nesting() {
    let server = Server::with_namespace("bodies").await;
    let kept = json!({ "metadata": { "name": "nested", "labels": { "kept": "" } } });
    server.renew(MAPS, kept).await;
    let brackets = |open: &str, close: &str| format!("{}{}", open.repeat(10_000), close.repeat(10_000));
    let lists = brackets("[", "]");
    let maps = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    for deep in [lists.clone(), maps.clone(), "[".repeat(10_000)] {
        for content in ["application/json", "application/yaml"] {
            let body = format!("{{\"metadata\":{{\"name\":\"n\"}},\"data\":{deep}}}");
            let answer = server.ask(Ask::post(MAPS, body).content_type(content)).await;
            assert_eq!((answer.code, answer.refusal().1), (400, "BadRequest"), "{content}: {}", answer.text);
        }
        let path = format!("{MAPS}/nested");
        for kind in ["merge", "strategic-merge", "json", "apply"] {
            let answer = server.ask(Ask::patch(kind, &path, deep.clone())).await;
            // Below an unknown field it may be pruned with a warning instead.
            assert!(answer.code < 500, "{kind}: {}", answer.text);
        }
        let answer = server.ask(Ask::delete(&path).with(deep.clone())).await;
        assert!(answer.code < 500, "{}", answer.text);
    }
    let open = Ask::post(MAPS, "[".repeat(10_000)).content_type("application/yaml");
    assert_eq!(server.ask(open).await.code, 400);
}

#[tokio::test]
async fn sizes() {
    let server = Server::with_namespace("bodies").await;
    let mut table = Table::new(&server);
    let limit = 3 * 1024 * 1024;
    let map = |bytes: usize| {
        let value = "x".repeat(bytes);
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "s" }, "data": { "a": value } })
    };
    table.ask(Ask::post(MAPS, map(limit))).await;
    table.ask(Ask::post(MAPS, map(2 * 1024 * 1024))).await;
    let patch = Ask::merge(&format!("{MAPS}/s"), map(limit));
    table.ask(patch).await;
    table.ask(Ask::put(&format!("{MAPS}/s"), map(limit))).await;
    let delete = Ask::delete(&format!("{MAPS}/s")).with(map(limit));
    table.ask(delete).await;
    table.is(expect_file!["answers/bodies-sizes.txt"]);
}
