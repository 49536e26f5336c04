//! The controller of ValidatingAdmissionPolicies: writes the result of type checking to `status.typeChecking`.

use serde_json::{Value, json};

use crate::admission::policies::{TABLE, type_warnings};
use crate::engine::Engine;
use crate::run_blocking::run_blocking;
use crate::storage::stored;
use apimachinery::error::ApiError;

impl Engine {
    /// Writes down what is to be said about the newest state of a policy.
    pub(super) async fn reconcile_policy(&self, name: &str) -> Result<(), ApiError> {
        let Some(entry) = self.store.get(TABLE, name) else { return Ok(()) };
        let policy = stored::parse(&entry.value);
        let generation = &policy["metadata"]["generation"];
        if policy["status"]["observedGeneration"] == *generation {
            return Ok(());
        }
        let found = run_blocking(|| type_warnings(&policy, &self.registry.load()));
        let checked = match found.is_empty() {
            true => json!({}),
            false => json!({ "expressionWarnings": found }),
        };
        let resource = self.resource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")?;
        let mut call = self.internal_call(&resource, "", name);
        call.subresource = Some("status".to_owned());
        let change = |object: &mut Value| {
            // If the policy changed meanwhile, the result is dropped and the new generation is checked.
            if object["metadata"]["generation"] == *generation {
                object["status"]["observedGeneration"] = generation.clone();
                object["status"]["typeChecking"] = checked.clone();
            }
        };
        self.internal_change(&call, change).await
    }
}
