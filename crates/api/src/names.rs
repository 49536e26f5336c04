//! Names of bindings, Works, execution namespaces and labels: Karmada's rules exactly (C7), so that its objects are
//! found and adopted, not duplicated.

use std::fmt::Write;

use crate::labels::{self, DEPENDED_BY_PREFIX};

/// Namespace of Karmada's own components.
pub const SYSTEM_NAMESPACE: &str = "karmada-system";
/// Namespace of the members' credentials.
pub const CLUSTER_NAMESPACE: &str = "karmada-cluster";
/// Start of every execution namespace.
pub const EXECUTION_NAMESPACE_PREFIX: &str = "karmada-es-";
/// Service account in members through which users act.
pub const IMPERSONATOR_SERVICE_ACCOUNT: &str = "karmada-impersonator";

/// Name of a template's binding; kinds that differ only in their group share it (C5).
pub fn binding_name(kind: &str, name: &str) -> String {
    format!("{}-{kind}", dotted(name)).to_lowercase()
}

/// Name of a template's Work; `namespace` is empty for cluster-scoped kinds.
pub fn work_name(kind: &str, name: &str, namespace: &str) -> String {
    let name = dotted(name).to_lowercase();
    let hashed = match namespace {
        "" => format!("{name}-{kind}"),
        _ => format!("{namespace}-{name}-{kind}"),
    };
    format!("{name}-{}", hash(&hashed.to_lowercase()))
}

/// Namespace that holds a member's Works.
pub fn execution_namespace(cluster: &str) -> String {
    format!("{EXECUTION_NAMESPACE_PREFIX}{cluster}")
}

/// The member whose Works a namespace holds.
pub fn cluster_of_execution_namespace(namespace: &str) -> Option<&str> {
    namespace.strip_prefix(EXECUTION_NAMESPACE_PREFIX).filter(|cluster| !cluster.is_empty())
}

/// True for namespaces that belong to the control plane and are never propagated.
pub fn is_reserved_namespace(namespace: &str) -> bool {
    namespace == SYSTEM_NAMESPACE
        || namespace == CLUSTER_NAMESPACE
        || namespace.starts_with(EXECUTION_NAMESPACE_PREFIX)
}

/// True for namespaces in which nothing is a template: Kubernetes' own, and those of the control plane.
fn is_left_alone(namespace: &str) -> bool {
    namespace.starts_with("kube-") || is_reserved_namespace(namespace)
}

/// True for what no policy takes, whatever it selects.
pub fn is_no_template(namespace: &str, object: &serde_json::Value) -> bool {
    is_left_alone(namespace) || is_made_by_server(object) || is_of_the_system(object)
}

/// True for what carries the mark of the control plane's own things: the credentials of members for instance, which may
/// lie in a namespace of any name and must not be sent to all the others.
fn is_of_the_system(object: &serde_json::Value) -> bool {
    object["metadata"]["labels"][labels::SYSTEM] == labels::TRUE
}

/// True for what every API server makes for itself: default roles and bindings, and the Service by which it is found.
/// Each cluster has its own; a policy that selects all roles or all Services means those that users wrote.
fn is_made_by_server(object: &serde_json::Value) -> bool {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let metadata = &object["metadata"];
    if version.starts_with("rbac.authorization.k8s.io/") {
        return metadata["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults";
    }
    let kind = object["kind"].as_str().unwrap_or_default();
    matches!((version, kind), ("v1", "Service" | "Endpoints") | ("discovery.k8s.io/v1", "EndpointSlice"))
        && metadata["namespace"] == "default"
        && metadata["name"] == "kubernetes"
}

/// Label key on a binding that another one needs; its value is the other's permanent id.
pub fn depended_by_label(namespace: &str, binding: &str) -> String {
    let suffix = match namespace {
        "" => hash(binding),
        _ => hash(&format!("{namespace}/{binding}")),
    };
    format!("{DEPENDED_BY_PREFIX}{suffix}")
}

/// Name of the policy that the command line makes for one template.
pub fn policy_name(api_version: &str, kind: &str, namespace: &str, name: &str) -> String {
    // Go prints the kind of the core group, whose version stands alone, with an empty group before a slash.
    let version = if api_version.contains('/') { api_version.to_owned() } else { format!("/{api_version}") };
    format!("{}-{}", dotted(name), hash(&format!("{namespace}{version}, Kind={kind}"))).to_lowercase()
}

/// Service account in a member through which the control plane acts.
pub fn member_service_account(cluster: &str) -> String {
    format!("karmada-{cluster}")
}

/// ClusterRole of that service account.
pub fn member_role(cluster: &str) -> String {
    format!("karmada-controller-manager:{}", member_service_account(cluster))
}

/// Secret with the credentials for impersonating users in a member.
pub fn impersonator_secret(cluster: &str) -> String {
    format!("{cluster}-impersonator")
}

/// A permanent id (a version 4 UUID) made of the caller's random bytes.
pub fn permanent_id(mut random: [u8; 16]) -> String {
    random[6] = random[6] & 0x0f | 0x40;
    random[8] = random[8] & 0x3f | 0x80;
    let mut id = String::with_capacity(36);
    for (index, byte) in random.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        write!(id, "{byte:02x}").expect("writing to a string cannot fail");
    }
    id
}

/// FNV-1a over the bytes, in decimal, with digits replaced so that no word can appear.
fn hash(text: &str) -> String {
    let hash =
        text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.to_string().bytes().map(|digit| char::from(b"456789bcdf"[usize::from(digit - b'0')])).collect()
}

/// RBAC names contain colons, names of bindings and Works cannot.
fn dotted(name: &str) -> String {
    name.replace(':', ".")
}

#[cfg(test)]
mod tests;
