//! Objects that every control plane has, by name: controllers create them again when they are deleted.

/// The namespaces that every server creates at start.
pub(crate) const SYSTEM_NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The ConfigMap with the certificate authority of the server, in every namespace.
pub(crate) const ROOT_CA: &str = "kube-root-ca.crt";
/// The ServiceAccount that every namespace has.
pub(crate) const SERVICE_ACCOUNT: &str = "default";

/// The namespace of the Service by which clients in a cluster find its API server.
pub(crate) const KUBERNETES_NAMESPACE: &str = "default";
/// The name of that Service.
pub(crate) const KUBERNETES_SERVICE: &str = "kubernetes";

/// Whether an object of this name is one that every namespace gets.
pub(crate) fn is_default_object(name: &str) -> bool {
    name == ROOT_CA || name == SERVICE_ACCOUNT
}

/// Whether this is the Service of the API server itself.
pub(crate) fn is_kubernetes_service(namespace: &str, name: &str) -> bool {
    namespace == KUBERNETES_NAMESPACE && name == KUBERNETES_SERVICE
}
