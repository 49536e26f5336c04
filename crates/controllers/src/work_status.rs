//! The work status controller: watches in members the objects that Works brought there. A change enqueues the Work,
//! whose execution then repairs drift and collects the status; nothing is read or written here.

use std::collections::BTreeSet;

use api::{ObjectMeta, annotations, names};
use kube::core::TypeMeta;

use crate::cache::{Served, WorkKey};
use crate::ctx::Ctx;
use crate::reflector::{Delta, PartialObjectMetadata, Report};
use crate::rest::Collection;

/// The label selector of objects that Works brought.
pub const MANAGED: &str = "karmada.io/managed=true";

/// One kind in one member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberKind {
    /// The member.
    pub cluster: String,
    /// `group/version`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

impl MemberKind {
    /// The collection of all its objects, which the control plane serves under the same plural.
    pub fn collection(&self, served: &Served) -> Collection {
        Collection::new(&self.api_version, &served.plural, "")
    }

    /// Its apiVersion and kind.
    pub fn types(&self) -> TypeMeta {
        TypeMeta { api_version: self.api_version.clone(), kind: self.kind.clone() }
    }

    /// The Work that brings an object of this name.
    fn work_named(&self, namespace: &str, name: &str) -> WorkKey {
        WorkKey { cluster: self.cluster.clone(), name: names::work_name(&self.kind, name, namespace) }
    }
}

/// A change in a member.
pub enum Change {
    /// An object exists, which this Work brought.
    Applied(WorkKey),
    /// An object was deleted, which this Work brought.
    Deleted(WorkKey),
    /// The first list is complete, and lacks the objects of these Works: they may have been deleted between their last
    /// reconcile and the list.
    Missing(Vec<WorkKey>),
}

/// The objects of one kind in one member.
pub struct MemberObjects {
    kind: MemberKind,
    /// The Works whose objects were in the first list; `None` once it is complete.
    listed: Option<BTreeSet<WorkKey>>,
}

impl MemberObjects {
    /// None listed yet.
    pub fn new(kind: MemberKind) -> Self {
        Self { kind, listed: Some(BTreeSet::new()) }
    }

    /// What a report means for Works; `None` if it is about none.
    pub fn change(&mut self, ctx: &Ctx, report: Report<PartialObjectMetadata>) -> Option<Change> {
        let kind = &self.kind;
        let is_work = |key: &WorkKey| key.cluster == kind.cluster && ctx.cache.works().contains(key);
        match report {
            Report::Change(Delta::Applied(object)) => {
                let ObjectMeta { namespace, name, .. } = &object.metadata;
                // A client may have removed the annotations, which is drift like any other.
                let named = work_named_on(&object.metadata);
                let key = named.unwrap_or_else(|| kind.work_named(namespace, name));
                let key = Some(key).filter(is_work)?;
                if let Some(listed) = &mut self.listed {
                    listed.insert(key.clone());
                }
                Some(Change::Applied(key))
            }
            Report::Change(Delta::Deleted(deleted)) => {
                let key = kind.work_named(&deleted.namespace, &deleted.name);
                Some(key).filter(is_work).map(Change::Deleted)
            }
            Report::Synced => {
                let listed = self.listed.take()?;
                let all = ctx.cache.works().bringing(&kind.cluster, &kind.api_version, &kind.kind);
                Some(Change::Missing(all.into_iter().filter(|key| !listed.contains(key)).collect()))
            }
            Report::ListRefused => None,
        }
    }
}

/// The Work of an object that exists.
pub fn work_if_applied(_: &Ctx, change: &Change) -> Vec<WorkKey> {
    match change {
        Change::Applied(key) => vec![key.clone()],
        Change::Deleted(_) | Change::Missing(_) => Vec::new(),
    }
}

/// The Work of an object that was deleted.
pub fn work_if_deleted(_: &Ctx, change: &Change) -> Vec<WorkKey> {
    match change {
        Change::Deleted(key) => vec![key.clone()],
        Change::Applied(_) | Change::Missing(_) => Vec::new(),
    }
}

/// The Works whose objects were missing in the first list.
pub fn works_without_object(_: &Ctx, change: &Change) -> Vec<WorkKey> {
    match change {
        Change::Missing(keys) => keys.clone(),
        Change::Applied(_) | Change::Deleted(_) => Vec::new(),
    }
}

/// The Work that an object says it came from.
fn work_named_on(metadata: &ObjectMeta) -> Option<WorkKey> {
    let annotation = |key: &str| metadata.annotations.get(key);
    let cluster = names::cluster_of_execution_namespace(annotation(annotations::WORK_NAMESPACE)?)?;
    Some(WorkKey { cluster: cluster.to_owned(), name: annotation(annotations::WORK_NAME)?.clone() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_names_its_work() {
        let metadata = json!({ "annotations": {
            "work.karmada.io/namespace": "karmada-es-m1", "work.karmada.io/name": "nginx-1",
        } });
        let key = WorkKey { cluster: "m1".to_owned(), name: "nginx-1".to_owned() };
        assert_eq!(work_named_on(&serde_json::from_value(metadata).unwrap()), Some(key));
        assert_eq!(work_named_on(&ObjectMeta::default()), None);
    }
}
