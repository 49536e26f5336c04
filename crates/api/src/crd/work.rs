//! Schema of the Work.

use super::parts::{conditions, health};
use super::schema::{Schema, boolean, integer, list_of, object, raw_object, string};
use super::{Version, age, column, condition, wide};
use crate::work::{APPLIED, DISPATCHING};

pub(super) const ABOUT: &str = "One object on its way to one member cluster. Works live in the namespace \
                                `karmada-es-` followed by the name of the cluster. Controllers write them \
                                from bindings and Namespaces, deliver them, and report back what the cluster \
                                says.";

pub(super) fn work() -> Version {
    Version::stored("v1alpha1", spec(), "What the cluster receives.")
        .status(status(), "What the cluster reports.")
        .columns([
            column("WORKLOAD-KIND", ".spec.workload.manifests[*].kind"),
            condition("APPLIED", APPLIED),
            wide(condition("DISPATCHING", DISPATCHING)),
            age(),
        ])
}

fn spec() -> Schema {
    let manifests = list_of(raw_object()).about(
        "Whole objects as the cluster receives them, after replicas and overrides. Controllers write exactly \
         one per Work.",
    );
    object([
        (
            "preserveResourcesOnDeletion",
            boolean().about(
                "True leaves the object in the cluster when the Work is deleted, and takes the control \
                 plane's labels and annotations off it. Default false: it is deleted.",
            ),
        ),
        (
            "suspendDispatching",
            boolean().about(
                "True holds every write to the cluster back, while the Work itself is kept up to date. \
                 Default false. Deleting the Work still deletes the object.",
            ),
        ),
        ("workload", object([("manifests", manifests)]).about("The objects.")),
    ])
}

fn status() -> Schema {
    let manifest = object([
        ("health", health()),
        ("identifier", identifier().required().about("Which manifest the item is about.")),
        (
            "outdated",
            boolean().about(
                "True while the status is about an older generation of the object than the cluster has. \
                 Default false.",
            ),
        ),
        (
            "status",
            raw_object()
                .about("Status of the object in the cluster, as far as it is collected for its kind."),
        ),
    ]);
    object([
        (
            "conditions",
            conditions().about(
                "`Applied`: the cluster has taken the object. `Dispatching`: False while writes to the \
                 cluster are suspended.",
            ),
        ),
        ("manifestStatuses", list_of(manifest).about("What the cluster reports of each manifest.")),
    ])
}

fn identifier() -> Schema {
    object([
        ("group", string().about("API group of the object. Empty for the core group.")),
        ("kind", string().required().about("Kind of the object.")),
        ("name", string().required().about("Name of the object.")),
        ("namespace", string().about("Namespace of the object. Empty for kinds without namespaces.")),
        ("ordinal", integer().required().about("Place in spec.workload.manifests, from 0 on.")),
        ("resource", string().required().about("Always empty, as in Karmada.")),
        ("version", string().required().about("API version of the object, without the group.")),
    ])
}
