//! Schema of the Cluster, which Karmada serves from an aggregated API server.

use super::parts::{conditions, resource_list};
use super::schema::{
    Field, Schema, boolean, date_time, int32, integer, list_of, map_of, object, one_of, quantity, string,
    strings,
};
use super::taints::taint_fields;
use super::{Version, age, column, condition, wide};
use crate::cluster::READY;

pub(super) const ABOUT: &str = "A member cluster: how it is reached, where it is, which templates it keeps \
                                away, and what it last reported. `longshore join` creates it. The name has \
                                at most 48 characters.";

pub(super) fn cluster() -> Version {
    let spec = object(access().into_iter().chain(place()).chain(capacity()));
    Version::stored("v1alpha1", spec, "How the cluster is reached, where it is, and what it takes.")
        .status(status(), "What the cluster last reported.")
        .columns([
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

/// How it is reached.
fn access() -> [Field; 8] {
    [
        (
            "apiEndpoint",
            string().about("URL of the cluster's API server, for example `https://10.0.0.1:6443`."),
        ),
        (
            "id",
            string().length(0, 128_000).about(
                "Tells the cluster from all others, whatever its name: the UID of its namespace kube-system. \
                 `longshore join` refuses a cluster that has joined under another name.",
            ),
        ),
        (
            "impersonatorSecretRef",
            secret_reference().about(
                "Secret with a token that may act for other users in the cluster. Kept for Karmada; \
                 Longshore's controllers do not use it.",
            ),
        ),
        (
            "insecureSkipTLSVerification",
            boolean().about(
                "True accepts any certificate of the cluster's API server. Default false: `caBundle` of \
                 secretRef verifies it.",
            ),
        ),
        (
            "proxyHeader",
            map_of(string()).about("Headers for the proxy. Kept for Karmada; Longshore does not send them."),
        ),
        (
            "proxyURL",
            string().about("Proxy on the way to the cluster: a URL with http, https or socks5. Empty: none."),
        ),
        (
            "secretRef",
            secret_reference().about(
                "Secret with the keys `token` and `caBundle`, with which controllers reach the cluster.",
            ),
        ),
        (
            "syncMode",
            one_of(&["Push", "Pull"]).required().about(
                "Which side delivers: `Push` the controllers of the control plane, `Pull` an agent in the \
                 cluster that fetches its Works.",
            ),
        ),
    ]
}

fn secret_reference() -> Schema {
    object([
        ("name", string().required().about("Name of the Secret.")),
        ("namespace", string().required().about("Namespace of the Secret in the control plane.")),
    ])
}

/// Where it is.
fn place() -> [Field; 4] {
    [
        (
            "provider",
            string()
                .about("Provider of the cluster, for field selectors and spread constraints of placements."),
        ),
        (
            "region",
            string()
                .about("Region of the cluster, for field selectors and spread constraints of placements."),
        ),
        ("zone", string().about("Deprecated: the only zone of the cluster. The server moves it to zones.")),
        (
            "zones",
            strings()
                .about("Zones of the cluster, for field selectors and spread constraints of placements."),
        ),
    ]
}

/// What it takes.
fn capacity() -> [Field; 2] {
    let time_added = date_time().about(
        "When a `NoExecute` taint was set; tolerationSeconds count from then on. The server fills it in, and \
         keeps it when the same taint is written again.",
    );
    let taint = object(taint_fields().into_iter().chain([("timeAdded", time_added)]));
    [
        (
            "resourceModels",
            list_of(resource_model()).about(
                "Classes of nodes by size. With status.resourceSummary.allocatableModelings, the scheduler \
                 counts replicas that fit on single nodes; otherwise it counts what is free in the whole \
                 cluster.",
            ),
        ),
        (
            "taints",
            list_of(taint).about(
                "Keep away templates whose placement does not tolerate them, each key and effect once. Users \
                 and ClusterTaintPolicies set them; health checks set not-ready and unreachable, with \
                 `NoSchedule` alone.",
            ),
        ),
    ]
}

fn grade() -> Schema {
    integer().at_least(0).required()
}

fn resource_model() -> Schema {
    let range = object([
        ("max", quantity().required().about("Nodes of the class have less than this.")),
        (
            "min",
            quantity()
                .required()
                .about("Nodes of the class have at least this; the scheduler counts with it."),
        ),
        ("name", string().required().about("Name of the resource, for example `cpu`.")),
    ]);
    object([
        (
            "grade",
            grade().about(
                "Number of the class: 0, 1, 2 and so on, without gaps; larger nodes have higher ones.",
            ),
        ),
        (
            "ranges",
            list_of(range).required().about(
                "How much of each resource nodes of the class have. Each range begins where that of the \
                 class before ends.",
            ),
        ),
    ])
}

fn status() -> Schema {
    let nodes = object([
        ("readyNum", int32().about("Nodes that are ready.")),
        ("totalNum", int32().about("All nodes.")),
    ]);
    object([
        (
            "apiEnablements",
            list_of(enablement()).about(
                "APIs that the cluster serves. Templates of other kinds do not get there; what runs already \
                 stays.",
            ),
        ),
        (
            "conditions",
            conditions().about(
                "`Ready`: the cluster answers and is healthy. `CompleteAPIEnablements`: all of its APIs are \
                 known. `Dispatching`: False while Works wait because the cluster does not answer.",
            ),
        ),
        ("kubernetesVersion", string().about("Version of the cluster's API server, for example `v1.35.0`.")),
        ("nodeSummary", nodes.about("How many nodes the cluster has.")),
        (
            "remedyActions",
            strings()
                .about("What Karmada's Remedies ask for. Kept for Karmada; Longshore does not fill it in."),
        ),
        (
            "resourceSummary",
            resource_summary()
                .about("Capacity of the cluster, from which the scheduler estimates how many replicas fit."),
        ),
    ])
}

fn enablement() -> Schema {
    let resource = object([
        ("kind", string().required().about("Kind, for example `Deployment`.")),
        ("name", string().required().about("Name in paths, for example `deployments`.")),
    ]);
    object([
        ("groupVersion", string().required().about("Group and version, for example `apps/v1`.")),
        ("resources", list_of(resource).about("Kinds of the group and version.")),
    ])
}

fn resource_summary() -> Schema {
    let modeling = object([
        ("count", integer().required().about("How many nodes are in the class.")),
        ("grade", grade().about("Number of the class in spec.resourceModels.")),
    ]);
    object([
        ("allocatable", resource_list().about("What all nodes together offer to pods.")),
        (
            "allocatableModelings",
            list_of(modeling).about(
                "How many nodes are in each class of spec.resourceModels. Longshore keeps it and does not \
                 count.",
            ),
        ),
        ("allocated", resource_list().about("What the pods that are on nodes request.")),
        ("allocating", resource_list().about("What the pods that wait for a node request.")),
    ])
}
