//! The quota controller: keeps `status.hard` and `status.used`, from the counts of the store.

use serde_json::{Map, Value, json};
use store::Range;

use crate::admission::quota::{TABLE, counted, is_scoped, whole};
use crate::engine::Engine;
use crate::storage::{stored, text};
use apimachinery::error::ApiError;

impl Engine {
    /// Writes what is used into the quotas of a namespace.
    pub(super) async fn reconcile_quotas(&self, namespace: &str) -> Result<(), ApiError> {
        let resource = self.resource("", "v1", "resourcequotas")?;
        let prefix = format!("{namespace}/");
        let range = Range { prefix: &prefix, ..Range::default() };
        for entry in self.store.range(TABLE, range).map_err(ApiError::internal)?.entries {
            let quota = stored::parse(&entry.value);
            let status = self.quota_status(namespace, &quota);
            if quota["status"] == status {
                continue;
            }
            let mut call = self.internal_call(&resource, namespace, text(&quota, "/metadata/name"));
            call.subresource = Some("status".to_owned());
            self.internal_change(&call, |quota| quota["status"] = status.clone()).await?;
        }
        Ok(())
    }

    /// What the status has to say: everything that is limited, and how much is used of what is counted. Kinds that are
    /// not served have no number, as in Kubernetes.
    fn quota_status(&self, namespace: &str, quota: &Value) -> Value {
        let hard = quota["spec"]["hard"].as_object().cloned().unwrap_or_default();
        let mut used = Map::new();
        let registry = self.registry.load();
        for name in hard.keys().filter(|_| !is_scoped(quota)) {
            let Some((table, counter)) = counted(name) else { continue };
            let is_served = registry.stored().any(|kind| kind.namespaced && *kind.table == *table);
            if is_served {
                let amount = self.store.tally(&table, namespace).get(counter);
                used.insert(name.clone(), whole(amount).to_string().into());
            }
        }
        match hard.is_empty() {
            true => json!({}),
            false => json!({ "hard": hard, "used": used }),
        }
    }
}
