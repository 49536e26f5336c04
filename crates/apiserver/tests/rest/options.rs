//! Invalid options, selectors and continue tokens, and revisions that do not exist.

use expect_test::expect_file;
use serde_json::{Value, json};

use store::Store;

use crate::client::{Ask, Server};
use crate::table::Table;

const MAPS: &str = "/api/v1/namespaces/options/configmaps";

fn map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

#[tokio::test]
async fn writes() {
    let server = Server::with_namespace("options").await;
    let mut table = Table::new(&server);
    server.ask(Ask::delete(&format!("{MAPS}/w"))).await;
    let post = |query: &str| Ask::post(&format!("{MAPS}?{query}"), map("w"));
    table.ask(post("dryRun=some")).await;
    table.ask(post("dryRun=All&dryRun=some")).await;
    table.ask(post("fieldValidation=Loud")).await;
    table.ask(post(&format!("fieldManager={}", "m".repeat(129)))).await;
    table.ask(post("fieldManager=a%07b")).await;
    table.ask(post("fieldManager=%zz&dryRun=All")).await;
    let left = server.ask(Ask::get(&format!("{MAPS}/w"))).await;
    assert_eq!(left.code, 404, "nothing was written");
    let put = |query: &str| Ask::put(&format!("{MAPS}/w?{query}"), map("w"));
    table.ask(put("dryRun=some")).await;
    table.ask(put("fieldValidation=Loud")).await;
    let patch = |query: &str| Ask::merge(&format!("{MAPS}/w?{query}"), json!({}));
    table.ask(patch("dryRun=some")).await;
    table.ask(patch("fieldValidation=Loud")).await;
    table.ask(patch("force=true")).await;
    let apply = |query: &str| Ask::patch("apply", &format!("{MAPS}/w?{query}"), map("w"));
    table.ask(apply("")).await;
    table.ask(apply("fieldManager=a&dryRun=some")).await;
    table.is(expect_file!["answers/options-writes.txt"]);
}

#[tokio::test]
async fn deletes() {
    let server = Server::with_namespace("options").await;
    let mut table = Table::new(&server);
    let made = server.renew(MAPS, map("d")).await;
    let path = format!("{MAPS}/d");
    let query = |query: &str| Ask::delete(&format!("{path}?{query}"));
    table.ask(query("propagationPolicy=Never")).await;
    table.ask(query("propagationPolicy=Orphan&orphanDependents=true")).await;
    table.ask(query("gracePeriodSeconds=x")).await;
    table.ask(query("dryRun=some")).await;
    let body = |body: Value| Ask::delete(&path).with(body);
    table.ask(body(json!({ "propagationPolicy": "Never" }))).await;
    table.ask(body(json!({ "propagationPolicy": "Orphan", "orphanDependents": true }))).await;
    table.ask(body(json!({ "kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["x"] }))).await;
    table.ask(body(json!({ "kind": "Pod", "apiVersion": "v1" }))).await;
    table.ask(body(json!({ "gracePeriodSeconds": "x" }))).await;
    table.ask(body(json!({ "preconditions": { "uid": "other" } }))).await;
    table.ask(body(json!({ "preconditions": { "resourceVersion": "1" } }))).await;
    table.ask(Ask::delete(&path).with("{")).await;
    table.ask(Ask::delete(&path).with("[]")).await;
    table.ask(Ask::delete(&path).with("{}").content_type("text/plain")).await;
    table.ask(Ask::delete(&format!("{MAPS}/lost"))).await;
    let all = |query: &str| Ask::delete(&format!("{MAPS}?{query}"));
    table.ask(all("labelSelector=a=b=c")).await;
    table.ask(all("fieldSelector=spec.x=1")).await;
    table.ask(all("propagationPolicy=Never")).await;
    let after = server.ask(Ask::get(&path)).await.expect(200);
    assert_eq!(after, made, "nothing of the refused deletes was done");
    table.ask(query("dryRun=All")).await;
    table.ask(query("gracePeriodSeconds=-1")).await;
    table.ask(query("")).await;
    table.is(expect_file!["answers/options-deletes.txt"]);
}

#[tokio::test]
async fn lists() {
    let server = Server::with_namespace("options").await;
    let mut table = Table::new(&server);
    let get = |query: &str| Ask::get(&format!("{MAPS}?{query}"));
    table.ask(get("limit=x")).await;
    table.ask(get("limit=-1")).await;
    table.ask(get("limit=99999999999999999999")).await;
    table.ask(get("limit=1&continue=e30")).await;
    table.ask(get("limit=1&continue=e30&resourceVersion=5")).await;
    table.ask(get("resourceVersion=x")).await;
    table.ask(get("resourceVersion=-1")).await;
    table.ask(get("resourceVersionMatch=Exact")).await;
    table.ask(get("resourceVersionMatch=Sometimes&resourceVersion=1")).await;
    table.ask(get("resourceVersionMatch=Exact&resourceVersion=0")).await;
    table.ask(get("sendInitialEvents=true")).await;
    table.ask(get("timeoutSeconds=x")).await;
    table.ask(get("watch=perhaps&timeoutSeconds=1")).await;
    table.ask(get(&format!("unknown={}", "x".repeat(40_000)))).await;
    table.ask(get(&"a=b&".repeat(500))).await;
    table.is(expect_file!["answers/options-lists.txt"]);
}

#[tokio::test]
async fn selectors() {
    let server = Server::with_namespace("options").await;
    let mut table = Table::new(&server);
    let labels = |selector: &str| Ask::get(&format!("{MAPS}?labelSelector={selector}"));
    table.ask(labels("a=b=c")).await;
    table.ask(labels("=")).await;
    table.ask(labels("!")).await;
    table.ask(labels(",")).await;
    table.ask(labels("a%20in%20(")).await;
    table.ask(labels("a%20in%20b")).await;
    table.ask(labels("a%20in%20()")).await;
    table.ask(labels("a%20b")).await;
    table.ask(labels("a%3Eb")).await;
    table.ask(labels("-a")).await;
    table.ask(labels(&format!("a={}", "v".repeat(64)))).await;
    table.ask(labels(&"(".repeat(5_000))).await;
    let fields = |selector: &str| Ask::get(&format!("{MAPS}?fieldSelector={selector}"));
    table.ask(fields("spec.x=1")).await;
    table.ask(fields("metadata.name")).await;
    table.ask(fields("metadata.name%3Ea")).await;
    table.ask(fields("metadata.labels=a")).await;
    table.ask(fields("metadata.name=a%5C")).await;
    table.ask(Ask::get("/api/v1/pods?fieldSelector=spec.nothing=1")).await;
    table.is(expect_file!["answers/options-selectors.txt"]);
}

#[tokio::test]
async fn watches() {
    let server = Server::with_namespace("options").await;
    let mut table = Table::new(&server);
    let watch = |query: &str| Ask::get(&format!("{MAPS}?watch=true&timeoutSeconds=1&{query}"));
    table.ask(watch("labelSelector=a=b=c")).await;
    table.ask(watch("fieldSelector=spec.x=1")).await;
    table.ask(watch("sendInitialEvents=true")).await;
    table.ask(watch("resourceVersionMatch=NotOlderThan")).await;
    table.ask(watch("sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1")).await;
    table.ask(watch("resourceVersionMatch=Exact&resourceVersion=1")).await;
    let plain = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    table.ask(watch(plain)).await;
    table.ask(watch("limit=x")).await;
    table.is(expect_file!["answers/options-watches.txt"]);
}

#[tokio::test]
async fn a_server_that_ends_opens_no_watch() {
    let server = Server::on(Store::in_memory()).await;
    let Server::InProcess { server: ending, .. } = &server else { panic!("it is in this process") };
    ending.shut_down();
    let answer = server.ask(Ask::get(&format!("{MAPS}?watch=true"))).await;
    assert_eq!(answer.refusal(), (503, "ServiceUnavailable", "the server is shutting down"));
    server.ask(Ask::get(MAPS)).await.expect(200);
}
