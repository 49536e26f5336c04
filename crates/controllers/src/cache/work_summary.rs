//! The part of a Work that is decoded on each change: everything except its manifests.

use api::{Object, WorkStatus};
use serde::Deserialize;

/// A changed Work without its manifests, which are too large to be decoded each time.
pub type WorkSummary = Object<SummarySpec, WorkStatus>;

/// The kinds of what a Work brings.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SummarySpec {
    /// The manifests.
    pub workload: WorkloadSummary,
}

/// The kinds of manifests.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct WorkloadSummary {
    /// One kind per manifest.
    pub manifests: Vec<ManifestType>,
}

/// The kind of one manifest.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ManifestType {
    /// `group/version`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

/// The kinds that a Work brings to its member.
pub fn kinds_of(work: &WorkSummary) -> Vec<(String, String)> {
    let manifests = work.spec.workload.manifests.iter();
    let named = manifests.filter(|manifest| !manifest.api_version.is_empty() && !manifest.kind.is_empty());
    named.map(|manifest| (manifest.api_version.clone(), manifest.kind.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_work_names_the_kinds_that_it_brings() {
        let manifests = json!([{ "apiVersion": "v1", "kind": "Secret" }, {}]);
        let work = json!({ "spec": { "workload": { "manifests": manifests } } });
        let work: WorkSummary = serde_json::from_value(work).unwrap();
        assert_eq!(kinds_of(&work), [("v1".to_owned(), "Secret".to_owned())]);
    }
}
