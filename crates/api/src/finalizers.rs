//! Finalizers that Karmada sets (C7), so that either control plane can finish what the other began.

/// On Clusters, until the execution namespace is gone and no binding names the cluster.
pub const CLUSTER: &str = "karmada.io/cluster-controller";
/// On Works, until the member's object is deleted or left on purpose.
pub const EXECUTION: &str = "karmada.io/execution-controller";
/// On ResourceBindings, until their Works were asked to go.
pub const BINDING: &str = "karmada.io/binding-controller";
/// On ClusterResourceBindings, until their Works were asked to go.
pub const CLUSTER_RESOURCE_BINDING: &str = "karmada.io/cluster-resource-binding-controller";
/// On PropagationPolicies, until their claims are gone.
pub const PROPAGATION_POLICY: &str = "karmada.io/propagation-policy-controller";
/// On ClusterPropagationPolicies, until their claims are gone.
pub const CLUSTER_PROPAGATION_POLICY: &str = "karmada.io/cluster-propagation-policy-controller";
/// On bindings that take dependencies along, until those bindings know.
pub const DEPENDENCIES_DISTRIBUTOR: &str = "karmada.io/binding-dependencies-distributor";
