//! A control plane joins another API server on the network: tokens that expire and are renewed, and an RBAC role for
//! some kinds in some namespaces.

use std::path::Path;
use std::time::{Duration, Instant};

use checks::client::ApiClient;
use checks::process::Longshore;
use http::{Method, Request};
use serde_json::{Value, json};

use crate::terminal::{BINARY, Said, run};

const SECRET: &str = "/api/v1/namespaces/karmada-cluster/secrets/far";
const SECRETS_THERE: &str = "/api/v1/namespaces/karmada-cluster/secrets";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A control plane and a server that joins it.
struct Pair {
    home: tempfile::TempDir,
    control: Longshore,
    member: Longshore,
}

impl Pair {
    fn start() -> Self {
        let start = || {
            let flags = ["--port=0", "--members=0", "--ephemeral"];
            let started = Longshore::start(Path::new(BINARY), &flags);
            started.expect("it starts")
        };
        let home = tempfile::tempdir().expect("there is room for a temporary directory");
        Self { home, control: start(), member: start() }
    }

    fn run(&self, line: &str) -> Said {
        let (control, member) = (self.control.kubeconfig.display(), self.member.kubeconfig.display());
        let line = format!("{line} --kubeconfig {control} --cluster-kubeconfig {member}");
        run(self.home.path(), &line, &[])
    }

    #[track_caller]
    fn ok(&self, line: &str) -> String {
        let said = self.run(line);
        assert_eq!(said.code, Some(0), "{line}: {}{}\n{}", said.stdout, said.stderr, self.control.logged());
        said.stdout + &said.stderr
    }

    fn here(&self) -> ApiClient {
        ApiClient::open(&self.control.kubeconfig)
    }

    fn there(&self) -> ApiClient {
        ApiClient::open(&self.member.kubeconfig)
    }
}

async fn get(api_client: &ApiClient, path: &str) -> Value {
    api_client.request(Method::GET, path, "").await.1
}

async fn write(api_client: &ApiClient, method: Method, path: &str, body: Value) {
    let (status, answer) = api_client.request(method, path, body.to_string()).await;
    assert!(status.is_success(), "{path}: {answer}");
}

async fn until(api_client: &ApiClient, path: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let answer = get(api_client, path).await;
        if wanted(&answer) {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}: {answer}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn annotation<'a>(secret: &'a Value, name: &str) -> &'a str {
    secret["metadata"]["annotations"][format!("longshore.io/{name}")].as_str().unwrap_or_default()
}

/// Whether a server accepts this token (in base64, as Secrets have it).
async fn lets_in(member: &Longshore, token: &Value) -> bool {
    let bytes: k8s_openapi::ByteString = serde_json::from_value(token.clone()).expect("base64");
    let token = String::from_utf8(bytes.0).expect("a token");
    let mut connection = ApiClient::anonymous(&member.kubeconfig).connect().await.expect("it listens");
    let request =
        Request::get("/apis").header("host", "localhost").header("authorization", format!("Bearer {token}"));
    let request = request.body(http_body_util::Full::default()).expect("a request");
    connection.send(request).await.expect("an answer").status() == 200
}

fn is_taken_up(secret: &Value) -> bool {
    !annotation(secret, "token-used").is_empty()
        && annotation(secret, "token-used") == annotation(secret, "token-bound-to")
}

#[tokio::test]
async fn credentials_of_members_end_and_are_renewed() {
    let pair = Pair::start();
    let (here, there) = (pair.here(), pair.there());
    // It ends when the cluster is ready.
    let told = pair.ok("join far --wait");
    assert!(told.ends_with(" s: 1 cluster\n"), "{told}");
    let cluster = get(&here, "/apis/cluster.karmada.io/v1alpha1/clusters/far").await;
    let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let is_ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    assert!(conditions.iter().any(is_ready), "{cluster}");
    let joined = until(&here, SECRET, "the controllers take the token up", is_taken_up).await;
    assert!(lets_in(&pair.member, &joined["data"]["token"]).await);
    assert_eq!(annotation(&joined, "token-account"), "karmada-cluster/karmada-far");
    let expires: jiff::Timestamp = annotation(&joined, "token-expires").parse().expect("a time");
    assert!(
        expires.duration_since(jiff::Timestamp::now()).as_hours() <= 24,
        "the member's limit holds: {expires}"
    );
    let kinds = get(&there, SECRETS_THERE).await;
    let kinds = kinds["items"].as_array().cloned().unwrap_or_default();
    assert!(
        kinds.iter().all(|secret| secret["type"] != "kubernetes.io/service-account-token"),
        "no token that never ends: {kinds:?}"
    );
    // Most of its life is over.
    let old = json!({ "metadata": { "annotations": {
        "longshore.io/token-issued": "2020-01-01T00:00:00Z", "longshore.io/token-expires": "2020-01-02T00:00:00Z",
    } } });
    write(&here, Method::PATCH, SECRET, old).await;
    let is_renewed = |secret: &Value| {
        secret["data"]["token"] != joined["data"]["token"]
            && !annotation(secret, "token-expires").starts_with("2020")
    };
    let renewed = until(&here, SECRET, "renewed", is_renewed).await;
    assert!(lets_in(&pair.member, &renewed["data"]["token"]).await);
    assert_eq!(annotation(&renewed, "token-bound-to"), annotation(&joined, "token-bound-to"));
    let impersonator = get(&here, &format!("{SECRET}-impersonator")).await;
    assert_eq!(annotation(&impersonator, "token-account"), "karmada-cluster/karmada-impersonator");
    // New credentials make the old ones void, however long they would hold.
    let said = pair.ok("join far --rotate");
    assert!(said.contains("has new credentials"), "{said}");
    assert!(!lets_in(&pair.member, &renewed["data"]["token"]).await);
    assert!(!lets_in(&pair.member, &joined["data"]["token"]).await);
    let rotated = until(&here, SECRET, "taken up again", is_taken_up).await;
    assert!(lets_in(&pair.member, &rotated["data"]["token"]).await);
    until(&here, "/apis/cluster.karmada.io/v1alpha1/clusters/far", "ready", |cluster| {
        cluster["status"]["conditions"].to_string().contains("ClusterReady")
    })
    .await;
}

fn map(name: &str) -> Value {
    json!({ "metadata": { "name": name } })
}

async fn deliver(here: &ApiClient, namespace: &str) {
    write(here, Method::POST, "/api/v1/namespaces", json!({ "metadata": { "name": namespace } })).await;
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": { "name": "maps" },
        "spec": {
            "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": "settings" }],
            "placement": { "clusterAffinity": { "clusterNames": ["far"] } },
        },
    });
    let policies = format!("/apis/policy.karmada.io/v1alpha1/namespaces/{namespace}/propagationpolicies");
    write(here, Method::POST, &policies, policy).await;
    write(here, Method::POST, &format!("/api/v1/namespaces/{namespace}/configmaps"), map("settings")).await;
}

#[tokio::test]
async fn a_restricted_role_writes_its_kinds_in_its_namespaces_and_nothing_else() {
    let pair = Pair::start();
    let (here, there) = (pair.here(), pair.there());
    let unknown = pair.run("join far --role-scope restricted");
    assert_eq!(unknown.code, Some(2), "it has to be said where: {}", unknown.stderr);
    pair.ok("join far --role-scope restricted --role-namespaces team-a,team-c --role-kinds configmaps,deployments.apps");
    let taken_up = until(&here, SECRET, "it renews its own token", is_taken_up).await;
    deliver(&here, "team-a").await;
    deliver(&here, "team-b").await;
    let settings = |namespace: &str| format!("/api/v1/namespaces/{namespace}/configmaps/settings");
    until(&there, &settings("team-a"), "delivered", |map| map["metadata"]["uid"].is_string()).await;
    let works = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-far/works";
    until(&here, works, "refused with the reason", |works| works.to_string().contains("is forbidden")).await;
    assert_eq!(get(&there, &settings("team-b")).await["code"], 404);
    // What the account may do, asked with its own token.
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": { "user": "system:serviceaccount:karmada-cluster:karmada-far", "resourceAttributes": {} },
    });
    let may = async |verb: &str, group: &str, resource: &str, namespace: &str| {
        let mut review = review.clone();
        review["spec"]["resourceAttributes"] =
            json!({ "verb": verb, "group": group, "resource": resource, "namespace": namespace });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        there.request(Method::POST, path, review.to_string()).await.1["status"]["allowed"] == true
    };
    assert!(
        may("create", "", "configmaps", "team-a").await
            && may("delete", "apps", "deployments", "team-c").await
    );
    for (verb, group, resource, namespace) in [
        ("create", "", "configmaps", "team-b"),
        ("create", "", "configmaps", "kube-system"),
        ("create", "", "secrets", "team-a"),
        ("get", "", "secrets", "kube-system"),
        ("create", "", "pods", "team-a"),
        ("create", "", "namespaces", ""),
        ("create", "rbac.authorization.k8s.io", "rolebindings", "team-a"),
        ("create", "rbac.authorization.k8s.io", "clusterrolebindings", ""),
    ] {
        assert!(!may(verb, group, resource, namespace).await, "{verb} {resource}.{group} in {namespace:?}");
    }
    // New credentials do not widen the role; other flags change it.
    pair.ok("join far --rotate");
    assert!(
        !may("create", "", "configmaps", "team-b").await && may("create", "", "configmaps", "team-c").await
    );
    pair.ok("join far --rotate --role-scope restricted --role-namespaces team-a");
    assert!(
        !may("create", "", "configmaps", "team-c").await && may("create", "", "services", "team-a").await
    );
    assert!(!lets_in(&pair.member, &taken_up["data"]["token"]).await);
    pair.ok("unjoin far");
    for plural in ["roles", "rolebindings", "clusterroles", "clusterrolebindings"] {
        let left = get(&there, &format!("{RBAC}/{plural}")).await;
        assert!(!left.to_string().contains("karmada-controller-manager:karmada-far"), "{plural}: {left}");
    }
}
