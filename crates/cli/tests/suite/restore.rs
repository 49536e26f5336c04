//! A control plane that is restored from a copy: of the directory of `longshore up`, and of etcd under real Kubernetes,
//! where kinds may also have been installed by an older version. Controllers compare and write only what differs.
//! Tests that need real Kubernetes are skipped where it is not built.

use std::path::Path;
use std::time::Duration;

use checks::client::ApiClient;
use checks::kubernetes_clusters::{KubernetesClusters, Plane, Programs, until};
use checks::process::Longshore;
use http::Method;
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
const STEP_TIMEOUT: Duration = Duration::from_secs(120);
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WORKS: &str = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member1/works";
const POLICIES: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies";
const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/propagationpolicies.policy.karmada.io";

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_store_and_older_kinds() {
    let Some(programs) = Programs::find() else { return };
    let bed = KubernetesClusters::start(&programs, 1).await.expect("the bed starts");
    let mut plane = Plane::start(bed, Path::new(BINARY), 1, &[]).await.expect("Longshore starts on it");
    write(&plane, Method::POST, POLICIES, &policy()).await;
    write(&plane, Method::POST, CONFIG_MAPS, &config_map("kept", "old")).await;
    write(&plane, Method::POST, CONFIG_MAPS, &config_map("edited", "old")).await;
    arrives(&plane, "kept", "old").await;
    arrives(&plane, "edited", "old").await;
    // Else it would not be in the backup, and controllers that start on the backup would have to apply it to find out.
    is_recorded(&plane, "kept").await;
    let copy = plane.bed.directory().join("backup");
    plane.bed.control.stop();
    plane.bed.control.back_up(&copy).expect("it is copied");
    come_back(&mut plane).await;
    write(&plane, Method::PATCH, &format!("{CONFIG_MAPS}/edited"), &json!({ "data": { "key": "new" } }))
        .await;
    write(&plane, Method::POST, CONFIG_MAPS, &config_map("later", "new")).await;
    arrives(&plane, "edited", "new").await;
    arrives(&plane, "later", "new").await;
    plane.bed.control.stop();
    plane.bed.control.restore(&copy).expect("it is put back");
    come_back(&mut plane).await;
    restored(&plane).await;
    older_kinds_are_brought_up_to_date(&mut plane).await;
    plane.bed.shut_down().await;
}

/// Stopped, copied, gone on with, and put back: members are as they were, too, and go on from there.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_the_directory_is_a_backup() {
    let home = tempfile::tempdir().expect("there is room");
    let (data, copy) = (home.path().join("data"), home.path().join("copy"));
    let start = || {
        let directory = data.to_str().expect("a readable path");
        Longshore::start(Path::new(BINARY), &["--port=0", "--members=1", "--data-dir", directory])
            .expect("it starts")
    };
    let mut running = start();
    let (control, member) = doors(&running);
    request(&control, Method::POST, POLICIES, &policy()).await;
    request(&control, Method::POST, CONFIG_MAPS, &config_map("kept", "old")).await;
    request(&control, Method::POST, CONFIG_MAPS, &config_map("edited", "old")).await;
    is(&member, "kept", "old").await.expect("it arrives");
    is(&member, "edited", "old").await.expect("it arrives");
    let before = (get(&control, "kept").await, get(&member, "kept").await);
    assert_eq!(running.stop(), Some(0));
    copy_all(&data, &copy);

    let mut running = start();
    let (control, member) = doors(&running);
    let edit = json!({ "data": { "key": "new" } });
    request(&control, Method::PATCH, &format!("{CONFIG_MAPS}/edited"), &edit).await;
    request(&control, Method::POST, CONFIG_MAPS, &config_map("later", "new")).await;
    is(&member, "edited", "new").await.expect("it arrives");
    is(&member, "later", "new").await.expect("it arrives");
    assert_eq!(running.stop(), Some(0));
    std::fs::remove_dir_all(&data).expect("it can be removed");
    copy_all(&copy, &data);

    let running = start();
    let (control, member) = doors(&running);
    assert_eq!(get(&control, "edited").await["data"]["key"], "old");
    assert_eq!(get(&member, "edited").await["data"]["key"], "old");
    assert_eq!(get(&control, "later").await["code"], 404);
    request(&control, Method::PATCH, &format!("{CONFIG_MAPS}/edited"), &edit).await;
    is(&member, "edited", "new").await.expect("it arrives");
    assert_eq!((get(&control, "kept").await, get(&member, "kept").await), before, "nobody wrote to it");
}

/// Taken while it is written to, a backup can be restored and started, and has everything that was there before.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_taken_while_it_runs_and_restored() {
    let home = tempfile::tempdir().expect("there is room");
    let path = |name: &str| home.path().join(name).to_str().expect("a readable path").to_owned();
    let (data, copy, again) = (path("data"), path("copy"), path("again"));
    let start = |directory: &str| {
        Longshore::start(Path::new(BINARY), &["--port=0", "--members=1", "--data-dir", directory])
            .expect("it starts")
    };
    let typed = |words: &[&str]| {
        let output = std::process::Command::new(BINARY).args(words).output().expect("it runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let running = start(&data);
    let (control, member) = doors(&running);
    request(&control, Method::POST, POLICIES, &policy()).await;
    request(&control, Method::POST, CONFIG_MAPS, &config_map("kept", "old")).await;
    is(&member, "kept", "old").await.expect("it arrives");
    let writer = tokio::spawn(async move {
        for number in 0..200 {
            request(&control, Method::POST, CONFIG_MAPS, &config_map(&format!("many-{number}"), "x")).await;
        }
    });
    let (done, said) = typed(&["backup", &copy, "--data-dir", &data]);
    assert!(done, "{said}");
    writer.await.expect("writing goes on meanwhile");
    let (done, said) = typed(&["restore", &copy, "--data-dir", &data]);
    assert!(!done && said.contains("already exists\nhint: stop `longshore up`"), "{said}");
    drop(running);
    let (done, said) = typed(&["restore", &copy, "--data-dir", &again]);
    assert!(done, "{said}");
    let (done, said) = typed(&["restore", &data, "--data-dir", &path("other")]);
    assert!(!done && said.contains("is not a backup\nhint: "), "{said}");
    let running = start(&again);
    let (control, member) = doors(&running);
    assert_eq!(get(&control, "kept").await["data"]["key"], "old");
    is(&member, "kept", "old").await.expect("it is there");
    request(&control, Method::POST, CONFIG_MAPS, &config_map("later", "new")).await;
    is(&member, "later", "new").await.expect("it goes on from there");
}

fn doors(running: &Longshore) -> (ApiClient, ApiClient) {
    let kubeconfig = &running.kubeconfig;
    (ApiClient::open(kubeconfig), ApiClient::of_context(kubeconfig, "member1"))
}

fn copy_all(from: &Path, to: &Path) {
    let done = std::process::Command::new("cp").arg("-r").arg(from).arg(to).status();
    assert!(done.expect("cp is there").success(), "{} to {}", from.display(), to.display());
}

async fn request(api_client: &ApiClient, method: Method, path: &str, body: &Value) {
    let (status, answer) = api_client.request(method, path, body.to_string()).await;
    assert!(status.is_success(), "{answer}");
}

async fn is(member: &ApiClient, name: &str, value: &str) -> anyhow::Result<()> {
    let what = format!("that {name} is {value} in the member");
    until(&what, STEP_TIMEOUT, async || get(member, name).await["data"]["key"] == value).await
}

/// The API server is there again; a replica that could not renew its lease meanwhile is started again.
async fn come_back(plane: &mut Plane) {
    plane.bed.control.start().expect("etcd starts");
    plane.bed.control.until_ready().await.expect("the API server is there again");
    for _ in 0..20 {
        plane.start_all().expect("it starts again");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Members have what the restored store says; what was made after the copy stays and is known by its label.
async fn restored(plane: &Plane) {
    arrives(plane, "edited", "old").await;
    arrives(plane, "kept", "old").await;
    let later = get(&plane.bed.members[0].api_client(), "later").await;
    assert_eq!(later["data"]["key"], "new", "what was made after the copy is nobody's: {later}");
    assert_eq!(later["metadata"]["labels"]["karmada.io/managed"], "true", "{later}");
    let written = |name: &str| {
        let ours = |event: &&Value| {
            event["user"]["username"].as_str().is_some_and(|user| user.contains(":karmada-member"))
                && event["objectRef"]["name"] == name
        };
        plane.bed.members[0].audit().iter().filter(ours).count()
    };
    assert_eq!(written("kept"), 1, "it was as it should be all the time");
    write(plane, Method::POST, CONFIG_MAPS, &config_map("next", "new")).await;
    arrives(plane, "next", "new").await;
}

/// A field that an older version did not know is there when this version has started.
async fn older_kinds_are_brought_up_to_date(plane: &mut Plane) {
    let api_client = plane.bed.control.api_client();
    let (_, mut definition) = api_client.request(Method::GET, DEFINITION, "").await;
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let fields = definition.pointer_mut(schema).and_then(Value::as_object_mut).expect("fields");
    assert!(fields.remove("activationPreference").is_some(), "{fields:?}");
    write(plane, Method::PUT, DEFINITION, &definition).await;
    plane.restart().await.expect("it starts again");
    let (_, definition) = api_client.request(Method::GET, DEFINITION, "").await;
    let fields = definition.pointer(schema).expect("fields");
    assert!(fields.get("activationPreference").is_some(), "{fields}");
    write(plane, Method::POST, CONFIG_MAPS, &config_map("last", "new")).await;
    arrives(plane, "last", "new").await;
}

fn policy() -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": { "name": "all" },
        "spec": { "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap" }] },
    })
}

fn config_map(name: &str, value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "key": value } })
}

/// Retries a write until the API server accepts it: webhooks may be unavailable for a moment.
async fn write(plane: &Plane, method: Method, path: &str, body: &Value) {
    let api_client = plane.bed.control.api_client();
    until(&format!("that {path} is written"), STEP_TIMEOUT, async || {
        let Ok(mut connection) = api_client.connect().await else { return false };
        let answer = connection.json(method.clone(), path, body.to_string()).await;
        answer.is_ok_and(|(status, _)| status.is_success())
    })
    .await
    .unwrap_or_else(|error| panic!("{error}: {}", plane.last_words()));
}

async fn get(api_client: &ApiClient, name: &str) -> Value {
    api_client.request(Method::GET, &format!("{CONFIG_MAPS}/{name}"), "").await.1
}

async fn arrives(plane: &Plane, name: &str, value: &str) {
    let there = is(&plane.bed.members[0].api_client(), name, value).await;
    there.unwrap_or_else(|error| panic!("{error}: {}", plane.last_words()));
}

/// Waits until the Work of an object says that the member has it.
async fn is_recorded(plane: &Plane, name: &str) {
    let api_client = plane.bed.control.api_client();
    until(&format!("that the Work of {name} is applied"), STEP_TIMEOUT, async || {
        let (_, works) = api_client.request(Method::GET, WORKS, "").await;
        let is_applied = |condition: &Value| condition["type"] == "Applied" && condition["status"] == "True";
        works["items"].as_array().into_iter().flatten().any(|work| {
            work["spec"]["workload"]["manifests"][0]["metadata"]["name"] == name
                && work["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(is_applied))
        })
    })
    .await
    .unwrap_or_else(|error| panic!("{error}: {}", plane.last_words()));
}
