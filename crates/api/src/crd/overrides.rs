//! Schema of the override policies.

use super::Version;
use super::parts::cluster_affinity;
use super::schema::{Described, Field, Schema, anything, list_of, map_of, object, one_of, string, strings};
use super::selectors::{exclude_resource_selectors, optional_selectors};
use crate::override_policy::{OVERRIDE_RULES_MAX, OVERRIDERS_MAX};

pub(super) const ABOUT: &str = "Changes templates of its own namespace on their way to member clusters, \
                                differently in each cluster. All override policies that match act: \
                                ClusterOverridePolicies first, then OverridePolicies, in each group the \
                                least exact selector first, so that the most exact one has the last word.";

pub(super) const ABOUT_CLUSTER_SCOPED: &str = "Changes templates of all namespaces, and of kinds without \
                                               namespaces, on their way to member clusters, differently in \
                                               each cluster. All override policies that match act: these \
                                               before the OverridePolicies of the template's namespace, and \
                                               the least exact selector first.";

pub(super) fn override_policy() -> Version {
    let rules = list_of(rule()).at_most(OVERRIDE_RULES_MAX);
    let spec = object([
        (
            "excludeResourceSelectors",
            exclude_resource_selectors(
                "A template that becomes excluded is delivered without these changes.",
            ),
        ),
        (
            "overrideRules",
            rules.about(&format!(
                "What changes in which clusters. All rules that match a cluster act, in this order. At most \
                 {OVERRIDE_RULES_MAX} rules."
            )),
        ),
        (
            "overriders",
            overriders()
                .about("Deprecated: the changes of a single rule. Cannot be combined with overrideRules."),
        ),
        ("resourceSelectors", optional_selectors()),
        (
            "targetCluster",
            cluster_affinity()
                .about("Deprecated: the clusters of a single rule. Cannot be combined with overrideRules."),
        ),
    ]);
    Version::stored("v1alpha1", spec, "Which templates change, in which clusters, and how.")
}

fn rule() -> Schema {
    object([
        (
            "overriders",
            overriders().required().about(
                "The changes, made in this order: image, command, args, labels, annotations, field, \
                 plaintext. If one of them cannot be made, the cluster keeps the copy that it has, and the \
                 event ApplyOverridePolicyFailed on the template says why.",
            ),
        ),
        (
            "targetCluster",
            cluster_affinity().about(
                "Clusters that the rule applies to: those that match every part that is set. Absent: every \
                 cluster.",
            ),
        ),
    ])
}

fn overriders() -> Schema {
    let list = |item: Schema| list_of(item).at_most(OVERRIDERS_MAX);
    object([
        (
            "annotationsOverrider",
            list(pairs()).about("Changes annotations of the object; those of its pod template stay."),
        ),
        (
            "argsOverrider",
            list(words()).about(
                "Changes the args of a container of a Pod, Deployment, ReplicaSet, StatefulSet, DaemonSet or \
                 Job. Other kinds stay as they are.",
            ),
        ),
        (
            "commandOverrider",
            list(words()).about(
                "Changes the command of a container of a Pod, Deployment, ReplicaSet, StatefulSet, DaemonSet \
                 or Job. Other kinds stay as they are.",
            ),
        ),
        (
            "fieldOverrider",
            list(field()).about(
                "Changes values inside a text that is a JSON or YAML document, for example a file in a \
                 ConfigMap.",
            ),
        ),
        (
            "imageOverrider",
            list(image()).about("Changes one part of image names: registry, repository or tag."),
        ),
        (
            "labelsOverrider",
            list(pairs()).about("Changes labels of the object; those of its pod template and selector stay."),
        ),
        (
            "plaintext",
            list(patch("path", PATH)).about(
                "Changes any field by its path. It acts last, on the outcome of all others, and may also set \
                 replicas.",
            ),
        ),
    ])
}

fn operator(about: &str) -> Field {
    ("operator", one_of(&["add", "remove", "replace"]).required().about(about))
}

fn pairs() -> Schema {
    object([
        operator(
            "`add` sets the pairs whether or not they exist; `replace` sets, and `remove` drops, those that \
             exist.",
        ),
        (
            "value",
            map_of(string()).required().about(
                "Keys and values, for example `tier: edge`; `remove` looks at the keys only. Labels and \
                 annotations by which the control plane marks its objects are refused.",
            ),
        ),
    ])
}

fn words() -> Schema {
    object([
        (
            "containerName",
            string()
                .required()
                .about("Name of the container. Init containers and unknown names change nothing."),
        ),
        (
            "operator",
            one_of(&["add", "remove"])
                .required()
                .about("`add` appends the words at the end; `remove` drops every word that is listed."),
        ),
        ("value", strings().about("The words, for example `--verbose`; each item is one word.")),
    ])
}

fn field() -> Schema {
    let patches = || list_of(patch("subPath", SUB_PATH)).at_most(OVERRIDERS_MAX);
    object([
        (
            "fieldPath",
            string()
                .required()
                .about("JSON pointer to the text, for example `/data/config.yaml`. It must be there."),
        ),
        ("json", patches().about("Changes of a text that is JSON. Set exactly one of json and yaml.")),
        (
            "yaml",
            patches().about(
                "Changes of a text that is YAML, whose comments get lost. Set exactly one of json and yaml.",
            ),
        ),
    ])
}

const PATH: &str = "JSON pointer to the field, for example `/spec/replicas`; in a key, `~1` stands for `/` \
                    and `~0` for `~`. apiVersion, kind, and of metadata all but labels and annotations, are \
                    refused: an override cannot make another object of its template.";
const SUB_PATH: &str = "JSON pointer to the value inside the document, for example `/db/port`; in a key, \
                        `~1` stands for `/` and `~0` for `~`.";

fn patch(path: &'static str, about: &str) -> Schema {
    object([
        operator(
            "`add` sets the value, or inserts it into a list; `replace` and `remove` fail where there is \
             nothing yet.",
        ),
        (path, string().required().about(about)),
        ("value", new_value()),
    ])
}

fn new_value() -> Described {
    anything().about("The new value, of any type. Leave it out with `remove`.")
}

fn image() -> Schema {
    let predicate = object([(
        "path",
        string().required().about(
            "JSON pointer to the image name, for example `/spec/template/spec/initContainers/0/image`. It \
             must be there.",
        ),
    )]);
    object([
        (
            "component",
            one_of(&["Registry", "Repository", "Tag"]).required().about(
                "Part that changes: `Registry` is host and port, `Repository` the path behind it, `Tag` the \
                 tag or digest.",
            ),
        ),
        operator(
            "`add` appends `value` to the part, `replace` puts it in the part's place, `remove` drops the \
             part.",
        ),
        (
            "predicate",
            predicate.about(
                "Which image name changes. Absent: those of all containers, without init containers, of a \
                 Pod, Deployment, ReplicaSet, StatefulSet, DaemonSet or Job.",
            ),
        ),
        (
            "value",
            string()
                .about("Text for the part, for example `registry.example.com:5000`. Not used by `remove`."),
        ),
    ])
}
