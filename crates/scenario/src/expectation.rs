//! What a scenario expects of objects, as its file says it. Judges nothing.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::reference::Reference;

/// Everything that one step expects.
#[derive(Debug, Clone)]
pub struct Expectation {
    /// Of objects.
    pub objects: Vec<(Reference, Expected)>,
    /// Of metrics, by name and labels as `/metrics` prints them.
    pub metrics: BTreeMap<String, f64>,
}

/// What is expected of one object, and of what became of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Expected {
    /// The policy that owns it, or `nobody`.
    pub claimed_by: Option<String>,
    /// The members that have it, all of them; with replicas if they are named.
    pub runs_in: Option<Spread>,
    /// The clusters that its binding names, all of them; with replicas if they are named.
    pub scheduled_to: Option<Spread>,
    /// What its binding has, or `absent`.
    pub binding: Option<Value>,
    /// What its Work for a cluster has, or `absent`.
    pub works: Option<BTreeMap<String, Value>>,
    /// What the object in a member has, or `absent`.
    pub members: Option<BTreeMap<String, Value>>,
    /// What the object itself has.
    pub has: Option<Value>,
    /// Whether it is not there.
    pub absent: Option<bool>,
    /// Events about it that there are: a reason, or `Reason: part of the message`.
    #[serde(default)]
    pub events: Vec<String>,
    /// Reasons of events that there are not.
    #[serde(default)]
    pub no_events: Vec<String>,
    /// Members in which no client wrote it since the last step that expected something of it.
    #[serde(default)]
    pub untouched_in: Vec<String>,
}

/// Clusters, with replicas or without.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Spread {
    /// Just which ones.
    Clusters(Vec<String>),
    /// Which ones and with how many replicas.
    Replicas(BTreeMap<String, i64>),
}

impl Expectation {
    /// Reads what stands behind `expect:`.
    pub fn read(fields: Map<String, Value>) -> Result<Self, String> {
        let mut expectation = Self { objects: Vec::new(), metrics: BTreeMap::new() };
        for (key, value) in fields {
            let wrong = |error: serde_json::Error| format!("{key}: {error}");
            if key == "metrics" {
                expectation.metrics = serde_json::from_value(value).map_err(wrong)?;
                continue;
            }
            let reference: Reference = key.parse().map_err(|error| format!("{error}"))?;
            let expected: Expected = serde_json::from_value(value).map_err(wrong)?;
            expectation.objects.push((reference, expected));
        }
        if expectation.objects.is_empty() && expectation.metrics.is_empty() {
            return Err("expects nothing".to_owned());
        }
        Ok(expectation)
    }
}
