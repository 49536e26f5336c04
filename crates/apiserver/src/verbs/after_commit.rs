//! After a write is committed: updates the indexes that follow the store, and enqueues the work that controllers have
//! because of it.

use serde_json::Value;

use crate::admission::policies;
use crate::authz::{CLUSTER_ROLES, Rbac};
use crate::engine::Engine;
use crate::registry::{DEFINITIONS, Resource, well_known};
use crate::storage::stored::OwnerReference;
use crate::storage::text;
use crate::verbs::{FOREGROUND, ORPHAN};
use crate::work_queue::{ObjectKey, WorkItem};

impl Engine {
    /// Enqueues the work that a committed write may have caused. `new` is absent when the object is gone.
    pub fn after_commit(&self, resource: &Resource, old: Option<&Value>, new: Option<&Value>) {
        let Some(object) = new.or(old) else { return };
        let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        if Rbac::concerns(&resource.table) {
            self.rbac.follow(&self.store, &resource.table, &resource.key(Some(namespace), name));
        }
        self.admission.follow(&resource.table);
        match &*resource.table {
            "/namespaces" => self.work_queue.enqueue(WorkItem::Namespace(name.to_owned())),
            CLUSTER_ROLES => self.work_queue.enqueue(WorkItem::Roles),
            policies::TABLE => self.work_queue.enqueue(WorkItem::Policy(name.to_owned())),
            DEFINITIONS => {
                let ending = new.is_some_and(|new| !new["metadata"]["deletionTimestamp"].is_null());
                self.work_queue.note_ending(name, ending);
                self.follow_definition(name, new);
                self.work_queue.enqueue(WorkItem::Definition(name.to_owned()));
            }
            // A client deleted the `kubernetes` Service: it is recreated.
            "/services" if new.is_none() && well_known::is_kubernetes_service(namespace, name) => {
                self.work_queue.enqueue(WorkItem::Namespace(namespace.to_owned()));
            }
            "/serviceaccounts" | "/configmaps" if new.is_none() && well_known::is_default_object(name) => {
                self.work_queue.enqueue(WorkItem::Namespace(namespace.to_owned()));
            }
            _ => {}
        }
        if new.is_none() && self.work_queue.is_terminating(namespace) {
            self.work_queue.enqueue(WorkItem::Namespace(namespace.to_owned()));
        }
        for namespace in self.quotas.follow_write(resource, old, new) {
            self.work_queue.enqueue(WorkItem::Quotas(namespace));
        }
        self.notice_ownership(resource, old, new);
    }

    /// Updates the index of owner references and enqueues the objects that a committed write concerns.
    fn notice_ownership(&self, resource: &Resource, old: Option<&Value>, new: Option<&Value>) {
        let before = old.map(owner_uids).unwrap_or_default();
        let after = new.map(owner_uids).unwrap_or_default();
        let Some(object) = new.or(old) else { return };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        if before.is_empty()
            && after.is_empty()
            && new.is_some_and(|new| new["metadata"]["deletionTimestamp"].is_null())
        {
            return;
        }
        let place = object_key(resource, object);
        let gone: Vec<&str> = before.iter().filter(|uid| !after.contains(uid)).copied().collect();
        self.work_queue.index_owners(&place, &gone, &after);
        match new {
            None => self.note_removal(old.unwrap_or(object), uid),
            // With the same owners as before there is nothing new to judge.
            Some(_) if before != after || waits_for_dependents(object) => {
                self.work_queue.enqueue(WorkItem::Ownership(place));
            }
            Some(_) => {}
        }
    }

    /// An object is gone: its dependents lost an owner, and an owner may have waited for it.
    fn note_removal(&self, object: &Value, uid: &str) {
        for dependent in self.work_queue.dependents(uid) {
            self.work_queue.enqueue(WorkItem::Ownership(dependent));
        }
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        for reference in references(object) {
            if let Some(place) = self.owner_key(&reference, namespace) {
                self.work_queue.enqueue(WorkItem::Ownership(place));
            }
        }
    }

    /// Where the object is that an owner reference names; none if its kind is not served.
    pub fn owner_key(&self, reference: &OwnerReference, namespace: &str) -> Option<ObjectKey> {
        let registry = self.registry.load();
        let resource = registry.by_kind(&reference.api_version, &reference.kind)?;
        let key = resource.key(Some(namespace), &reference.name);
        Some(ObjectKey { table: resource.table.clone(), key: key.into() })
    }
}

fn object_key(resource: &Resource, object: &Value) -> ObjectKey {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    ObjectKey {
        table: resource.table.clone(),
        key: resource.key(Some(text("namespace")), text("name")).into(),
    }
}

fn owner_uids(object: &Value) -> Vec<&str> {
    let references = object["metadata"]["ownerReferences"].as_array();
    references.into_iter().flatten().filter_map(|reference| reference["uid"].as_str()).collect()
}

fn references(object: &Value) -> Vec<OwnerReference> {
    serde_json::from_value(object["metadata"]["ownerReferences"].clone()).unwrap_or_default()
}

fn waits_for_dependents(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    let mut finalizers = finalizers.into_iter().flatten();
    !object["metadata"]["deletionTimestamp"].is_null()
        && finalizers.any(|one| one == FOREGROUND || one == ORPHAN)
}
