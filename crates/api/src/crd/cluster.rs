//! Schema of the Cluster, which Karmada serves from an API server of its own.

use super::parts::{conditions, resource_list};
use super::schema::{
    Schema, boolean, date_time, int32, integer, list_of, map_of, object, one_of, quantity, string, strings,
};
use super::{Version, age, column, condition, wide};
use crate::cluster::READY;

pub(super) fn cluster() -> Version {
    Version::stored("v1alpha1", spec()).status(status()).columns([
        column("VERSION", ".status.kubernetesVersion"),
        column("MODE", ".spec.syncMode"),
        condition("READY", READY),
        age(),
        wide(column("PROVIDER", ".spec.provider")),
        wide(column("REGION", ".spec.region")),
        wide(column("ZONES", ".spec.zones")),
        wide(column("APIENDPOINT", ".spec.apiEndpoint")),
    ])
}

fn spec() -> Schema {
    object([
        ("apiEndpoint", string()),
        ("id", string().length(0, 128_000)),
        ("impersonatorSecretRef", secret_reference()),
        ("insecureSkipTLSVerification", boolean()),
        ("provider", string()),
        ("proxyHeader", map_of(string())),
        ("proxyURL", string()),
        ("region", string()),
        ("resourceModels", list_of(resource_model())),
        ("secretRef", secret_reference()),
        ("syncMode", one_of(&["Push", "Pull"]).required()),
        ("taints", list_of(taint())),
        ("zone", string()),
        ("zones", strings()),
    ])
}

fn secret_reference() -> Schema {
    object([("name", string().required()), ("namespace", string().required())])
}

fn taint() -> Schema {
    object([
        ("effect", string().required()),
        ("key", string().required()),
        ("timeAdded", date_time()),
        ("value", string()),
    ])
}

fn grade() -> Schema {
    integer().at_least(0).required()
}

fn resource_model() -> Schema {
    let range = object([
        ("max", quantity().required()),
        ("min", quantity().required()),
        ("name", string().required()),
    ]);
    object([("grade", grade()), ("ranges", list_of(range).required())])
}

fn status() -> Schema {
    let resource = object([("kind", string().required()), ("name", string().required())]);
    let enablement = object([("groupVersion", string().required()), ("resources", list_of(resource))]);
    let modeling = object([("count", integer().required()), ("grade", grade())]);
    let resource_summary = object([
        ("allocatable", resource_list()),
        ("allocatableModelings", list_of(modeling)),
        ("allocated", resource_list()),
        ("allocating", resource_list()),
    ]);
    object([
        ("apiEnablements", list_of(enablement)),
        ("conditions", conditions()),
        ("kubernetesVersion", string()),
        ("nodeSummary", object([("readyNum", int32()), ("totalNum", int32())])),
        ("remedyActions", strings()),
        ("resourceSummary", resource_summary),
    ])
}
