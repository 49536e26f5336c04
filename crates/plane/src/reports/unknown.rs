//! Unknown state: clusters that do not answer, and the templates whose state depends on them. Pure.

use std::collections::BTreeMap;

use decide::readiness::{self, Unknown};
use decide::works::targets;
use decide::{Snapshot, TemplateKey};
use serde::{Deserialize, Serialize};

/// A cluster whose state is unknown.
#[derive(Debug, Serialize, Deserialize)]
pub struct UnknownReport {
    /// The cluster.
    pub cluster: String,
    /// Since when, and why.
    #[serde(flatten)]
    pub unknown: Unknown,
    /// The templates that it has or should have, by name.
    pub templates: Vec<String>,
}

/// Every cluster whose state is unknown, by name.
pub fn unknown(snapshot: &Snapshot) -> Vec<UnknownReport> {
    let silent = snapshot.clusters.iter().filter_map(|cluster| {
        let unknown = readiness::unknown(cluster)?;
        let name = &cluster.metadata.name;
        Some((name.as_str(), UnknownReport { cluster: name.clone(), unknown, templates: Vec::new() }))
    });
    let mut silent: BTreeMap<&str, UnknownReport> = silent.collect();
    if silent.is_empty() {
        return Vec::new();
    }
    for binding in snapshot.bindings.values() {
        for target in targets(&binding.spec) {
            if let Some(report) = silent.get_mut(target.name.as_str()) {
                report.templates.push(TemplateKey::of(binding).to_string());
            }
        }
    }
    let sorted = silent.into_values().map(|mut report| {
        report.templates.sort();
        report
    });
    sorted.collect()
}
