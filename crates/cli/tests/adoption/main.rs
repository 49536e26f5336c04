//! Adoption of a control plane as Karmada leaves it, on real Kubernetes: Longshore's controllers take over, write
//! nothing to the member, move nothing, and then go on. Skipped where Kubernetes is not built.

mod facts;
mod left;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use checks::client::ApiClient;
use checks::kubernetes_clusters::{KubernetesClusters, Plane, Programs, until};
use http::Method;
use left::{Found, Left, NAMESPACE, TEMPLATE};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
const STEP_TIMEOUT: Duration = Duration::from_secs(60);
/// How long controllers that wanted to write something would need for it, and more.
const NO_WRITES_PERIOD: Duration = Duration::from_secs(15);
/// The user name of the controllers in the member.
const ACCOUNT: &str = "system:serviceaccount:karmada-cluster:karmada-member1";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_to_members_when_controllers_take_over() {
    let Some(programs) = Programs::find() else { return };
    let bed = KubernetesClusters::start(&programs, 1).await.expect("the bed starts");
    define(&bed.control.api_client()).await;
    let mut plane = Plane::without_controllers(bed, Path::new(BINARY));
    plane.join_without_waiting().await.expect("it joins");
    let left = Left::write(&plane.bed).await;
    let before = left.state(&plane.bed).await;
    nothing_is_planned(&plane);
    let as_karmada_left_it = left.found(&plane.bed).await;
    plane.run_replicas(1, &["--skipped-propagating-namespaces=lab-.*"]).await.expect("the controllers start");
    plane.until_ready().await.expect("the member is ready");
    tokio::time::sleep(NO_WRITES_PERIOD).await;
    let after = left.state(&plane.bed).await;
    let differ = before.iter().zip(&after).filter(|(before, after)| before != after);
    let differ: Vec<String> =
        differ.map(|(before, after)| format!("{before:#}\nbecame\n{after:#}")).collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert_eq!(writes(&plane), Vec::<Value>::new(), "{}", plane.last_words());
    nothing_waits(&plane);
    it_goes_on(&plane).await;
    it_can_be_taken_back(&mut plane, &left, &as_karmada_left_it).await;
    plane.bed.shut_down().await;
}

/// Makes our kinds known, from what `longshore crds` prints.
async fn define(control: &ApiClient) {
    let printed = Command::new(BINARY).arg("crds").output().expect("it starts");
    assert!(printed.status.success());
    let text = String::from_utf8(printed.stdout).expect("it is text");
    let definitions: Vec<&str> = text.split("---\n").filter(|part| !part.trim().is_empty()).collect();
    assert!(definitions.len() > 10, "{}", definitions.len());
    for definition in definitions {
        let definition: Value = serde_saphyr::from_str(definition).expect("YAML");
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (status, answer) = control.request(Method::POST, path, definition.to_string()).await;
        assert!(status.is_success(), "{answer}");
    }
    until("that Works are served", STEP_TIMEOUT, async || {
        let path = "/apis/work.karmada.io/v1alpha1/works";
        control.request(Method::GET, path, "").await.0.is_success()
    })
    .await
    .expect("definitions are established");
}

/// What our account wrote in the member. Asking for a new token of its own changes no object there; it happens because
/// this member was joined by us, and credentials that Karmada made are left alone.
fn writes(plane: &Plane) -> Vec<Value> {
    let all = plane.bed.members[0].audit();
    let is_ours = |event: &Value| event["user"]["username"] == ACCOUNT;
    let is_renewal = |event: &Value| event["objectRef"]["subresource"] == "token";
    let ours = all.into_iter().filter(|event| is_ours(event) && !is_renewal(event));
    ours.map(|event| json!([event["verb"], event["objectRef"]])).collect()
}

/// What `longshore` prints when it is called with these words, and its exit code.
fn longshore(plane: &Plane, words: &[&str]) -> (i32, String) {
    let output = Command::new(BINARY)
        .args(words)
        .arg("--kubeconfig")
        .arg(&plane.bed.control.kubeconfig)
        .output()
        .expect("it starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

/// The plan of the takeover, asked while Karmada is in charge, predicts no write to any member, and nothing that Karmada
/// made is called pending.
fn nothing_is_planned(plane: &Plane) {
    let (_, text) = longshore(plane, &["plan", "--restart", "-o", "json"]);
    let plan: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let templates = plan["templates"].as_object().expect("a map");
    // A flag of the controllers skips that namespace, and the ConfigMap that publishes the flag is not written yet.
    let acts = templates.iter().filter(|(name, plan)| {
        !name.contains("lab-1") && plan["clusters"].as_object().is_some_and(|clusters| !clusters.is_empty())
    });
    assert_eq!(acts.collect::<Vec<_>>(), Vec::<(&String, &Value)>::new());
    nothing_waits(plane);
}

fn nothing_waits(plane: &Plane) {
    let (code, text) = longshore(plane, &["status", "-o", "json"]);
    assert_eq!(code, 0, "{text}");
    let status: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    for policy in status["policies"].as_array().expect("a list") {
        assert_eq!(policy["pending"], 0, "{policy}");
    }
}

/// The way back: Longshore ends and `handback` takes away what is its own. Karmada finds every id, label, annotation and
/// finalizer of its own as it left them and nothing beside them; and nothing keeps policies from being written.
async fn it_can_be_taken_back(plane: &mut Plane, left: &Left, before: &[Found]) {
    let (code, text) = longshore(plane, &["handback", "--check"]);
    assert_eq!(code, 2, "something of ours is there: {text}");
    let (code, text) = longshore(plane, &["handback", "--yes"]);
    assert!(code == 1 && text.contains("controllers still run"), "{code}: {text}");
    plane.replicas.iter_mut().for_each(checks::kubernetes_clusters::Process::end);
    let (code, text) = longshore(plane, &["handback", "--yes"]);
    assert_eq!(code, 0, "{text}");
    until("that nothing is left", STEP_TIMEOUT, async || longshore(plane, &["handback", "--check"]).0 == 0)
        .await
        .expect("everything of ours goes");
    for (before, after) in before.iter().zip(&left.found(&plane.bed).await) {
        for mark in before {
            assert!(after.contains(mark), "{mark} was taken away: {after:?}");
        }
        let new: Vec<&String> = after.iter().filter(|mark| !before.contains(*mark)).collect();
        assert_eq!(new, Vec::<&String>::new(), "nothing of ours is left");
    }
    // The API server forgets webhooks within a moment.
    until("that policies can be written", STEP_TIMEOUT, async || left.edit_policy(&plane.bed).await)
        .await
        .expect("nothing keeps them from being written");
}

/// A change of the template arrives as ever.
async fn it_goes_on(plane: &Plane) {
    let patch = json!({ "spec": { "replicas": 3 } }).to_string();
    let (status, answer) = plane.bed.control.api_client().request(Method::PATCH, TEMPLATE, patch).await;
    assert!(status.is_success(), "{answer}");
    let member = plane.bed.members[0].api_client();
    let arrives = until("that the change arrives", STEP_TIMEOUT, async || {
        member.request(Method::GET, TEMPLATE, "").await.1["spec"]["replicas"] == 3
    });
    arrives.await.unwrap_or_else(|error| panic!("{error} in {NAMESPACE}: {}", plane.last_words()));
    assert!(!writes(plane).is_empty(), "our account is the one that writes");
}
