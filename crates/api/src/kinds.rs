//! Every kind of this crate: group, version, names and scope, in one table.

/// Group of the policies.
pub const POLICY_GROUP: &str = "policy.karmada.io";
/// Group of bindings and works.
pub const WORK_GROUP: &str = "work.karmada.io";
/// Group of member clusters.
pub const CLUSTER_GROUP: &str = "cluster.karmada.io";
/// Group of interpreter configuration.
pub const CONFIG_GROUP: &str = "config.karmada.io";
/// Group of the rebalancer.
pub const APPS_GROUP: &str = "apps.karmada.io";

/// Groups of the kinds that a control plane of Karmada serves. They are about propagation, and so are never propagated.
const KARMADA_GROUPS: [&str; 9] = [
    APPS_GROUP,
    "autoscaling.karmada.io",
    CLUSTER_GROUP,
    CONFIG_GROUP,
    "networking.karmada.io",
    POLICY_GROUP,
    "remedy.karmada.io",
    "search.karmada.io",
    WORK_GROUP,
];

/// True for a group that Karmada defines; another one that ends in `.karmada.io` is a user's (C9).
pub fn is_karmada_group(group: &str) -> bool {
    KARMADA_GROUPS.contains(&group)
}

/// Whether objects of a kind live in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// They do.
    Namespaced,
    /// They do not.
    Cluster,
}

impl Scope {
    /// The word used in CustomResourceDefinitions.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Namespaced => "Namespaced",
            Scope::Cluster => "Cluster",
        }
    }
}

/// How a kind is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// API group.
    pub group: &'static str,
    /// Version that is stored.
    pub version: &'static str,
    /// Name in CamelCase.
    pub kind: &'static str,
    /// Name in the path.
    pub plural: &'static str,
    /// Short names for the command line.
    pub short_names: &'static [&'static str],
    /// Groups of kinds for the command line.
    pub categories: &'static [&'static str],
    /// Namespaced or not.
    pub scope: Scope,
}

impl Kind {
    /// `group/version`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// The kind's name in lower case.
    pub fn singular(&self) -> String {
        self.kind.to_lowercase()
    }

    /// Name of the CustomResourceDefinition.
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}

const KARMADA: &[&str] = &["karmada-io"];

/// Propagates templates of one namespace.
pub const PROPAGATION_POLICY: Kind = Kind {
    group: POLICY_GROUP,
    version: "v1alpha1",
    kind: "PropagationPolicy",
    plural: "propagationpolicies",
    short_names: &["pp"],
    categories: KARMADA,
    scope: Scope::Namespaced,
};

/// Propagates templates of all namespaces.
pub const CLUSTER_PROPAGATION_POLICY: Kind = Kind {
    kind: "ClusterPropagationPolicy",
    plural: "clusterpropagationpolicies",
    short_names: &["cpp"],
    scope: Scope::Cluster,
    ..PROPAGATION_POLICY
};

/// Overrides templates of one namespace per cluster.
pub const OVERRIDE_POLICY: Kind =
    Kind { kind: "OverridePolicy", plural: "overridepolicies", short_names: &["op"], ..PROPAGATION_POLICY };

/// Overrides templates of all namespaces per cluster.
pub const CLUSTER_OVERRIDE_POLICY: Kind = Kind {
    kind: "ClusterOverridePolicy",
    plural: "clusteroverridepolicies",
    short_names: &["cop"],
    scope: Scope::Cluster,
    ..PROPAGATION_POLICY
};

/// Holds templates of one namespace back.
pub const ROLLOUT_POLICY: Kind =
    Kind { kind: "RolloutPolicy", plural: "rolloutpolicies", short_names: &["rp"], ..PROPAGATION_POLICY };

/// Holds templates of all namespaces back.
pub const CLUSTER_ROLLOUT_POLICY: Kind = Kind {
    kind: "ClusterRolloutPolicy",
    plural: "clusterrolloutpolicies",
    short_names: &["crp"],
    scope: Scope::Cluster,
    ..PROPAGATION_POLICY
};

/// Sets taints by conditions.
pub const CLUSTER_TAINT_POLICY: Kind = Kind {
    kind: "ClusterTaintPolicy",
    plural: "clustertaintpolicies",
    short_names: &[],
    categories: &[],
    scope: Scope::Cluster,
    ..PROPAGATION_POLICY
};

/// Binds a namespaced template to clusters.
pub const RESOURCE_BINDING: Kind = Kind {
    group: WORK_GROUP,
    version: "v1alpha2",
    kind: "ResourceBinding",
    plural: "resourcebindings",
    short_names: &["rb"],
    categories: KARMADA,
    scope: Scope::Namespaced,
};

/// Binds a template without namespace to clusters.
pub const CLUSTER_RESOURCE_BINDING: Kind = Kind {
    kind: "ClusterResourceBinding",
    plural: "clusterresourcebindings",
    short_names: &["crb"],
    scope: Scope::Cluster,
    ..RESOURCE_BINDING
};

/// Brings a manifest to one member.
pub const WORK: Kind =
    Kind { version: "v1alpha1", kind: "Work", plural: "works", short_names: &["wk"], ..RESOURCE_BINDING };

/// A member.
pub const CLUSTER: Kind = Kind {
    group: CLUSTER_GROUP,
    version: "v1alpha1",
    kind: "Cluster",
    plural: "clusters",
    short_names: &[],
    categories: KARMADA,
    scope: Scope::Cluster,
};

/// Explains a kind by scripts.
pub const RESOURCE_INTERPRETER_CUSTOMIZATION: Kind = Kind {
    group: CONFIG_GROUP,
    kind: "ResourceInterpreterCustomization",
    plural: "resourceinterpretercustomizations",
    short_names: &["ric"],
    ..CLUSTER
};

/// Asks for a fresh placement.
pub const WORKLOAD_REBALANCER: Kind = Kind {
    group: APPS_GROUP,
    kind: "WorkloadRebalancer",
    plural: "workloadrebalancers",
    categories: &[],
    ..CLUSTER
};

/// All of them.
pub const ALL: [Kind; 13] = [
    PROPAGATION_POLICY,
    CLUSTER_PROPAGATION_POLICY,
    OVERRIDE_POLICY,
    CLUSTER_OVERRIDE_POLICY,
    ROLLOUT_POLICY,
    CLUSTER_ROLLOUT_POLICY,
    CLUSTER_TAINT_POLICY,
    RESOURCE_BINDING,
    CLUSTER_RESOURCE_BINDING,
    WORK,
    CLUSTER,
    RESOURCE_INTERPRETER_CUSTOMIZATION,
    WORKLOAD_REBALANCER,
];
