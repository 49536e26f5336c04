//! Test-only: a snapshot of a control plane in memory, as input of what is printed about it.

use std::sync::Arc;

use decide::snapshot::{Change, Interpreters};
use decide::{Snapshot, TemplateKey};
use serde_json::{Value, json};

/// A control plane on paper: what is written is settled at once, as the controllers would.
#[derive(Default)]
pub struct Stage {
    /// Everything in it.
    pub snapshot: Snapshot,
    writes: u64,
}

impl Stage {
    /// Clusters member1 to member3, all of which have the usual kinds.
    pub fn new() -> Self {
        let mut stage = Self::default();
        for name in ["member1", "member2", "member3"] {
            stage.cluster(name, json!([]));
        }
        stage
    }

    /// A cluster with these taints that is ready.
    pub fn cluster(&mut self, name: &str, taints: Value) {
        self.cluster_that_is("True", name, taints);
    }

    /// A cluster that is ready, or not.
    pub fn cluster_that_is(&mut self, ready: &str, name: &str, taints: Value) {
        let kinds = json!([{ "name": "deployments", "kind": "Deployment" }]);
        let mut condition = json!({ "type": "Ready", "status": ready });
        if ready != "True" {
            condition["lastTransitionTime"] = json!("2026-01-01T07:30:00Z");
            condition["message"] = json!("cluster is not reachable");
        }
        self.put(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": name },
            "spec": { "syncMode": "Push", "taints": taints },
            "status": {
                "kubernetesVersion": "v1.35.4",
                "apiEnablements": [{ "groupVersion": "apps/v1", "resources": kinds }],
                "conditions": [condition],
            },
        }));
    }

    /// Writes an object with what a server adds: uid, generation and stamps.
    pub fn put(&mut self, object: Value) {
        self.put_unsettled(object);
        self.snapshot.settle_all(Interpreters::BUILT_IN);
    }

    /// So many Deployments, of one to three replicas, all of them at once.
    pub fn crowd(&mut self, count: usize) {
        for index in 0..count {
            self.put_unsettled(json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": { "name": format!("web-{index:04}"), "namespace": "default" },
                "spec": { "replicas": 1 + index % 3, "template": { "spec": {} } },
            }));
        }
        self.snapshot.settle_all(Interpreters::BUILT_IN);
    }

    fn put_unsettled(&mut self, mut object: Value) {
        self.writes += 1;
        let metadata = &mut object["metadata"];
        metadata["uid"] = json!(format!("uid-of-{}", metadata["name"].as_str().unwrap_or_default()));
        metadata["resourceVersion"] = json!(self.writes.to_string());
        let second = |number: u64| json!(format!("2026-01-01T00:{:02}:{:02}Z", number / 60, number % 60));
        if metadata["creationTimestamp"].is_null() {
            metadata["creationTimestamp"] = second(self.writes);
        }
        if metadata["generation"].is_null() {
            metadata["generation"] = json!(1);
        }
        self.snapshot.apply(&Change::Put(Arc::new(object))).expect("it makes sense");
    }

    /// A policy in its first generation; it sends nginx to member1 unless its spec says otherwise.
    pub fn policy(&mut self, name: &str, spec: Value) {
        self.policy_of_generation(name, 1, spec);
    }

    /// The same in another generation.
    pub fn policy_of_generation(&mut self, name: &str, generation: i64, mut spec: Value) {
        if spec["resourceSelectors"].is_null() {
            spec["resourceSelectors"] =
                json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx" }]);
        }
        if spec["placement"].is_null() {
            spec["placement"] = on(&["member1"]);
        }
        // A second edit does not change since when it selects what it selects.
        self.put(json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": { "name": name, "namespace": "default", "generation": generation },
            "spec": spec,
        }));
    }

    /// The Deployment nginx with so many replicas; what was written on it stays.
    pub fn nginx(&mut self, replicas: i32) {
        let key = nginx();
        let marks = self.snapshot.templates.get(&key).map(|template| template.annotations.clone());
        let labels = self.snapshot.templates.get(&key).map(|template| template.labels.clone());
        let mut labels = labels.unwrap_or_default();
        labels.insert("app".to_owned(), "nginx".to_owned());
        self.put(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "nginx", "namespace": "default", "labels": labels, "annotations": marks.unwrap_or_default() },
            "spec": { "replicas": replicas, "template": { "spec": { "containers": [{ "name": "nginx", "image": "nginx" }] } } },
        }));
    }

    /// Deletes a policy.
    pub fn delete(&mut self, kind: &str, name: &str) {
        let change = Change::Delete {
            api_version: "policy.karmada.io/v1alpha1".to_owned(),
            kind: kind.to_owned(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
        };
        self.snapshot.apply(&change).expect("it makes sense");
        self.snapshot.settle_all(Interpreters::BUILT_IN);
    }
}

/// The Deployment nginx.
pub fn nginx() -> TemplateKey {
    TemplateKey {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        namespace: "default".to_owned(),
        name: "nginx".to_owned(),
    }
}

/// A placement in these clusters.
pub fn on(clusters: &[&str]) -> Value {
    json!({ "clusterAffinity": { "clusterNames": clusters } })
}

/// Selectors that mean every Deployment.
pub fn all() -> Value {
    json!([{ "apiVersion": "apps/v1", "kind": "Deployment" }])
}
