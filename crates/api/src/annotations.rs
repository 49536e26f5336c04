//! Annotation keys and values that Karmada reads or writes (C7). Longshore's own are in
//! [`crate::records`].

/// Namespace of the PropagationPolicy that claims a template or made a binding.
pub const PROPAGATION_POLICY_NAMESPACE: &str = "propagationpolicy.karmada.io/namespace";
/// Name of the PropagationPolicy that claims a template or made a binding.
pub const PROPAGATION_POLICY_NAME: &str = "propagationpolicy.karmada.io/name";
/// Name of the ClusterPropagationPolicy that claims a template or made a binding.
pub const CLUSTER_PROPAGATION_POLICY_NAME: &str = "clusterpropagationpolicy.karmada.io/name";

/// On bindings: JSON of the placement that was last scheduled.
pub const APPLIED_PLACEMENT: &str = "policy.karmada.io/applied-placement";
/// On Works: JSON list of [`crate::override_policy::AppliedOverride`] from OverridePolicies.
pub const APPLIED_OVERRIDES: &str = "policy.karmada.io/applied-overrides";
/// On Works: JSON list of [`crate::override_policy::AppliedOverride`] from ClusterOverridePolicies.
pub const APPLIED_CLUSTER_OVERRIDES: &str = "policy.karmada.io/applied-cluster-overrides";

/// On Works and manifests: namespace of the binding.
pub const RESOURCE_BINDING_NAMESPACE: &str = "resourcebinding.karmada.io/namespace";
/// On Works and manifests: name of the binding.
pub const RESOURCE_BINDING_NAME: &str = "resourcebinding.karmada.io/name";
/// On Works and manifests: name of the cluster-scoped binding.
pub const CLUSTER_RESOURCE_BINDING_NAME: &str = "clusterresourcebinding.karmada.io/name";
/// On bindings: JSON list of [`crate::interpreter::DependentObjectReference`].
pub const DEPENDENCIES: &str = "resourcebinding.karmada.io/dependencies";

/// On manifests: namespace of the Work.
pub const WORK_NAMESPACE: &str = "work.karmada.io/namespace";
/// On manifests: name of the Work.
pub const WORK_NAME: &str = "work.karmada.io/name";
/// On templates, Works and manifests: [`CONFLICT_OVERWRITE`] or [`CONFLICT_ABORT`].
pub const CONFLICT_RESOLUTION: &str = "work.karmada.io/conflict-resolution";
/// Value of [`CONFLICT_RESOLUTION`]: take over what is already in the member.
pub const CONFLICT_OVERWRITE: &str = "overwrite";
/// Value of [`CONFLICT_RESOLUTION`]: leave what is already in the member.
pub const CONFLICT_ABORT: &str = "abort";

/// On manifests: uid of the template.
pub const TEMPLATE_UID: &str = "resourcetemplate.karmada.io/uid";
/// On manifests: generation of the template.
pub const TEMPLATE_GENERATION: &str = "resourcetemplate.karmada.io/generation";
/// On manifests: sorted comma-separated annotation keys that come from the control plane.
pub const MANAGED_ANNOTATIONS: &str = "resourcetemplate.karmada.io/managed-annotations";
/// On manifests: sorted comma-separated label keys that come from the control plane.
pub const MANAGED_LABELS: &str = "resourcetemplate.karmada.io/managed-labels";
/// On search results: the member an object was read from.
pub const CACHED_FROM_CLUSTER: &str = "resource.karmada.io/cached-from-cluster";
