//! The garbage collector: owner references, cascading deletion (background, foreground, orphan). It works on an index
//! of owner references instead of a copy of every object.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::call::Call;
use crate::engine::Engine;
use crate::http::options::{DeleteOptions, Propagation};
use crate::registry::Resource;
use crate::storage::stored::{self, Outline, OutlineMetadata, OwnerReference};
use crate::verbs::{FOREGROUND, ORPHAN};
use crate::work_queue::{ObjectKey, WorkItem};
use apimachinery::error::ApiError;

/// How many objects are looked at for a circle of owners.
const CIRCLE_MAX: usize = 1_000;

/// How an owner reference stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The owner is there.
    Solid,
    /// The owner is gone, or a namesake took its place.
    Dangling,
    /// The owner is being deleted and waits for its dependents.
    Waiting,
    /// The owner's kind is not served, so its existence cannot be checked.
    Unknown,
}

impl Engine {
    pub(super) fn scan_ownership(&self, resource: &Resource, key: &str, outline: &Outline) {
        let place = ObjectKey { table: resource.table.clone(), key: key.into() };
        let owners = &outline.metadata.owner_references;
        let owners: Vec<&str> = owners.iter().map(|reference| reference.uid.as_str()).collect();
        self.work_queue.index_owners(&place, &[], &owners);
        self.work_queue.enqueue(WorkItem::Ownership(place));
    }

    /// Processes one object: what its owners or its dependents require.
    pub(super) async fn reconcile_ownership(&self, place: &ObjectKey) -> Result<(), ApiError> {
        let Some(entry) = self.store.get(&place.table, &place.key) else { return Ok(()) };
        let registry = self.registry.load_full();
        let Some(resource) = registry.stored().find(|resource| resource.table == place.table) else {
            return Ok(());
        };
        let metadata = stored::outline(&entry.value).metadata;
        let call = self.internal_call(resource, &metadata.namespace, &metadata.name);
        let has = |finalizer: &str| metadata.finalizers.iter().any(|one| one == finalizer);
        let deleting = metadata.deletion_timestamp.is_some();
        if deleting && has(ORPHAN) {
            return self.orphan_dependents(&call, &metadata).await;
        }
        if deleting && has(FOREGROUND) {
            return self.wait_for_dependents(&call, &metadata).await;
        }
        match deleting || metadata.owner_references.is_empty() {
            true => Ok(()),
            false => self.delete_unless_owned(&call, &metadata).await,
        }
    }

    /// Orphaning: dependents lose the reference, then the object loses the finalizer.
    async fn orphan_dependents(&self, call: &Call, metadata: &OutlineMetadata) -> Result<(), ApiError> {
        for dependent in self.work_queue.dependents(&metadata.uid) {
            let Some(dependent) = self.call_on(&dependent) else { continue };
            self.internal_change(&dependent, |object| {
                drop_references(object, std::slice::from_ref(&metadata.uid))
            })
            .await?;
        }
        self.internal_change(call, |object| drop_finalizer(object, ORPHAN)).await
    }

    /// Foreground: the object stays while a dependent that blocks it is there.
    async fn wait_for_dependents(&self, call: &Call, metadata: &OutlineMetadata) -> Result<(), ApiError> {
        let mut blocked = false;
        for dependent in self.work_queue.dependents(&metadata.uid) {
            let Some(entry) = self.store.get(&dependent.table, &dependent.key) else { continue };
            let outline = stored::outline(&entry.value).metadata;
            let reference = outline.owner_references.iter().find(|reference| reference.uid == metadata.uid);
            let blocks = reference.is_some_and(|reference| reference.block_owner_deletion);
            blocked |= blocks && !self.waits_for(outline, &metadata.uid);
            self.work_queue.enqueue(WorkItem::Ownership(dependent));
        }
        match blocked {
            true => Ok(()),
            false => self.internal_change(call, |object| drop_finalizer(object, FOREGROUND)).await,
        }
    }

    /// Whether an object that is being deleted waits, through dependents that wait too, for the one of this uid: an
    /// object in a cycle of owners need not wait for itself.
    fn waits_for(&self, object: OutlineMetadata, uid: &str) -> bool {
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut waiting = Vec::from_iter(Some(object).filter(is_waiting));
        while let Some(one) = waiting.pop() {
            if one.uid == uid {
                return true;
            }
            if !seen.insert(one.uid.clone()) || seen.len() > CIRCLE_MAX {
                continue;
            }
            for dependent in self.work_queue.dependents(&one.uid) {
                let entry = self.store.get(&dependent.table, &dependent.key);
                let metadata = entry.map(|entry| stored::outline(&entry.value).metadata);
                waiting.extend(metadata.filter(is_waiting));
            }
        }
        false
    }

    /// A dependent lives while one of its owners does.
    async fn delete_unless_owned(&self, call: &Call, metadata: &OutlineMetadata) -> Result<(), ApiError> {
        let owners: Vec<(Owner, &OwnerReference)> = metadata
            .owner_references
            .iter()
            .map(|reference| (self.owner_state(reference, &metadata.namespace), reference))
            .collect();
        let any = |wanted: Owner| owners.iter().any(|(owner, _)| *owner == wanted);
        if any(Owner::Unknown) {
            return Ok(());
        }
        if any(Owner::Solid) {
            let lost = owners.iter().filter(|(owner, _)| *owner != Owner::Solid);
            let lost: Vec<String> = lost.map(|(_, reference)| reference.uid.clone()).collect();
            return match lost.is_empty() {
                true => Ok(()),
                false => self.internal_change(call, |object| drop_references(object, &lost)).await,
            };
        }
        let has_dependents = !self.work_queue.dependents(&metadata.uid).is_empty();
        let propagation = match any(Owner::Waiting) && has_dependents {
            true => Propagation::Foreground,
            false => Propagation::Background,
        };
        let options = DeleteOptions {
            propagation: Some(propagation),
            uid: Some(metadata.uid.clone()),
            ..DeleteOptions::default()
        };
        self.internal_delete(call, &options).await
    }

    fn owner_state(&self, reference: &OwnerReference, namespace: &str) -> Owner {
        let Some(place) = self.owner_key(reference, namespace) else { return Owner::Unknown };
        let Some(entry) = self.store.get(&place.table, &place.key) else { return Owner::Dangling };
        let owner = stored::outline(&entry.value).metadata;
        match (owner.uid == reference.uid, is_waiting(&owner)) {
            (false, _) => Owner::Dangling,
            (true, true) => Owner::Waiting,
            (true, false) => Owner::Solid,
        }
    }

    fn call_on(&self, place: &ObjectKey) -> Option<Call> {
        let entry = self.store.get(&place.table, &place.key)?;
        let registry = self.registry.load_full();
        let resource = registry.stored().find(|resource| resource.table == place.table)?;
        let metadata = stored::outline(&entry.value).metadata;
        Some(self.internal_call(resource, &metadata.namespace, &metadata.name))
    }
}

/// Whether an object is being deleted and waits for its dependents.
fn is_waiting(metadata: &OutlineMetadata) -> bool {
    metadata.deletion_timestamp.is_some() && metadata.finalizers.iter().any(|one| one == FOREGROUND)
}

fn drop_references(object: &mut Value, uids: &[String]) {
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    if let Some(references) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) {
        references.retain(|reference| !uids.iter().any(|uid| reference["uid"] == uid.as_str()));
        if references.is_empty() {
            metadata.remove("ownerReferences");
        }
    }
}

fn drop_finalizer(object: &mut Value, finalizer: &str) {
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    if let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) {
        finalizers.retain(|one| one != finalizer);
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        }
    }
}
