//! Objects that tests write, and their paths.

use controllers::rest::Collection;
use serde_json::{Value, json};

/// The path of the Deployment `nginx`.
pub const NGINX: &str = "/apis/apps/v1/namespaces/default/deployments/nginx";
/// The path of its binding.
pub const BINDING: &str =
    "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/nginx-deployment";
/// The path of the ConfigMap `conf`.
pub const CONFIG: &str = "/api/v1/namespaces/default/configmaps/conf";
/// The path of the policy `pp`.
pub const POLICY: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies/pp";

/// The path of the Work of `nginx`.
pub fn work_path(cluster: &str) -> String {
    work_of(cluster, "Deployment", "nginx")
}

/// The path of the Work of an object in `default`.
pub fn work_of(cluster: &str, kind: &str, name: &str) -> String {
    let name = api::names::work_name(kind, name, "default");
    Collection::of(&api::kinds::WORK, &api::names::execution_namespace(cluster)).object(&name).to_string()
}

/// The path of a Cluster.
pub fn cluster_path(name: &str) -> String {
    Collection::of(&api::kinds::CLUSTER, "").object(name).to_string()
}

/// Where objects of this type lie.
pub fn collection(object: &Value) -> Collection {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&object["kind"]).to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    };
    Collection::new(&text(&object["apiVersion"]), &plural, &text(&object["metadata"]["namespace"]))
}

/// The status of a condition, empty if there is none.
pub fn condition(object: &Value, kind: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|one| one["type"] == kind);
    found.and_then(|one| one["status"].as_str()).unwrap_or_default().to_owned()
}

/// The Deployment `nginx`, which needs nothing else.
pub fn nginx() -> Value {
    let mut nginx = deployment("nginx", "");
    nginx["metadata"]["labels"] = json!({ "app": "nginx" });
    nginx["spec"]["template"]["spec"]["volumes"] = json!([]);
    nginx
}

/// A Deployment in `default` that mounts this ConfigMap.
pub fn deployment(name: &str, config: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "namespace": "default", "name": name },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": {
                    "containers": [{ "name": "main", "image": "nginx:1" }],
                    "volumes": [{ "name": "config", "configMap": { "name": config } }],
                },
            },
        },
    })
}

/// A ConfigMap.
pub fn config_map(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": namespace, "name": name },
        "data": { "key": "one" },
    })
}

/// A namespace.
pub fn namespace(name: &str, labels: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } })
}

/// A PropagationPolicy in `default` for one name, with more in its spec.
pub fn policy(name: &str, selects: (&str, &str), clusters: &[&str], more: Value) -> Value {
    let api_version = if selects.0 == "Deployment" { "apps/v1" } else { "v1" };
    let mut spec = json!({
        "resourceSelectors": [{ "apiVersion": api_version, "kind": selects.0, "name": selects.1 }],
        "placement": { "clusterAffinity": { "clusterNames": clusters } },
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": { "namespace": "default", "name": name }, "spec": spec,
    })
}
