//! Admission webhooks: calls the webhooks of MutatingWebhookConfigurations and ValidatingWebhookConfigurations.
//! Without webhooks the cost per write is a look at an empty list.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use serde_json::Value;
use store::{Range, Store};
use supervise::Recovered as _;

use super::conditions::Write;
use super::{AdmissionChain, ExpressionAuthorizer, Operation, WriteAttributes};
use crate::environment::uid;
use crate::storage::stored;
use crate::webhook_client;
use apimachinery::error::ApiError;
use apimachinery::gotext::quoted;

mod hook;
mod review;

use hook::{Hook, SideEffects};
pub(super) use review::request;

const MUTATING: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
const VALIDATING: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";

/// The webhooks that are in effect.
#[derive(Default)]
pub(super) struct Webhooks {
    mutating: ArcSwap<Vec<Hook>>,
    validating: ArcSwap<Vec<Hook>>,
    /// Makes one reading of the store follow another.
    following: Mutex<()>,
}

impl Webhooks {
    /// Reads the configurations that the store holds.
    pub fn load(store: &Store) -> Self {
        let webhooks = Self::default();
        webhooks.follow(store);
        webhooks
    }

    /// Whether objects of a table matter here.
    pub fn concerns(table: &str) -> bool {
        table == MUTATING || table == VALIDATING
    }

    /// Reads the configurations again, because one changed.
    pub fn follow(&self, store: &Store) {
        let _one_at_a_time = self.following.lock().recovered();
        for (table, hooks) in [(MUTATING, &self.mutating), (VALIDATING, &self.validating)] {
            let entries = store.range(table, Range::default()).map(|page| page.entries).unwrap_or_default();
            let read = entries.iter().flat_map(|entry| Hook::all_of(&stored::parse(&entry.value)));
            hooks.store(Arc::new(read.collect()));
        }
    }
}

impl AdmissionChain {
    /// Calls the mutating webhooks one after the other. A webhook with `reinvocationPolicy: IfNeeded` is called once
    /// more if a later webhook changed the object.
    pub async fn mutate(
        &self,
        attributes: &WriteAttributes<'_>,
        object: &mut Value,
    ) -> Result<Vec<String>, ApiError> {
        let hooks = self.webhooks.mutating.load_full();
        let mut warnings = Vec::new();
        // The webhooks that want reinvocation and have not seen the latest change, and those to call again.
        let (mut content, mut again) = (Vec::new(), BTreeSet::new());
        for is_first in [true, false] {
            for (number, hook) in hooks.iter().enumerate() {
                if (!is_first && !again.contains(&number)) || !self.should_call(hook, attributes, object)? {
                    continue;
                }
                let answer = self.call_webhook(hook, attributes, object).await?;
                warnings.extend(answer.warnings);
                if self.apply_patch(hook, attributes, answer.patch, object)? {
                    again.extend(content.drain(..));
                }
                if hook.reinvokes {
                    content.push(number);
                }
            }
        }
        Ok(warnings)
    }

    /// Applies what a webhook wants changed; answers whether that changes something.
    fn apply_patch(
        &self,
        hook: &Hook,
        attributes: &WriteAttributes<'_>,
        patch: Option<Value>,
        object: &mut Value,
    ) -> Result<bool, ApiError> {
        let Some(patch) = patch.filter(|_| attributes.operation != Operation::Delete) else {
            return Ok(false);
        };
        let patched = merge::patch::json_patch(object, &patch).map_err(|error| {
            ApiError::internal(format!("apply the patch of webhook {}: {error}", quoted(&hook.name)))
        })?;
        let is_changed = patched != *object;
        *object = patched;
        Ok(is_changed)
    }

    /// Asks the policies, then every webhook that wants to see the object, all at once; the first refusal in order
    /// counts.
    pub async fn validate(
        &self,
        attributes: &WriteAttributes<'_>,
        object: &Value,
    ) -> Result<Vec<String>, ApiError> {
        let mut warnings = self.validate_policies(attributes, object)?;
        let hooks = self.webhooks.validating.load_full();
        let mut asked = Vec::new();
        for hook in hooks.iter() {
            if self.should_call(hook, attributes, object)? {
                asked.push(self.call_webhook(hook, attributes, object));
            }
        }
        let answers: Vec<review::Response> =
            futures::future::join_all(asked).await.into_iter().collect::<Result<_, _>>()?;
        warnings.extend(answers.into_iter().flat_map(|answer| answer.warnings));
        Ok(warnings)
    }

    /// Whether a webhook wants to see a write. Conditions that fail count as the webhook failing.
    fn should_call(
        &self,
        hook: &Hook,
        attributes: &WriteAttributes<'_>,
        object: &Value,
    ) -> Result<bool, ApiError> {
        if !self.is_matched(&hook.matching, attributes, object) {
            return Ok(false);
        }
        if hook.conditions.is_empty() {
            return Ok(true);
        }
        let is_delete = attributes.operation == Operation::Delete;
        let write = Write {
            object: if is_delete { &Value::Null } else { object },
            old: attributes.old.unwrap_or(&Value::Null),
            request: &review::request(attributes, object),
            authorizer: ExpressionAuthorizer::new(&self.rbac, attributes, object),
        };
        match hook.conditions.hold(&write) {
            Ok(holds) => Ok(holds),
            Err(_) if hook.is_ignored_when_failing => Ok(false),
            Err(why) => {
                let subject = attributes.call.resource.subject(attributes.call.name());
                Err(ApiError::forbidden(subject, why))
            }
        }
    }

    /// Calls one webhook. A failed call counts as its failure policy says.
    async fn call_webhook(
        &self,
        hook: &Hook,
        attributes: &WriteAttributes<'_>,
        object: &Value,
    ) -> Result<review::Response, ApiError> {
        if attributes.dry_run && hook.side_effects == SideEffects::Some {
            let message = format!("admission webhook {} does not support dry run", quoted(&hook.name));
            return Err(ApiError::bad_request(message));
        }
        let uid = uid(&self.random);
        let question = review::admission_review(&uid, attributes, object).to_string();
        let called = webhook_client::call(&hook.address, &self.store, question);
        let answered = match tokio::time::timeout(hook.timeout, called).await {
            Ok(Ok(bytes)) => review::parse_response(&hook.name, &uid, &bytes),
            Ok(Err(why)) => Ok(Err(why)),
            Err(_) => Ok(Err("context deadline exceeded".to_owned())),
        };
        match answered? {
            Ok(answer) => Ok(answer),
            Err(why) if hook.is_ignored_when_failing => {
                tracing::warn!(webhook = hook.name, why, "a webhook failed and is ignored");
                Ok(review::Response::default())
            }
            Err(why) => {
                let message =
                    format!("failed calling webhook {}: failed to call webhook: {why}", quoted(&hook.name));
                Err(ApiError::internal(message))
            }
        }
    }
}
