//! Short forms of the objects that most scenarios are about, and the manifests they stand for.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::reference::{DEFAULT_NAMESPACE, Reference};

/// A short form that stands for no manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unclear(String);

/// Kinds that can be named without their group and version.
const KINDS: [(&str, &str); 22] = [
    ("ClusterRole", "rbac.authorization.k8s.io/v1"),
    ("ClusterRoleBinding", "rbac.authorization.k8s.io/v1"),
    ("ConfigMap", "v1"),
    ("CronJob", "batch/v1"),
    ("CustomResourceDefinition", "apiextensions.k8s.io/v1"),
    ("DaemonSet", "apps/v1"),
    ("Deployment", "apps/v1"),
    ("HorizontalPodAutoscaler", "autoscaling/v2"),
    ("Ingress", "networking.k8s.io/v1"),
    ("Job", "batch/v1"),
    ("Namespace", "v1"),
    ("NetworkPolicy", "networking.k8s.io/v1"),
    ("PersistentVolume", "v1"),
    ("PersistentVolumeClaim", "v1"),
    ("Pod", "v1"),
    ("PodDisruptionBudget", "policy/v1"),
    ("Role", "rbac.authorization.k8s.io/v1"),
    ("RoleBinding", "rbac.authorization.k8s.io/v1"),
    ("Secret", "v1"),
    ("Service", "v1"),
    ("ServiceAccount", "v1"),
    ("StatefulSet", "apps/v1"),
];

/// Kinds of these that live in no namespace.
const CLUSTER_SCOPED: [&str; 5] =
    ["ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace", "PersistentVolume"];

fn api_version(kind: &str) -> Result<&'static str, Unclear> {
    KINDS.iter().find(|(known, _)| *known == kind).map(|(_, api_version)| *api_version).ok_or_else(|| {
        Unclear(format!("the short form does not know {kind}; write it out with apiVersion and kind"))
    })
}

/// A template: its name alone, or what is special about it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Template {
    /// A Deployment of this name, `namespace/name` or `name`.
    Named(String),
    /// Anything else.
    Described(Box<Description>),
}

/// What is special about a template.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    #[serde(default = "deployment")]
    kind: String,
    name: String,
    namespace: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    /// Of workloads.
    replicas: Option<i64>,
    /// Of workloads: the image of their only container, which is called `main`.
    image: Option<String>,
    /// Of workloads: what each replica asks for.
    cpu: Option<String>,
    /// Of workloads: ConfigMaps and Secrets that it mounts.
    #[serde(default)]
    mounts: Vec<Reference>,
    /// Of ConfigMaps and Secrets.
    data: Option<Value>,
    /// Fields of the spec, over what the above says.
    spec: Option<Value>,
}

fn deployment() -> String {
    "Deployment".to_owned()
}

impl Template {
    /// The manifest that it stands for.
    pub fn manifest(&self) -> Result<Value, Unclear> {
        match self {
            Template::Described(description) => description.manifest(),
            Template::Named(name) => {
                let (namespace, name) = match name.split_once('/') {
                    Some((namespace, name)) => (Some(namespace.to_owned()), name.to_owned()),
                    None => (None, name.clone()),
                };
                let named = json!({ "name": name, "namespace": namespace });
                let description: Description =
                    serde_json::from_value(named).expect("a name is all that a description needs");
                description.manifest()
            }
        }
    }
}

impl Description {
    fn manifest(&self) -> Result<Value, Unclear> {
        let api_version = api_version(&self.kind)?;
        let mut metadata = json!({ "name": self.name });
        if !CLUSTER_SCOPED.contains(&self.kind.as_str()) {
            metadata["namespace"] = self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE).into();
        }
        for (key, texts) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            if !texts.is_empty() {
                metadata[key] = json!(texts);
            }
        }
        let mut manifest = json!({ "apiVersion": api_version, "kind": self.kind, "metadata": metadata });
        if let Some(data) = &self.data {
            let field = if self.kind == "Secret" { "stringData" } else { "data" };
            manifest[field] = data.clone();
        }
        if let Some(spec) = self.workload() {
            manifest["spec"] = spec;
        }
        if let Some(spec) = &self.spec {
            merge(&mut manifest["spec"], spec);
        }
        Ok(manifest)
    }

    /// The spec of a workload.
    fn workload(&self) -> Option<Value> {
        let pods = |restart: &str| self.pod_template(restart);
        let selector = json!({ "matchLabels": { "app": self.name } });
        let spec = match self.kind.as_str() {
            "Deployment" => json!({ "selector": selector, "template": pods("Always") }),
            "DaemonSet" => return Some(json!({ "selector": selector, "template": pods("Always") })),
            "StatefulSet" => {
                json!({ "serviceName": self.name, "selector": selector, "template": pods("Always") })
            }
            "Job" => {
                let count = self.replicas.unwrap_or(1);
                return Some(
                    json!({ "parallelism": count, "completions": count, "template": pods("Never") }),
                );
            }
            "Service" => {
                return Some(json!({ "selector": { "app": self.name }, "ports": [{ "port": 80 }] }));
            }
            "Pod" => return Some(self.pod_template("Always")["spec"].take()),
            _ => return None,
        };
        let mut spec = spec;
        spec["replicas"] = self.replicas.unwrap_or(1).into();
        Some(spec)
    }

    fn pod_template(&self, restart: &str) -> Value {
        let mut container = json!({ "name": "main", "image": self.image.as_deref().unwrap_or("nginx") });
        if let Some(cpu) = &self.cpu {
            container["resources"] = json!({ "requests": { "cpu": cpu } });
        }
        let volume = |mount: &Reference| match mount.kind.as_str() {
            "Secret" => json!({ "name": mount.name, "secret": { "secretName": mount.name } }),
            _ => json!({ "name": mount.name, "configMap": { "name": mount.name } }),
        };
        let mut spec = json!({ "containers": [container], "restartPolicy": restart });
        if !self.mounts.is_empty() {
            spec["volumes"] = self.mounts.iter().map(volume).collect();
        }
        json!({ "metadata": { "labels": { "app": self.name } }, "spec": spec })
    }
}

/// A policy in short.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    name: String,
    namespace: Option<String>,
    /// What it selects.
    select: OneOrMany<Selector>,
    /// Where to; every cluster if absent.
    clusters: Option<Vec<String>>,
    #[serde(default)]
    lazy: bool,
    priority: Option<i64>,
    /// Whether it takes templates from others.
    #[serde(default)]
    preempts: bool,
    /// Fields of the spec, over what the above says.
    spec: Option<Value>,
}

/// One item or a list of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// Any number. Tried first, for an item may be anything.
    Many(Vec<T>),
    /// A single one.
    One(T),
}

impl<T> OneOrMany<T> {
    /// All of them.
    pub fn into_vec(self) -> Vec<T> {
        match self {
            OneOrMany::One(item) => vec![item],
            OneOrMany::Many(items) => items,
        }
    }
}

/// What is selected: in short (`Deployment`, `Deployment nginx`, `Deployment shop/web`, `Deployment shop/*`),
/// or a selector as policies have it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Selector {
    /// In short.
    Short(String),
    /// Written out.
    Full(Value),
}

impl Selector {
    fn manifest(&self) -> Result<Value, Unclear> {
        let text = match self {
            Selector::Full(selector) => return Ok(selector.clone()),
            Selector::Short(text) => text,
        };
        let (kind, place) = text.split_once(' ').unwrap_or((text, "*"));
        let (namespace, name) = match place.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, place),
        };
        let mut selector = json!({ "apiVersion": api_version(kind)?, "kind": kind });
        if let Some(namespace) = namespace {
            selector["namespace"] = namespace.into();
        }
        if name != "*" {
            selector["name"] = name.into();
        }
        Ok(selector)
    }
}

impl Policy {
    /// The manifest of the PropagationPolicy or ClusterPropagationPolicy that it stands for.
    pub fn manifest(&self, kind: &str) -> Result<Value, Unclear> {
        let selectors: Result<Vec<Value>, Unclear> =
            self.select.clone().into_vec().iter().map(Selector::manifest).collect();
        let mut spec = json!({ "resourceSelectors": selectors? });
        if let Some(clusters) = &self.clusters {
            spec["placement"] = json!({ "clusterAffinity": { "clusterNames": clusters } });
        }
        if self.lazy {
            spec["activationPreference"] = "Lazy".into();
        }
        if let Some(priority) = self.priority {
            spec["priority"] = priority.into();
        }
        if self.preempts {
            spec["preemption"] = "Always".into();
        }
        if let Some(more) = &self.spec {
            merge(&mut spec, more);
        }
        let mut metadata = json!({ "name": self.name });
        if kind == "PropagationPolicy" {
            metadata["namespace"] = self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE).into();
        } else if self.namespace.is_some() {
            return Err(Unclear(format!("{} is for the whole cluster and has no namespace", self.name)));
        }
        let api_version = api::kinds::PROPAGATION_POLICY.api_version();
        Ok(json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec }))
    }
}

/// Puts the fields of one value over another's; null removes.
pub fn merge(onto: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *onto = patch.clone();
        return;
    };
    if !onto.is_object() {
        *onto = Value::Object(Map::new());
    }
    let target = onto.as_object_mut().expect("it was made one");
    for (key, value) in fields {
        match value {
            Value::Null => drop(target.remove(key)),
            value => merge(target.entry(key.clone()).or_insert(Value::Null), value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(selector: &str, expected: Value) {
        assert_eq!(Selector::Short(selector.to_owned()).manifest().expect("it is clear"), expected);
    }

    #[test]
    fn selectors_in_short() {
        check("Deployment", json!({ "apiVersion": "apps/v1", "kind": "Deployment" }));
        check("Deployment nginx", json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx" }));
        check(
            "ConfigMap team-a*/*",
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "namespace": "team-a*" }),
        );
        let unknown = Selector::Short("Workload web".to_owned()).manifest().expect_err("nobody knows it");
        assert!(unknown.to_string().contains("write it out"), "{unknown}");
    }

    #[test]
    fn a_policy_selects_one_thing_or_many() {
        let policy = json!({ "name": "pp", "select": ["Deployment web", { "kind": "Workload", "apiVersion": "x/v1" }] });
        let policy: Policy = serde_json::from_value(policy).expect("it is a policy");
        let manifest = policy.manifest("PropagationPolicy").expect("it is clear");
        let kinds: Vec<_> = manifest["spec"]["resourceSelectors"].as_array().into_iter().flatten().collect();
        assert_eq!(kinds.iter().map(|one| &one["kind"]).collect::<Vec<_>>(), ["Deployment", "Workload"]);
    }

    #[test]
    fn a_merge_removes_what_is_null() {
        let mut onto = json!({ "a": { "b": 1, "c": 2 }, "d": 3 });
        merge(&mut onto, &json!({ "a": { "b": null }, "d": { "e": 4 } }));
        assert_eq!(onto, json!({ "a": { "c": 2 }, "d": { "e": 4 } }));
    }
}
