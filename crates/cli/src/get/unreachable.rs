//! A cluster that did not answer: its contents are unknown, and since when.

use std::fmt;

use api::{Cluster, Time};
use decide::readiness::unknown;
use serde::Serialize;

/// A cluster that did not answer.
#[derive(Debug, Serialize)]
pub struct UnreachableCluster {
    /// The cluster.
    pub cluster: String,
    /// Since when it is not ready, as far as the control plane has noticed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Why it did not answer.
    pub because: String,
}

impl UnreachableCluster {
    /// A cluster with the error of the request to it.
    pub fn of(cluster: &Cluster, error: &anyhow::Error) -> Self {
        Self {
            cluster: cluster.metadata.name.clone(),
            since: unknown(cluster).and_then(|unknown| unknown.since),
            because: crate::causes(error),
        }
    }
}

impl fmt::Display for UnreachableCluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster, since, because } = self;
        match since {
            Some(since) => write!(formatter, "unknown: {cluster} is not ready since {since}: {because}"),
            None => write!(formatter, "unknown: {cluster} did not answer: {because}"),
        }
    }
}
