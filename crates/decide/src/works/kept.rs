//! Does an existing Work say already what was rendered? Karmada leaves fields in a manifest that we remove, and does not
//! restore a claim that an override policy removed. As long as template, policy and overrides are those that Karmada
//! rendered from, its Work stays as it is, byte for byte (M5): another manifest would be written to the member for
//! nothing.

use api::{Work, annotations};
use serde_json::Value;

use super::manifest::Field;
use super::prune::keeps_selector;
use crate::fields::{at, map, put, remove, text};

/// Labels in the selector of a Job that Karmada removes.
const JOB_UIDS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

/// How Karmada's manifest of an object differs from ours.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// A field that Karmada leaves and that we remove.
    field: Option<(&'static [&'static str], Value)>,
    /// Marks of the claim that override policies removed and that we restore.
    pub dropped: Vec<(Field, &'static str)>,
}

impl Left {
    /// What Karmada leaves of an object after override policies acted, before anything is pruned.
    pub(super) fn of(object: &Value) -> Left {
        Left { field: field(object), dropped: Vec::new() }
    }

    /// Keeps what an existing Work says wherever it means what was rendered.
    pub(super) fn keep(&self, work: &mut Work, existing: Option<&Work>) {
        let Some(existing) = existing else { return };
        let (wanted, found) = (&mut work.spec, &existing.spec);
        keep_flag(&mut wanted.suspend_dispatching, found.suspend_dispatching);
        keep_flag(&mut wanted.preserve_resources_on_deletion, found.preserve_resources_on_deletion);
        if let ([rendered], [manifest]) =
            (wanted.workload.manifests.as_slice(), found.workload.manifests.as_slice())
            && rendered != manifest
            && self.is_karmadas(manifest, rendered)
        {
            wanted.workload.clone_from(&found.workload);
        }
    }

    /// True when Karmada would have rendered `manifest` where we render `rendered`.
    fn is_karmadas(&self, manifest: &Value, rendered: &Value) -> bool {
        let mut expected = rendered.clone();
        if let Some((path, value)) = &self.field {
            put(&mut expected, path, value.clone());
        }
        if !self.dropped.is_empty() {
            self.dropped.iter().for_each(|(field, key)| field.remove(&mut expected, key));
            for (field, list) in [
                (Field::Annotations, annotations::MANAGED_ANNOTATIONS),
                (Field::Labels, annotations::MANAGED_LABELS),
            ] {
                let keys = field.keys(&expected);
                put(&mut expected, &["metadata", "annotations", list], keys.into());
            }
        }
        let mut manifest = manifest.clone();
        // The data of a token is set to null, where we remove it.
        if at(&manifest, &["data"]).is_none() {
            remove(&mut manifest, &["data"]);
        }
        manifest == expected
    }
}

fn field(object: &Value) -> Option<(&'static [&'static str], Value)> {
    let (path, mut value): (&[&str], Value) = match (text(object, &["apiVersion"]), text(object, &["kind"])) {
        ("v1", "Namespace") => (&["spec"], at(object, &["spec"])?.clone()),
        ("batch/v1", "Job") if !keeps_selector(object) => {
            (&["spec", "selector"], at(object, &["spec", "selector"])?.clone())
        }
        _ => return None,
    };
    if at(&value, &["matchLabels"]).is_some()
        && let Some(labels) = map(&mut value, &["matchLabels"])
    {
        labels.retain(|key, _| !JOB_UIDS.contains(&key.as_str()));
    }
    Some((path, value))
}

/// A flag that is not there means false.
pub(super) fn keep_flag(wanted: &mut Option<bool>, found: Option<bool>) {
    if wanted.unwrap_or(false) == found.unwrap_or(false) {
        *wanted = found;
    }
}

#[cfg(test)]
mod tests;
