//! The state that two runs of the same actions must agree on, without what differs between any two runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use checks::client::{ApiClient, Connection};
use serde_json::{Value, json};

use super::actions::{CONFIG_MAPS, DEPLOYMENTS};
use super::side::{MEMBERS, Side, get};

/// What is there.
pub struct State {
    /// Templates, bindings and Works by path.
    control: BTreeMap<String, Value>,
    /// By member, objects by path.
    pub members: BTreeMap<&'static str, BTreeMap<String, Object>>,
    /// By member, how many pods there are of each workload.
    pods: BTreeMap<&'static str, BTreeMap<String, usize>>,
    /// Paths of templates whose binding is suspended.
    pub suspended: Vec<String>,
}

/// An object of a member.
pub struct Object {
    /// What both sides must agree on.
    wanted: Value,
    /// What changes with every write of our controllers, and with no other write.
    pub written: Value,
    /// Whether it bears our marks. One that is kept after its Work has gone loses them.
    pub managed: bool,
}

/// What a comparison looks at.
pub type Comparable = BTreeMap<String, Value>;

impl State {
    /// Reads everything.
    pub async fn of(side: &Side) -> Self {
        let mut state = Self {
            control: BTreeMap::new(),
            members: BTreeMap::new(),
            pods: BTreeMap::new(),
            suspended: Vec::new(),
        };
        state.read_control(&side.control).await;
        for (name, api_client) in MEMBERS.into_iter().zip(&side.members) {
            let mut connection = api_client.connect().await.expect("a connection");
            let mut objects = BTreeMap::new();
            for (path, object) in objects_of(&mut connection).await {
                let managed = object["metadata"]["labels"]["karmada.io/managed"] == "true";
                objects.insert(path, Object { wanted: plain(&object), written: written(&object), managed });
            }
            state.members.insert(name, objects);
            let mut pods: BTreeMap<String, usize> = BTreeMap::new();
            for pod in items(&mut connection, "/api/v1/namespaces/default/pods").await {
                let app = pod["metadata"]["labels"]["app"].as_str().unwrap_or("nobody's");
                *pods.entry(app.to_owned()).or_default() += 1;
            }
            state.pods.insert(name, pods);
        }
        state
    }

    async fn read_control(&mut self, api_client: &ApiClient) {
        let mut connection = api_client.connect().await.expect("a connection");
        for (path, object) in objects_of(&mut connection).await {
            self.control.insert(path, plain(&object));
        }
        let bindings = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings";
        for binding in items(&mut connection, bindings).await {
            let spec = &binding["spec"];
            if spec["suspension"]["dispatching"] == true {
                let collection =
                    if spec["resource"]["kind"] == "Deployment" { DEPLOYMENTS } else { CONFIG_MAPS };
                self.suspended.push(format!("{collection}/{}", name(&spec["resource"])));
            }
            let path = format!("{bindings}/{}", name(&binding["metadata"]));
            let clusters = json!({
                "clusters": spec["clusters"], "suspension": spec["suspension"], "replicas": spec["replicas"],
                "placement": spec["placement"], "claim": claim(&binding),
            });
            self.control.insert(path, clusters);
        }
        for work in items(&mut connection, "/apis/work.karmada.io/v1alpha1/works").await {
            let spec = &work["spec"];
            let manifests = spec["workload"]["manifests"].as_array();
            let manifests: Vec<Value> = manifests.into_iter().flatten().map(plain).collect();
            let path = format!("works/{}/{}", work["metadata"]["namespace"], work["metadata"]["name"]);
            let suspended = spec["suspendDispatching"] == true;
            self.control.insert(path, json!({ "suspended": suspended, "manifests": manifests }));
        }
    }

    /// What must be the same on both sides.
    pub fn comparable(&self) -> Comparable {
        let mut all: Comparable = self
            .control
            .iter()
            .map(|(path, value)| (format!("control plane {path}"), value.clone()))
            .collect();
        for (member, objects) in &self.members {
            all.extend(
                objects.iter().map(|(path, object)| (format!("{member} {path}"), object.wanted.clone())),
            );
        }
        all.extend(self.pods.iter().map(|(member, pods)| (format!("{member} pods"), json!(pods))));
        all
    }

    /// What differs, for the failure message.
    pub fn difference(&self, found: &Self) -> String {
        let (expected, found) = (self.comparable(), found.comparable());
        let mut text = String::new();
        for key in expected.keys().chain(found.keys().filter(|key| !expected.contains_key(*key))) {
            let (one, other) = (expected.get(key), found.get(key));
            if one != other {
                let shown = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
                let _ = writeln!(text, "{key}\n  unharmed: {}\n  killed:   {}", shown(one), shown(other));
            }
        }
        text
    }
}

async fn items(connection: &mut Connection, path: &str) -> Vec<Value> {
    match get(connection, path).await["items"].take() {
        Value::Array(items) => items,
        other => panic!("{path}: {other}"),
    }
}

/// The Deployments and ConfigMaps that users or policies put there.
async fn objects_of(connection: &mut Connection) -> Vec<(String, Value)> {
    let mut objects = Vec::new();
    for collection in [DEPLOYMENTS, CONFIG_MAPS] {
        let found = items(connection, collection).await.into_iter();
        let found = found.filter(|object| object["metadata"]["name"] != "kube-root-ca.crt");
        objects.extend(found.map(|object| (format!("{collection}/{}", name(&object["metadata"])), object)));
    }
    objects
}

fn name(metadata: &Value) -> &str {
    metadata["name"].as_str().expect("everything has a name")
}

/// Spec or data, and the labels and annotations without random or counted ones.
fn plain(object: &Value) -> Value {
    json!({ "spec": object["spec"], "data": object["data"], "labels": marks(object, "labels"),
            "annotations": marks(object, "annotations") })
}

fn marks(object: &Value, field: &str) -> Value {
    let all = object["metadata"][field].as_object().into_iter().flatten();
    let told =
        |key: &str| !key.ends_with("permanent-id") && !key.ends_with("/uid") && !key.contains("revision");
    // Records name policies by uid; that they are there is what counts.
    let value = |key: &str, value: &Value| {
        if key.contains("longshore.io/") { Value::Bool(true) } else { value.clone() }
    };
    all.filter(|(key, _)| told(key)).map(|(key, mark)| (key.clone(), value(key, mark))).collect()
}

fn claim(object: &Value) -> Value {
    json!([marks(object, "labels"), marks(object, "annotations")])
}

/// The uid and our entries in `managedFields`.
fn written(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let managers = metadata["managedFields"].as_array().into_iter().flatten();
    let ours: Vec<&Value> = managers.filter(|entry| entry["manager"] == "longshore").collect();
    json!({ "uid": metadata["uid"], "ours": ours })
}
