//! Sums the resource requests of a member's pods, page by page; no other field of a pod is read.

use std::collections::BTreeMap;

use api::Quantity;
use api::cluster::ResourceSummary;
use decide::quantity::Amount;
use serde::Deserialize;

/// A page of a list of pods.
#[derive(Deserialize)]
pub struct PodPage {
    /// Whether there are more.
    pub metadata: PageMetadata,
    /// The pods.
    pub items: Vec<Pod>,
}

/// What follows a page.
#[derive(Deserialize)]
pub struct PageMetadata {
    /// Empty on the last page.
    #[serde(default, rename = "continue")]
    pub next: String,
}

/// What matters of a pod.
#[derive(Deserialize)]
pub struct Pod {
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    #[serde(default)]
    node_name: String,
    #[serde(default)]
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    #[serde(default)]
    resources: Resources,
}

#[derive(Default, Deserialize)]
struct Resources {
    #[serde(default)]
    requests: BTreeMap<String, Quantity>,
}

#[derive(Default, Deserialize)]
struct PodStatus {
    #[serde(default)]
    phase: String,
}

/// Sums over pods.
#[derive(Default)]
pub struct Pods {
    /// Of those that have a node.
    allocated: BTreeMap<String, Amount>,
    /// Of those that wait for one.
    allocating: BTreeMap<String, Amount>,
}

impl Pods {
    /// Adds one, unless it is over.
    pub fn add(&mut self, pod: &Pod) {
        if matches!(pod.status.phase.as_str(), "Succeeded" | "Failed") {
            return;
        }
        let sums = if pod.spec.node_name.is_empty() { &mut self.allocating } else { &mut self.allocated };
        add(sums, "pods", Amount::whole(1));
        for (name, amount) in pod.spec.containers.iter().flat_map(|container| &container.resources.requests) {
            if let Some(amount) = Amount::of(amount) {
                add(sums, name, amount);
            }
        }
    }

    /// The sums in the form of a Cluster's status.
    pub fn summary(&self) -> ResourceSummary {
        let told = |sums: &BTreeMap<String, Amount>| {
            sums.iter().map(|(name, sum)| (name.clone(), sum.quantity())).collect()
        };
        ResourceSummary {
            allocated: told(&self.allocated),
            allocating: told(&self.allocating),
            ..ResourceSummary::default()
        }
    }
}

fn add(sums: &mut BTreeMap<String, Amount>, name: &str, amount: Amount) {
    match sums.get_mut(name) {
        Some(sum) => *sum = *sum + amount,
        None => drop(sums.insert(name.to_owned(), amount)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_added_up_by_whether_they_have_a_node() {
        let pod = |node: &str, phase: &str, cpu: &str| {
            let containers =
                json!([{ "name": "a", "resources": { "requests": { "cpu": cpu } } }, { "name": "b" }]);
            let spec = json!({ "nodeName": node, "containers": containers });
            serde_json::from_value::<Pod>(json!({ "spec": spec, "status": { "phase": phase } }))
                .expect("a pod")
        };
        let mut pods = Pods::default();
        for pod in [
            pod("n", "Running", "600m"),
            pod("n", "", "600m"),
            pod("", "Pending", "1"),
            pod("n", "Failed", "9"),
        ] {
            pods.add(&pod);
        }
        let summary = serde_json::to_value(pods.summary()).expect("it serialises");
        assert_eq!(summary["allocated"], json!({ "cpu": "1200m", "pods": "2" }));
        assert_eq!(summary["allocating"], json!({ "cpu": "1", "pods": "1" }));
    }
}
