//! The environment of the attacks: the real binary with local members, two tenants, and the contents of the members
//! outside the attacker's namespace, read as an administrator.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use checks::client::ApiClient;
use checks::process::Longshore;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tempfile::TempDir;

pub const MEMBERS: [&str; 2] = ["member1", "member2"];
/// What is compared: every kind through which a tenant could act in a member, by its path for all namespaces.
const COMPARED: [&str; 13] = [
    "/api/v1/namespaces",
    "/api/v1/secrets",
    "/api/v1/configmaps",
    "/api/v1/services",
    "/api/v1/serviceaccounts",
    "/api/v1/persistentvolumes",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/daemonsets",
    "/apis/batch/v1/jobs",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
];
/// How long anything may take.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);
/// What team-b changes itself.
pub const NEWS: &str = "news";
pub const POLICIES: &str = "/apis/policy.karmada.io/v1alpha1/namespaces";
pub const BINDINGS: &str = "/apis/work.karmada.io/v1alpha2/namespaces";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces";

/// A user with a token, or an administrator with a client certificate.
#[derive(Clone)]
pub struct Person {
    api_client: ApiClient,
    token: Option<&'static str>,
}

impl Person {
    /// Asks for something, and gives the answer.
    pub async fn ask(&self, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
        let content = match method == Method::PATCH {
            true => "application/merge-patch+json",
            false => "application/json",
        };
        self.ask_as(method, path, content, body).await
    }

    /// The same with another type of body.
    pub async fn ask_as(
        &self,
        method: Method,
        path: &str,
        content: &str,
        body: Value,
    ) -> (StatusCode, Value) {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, content);
        if let Some(token) = self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = request.body(Full::new(body)).expect("a well-formed request");
        let mut connection = self.api_client.connect().await.expect("the server accepts connections");
        let answer = connection.send(request).await.expect("the server answers");
        let status = answer.status();
        let bytes = answer.into_body().collect().await.expect("a whole answer").to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    /// Makes an object, which has to be allowed.
    #[track_caller]
    pub fn make(&self, path: &str, object: Value) -> impl Future<Output = Value> {
        let (person, path) = (self.clone(), path.to_owned());
        async move {
            let (status, answer) = person.ask(Method::POST, &path, object).await;
            assert_eq!(status, StatusCode::CREATED, "{path}: {answer}");
            answer
        }
    }

    /// Tries something that has to be refused; gives the reason.
    pub async fn refused(&self, method: Method, path: &str, body: Value) -> String {
        let (status, answer) = self.ask(method, path, body.clone()).await;
        assert!(status.is_client_error(), "{path} {body}: {status} {answer}");
        answer["message"].as_str().unwrap_or_default().to_owned()
    }

    /// An object; null if it is not there.
    pub async fn get(&self, path: &str) -> Value {
        match self.ask(Method::GET, path, Value::Null).await {
            (StatusCode::OK, object) => object,
            (StatusCode::NOT_FOUND, _) => Value::Null,
            (status, answer) => panic!("{path}: {status} {answer}"),
        }
    }
}

/// One object of a member: who it is, and every field that an attacker could have changed.
type Contents = BTreeMap<String, Value>;

/// A running control plane with two members and two tenants.
pub struct Environment {
    _server: Longshore,
    _home: TempDir,
    /// Everything is theirs.
    pub admin: Person,
    /// Has `longshore:tenant` in team-a.
    pub eve: Person,
    /// Has every right in team-a, and none elsewhere.
    pub mallory: Person,
    members: BTreeMap<&'static str, Person>,
    before: BTreeMap<&'static str, Contents>,
    sentinels: usize,
}

impl Environment {
    /// Starts everything, lets team-b work, and remembers what the members have then.
    pub async fn start() -> Self {
        let home = tempfile::tempdir().expect("there is room for a temporary directory");
        let tokens = home.path().join("tokens.csv");
        std::fs::write(&tokens, "t-eve,eve,u-1\nt-mallory,mallory,u-2\n").expect("the tokens can be written");
        let text = |path: &Path| path.to_str().expect("temporary paths are readable").to_owned();
        let data = text(&home.path().join("data"));
        let arguments = ["--port=0", "--members=2", "--data-dir", &data, "--token-auth-file", &text(&tokens)];
        let server =
            Longshore::start(Path::new(env!("CARGO_BIN_EXE_longshore")), &arguments).expect("it starts");
        let file = &server.kubeconfig;
        let admin = Person { api_client: ApiClient::open(file), token: None };
        let tenant = |token| Person { api_client: ApiClient::anonymous(file), token: Some(token) };
        let member = |name| (name, Person { api_client: ApiClient::of_context(file, name), token: None });
        let mut ground = Self {
            admin,
            eve: tenant("t-eve"),
            mallory: tenant("t-mallory"),
            members: MEMBERS.map(member).into(),
            before: BTreeMap::new(),
            sentinels: 0,
            _server: server,
            _home: home,
        };
        ground.settle_in().await;
        ground
    }

    async fn settle_in(&mut self) {
        for namespace in ["team-a", "team-b"] {
            self.admin.make("/api/v1/namespaces", json!({ "metadata": { "name": namespace } })).await;
        }
        let role = |kind: &str, name: &str, user: &str| {
            json!({
                "metadata": { "name": user },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name },
                "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
            })
        };
        let everything = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }]);
        let all = json!({ "metadata": { "name": "all" }, "rules": everything });
        self.admin.make(&format!("{RBAC}/team-a/roles"), all).await;
        let bindings = format!("{RBAC}/team-a/rolebindings");
        self.admin.make(&bindings, role("ClusterRole", "longshore:tenant", "eve")).await;
        self.admin.make(&bindings, role("Role", "all", "mallory")).await;

        self.admin.make("/api/v1/namespaces/team-b/secrets", secret("db", "hidden")).await;
        self.admin.make("/api/v1/namespaces/team-b/configmaps", map("shop")).await;
        self.admin
            .make(&format!("{POLICIES}/team-b/propagationpolicies"), policy("shop", "v1", "ConfigMap"))
            .await;
        for member in self.members.values() {
            let foreign = json!({ "metadata": { "name": "dns" }, "data": { "zone": "cluster.local" } });
            member.make("/api/v1/namespaces/kube-system/configmaps", foreign).await;
        }
        let sentinel = json!({
            "metadata": { "name": "sentinels" },
            "spec": {
                "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap",
                    "labelSelector": { "matchLabels": { "sentinel": "yes" } } }],
                "placement": { "clusterAffinity": { "clusterNames": MEMBERS } },
            },
        });
        self.eve.make(&format!("{POLICIES}/team-a/propagationpolicies"), sentinel).await;
        self.admin.make("/api/v1/namespaces/team-b/configmaps", map(NEWS)).await;
        for object in ["team-b/configmaps/shop", "team-b/configmaps/news", "team-b/serviceaccounts/default"] {
            self.until_in_members(&format!("/api/v1/namespaces/{object}")).await;
        }
        self.settle().await;
        for (name, member) in &self.members {
            self.before.insert(name, contents(member).await);
        }
    }

    /// Waits until every member has an object.
    pub async fn until_in_members(&self, path: &str) {
        for (name, member) in &self.members {
            until(&format!("{path} in {name}"), async || !member.get(path).await.is_null()).await;
        }
    }

    /// Waits until no member has an object.
    pub async fn until_gone_from_members(&self, path: &str) {
        for (name, member) in &self.members {
            until(&format!("no {path} in {name}"), async || member.get(path).await.is_null()).await;
        }
    }

    /// Whether every member has a field of an object.
    pub async fn is_in_members(&self, path: &str, field: &str) -> bool {
        for member in self.members.values() {
            if member.get(path).await.pointer(field).is_none() {
                return false;
            }
        }
        true
    }

    /// Waits until what was written before has reached the members, as far as it ever does: changes are worked on in
    /// the order in which they come, and two that come after the others are through.
    pub async fn settle(&mut self) {
        for _ in 0..2 {
            self.sentinels += 1;
            let name = format!("sentinel-{}", self.sentinels);
            let mut object = map(&name);
            object["metadata"]["labels"] = json!({ "sentinel": "yes" });
            self.eve.make("/api/v1/namespaces/team-a/configmaps", object).await;
            self.until_in_members(&format!("/api/v1/namespaces/team-a/configmaps/{name}")).await;
        }
    }

    /// Proves that an attack changed nothing outside team-a, and brought nothing there that is no template of team-a.
    pub async fn nothing_foreign_changed(&mut self) {
        self.settle().await;
        for (name, member) in &self.members {
            let now = contents(member).await;
            let before = &self.before[name];
            let came: Vec<&String> = now.keys().filter(|key| !before.contains_key(*key)).collect();
            assert!(came.is_empty(), "{name} got {came:?}");
            for (key, before) in before {
                assert_eq!(now.get(key), Some(before), "{key} in {name}");
            }
            let delivered = names(member).await;
            let templates = names(&self.admin).await;
            let made_there = |key: &&String| !key.contains("kube-root-ca.crt") && !key.ends_with("/default");
            let strange: Vec<&String> = delivered.difference(&templates).filter(made_there).collect();
            assert!(strange.is_empty(), "{name} has {strange:?} in team-a without a template");
        }
    }
}

/// Waits until something is so.
pub async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let end = Instant::now() + STEP_TIMEOUT;
    while !is_so().await {
        assert!(Instant::now() < end, "still not: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Everything that a member has outside team-a.
async fn contents(member: &Person) -> Contents {
    let mut contents = Contents::new();
    for path in COMPARED {
        let mut list = member.get(path).await;
        for object in list["items"].as_array_mut().into_iter().flatten() {
            if object["metadata"]["namespace"] == "team-a" || object["metadata"]["name"] == NEWS {
                continue;
            }
            let object = object.as_object_mut().expect("an object");
            object.remove("status");
            let metadata = object["metadata"].as_object_mut().expect("metadata");
            metadata.remove("managedFields");
            let name =
                format!("{path} {}/{}", metadata.get("namespace").unwrap_or(&Value::Null), metadata["name"]);
            contents.insert(name, Value::Object(object.clone()));
        }
    }
    contents
}

/// What lies in team-a on one server.
async fn names(server: &Person) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in COMPARED {
        let list = server.get(path).await;
        let items = list["items"].as_array().into_iter().flatten();
        let ours = items.filter(|object| object["metadata"]["namespace"] == "team-a");
        names.extend(
            ours.map(|object| format!("{path}/{}", object["metadata"]["name"].as_str().unwrap_or_default())),
        );
    }
    names
}

pub fn map(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "data": { "of": name } })
}

pub fn secret(name: &str, value: &str) -> Value {
    json!({ "metadata": { "name": name }, "stringData": { "password": value } })
}

/// A policy that sends every object of a kind in its namespace to all members.
pub fn policy(name: &str, api_version: &str, kind: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "resourceSelectors": [{ "apiVersion": api_version, "kind": kind }],
            "placement": { "clusterAffinity": { "clusterNames": MEMBERS } },
        },
    })
}

pub fn deployment(name: &str) -> Value {
    let container = json!({ "name": "main", "image": "nginx" });
    json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } }, "spec": { "containers": [container] } },
        },
    })
}
