//! The namespace lifecycle and CustomResourceDefinition termination: default objects of a new namespace, and deletion
//! of the contents before a namespace or definition is removed.

use futures::StreamExt as _;
use serde_json::{Value, json};
use store::{Entry, Range};
use supervise::Recovered as _;

use super::CONCURRENT_MAX;
use crate::engine::Engine;
use crate::http::options::DeleteOptions;
use crate::registry::well_known::{ROOT_CA, SERVICE_ACCOUNT, SYSTEM_NAMESPACES};
use crate::registry::{CLEANUP, DEFINITIONS, Resource};
use crate::storage::stored;
use crate::work_queue::WorkItem;
use apimachinery::error::ApiError;

impl Engine {
    /// Creates the namespaces that every control plane has.
    pub async fn bootstrap(&self) -> Result<(), ApiError> {
        let namespaces = self.resource("", "v1", "namespaces")?;
        let missing = SYSTEM_NAMESPACES.iter().filter(|name| self.store.get("/namespaces", name).is_none());
        let created = futures::future::join_all(
            missing.map(|name| self.ensure(&namespaces, "", json!({ "metadata": { "name": name } }))),
        );
        created.await.into_iter().collect()
    }

    /// Gives a namespace its default objects, or empties it.
    pub(super) async fn reconcile_namespace(&self, name: &str) -> Result<(), ApiError> {
        let Some(entry) = self.store.get("/namespaces", name) else {
            self.work_queue.note_terminating(name, false);
            return Ok(());
        };
        if stored::outline(&entry.value).metadata.deletion_timestamp.is_some() {
            self.work_queue.note_terminating(name, true);
            return self.empty_namespace(name).await;
        }
        let accounts = self.resource("", "v1", "serviceaccounts")?;
        let maps = self.resource("", "v1", "configmaps")?;
        if self.store.get(&accounts.table, &format!("{name}/{SERVICE_ACCOUNT}")).is_none() {
            self.ensure(&accounts, name, json!({ "metadata": { "name": SERVICE_ACCOUNT } })).await?;
        }
        if self.store.get(&maps.table, &format!("{name}/{ROOT_CA}")).is_none() {
            let data = json!({ "ca.crt": self.root_ca });
            self.ensure(&maps, name, json!({ "metadata": { "name": ROOT_CA }, "data": data })).await?;
        }
        if name == SYSTEM_NAMESPACES[0] {
            self.ensure_kubernetes_service().await?;
        }
        Ok(())
    }

    /// Deletes what is left in a terminating namespace; when nothing is, lets the namespace go.
    async fn empty_namespace(&self, name: &str) -> Result<(), ApiError> {
        let remaining = self.delete_content(name).await?;
        let namespaces = self.resource("", "v1", "namespaces")?;
        let mut call = self.internal_call(&namespaces, "", name);
        if !remaining.is_empty() {
            // What is left has finalizers of its own; its removal brings us back here.
            call.subresource = Some("status".to_owned());
            let now = self.timestamp();
            return self
                .internal_change(&call, |namespace| remaining.write_conditions(namespace, &now))
                .await;
        }
        call.subresource = Some("finalize".to_owned());
        let without =
            |namespace: &mut Value| drop_entry(namespace.pointer_mut("/spec/finalizers"), "kubernetes");
        self.internal_change(&call, without).await
    }

    /// Deletes objects side by side; answers how many are still there because something keeps them.
    pub(super) async fn delete_all(
        &self,
        resource: &std::sync::Arc<Resource>,
        entries: Vec<Entry>,
    ) -> Result<usize, ApiError> {
        let options = DeleteOptions::default();
        let deletions = entries.into_iter().map(|entry| self.delete_one(resource, entry, &options));
        // Boxed, because the compiler cannot see through a stream of borrowing futures.
        let deletions: Vec<futures::future::BoxFuture<'_, Result<usize, ApiError>>> =
            deletions.map(|deletion| Box::pin(deletion) as _).collect();
        let results: Vec<_> =
            futures::stream::iter(deletions).buffer_unordered(CONCURRENT_MAX).collect().await;
        results.into_iter().sum()
    }

    async fn delete_one(
        &self,
        resource: &std::sync::Arc<Resource>,
        entry: Entry,
        options: &DeleteOptions,
    ) -> Result<usize, ApiError> {
        let metadata = stored::outline(&entry.value).metadata;
        let call = self.internal_call(resource, &metadata.namespace, &metadata.name);
        if metadata.deletion_timestamp.is_none() {
            self.internal_delete(&call, options).await?;
        }
        Ok(usize::from(self.store.get(&resource.table, &entry.key).is_some()))
    }

    /// Deletes the objects of a terminating definition; otherwise checks whether its names are free by now.
    pub(super) async fn reconcile_definition(&self, name: &str) -> Result<(), ApiError> {
        let Some(entry) = self.store.get(DEFINITIONS, name) else {
            self.retry_refused_definitions();
            return Ok(());
        };
        let resource = self.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")?;
        let call = self.internal_call(&resource, "", name);
        let _one_at_a_time = self.definition_lock(&call).await;
        if stored::outline(&entry.value).metadata.deletion_timestamp.is_none() {
            return self.internal_change(&call, |_| ()).await;
        }
        let registry = self.registry.load_full();
        let kind = registry
            .stored()
            .find(|one| one.custom.as_ref().is_some_and(|definition| definition.name == name));
        if let Some(kind) = kind {
            let entries =
                self.store.range(&kind.table, Range::default()).map_err(ApiError::internal)?.entries;
            if self.delete_all(kind, entries).await? > 0 {
                return Err(ApiError::internal("objects of the definition are still there"));
            }
        }
        self.internal_change(&call, |definition| {
            drop_entry(definition.pointer_mut("/metadata/finalizers"), CLEANUP)
        })
        .await
    }

    /// A definition was removed: definitions with conflicting names may now be accepted.
    fn retry_refused_definitions(&self) {
        let entries = self.store.range(DEFINITIONS, Range::default()).map(|page| page.entries);
        let served = self.custom.lock().recovered().clone();
        let refused =
            entries.unwrap_or_default().into_iter().filter(|entry| !served.contains_key(&*entry.key));
        refused.for_each(|entry| self.work_queue.enqueue(WorkItem::Definition(entry.key.to_string())));
    }
}

fn drop_entry(list: Option<&mut Value>, entry: &str) {
    if let Some(entries) = list.and_then(Value::as_array_mut) {
        entries.retain(|one| one != entry);
    }
}
