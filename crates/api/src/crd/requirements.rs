//! Schema of the replica requirements of a workload.

use super::parts::{Requirement, resource_list, tolerations};
use super::schema::{Field, Schema, list_of, map_of, object, string};

const OF_NODES: Requirement = Requirement {
    key: "Key of the node's label, or the node's field, for example `metadata.name`.",
    operator: "`In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`, as in the node affinity of a pod.",
    values: "Values to compare with: one number for `Gt` and `Lt`, none for `Exists` and `DoesNotExist`.",
};

pub(super) fn requirement_fields() -> [Field; 3] {
    [
        (
            "nodeClaim",
            node_claim().about(
                "Nodes that can run the replica. Taken over from the pod template; Longshore's scheduler \
                 does not evaluate it.",
            ),
        ),
        ("priorityClassName", string().about("Priority class of the pods.")),
        (
            "resourceRequest",
            resource_list().about(
                "How much of each resource the replica requests, for example `cpu: 100m`. It limits how many \
                 replicas fit into a cluster.",
            ),
        ),
    ]
}

fn node_claim() -> Schema {
    let requirements = || list_of(OF_NODES.schema()).atomic_list();
    let term = object([
        (
            "matchExpressions",
            requirements().about("Requirements on labels of the node. All of them must hold."),
        ),
        ("matchFields", requirements().about("Requirements on fields of the node. All of them must hold.")),
    ])
    .atomic_map();
    let terms = list_of(term).atomic_list().required();
    let affinity =
        object([("nodeSelectorTerms", terms.about("Alternatives: one of the terms must hold for a node."))]);
    object([
        ("hardNodeAffinity", affinity.atomic_map().about("Required node affinity of the pods.")),
        ("nodeSelector", map_of(string()).about("Labels that the node must have.")),
        ("tolerations", tolerations().about("Taints of nodes that the pods tolerate.")),
    ])
}
