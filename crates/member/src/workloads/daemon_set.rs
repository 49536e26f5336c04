//! DaemonSets: one pod on each node that their template selects, whatever the node's free capacity.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{Round, as_count, free_names, is_deleting, pod, uid};
use crate::facts::{Phase, Pod};
use crate::hash;
use crate::key::{Key, Kind};
use crate::plan::{Plan, Write, status};

/// Which template a pod was made from.
const REVISION: &str = "controller-revision-hash";

/// What is to be done about a DaemonSet.
pub fn reconcile(round: &Round<'_>, key: &Key, object: &Value) -> Plan {
    if is_deleting(object) {
        return Plan::nothing();
    }
    let template = &object["spec"]["template"];
    let revision = hash::template(template);
    let selector = BTreeMap::<String, String>::deserialize(&template["spec"]["nodeSelector"]);
    let nodes = round.cache.nodes.selected(&selector.unwrap_or_default());
    let pods = round.cache.pods(uid(object));
    let replaces = object["spec"]["updateStrategy"]["type"] != "OnDelete";
    let is_fine = |node: &Arc<str>, pod: &Pod| {
        pod.is_active() && pod.node == *node && (!replaces || pod.template.as_deref() == Some(&*revision))
    };
    let mut kept: Vec<&Key> = Vec::new();
    let mut writes: Vec<Write> = Vec::new();
    for node in &nodes {
        match pods.iter().find(|(_, pod)| is_fine(node, pod)) {
            Some((key, _)) => kept.push(key),
            None => {
                let salt = format!("{node}/{revision}");
                let name = free_names(round.cache, object, &salt).next().expect("names do not run out");
                let mut object = pod(object, &name, &[(REVISION, &revision)]);
                object["spec"]["nodeName"] = (&**node).into();
                writes.push(Write::Create { kind: Kind::Pod, object });
            }
        }
    }
    let surplus = pods.iter().filter(|(key, _)| !kept.contains(key));
    let uid = |key: &Key| round.cache.facts(key).map(|facts| facts.uid.to_string()).unwrap_or_default();
    writes.extend(surplus.map(|(key, _)| Write::Delete { key: (*key).clone(), uid: uid(key) }));
    if !writes.is_empty() {
        return writes.into();
    }
    status(key, object, report(object, &revision, nodes.len(), &pods)).map_or_else(Plan::nothing, Plan::one)
}

fn report(object: &Value, revision: &str, nodes: usize, pods: &[(&Key, &Pod)]) -> Value {
    let count = |test: &dyn Fn(&Pod) -> bool| as_count(pods.iter().filter(|(_, pod)| test(pod)).count());
    let wanted = as_count(nodes);
    let ready = count(&|pod| pod.phase == Phase::Ready);
    let mut status = json!({
        "observedGeneration": object["metadata"]["generation"],
        "desiredNumberScheduled": wanted,
        "currentNumberScheduled": count(&|_| true),
        "numberMisscheduled": 0,
        "numberReady": ready,
    });
    let optional = [
        ("numberAvailable", ready),
        ("numberUnavailable", (wanted - ready).max(0)),
        ("updatedNumberScheduled", count(&|pod| pod.template.as_deref() == Some(revision))),
    ];
    for (name, count) in optional.into_iter().filter(|(_, count)| *count != 0) {
        status[name] = count.into();
    }
    status
}
