//! Schema of the Work.

use super::parts::{conditions, health};
use super::schema::{boolean, integer, list_of, object, raw_object, string};
use super::{Version, age, column, condition, wide};
use crate::work::{APPLIED, DISPATCHING};

pub(super) fn work() -> Version {
    let spec = object([
        ("preserveResourcesOnDeletion", boolean()),
        ("suspendDispatching", boolean()),
        ("workload", object([("manifests", list_of(raw_object()))])),
    ]);
    let identifier = object([
        ("group", string()),
        ("kind", string().required()),
        ("name", string().required()),
        ("namespace", string()),
        ("ordinal", integer().required()),
        ("resource", string().required()),
        ("version", string().required()),
    ]);
    let manifest =
        object([("health", health()), ("identifier", identifier.required()), ("status", raw_object())]);
    let status = object([("conditions", conditions()), ("manifestStatuses", list_of(manifest))]);
    Version::stored("v1alpha1", spec).status(status).columns([
        column("WORKLOAD-KIND", ".spec.workload.manifests[*].kind"),
        condition("APPLIED", APPLIED),
        wide(condition("DISPATCHING", DISPATCHING)),
        age(),
    ])
}
