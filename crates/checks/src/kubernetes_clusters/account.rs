//! The RBAC rights of the controllers: exactly those of the manifests. Applies the manifests to a real API server, and
//! writes the kubeconfig of their service account.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::cluster::Cluster;

const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/manifests/controllers.yaml");
const TOKEN: &str = "/api/v1/namespaces/karmada-system/serviceaccounts/longshore-controllers/token";

/// Applies the manifests to a cluster and answers with a kubeconfig of the account in them.
pub async fn account(cluster: &Cluster, directory: &Path) -> Result<PathBuf> {
    let api_client = cluster.api_client();
    let text = std::fs::read_to_string(MANIFESTS).context("read the manifests")?;
    for document in text.split("\n---\n") {
        let object: Value = serde_saphyr::from_str(document).context("read a manifest")?;
        let path = collection(&object).with_context(|| format!("find the place of {object}"))?;
        let (status, answer) = api_client.request(Method::POST, &path, object.to_string()).await;
        ensure!(status.is_success() || status.as_u16() == 409, "apply to {path}: {answer}");
    }
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": { "expirationSeconds": 86_400 },
    });
    let (_, answer) = api_client.request(Method::POST, TOKEN, request.to_string()).await;
    let token = answer["status"]["token"].as_str().with_context(|| format!("no token: {answer}"))?;
    let file = directory.join("controllers-kubeconfig");
    let kubeconfig = std::fs::read_to_string(&cluster.kubeconfig)?;
    let lines = kubeconfig.lines().filter(|line| !line.trim().starts_with("client-key-data"));
    let lines: Vec<String> = lines
        .map(|line| match line.trim().starts_with("client-certificate-data") {
            true => format!("    token: {token}"),
            false => line.to_owned(),
        })
        .collect();
    std::fs::write(&file, lines.join("\n") + "\n")?;
    Ok(file)
}

/// Where an object is created, if it is of a kind that is installed with Longshore.
pub fn collection(object: &Value) -> Option<String> {
    let plural = match object["kind"].as_str()? {
        "Namespace" => "namespaces",
        "ServiceAccount" => "serviceaccounts",
        "ClusterRole" => "clusterroles",
        "ClusterRoleBinding" => "clusterrolebindings",
        "Role" => "roles",
        "RoleBinding" => "rolebindings",
        "Service" => "services",
        "NetworkPolicy" => "networkpolicies",
        "PodDisruptionBudget" => "poddisruptionbudgets",
        "Deployment" => "deployments",
        "StatefulSet" => "statefulsets",
        _ => return None,
    };
    let version = object["apiVersion"].as_str()?;
    let root = if version.contains('/') { "/apis" } else { "/api" };
    Some(match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{root}/{version}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{version}/{plural}"),
    })
}
