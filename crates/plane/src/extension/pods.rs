//! Pods of a workload across members, for users who look for them on the control plane, where none run.

use apimachinery::selector::LabelSelector;
use apiserver::extension::PodQuery;
use decide::works::targets;
use decide::{Snapshot, Template};
use serde_json::Value;

/// How many workloads are named.
const NAMED_MAX: usize = 3;

/// The message for a command that looks for pods with these labels.
pub fn elsewhere(snapshot: Option<&Snapshot>, query: &PodQuery<'_>) -> String {
    let found: Vec<(String, Vec<String>)> = match (snapshot, LabelSelector::parse(query.selector)) {
        (Some(snapshot), Ok(selector)) => workloads(snapshot, query.namespace, &selector),
        _ => Vec::new(),
    };
    let placed: Vec<String> =
        found.iter().take(NAMED_MAX).map(|(name, clusters)| place(name, clusters)).collect();
    let namespace = query.namespace;
    let example = found.iter().find_map(|(name, clusters)| Some((name, clusters.first()?)));
    let todo = match example {
        Some((name, cluster)) => {
            let (command, more) = (query.command, arguments(query.command));
            format!(
                "ask the cluster itself, with a kubeconfig for it, for example: {command} {name} -n {namespace} \
                 --context {cluster}{more}"
            )
        }
        None => format!("`longshore get KIND -n {namespace}` shows which clusters have a workload"),
    };
    match placed.as_slice() {
        [] => format!("no pods run on this control plane; {todo}"),
        placed => format!("no pods run on this control plane; {}; {todo}", placed.join("; ")),
    }
}

/// What a command needs beside the workload.
fn arguments(command: &str) -> &'static str {
    match command {
        "kubectl exec" => " -- COMMAND",
        "kubectl port-forward" => " PORT",
        _ => "",
    }
}

fn place(name: &str, clusters: &[String]) -> String {
    match clusters {
        [] => format!("{name} runs in no cluster yet"),
        clusters => format!("{name} runs in {}", clusters.join(", ")),
    }
}

/// Workloads whose pods have these labels, with the clusters that they were sent to.
fn workloads(snapshot: &Snapshot, namespace: &str, selector: &LabelSelector) -> Vec<(String, Vec<String>)> {
    let makes_pods = |template: &&std::sync::Arc<Template>| {
        let kinds = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"];
        template.key.namespace == namespace && kinds.contains(&template.key.kind.as_str())
    };
    let has_labels = |template: &&std::sync::Arc<Template>| {
        let object = template.object();
        let labels = object.pointer("/spec/template/metadata/labels").cloned();
        selector.matches_labels(&labels.unwrap_or(Value::Null))
    };
    let mut found: Vec<(String, Vec<String>)> = snapshot
        .templates
        .iter()
        .filter(makes_pods)
        .filter(has_labels)
        .map(|template| {
            let binding = snapshot.bindings.get(&template.key.binding());
            let clusters = binding.map(|binding| targets(&binding.spec)).unwrap_or_default();
            let name = format!("{}/{}", template.key.kind.to_lowercase(), template.key.name);
            (name, clusters.into_iter().map(|target| target.name).collect())
        })
        .collect();
    found.sort();
    found
}
