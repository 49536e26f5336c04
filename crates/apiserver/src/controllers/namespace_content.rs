//! Deletes the contents of a terminating namespace, pods first, and reports progress in its status conditions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use store::Range;

use crate::engine::Engine;
use crate::registry::Resource;
use crate::storage::stored;
use apimachinery::error::ApiError;

/// The conditions of a namespace that goes, with what they say when all is well.
const CONDITIONS: [(&str, &str, &str); 5] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];

/// What is still there: how many objects of each kind, and how many each finalizer keeps.
#[derive(Debug, Default)]
pub(super) struct Remaining {
    kinds: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
}

impl Remaining {
    fn note(&mut self, resource: &Resource, object: &Value) {
        *self.kinds.entry(format!("{}.{}", resource.plural, resource.group)).or_default() += 1;
        for finalizer in object["metadata"]["finalizers"].as_array().into_iter().flatten() {
            *self.finalizers.entry(finalizer.as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Writes all of it into the status of the namespace.
    pub fn write_conditions(&self, namespace: &mut Value, now: &str) {
        let counted = |counts: &BTreeMap<String, usize>, what: &str| {
            let lines =
                counts.iter().map(|(name, count)| format!("{name} {what} {count} resource instances"));
            lines.collect::<Vec<_>>().join(", ")
        };
        for (kind, reason, message) in CONDITIONS {
            let wrong = match kind {
                "NamespaceContentRemaining" if !self.kinds.is_empty() => Some((
                    "SomeResourcesRemain",
                    format!("Some resources are remaining: {}", counted(&self.kinds, "has")),
                )),
                "NamespaceFinalizersRemaining" if !self.finalizers.is_empty() => Some((
                    "SomeFinalizersRemain",
                    format!(
                        "Some content in the namespace has finalizers remaining: {}",
                        counted(&self.finalizers, "in")
                    ),
                )),
                _ => None,
            };
            let condition = match wrong {
                Some((reason, message)) => {
                    json!({ "type": kind, "status": "True", "reason": reason, "message": message })
                }
                None => json!({ "type": kind, "status": "False", "reason": reason, "message": message }),
            };
            set_condition(namespace, condition, now);
        }
    }
}

impl Engine {
    /// Deletes what is in a namespace; answers with what is still there because something keeps it. As long as there are
    /// pods, nothing else is touched: they may need it to end well.
    pub(super) async fn delete_content(&self, namespace: &str) -> Result<Remaining, ApiError> {
        let registry = self.registry.load_full();
        let namespaced = registry.stored().filter(|resource| resource.namespaced);
        let (pods, others): (Vec<_>, Vec<_>) = namespaced.partition(|resource| &*resource.table == "/pods");
        let mut remaining = Remaining::default();
        for resources in [pods, others] {
            for resource in resources {
                self.delete_kind(resource, namespace, &mut remaining).await?;
            }
            if !remaining.is_empty() {
                break;
            }
        }
        Ok(remaining)
    }

    async fn delete_kind(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        remaining: &mut Remaining,
    ) -> Result<(), ApiError> {
        let prefix = format!("{namespace}/");
        let all = || {
            let range = Range { prefix: &prefix, ..Range::default() };
            self.store.range(&resource.table, range).map(|page| page.entries).map_err(ApiError::internal)
        };
        if self.delete_all(resource, all()?).await? > 0 {
            all()?.iter().for_each(|entry| remaining.note(resource, &stored::parse(&entry.value)));
        }
        Ok(())
    }
}

fn set_condition(object: &mut Value, mut condition: Value, now: &str) {
    let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let before = conditions.iter_mut().find(|one| one["type"] == condition["type"]);
    let since = before.as_ref().filter(|one| one["status"] == condition["status"]);
    condition["lastTransitionTime"] =
        since.map_or_else(|| now.into(), |one| one["lastTransitionTime"].clone());
    match before {
        Some(one) => *one = condition,
        None => conditions.push(condition),
    }
    object["status"]["conditions"] = conditions.into();
}
