//! Real clusters join and leave: conflicts of names, credentials and namespaces, and that no object of others is lost.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use checks::kubernetes_clusters::{Cluster, KubernetesClusters, Plane, Programs, until};
use checks::process::Longshore;
use http::Method;
use serde_json::{Value, json};

use super::{BINARY, TURN, file, said};

/// For a control plane with a single member.
const ONE_MEMBER: [&str; 2] = ["overrides/order.yaml", "rules/c4-fields-of-others.yaml"];
/// Where Karmada keeps what it needs, on both sides.
const KARMADA_NAMESPACE: &str = "karmada-cluster";
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn clusters_join_and_leave() {
    let Some(programs) = Programs::find() else { return };
    let _turn = TURN.lock().await;
    let bed = KubernetesClusters::start(&programs, 3).await.expect("the bed starts");
    let plane = Plane::start(bed, Path::new(BINARY), 1, &[]).await.expect("Longshore starts on it");
    a_name_cannot_be_taken_over(&plane);
    credentials_are_replaced(&plane).await;
    credentials_are_replaced_from_elsewhere(&plane).await;
    unjoin_cleans_both_sides(&plane).await;
    who_cannot_join_leaves_nothing(&plane).await;
    namespaces_of_others_stay(&plane).await;
    a_real_cluster_joins_our_own_server(&plane);
    plane.bed.shut_down().await;
}

fn of_member(plane: &Plane, words: &[&str], member: &Cluster) -> Command {
    let mut command = plane.longshore([]);
    command.args(words).arg("--cluster-kubeconfig").arg(&member.kubeconfig);
    command
}

fn join(plane: &Plane, name: &str, member: usize, flags: &[&str]) -> Output {
    let words = [&["join", name][..], flags].concat();
    of_member(plane, &words, &plane.bed.members[member]).output().expect("it starts")
}

fn unjoin(plane: &Plane, name: &str, member: usize, flags: &[&str]) -> String {
    let words = [&["unjoin", name][..], flags].concat();
    let output = of_member(plane, &words, &plane.bed.members[member]).output().expect("it starts");
    assert!(output.status.success(), "{}\n{}", said(&output), plane.last_words());
    said(&output)
}

async fn get(cluster: &Cluster, path: &str) -> Option<Value> {
    let (status, answer) = cluster.api_client().request(Method::GET, path, "").await;
    assert!(status.is_success() || status.as_u16() == 404, "{path}: {answer}");
    status.is_success().then_some(answer)
}

async fn create(cluster: &Cluster, path: &str, object: &Value) {
    let (status, answer) = cluster.api_client().request(Method::POST, path, object.to_string()).await;
    assert!(status.is_success(), "{path}: {answer}");
}

fn refuses(output: &Output, expected: &str) {
    assert_eq!(output.status.code(), Some(1), "{}", said(output));
    assert!(said(output).contains(expected), "{}", said(output));
}

fn a_name_cannot_be_taken_over(plane: &Plane) {
    let rotate = |name: &str, member: usize| join(plane, name, member, &["--rotate"]);
    refuses(&rotate("member1", 1), "the same cluster has joined as member2 already");
    refuses(&rotate("another", 0), "the same cluster has joined as member1 already");
    refuses(&join(plane, "member1", 0, &[]), "it has joined already");
}

/// The Secrets with tokens in a namespace of a cluster: whose, and their names.
async fn tokens(cluster: &Cluster, namespace: &str) -> Vec<(String, String)> {
    let list = get(cluster, &format!("/api/v1/namespaces/{namespace}/secrets")).await.expect("a list");
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let of = |secret: &Value| {
        let metadata = &secret["metadata"];
        let user = metadata["annotations"]["kubernetes.io/service-account.name"].as_str()?;
        Some((user.to_owned(), metadata["name"].as_str()?.to_owned()))
    };
    let mut found: Vec<_> = items.iter().filter_map(of).collect();
    found.sort();
    found
}

fn users(tokens: &[(String, String)]) -> Vec<&str> {
    tokens.iter().map(|(user, _)| user.as_str()).collect()
}

/// Also those that Karmada had made, which have no label of ours.
async fn credentials_are_replaced(plane: &Plane) {
    let member = &plane.bed.members[0];
    for user in ["karmada-member1", "karmada-impersonator"] {
        let annotations = json!({ "kubernetes.io/service-account.name": user });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": { "name": user, "annotations": annotations },
        });
        create(member, &format!("/api/v1/namespaces/{KARMADA_NAMESPACE}/secrets"), &secret).await;
    }
    let before = tokens(member, KARMADA_NAMESPACE).await;
    assert_eq!(before.len(), 4, "{before:?}");
    let place = endpoint(plane, "member1").await;
    // The controllers go by a relay, of which the kubeconfig knows nothing.
    assert_ne!(place, member.endpoint);
    let rotated = join(plane, "member1", 0, &["--rotate"]);
    assert!(said(&rotated).contains("has new credentials\n"), "{}", said(&rotated));
    let after = tokens(member, KARMADA_NAMESPACE).await;
    assert_eq!(users(&after), ["karmada-impersonator", "karmada-member1"]);
    assert!(after.iter().all(|token| !before.contains(token)), "{before:?} {after:?}");
    assert_eq!(endpoint(plane, "member1").await, place);
    let played = plane.play(&[file("lazy/simple-1-policy-first.yaml")]).expect("it starts");
    assert!(played.status.success(), "with new credentials: {}", said(&played));
}

async fn endpoint(plane: &Plane, name: &str) -> String {
    let cluster = get(&plane.bed.control, &format!("{CLUSTERS}/{name}")).await.expect("it has joined");
    cluster["spec"]["apiEndpoint"].as_str().unwrap_or_default().to_owned()
}

async fn stored_token(plane: &Plane, name: &str) -> Value {
    let path = format!("/api/v1/namespaces/{KARMADA_NAMESPACE}/secrets/{name}");
    get(&plane.bed.control, &path).await.expect("it is there")["data"]["token"].take()
}

/// `join` runs where the member address of the controllers is not reachable: old tokens stay valid until a client has
/// used the new one.
async fn credentials_are_replaced_from_elsewhere(plane: &Plane) {
    let (member, before) = (&plane.bed.members[1], stored_token(plane, "member2").await);
    plane.reach("member2", false).expect("it has a way");
    let mut command = of_member(plane, &["join", "member2", "--rotate"], member);
    let rotating = tokio::task::spawn_blocking(move || command.output());
    let stored = until("that the token is stored", STEP_TIMEOUT, async || {
        stored_token(plane, "member2").await != before
    });
    stored.await.expect("it is");
    let meanwhile = tokens(member, KARMADA_NAMESPACE).await;
    assert_eq!(meanwhile.len(), 4, "nobody came yet: {meanwhile:?}");
    plane.reach("member2", true).expect("it has a way");
    let rotated = rotating.await.expect("nothing panics").expect("it starts");
    assert!(said(&rotated).contains("has new credentials\n"), "{}", said(&rotated));
    assert_eq!(users(&tokens(member, KARMADA_NAMESPACE).await), ["karmada-impersonator", "karmada-member2"]);
}

async fn is_gone_or_going(cluster: &Cluster, namespace: &str) -> bool {
    let found = get(cluster, &format!("/api/v1/namespaces/{namespace}")).await;
    found.is_none_or(|found| found["metadata"]["deletionTimestamp"].is_string())
}

async fn unjoin_cleans_both_sides(plane: &Plane) {
    let member = &plane.bed.members[2];
    unjoin(plane, "member3", 2, &[]);
    for path in [
        format!("{CLUSTERS}/member3"),
        format!("/api/v1/namespaces/{KARMADA_NAMESPACE}/secrets/member3"),
        "/api/v1/namespaces/karmada-es-member3".to_owned(),
    ] {
        assert_eq!(get(&plane.bed.control, &path).await, None);
    }
    let role = "karmada-controller-manager:karmada-member3";
    for path in [
        format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}"),
        format!("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{role}"),
        format!("/api/v1/namespaces/{KARMADA_NAMESPACE}/serviceaccounts/karmada-member3"),
    ] {
        assert_eq!(get(member, &path).await, None);
    }
    assert!(is_gone_or_going(member, KARMADA_NAMESPACE).await, "nothing was in it but ours");
}

async fn who_cannot_join_leaves_nothing(plane: &Plane) {
    let itself = of_member(plane, &["join", "itself"], &plane.bed.control).output().expect("it starts");
    refuses(&itself, "this cluster is the control plane itself");
    let too_long = "m".repeat(49);
    refuses(&join(plane, &too_long, 2, &[]), "must be 1 to 48");
    refuses(&join(plane, "member3", 2, &["--cluster-region=not a label"]), "spec.region");
    for name in [too_long.as_str(), "member3"] {
        let role = format!("karmada-controller-manager:karmada-{name}");
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}");
        assert_eq!(get(&plane.bed.members[2], &path).await, None);
        let path = format!("/api/v1/namespaces/{KARMADA_NAMESPACE}/secrets/{name}");
        assert_eq!(get(&plane.bed.control, &path).await, None);
    }
}

async fn namespaces_of_others_stay(plane: &Plane) {
    let member = &plane.bed.members[2];
    let settings = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "settings" } });
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "platform" } });
    create(member, "/api/v1/namespaces", &namespace).await;
    for (place, why) in
        [("platform", "`longshore join` did not create it"), ("made", "it contains configmaps/settings")]
    {
        let joined = join(plane, "member3", 2, &["--cluster-namespace", place]);
        assert!(joined.status.success(), "{}", said(&joined));
        create(member, &format!("/api/v1/namespaces/{place}/configmaps"), &settings).await;
        let left = unjoin(plane, "member3", 2, &[]);
        assert!(left.contains(&format!("namespace {place} there stays: {why}")), "{left}");
        assert!(!is_gone_or_going(member, place).await);
        assert!(tokens(member, place).await.is_empty());
        let accounts = get(member, &format!("/api/v1/namespaces/{place}/serviceaccounts")).await;
        assert!(!accounts.expect("a list").to_string().contains("karmada-"));
    }
    // An `unjoin` that left a namespace because it was not empty can be repeated.
    let path = "/api/v1/namespaces/made/configmaps/settings";
    assert!(member.api_client().request(Method::DELETE, path, "").await.0.is_success());
    let left = unjoin(plane, "member3", 2, &["--cluster-namespace=made"]);
    assert!(left.contains("was not a member; what an earlier join left is removed\n"), "{left}");
    assert!(is_gone_or_going(member, "made").await);
}

/// The same member on the other engine: `longshore up` without local members.
fn a_real_cluster_joins_our_own_server(plane: &Plane) {
    let server = Longshore::start(Path::new(BINARY), &["--port=0", "--members=0", "--ephemeral"]);
    let server = server.expect("it starts");
    let run = |words: &[&str]| {
        let mut command = Command::new(BINARY);
        command.args(words).env("KUBECONFIG", &server.kubeconfig).output().expect("it starts")
    };
    let succeed = |words: &[&str]| {
        let output = run(words);
        assert!(output.status.success(), "{words:?}: {}\n{}", said(&output), server.logged());
    };
    let kubeconfig = |member: usize| plane.bed.members[member].kubeconfig.to_str().expect("a readable path");
    let taken = run(&["join", "member1", "--cluster-kubeconfig", kubeconfig(0)]);
    refuses(&taken, "account karmada-member1 in the cluster belongs to another control plane");
    // The one that has left above.
    succeed(&["join", "member1", "--cluster-kubeconfig", kubeconfig(2)]);
    let control = server.kubeconfig.to_str().expect("a readable path");
    let files = ONE_MEMBER.map(|name| file(name).display().to_string());
    let member = format!("member1={}", kubeconfig(2));
    let words = ["test", "--control", control, "--member", &member];
    succeed(&[&words[..], &files.each_ref().map(String::as_str)].concat());
    succeed(&["unjoin", "member1", "--cluster-kubeconfig", kubeconfig(2)]);
}
