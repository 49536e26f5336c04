//! Label keys and values that Karmada reads or writes (C7), and which component owns which label.

use crate::annotations;

/// UUID of a PropagationPolicy; copied to the templates and bindings it claims.
pub const PROPAGATION_POLICY_PERMANENT_ID: &str = "propagationpolicy.karmada.io/permanent-id";
/// UUID of a ClusterPropagationPolicy; copied to the templates and bindings it claims.
pub const CLUSTER_PROPAGATION_POLICY_PERMANENT_ID: &str = "clusterpropagationpolicy.karmada.io/permanent-id";
/// UUID of a ResourceBinding; copied to its Works and manifests.
pub const RESOURCE_BINDING_PERMANENT_ID: &str = "resourcebinding.karmada.io/permanent-id";
/// UUID of a ClusterResourceBinding; copied to its Works and manifests.
pub const CLUSTER_RESOURCE_BINDING_PERMANENT_ID: &str = "clusterresourcebinding.karmada.io/permanent-id";
/// UUID of a Work; copied to its manifest.
pub const WORK_PERMANENT_ID: &str = "work.karmada.io/permanent-id";

/// `true` on every manifest that goes to a member.
pub const MANAGED: &str = "karmada.io/managed";
/// `true` on what belongs to the control plane itself.
pub const SYSTEM: &str = "karmada.io/system";
/// On Works of Karmada up to 1.13: what is to be done with them besides the usual.
pub const INSTRUCTION: &str = "propagation.karmada.io/instruction";
/// Value of [`INSTRUCTION`]: nothing.
pub const SUPPRESSED: &str = "suppressed";
/// Value of [`MANAGED`] and [`SYSTEM`].
pub const TRUE: &str = "true";

/// Prefix of the label that names a binding which needs this one; see [`crate::names::depended_by_label`].
pub const DEPENDED_BY_PREFIX: &str = "resourcebinding.karmada.io/depended-by-";
/// Kind that made a binding instead of a policy, for example `MultiClusterService`.
pub const BINDING_MANAGED_BY: &str = "binding.karmada.io/managed-by";
/// Kind that took a template over; policies leave such a template alone.
pub const TEMPLATE_CLAIMED_BY: &str = "resourcetemplate.karmada.io/claimed-by";
/// `true` keeps the replicas a member has.
pub const RETAIN_REPLICAS: &str = "resourcetemplate.karmada.io/retain-replicas";
/// [`DELETION_PROTECTED_ALWAYS`] refuses every deletion.
pub const DELETION_PROTECTED: &str = "resourcetemplate.karmada.io/deletion-protected";
/// Value of [`DELETION_PROTECTED`].
pub const DELETION_PROTECTED_ALWAYS: &str = "Always";
/// `true`, in any case, keeps a Namespace out of every member.
pub const SKIP_AUTO_PROPAGATION: &str = "namespace.karmada.io/skip-auto-propagation";
/// Namespace of the quota a Work belongs to.
pub const FEDERATED_RESOURCE_QUOTA_NAMESPACE: &str = "federatedresourcequota.karmada.io/namespace";
/// Name of the quota a Work belongs to.
pub const FEDERATED_RESOURCE_QUOTA_NAME: &str = "federatedresourcequota.karmada.io/name";

/// True for labels and annotations that are bookkeeping: changing one is no user change of a template.
pub fn is_bookkeeping(key: &str) -> bool {
    key != SKIP_AUTO_PROPAGATION && (key.contains(".karmada.io") || key.starts_with(crate::records::PREFIX))
}

/// Labels and annotations, besides Longshore's own, by which the control plane knows what belongs to what. Only the
/// control plane writes them on what goes to members.
const OWNERSHIP_MARKS: [&str; 25] = [
    MANAGED,
    SYSTEM,
    INSTRUCTION,
    BINDING_MANAGED_BY,
    TEMPLATE_CLAIMED_BY,
    PROPAGATION_POLICY_PERMANENT_ID,
    CLUSTER_PROPAGATION_POLICY_PERMANENT_ID,
    RESOURCE_BINDING_PERMANENT_ID,
    CLUSTER_RESOURCE_BINDING_PERMANENT_ID,
    WORK_PERMANENT_ID,
    annotations::PROPAGATION_POLICY_NAMESPACE,
    annotations::PROPAGATION_POLICY_NAME,
    annotations::CLUSTER_PROPAGATION_POLICY_NAME,
    annotations::RESOURCE_BINDING_NAMESPACE,
    annotations::RESOURCE_BINDING_NAME,
    annotations::CLUSTER_RESOURCE_BINDING_NAME,
    annotations::DEPENDENCIES,
    annotations::APPLIED_OVERRIDES,
    annotations::APPLIED_CLUSTER_OVERRIDES,
    annotations::WORK_NAMESPACE,
    annotations::WORK_NAME,
    annotations::TEMPLATE_UID,
    annotations::TEMPLATE_GENERATION,
    annotations::MANAGED_ANNOTATIONS,
    annotations::MANAGED_LABELS,
];

/// True for labels and annotations that say who owns an object (M3). Those with which users ask for something, such as
/// [`RETAIN_REPLICAS`] and [`annotations::CONFLICT_RESOLUTION`], are none.
pub fn is_ownership_mark(key: &str) -> bool {
    OWNERSHIP_MARKS.contains(&key)
        || key.starts_with(DEPENDED_BY_PREFIX)
        || key.starts_with(crate::records::PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookkeeping_is_told_from_what_users_write() {
        for (key, expected) in [
            (PROPAGATION_POLICY_PERMANENT_ID, true),
            (crate::annotations::CLUSTER_PROPAGATION_POLICY_NAME, true),
            (crate::records::PIN, true),
            (SKIP_AUTO_PROPAGATION, false),
            ("app", false),
            ("longshore.io.example.com/team", false),
        ] {
            assert_eq!(is_bookkeeping(key), expected, "{key}");
        }
    }
}
