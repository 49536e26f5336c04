//! On real Kubernetes: kube-apiserver, etcd and kube-controller-manager for a control plane and three members. What
//! users see there is what they see on our own API server. Skipped where nobody built Kubernetes.

use std::path::{Path, PathBuf};
use std::process::Output;

use checks::bed::{Bed, Plane, Programs};
use checks::process::Longshore;
use http::Method;
use serde_json::Value;

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

/// For a control plane with a single member.
const ONE_MEMBER: [&str; 2] = ["overrides/order.yaml", "rules/c4-fields-of-others.yaml"];

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_on_real_kubernetes() {
    let Some(programs) = Programs::find() else { return };
    let bed = Bed::start(&programs, 3).await.expect("the bed starts");
    let plane = Plane::start(bed, Path::new(BINARY), 2, &[]).await.expect("Longshore starts on it");
    let files: Vec<PathBuf> = SCENARIOS.into_iter().map(file).collect();
    let played = plane.play(&files).expect("it starts");
    assert!(played.status.success(), "{}\n{}", said(&played), plane.last_words());
    assert!(said(&played).contains(" 0 failed"), "{}", said(&played));
    a_name_cannot_be_taken_over(&plane);
    credentials_are_replaced(&plane).await;
    unjoin_cleans_both_sides(&plane).await;
    manifests_are_taken(&plane).await;
    a_real_cluster_joins_our_own_server(&plane);
    plane.bed.shut_down().await;
}

/// Every manifest, as the API server checks it: nothing in it that nobody knows.
async fn manifests_are_taken(plane: &Plane) {
    let control = plane.bed.control.door();
    for file in ["controllers.yaml", "server.yaml"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/manifests").join(file);
        let text = std::fs::read_to_string(path).expect("it is in the repository");
        for mut object in serde_saphyr::from_multiple::<Value>(&text).expect("YAML") {
            // Some are there already: the controllers run with them.
            let name = format!("{}-tried", object["metadata"]["name"].as_str().expect("a name"));
            object["metadata"]["name"] = name.into();
            let path = checks::bed::collection(&object).expect("a kind that is installed");
            let path = format!("{path}?dryRun=All&fieldValidation=Strict");
            let (status, answer) = control.request(Method::POST, &path, object.to_string()).await;
            assert_eq!(status.as_u16(), 201, "{answer}");
        }
    }
}

/// The same member on the other engine: `longshore up` without local members.
fn a_real_cluster_joins_our_own_server(plane: &Plane) {
    let server = Longshore::start(Path::new(BINARY), &["--port=0", "--members=0", "--ephemeral"]);
    let server = server.expect("it starts");
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(BINARY);
        let output = command.args(words).env("KUBECONFIG", &server.kubeconfig).output().expect("it starts");
        assert!(output.status.success(), "{words:?}: {}\n{}", said(&output), server.logged());
    };
    // The one that has left above.
    let kubeconfig = plane.bed.members[2].kubeconfig.to_str().expect("a readable path");
    run(&["join", "member1", "--cluster-kubeconfig", kubeconfig]);
    let control = server.kubeconfig.to_str().expect("a readable path");
    let files = ONE_MEMBER.map(|name| file(name).display().to_string());
    let member = format!("member1={kubeconfig}");
    let words = ["test", "--control", control, "--member", &member];
    run(&[&words[..], &files.each_ref().map(String::as_str)].concat());
    run(&["unjoin", "member1", "--cluster-kubeconfig", kubeconfig]);
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn join(plane: &Plane, name: &str, member: usize, flags: &[&str]) -> Output {
    let mut command = plane.longshore(["join".into(), name.into(), "--cluster-kubeconfig".into()]);
    command.arg(&plane.bed.members[member].kubeconfig).args(flags).output().expect("it starts")
}

fn a_name_cannot_be_taken_over(plane: &Plane) {
    let check = |name: &str, member: usize, expected: &str| {
        let output = join(plane, name, member, &["--rotate"]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains(expected), "{}", said(&output));
    };
    check("member1", 1, "the same cluster has joined as member2 already");
    check("another", 0, "the same cluster has joined as member1 already");
    let again = join(plane, "member1", 0, &[]);
    assert!(said(&again).contains("it has joined already"), "{}", said(&again));
}

async fn tokens(plane: &Plane) -> Vec<String> {
    let secrets =
        "/api/v1/namespaces/karmada-cluster/secrets?labelSelector=longshore.io%2Ftoken-of%3Dkarmada-member1";
    let (_, list) = plane.bed.members[0].door().request(Method::GET, secrets, "").await;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().filter_map(|one| one["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

async fn credentials_are_replaced(plane: &Plane) {
    let before = tokens(plane).await;
    let rotated = join(plane, "member1", 0, &["--rotate"]);
    assert!(rotated.status.success(), "{}", said(&rotated));
    let after = tokens(plane).await;
    assert_eq!((before.len(), after.len()), (1, 1), "{before:?} {after:?}");
    assert_ne!(before, after);
    let played = plane.play(&[file("lazy/simple-1-policy-first.yaml")]).expect("it starts");
    assert!(played.status.success(), "with new credentials: {}", said(&played));
}

async fn unjoin_cleans_both_sides(plane: &Plane) {
    let member = &plane.bed.members[2];
    let mut command = plane.longshore(["unjoin".into(), "member3".into(), "--cluster-kubeconfig".into()]);
    let output = command.arg(&member.kubeconfig).output().expect("it starts");
    assert!(output.status.success(), "{}\n{}", said(&output), plane.last_words());
    let control = plane.bed.control.door();
    for path in [
        "/apis/cluster.karmada.io/v1alpha1/clusters/member3",
        "/api/v1/namespaces/karmada-cluster/secrets/member3",
        "/api/v1/namespaces/karmada-es-member3",
    ] {
        let (status, _) = control.request(Method::GET, path, "").await;
        assert_eq!(status.as_u16(), 404, "{path}");
    }
    let role = "karmada-controller-manager:karmada-member3";
    for path in [
        format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}"),
        format!("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{role}"),
        "/api/v1/namespaces/karmada-cluster/serviceaccounts/karmada-member3".to_owned(),
    ] {
        let (status, answer): (_, Value) = member.door().request(Method::GET, &path, "").await;
        assert_eq!(status.as_u16(), 404, "{path}: {answer}");
    }
}
