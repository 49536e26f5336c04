//! As much of a Work as is read each time it changes: all but what it brings to its member.

use api::{Object, WorkStatus};
use serde::Deserialize;

/// What is wanted of a Work that somebody changed: what it brings is too large to be read each time.
pub type WorkNews = Object<WorkOutline, WorkStatus>;

/// The kinds of what a Work brings.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct WorkOutline {
    /// The manifests.
    pub workload: WorkloadOutline,
}

/// The kinds of manifests.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct WorkloadOutline {
    /// One kind per manifest.
    pub manifests: Vec<ManifestOutline>,
}

/// The kind of one manifest.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ManifestOutline {
    /// `group/version`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}
