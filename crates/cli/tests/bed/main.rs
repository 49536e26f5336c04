//! On real Kubernetes: kube-apiserver, etcd and kube-controller-manager for a control plane and three members. Users
//! see the same there as on our own API server. Skipped where Kubernetes is not built.

use std::path::{Path, PathBuf};
use std::process::Output;

use checks::kubernetes_clusters::{KubernetesClusters, Plane, Programs};
use http::Method;
use serde_json::Value;
use tokio::sync::Mutex;

mod joining;

/// Guards the machine: a bed is a dozen servers, and one of them at a time is enough.
static TURN: Mutex<()> = Mutex::const_new(());

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");

/// One or two scenarios of every feature that three members can play. docs/operate.md says how to play all of them.
const SCENARIOS: [&str; 14] = [
    "admission/propagation-policy.yaml",
    "batch/scheme-2-option-1-exclude-in-a-selector.yaml",
    "deletion/left-as-the-policy-says-now.yaml",
    "dependencies/claimed-too.yaml",
    "division/static-weights.yaml",
    "lazy/simple-1-policy-first.yaml",
    "lazy/simple-2-template-first.yaml",
    "outlook/apply-tells-what-a-policy-does.yaml",
    "overrides/image.yaml",
    "preemption/user-story-1-one-business-of-many.yaml",
    "rules/c2-scaled-to-zero.yaml",
    "status/binding-forgets-clusters-it-left.yaml",
    "suspension/pp-5-delete-while-suspended.yaml",
    "suspension/rollout-2-delete-the-policy.yaml",
];

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_on_real_kubernetes() {
    let Some(programs) = Programs::find() else { return };
    let _turn = TURN.lock().await;
    let bed = KubernetesClusters::start(&programs, 3).await.expect("the bed starts");
    let plane = Plane::start(bed, Path::new(BINARY), 2, &[]).await.expect("Longshore starts on it");
    let files: Vec<PathBuf> = SCENARIOS.into_iter().map(file).collect();
    let played = plane.play(&files).expect("it starts");
    assert!(played.status.success(), "{}\n{}", said(&played), plane.last_words());
    assert!(said(&played).contains(" 0 failed"), "{}", said(&played));
    manifests_are_taken(&plane).await;
    plane.bed.shut_down().await;
}

/// The API server accepts every manifest with strict field validation.
async fn manifests_are_taken(plane: &Plane) {
    let control = plane.bed.control.api_client();
    for file in ["controllers.yaml", "server.yaml"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/manifests").join(file);
        let text = std::fs::read_to_string(path).expect("it is in the repository");
        for mut object in serde_saphyr::from_multiple::<Value>(&text).expect("YAML") {
            // Some are there already: the controllers run with them.
            let name = format!("{}-tried", object["metadata"]["name"].as_str().expect("a name"));
            object["metadata"]["name"] = name.into();
            let path = checks::kubernetes_clusters::collection(&object).expect("a kind that is installed");
            let path = format!("{path}?dryRun=All&fieldValidation=Strict");
            let (status, answer) = control.request(Method::POST, &path, object.to_string()).await;
            assert_eq!(status.as_u16(), 201, "{answer}");
        }
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
