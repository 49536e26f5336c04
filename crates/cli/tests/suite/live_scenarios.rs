//! `longshore test --control`: the same scenario files on a live control plane, which is left as it was before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use checks::client::ApiClient;
use checks::process::Longshore;
use http::Method;
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");

const NOTHING: [String; 0] = [];

/// Files for three members: every kind of step.
const WITH_THREE: [&str; 8] = [
    "batch/scheme-2-option-1-exclude-in-a-selector.yaml",
    "dependencies/claimed-too.yaml",
    "lazy/simple-1-policy-first.yaml",
    "lazy/simple-2-template-first.yaml",
    "overrides/image.yaml",
    "preemption/user-story-1-one-business-of-many.yaml",
    "suspension/pp-5-delete-while-suspended.yaml",
    "suspension/rollout-2-delete-the-policy.yaml",
];

/// Files for two members: what is left behind, was there before, or stays.
const WITH_TWO: [&str; 6] = [
    "conflict/abort.yaml",
    "custom/default-roles-stay.yaml",
    "deletion/preserve.yaml",
    "deletion/preserve-cluster-scoped.yaml",
    "drift/edited.yaml",
    "namespaces/existing.yaml",
];

/// Files that three members cannot play, and why not.
const SKIPPED: [(&str, &str); 4] = [
    ("clusters/unjoin.yaml", "\"delete Cluster member3\" can only be simulated"),
    ("deletion/preserve.yaml", "it needs a control plane without member3"),
    ("division/spread-by-region.yaml", "there is no member m1"),
    ("static/story-1-default-policy-gets-a-cluster.yaml", "it needs the feature gates StaticPolicy=true"),
];

/// A running control plane with its members, and where the files lie that lead there.
struct Plane {
    directory: tempfile::TempDir,
    members: Vec<String>,
    _server: Longshore,
}

impl Plane {
    async fn start(members: usize) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let count = format!("--members={members}");
        let arguments = ["--port=0", &count, "--data-dir", data.to_str().expect("a readable path")];
        let server = Longshore::start(Path::new(BINARY), &arguments).expect("it starts");
        let members = (1..=members).map(|number| format!("member{number}")).collect();
        let plane = Self { directory, members, _server: server };
        for name in plane.contexts() {
            let printed = Command::new(BINARY).args(["kubeconfig", name, "--data-dir"]).arg(&data).output();
            std::fs::write(plane.file(name), printed.expect("it starts").stdout).expect("it can be written");
        }
        plane.until_ready().await;
        plane
    }

    fn contexts(&self) -> impl Iterator<Item = &str> {
        std::iter::once("longshore").chain(self.members.iter().map(String::as_str))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(format!("{name}.yaml"))
    }

    async fn until_ready(&self) {
        let api_client = ApiClient::open(&self.file("longshore"));
        let begun = Instant::now();
        loop {
            let (_, list) =
                api_client.request(Method::GET, "/apis/cluster.karmada.io/v1alpha1/clusters", "").await;
            let conditions = list.to_string();
            if conditions.matches("ClusterReady").count() >= self.members.len() {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "never ready: {conditions}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn test(&self, files: &[PathBuf]) -> Output {
        let mut command = Command::new(BINARY);
        command.arg("test").args(files).arg("--verbose").arg("--control").arg(self.file("longshore"));
        for name in &self.members {
            command.arg("--member").arg(format!("{name}={}", self.file(name).display()));
        }
        command.output().expect("it starts")
    }

    /// Everything that is there, with what users say about it.
    async fn snapshot(&self) -> BTreeMap<String, Value> {
        let mut found = BTreeMap::new();
        for name in self.contexts() {
            let api_client = ApiClient::open(&self.file(name));
            for collection in collections(&api_client).await {
                let (_, list) = api_client.request(Method::GET, &collection, "").await;
                for object in list["items"].as_array().into_iter().flatten() {
                    let metadata = &object["metadata"];
                    let key = format!("{name}{collection} {}/{}", metadata["namespace"], metadata["name"]);
                    found.insert(key, json!([metadata["labels"], metadata["annotations"], object["spec"]]));
                }
            }
        }
        assert!(found.len() > 20, "a control plane has namespaces, nodes and definitions: {found:?}");
        found
    }

    /// What is not as it was; garbage may take a moment to be collected.
    async fn differences(&self, before: &BTreeMap<String, Value>) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let now = self.snapshot().await;
            let keys = before.keys().chain(now.keys()).filter(|key| before.get(*key) != now.get(*key));
            let different: Vec<String> = keys.cloned().collect();
            if different.is_empty() || begun.elapsed() > Duration::from_secs(10) {
                return different;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// The paths of all kinds that can be listed, but for those that come and go by themselves.
async fn collections(api_client: &ApiClient) -> Vec<String> {
    let (_, groups) = api_client.request(Method::GET, "/apis", "").await;
    let groups = groups["groups"].as_array().cloned().unwrap_or_default();
    let versions = groups.iter().filter_map(|group| group["preferredVersion"]["groupVersion"].as_str());
    let roots = versions.map(|version| format!("/apis/{version}")).chain(["/api/v1".to_owned()]);
    let mut collections = Vec::new();
    for root in roots {
        let (_, list) = api_client.request(Method::GET, &root, "").await;
        let kinds = list["resources"].as_array().cloned().unwrap_or_default();
        let is_kept = |kind: &&Value| {
            let lists = kind["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!("list")));
            lists && !["Event", "Lease"].contains(&kind["kind"].as_str().unwrap_or_default())
        };
        let names = kinds.iter().filter(is_kept).filter_map(|kind| kind["name"].as_str());
        collections.extend(names.map(|name| format!("{root}/{name}")));
    }
    collections
}

fn scenario(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name)
}

#[track_caller]
fn passed(output: &Output, summary: &str) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.lines().last().is_some_and(|last| last.starts_with(summary)), "{said}");
    said
}

#[tokio::test]
async fn scenarios_pass_with_three_members_and_leave_nothing() {
    let plane = Plane::start(3).await;
    let before = plane.snapshot().await;
    let skipped = SKIPPED.iter().map(|(name, _)| *name);
    let files: Vec<PathBuf> = WITH_THREE.into_iter().chain(skipped).map(scenario).collect();
    let said = passed(&plane.test(&files), "12 scenarios: 8 passed, 0 failed, 4 skipped in");
    for (name, reason) in SKIPPED {
        let ending = format!("{name}: {reason}");
        let told = said.lines().any(|line| line.starts_with("skipped") && line.ends_with(&ending));
        assert!(told, "{ending} in\n{said}");
    }
    assert_eq!(plane.differences(&before).await, NOTHING);
    fails_and_leaves_nothing(&plane, &before).await;
}

#[tokio::test]
async fn scenarios_pass_with_two_members_and_leave_nothing() {
    let plane = Plane::start(2).await;
    let before = plane.snapshot().await;
    let files: Vec<PathBuf> = WITH_TWO.into_iter().map(scenario).collect();
    passed(&plane.test(&files), "6 scenarios: 6 passed, 0 failed in");
    assert_eq!(plane.differences(&before).await, NOTHING);
}

/// A scenario that fails in the middle, after it touched whatever can be touched.
async fn fails_and_leaves_nothing(plane: &Plane, before: &BTreeMap<String, Value>) {
    let story = plane.file("story");
    std::fs::write(&story, FAILING).expect("it can be written");
    let output = plane.test(&[story]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("step 8: it is refused, or so one hopes") && said.contains("it was accepted"),
        "{said}"
    );
    assert!(!said.contains("cleaned up") && !said.contains("again:"), "{said}");
    assert_eq!(plane.differences(before).await, NOTHING);
}

const FAILING: &str = "
scenario: Something of every kind is left behind when it ends
namespaces: [left-over]
steps:
- edit: Cluster member1
  set: { metadata: { labels: { tier: gold } }, spec: { taints: [{ key: slow, effect: NoSchedule }] } }
- apply:
    apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata: { name: crates.left-over.io }
    spec:
      group: left-over.io
      scope: Namespaced
      names: { kind: Crate, plural: crates, singular: crate, listKind: CrateList }
      versions: [{ name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } } }]
- apply: { apiVersion: left-over.io/v1, kind: Crate, metadata: { name: c, namespace: left-over } }
- clusterPolicy: { name: roles, select: ClusterRole left-over, spec: { preserveResourcesOnDeletion: true } }
- template: { kind: ClusterRole, name: left-over }
- policy: { name: pp, namespace: left-over, select: Deployment, clusters: [member2], spec: { preserveResourcesOnDeletion: true } }
- template: { name: web, namespace: left-over, labels: { resourcetemplate.karmada.io/deletion-protected: Always } }
- say: it is refused, or so one hopes
  edit: PropagationPolicy left-over/pp
  set: { spec: { suspension: { dispatching: true } } }
  rejected: no
";
