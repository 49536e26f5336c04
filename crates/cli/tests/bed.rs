//! On real Kubernetes: kube-apiserver, etcd and kube-controller-manager for a control plane and three members. What
//! users see there is what they see on our own API server. Skipped where nobody built Kubernetes.

use std::path::{Path, PathBuf};
use std::process::Output;

use checks::bed::{Bed, Plane, Programs};
use http::Method;
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");

/// One or two scenarios of every feature that three members can play. `checks/kubernetes` and docs/operate.md say how to
/// play all of them, which takes most of an hour.
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

fn scenario(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_on_real_kubernetes() {
    let Some(programs) = Programs::find() else { return };
    let bed = Bed::start(&programs, 3).await.expect("the bed starts");
    let plane = Plane::start(bed, Path::new(BINARY), 2, &[]).await.expect("Longshore starts on it");
    let files: Vec<PathBuf> = SCENARIOS.into_iter().map(scenario).collect();
    let played = plane.play(&files).expect("it starts");
    assert!(played.status.success(), "{}\n{}", said(&played), plane.last_words());
    assert!(said(&played).contains(" 0 failed"), "{}", said(&played));
    a_name_cannot_be_taken_over(&plane);
    credentials_are_replaced(&plane).await;
    unjoin_cleans_both_sides(&plane).await;
    plane.bed.shut_down().await;
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
    let played = plane.play(&[scenario("lazy/simple-1-policy-first.yaml")]).expect("it starts");
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
