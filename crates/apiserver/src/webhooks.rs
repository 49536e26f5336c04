//! Others who have a say in writes: the webhooks of ValidatingWebhookConfigurations and
//! MutatingWebhookConfigurations. Where there are none, asking them costs a look at an empty list.

use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use serde_json::Value;
use store::{Range, Store};

use crate::admission::Operation;
use crate::engine::Engine;
use crate::error::ApiError;
use crate::gotext::quoted;
use crate::stored;
use crate::verbs::Call;

mod client;
mod hook;
mod review;

use hook::{Hook, SideEffects};

const GROUP: &str = "admissionregistration.k8s.io";
const MUTATING: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
const VALIDATING: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";

/// The webhooks that are in effect.
#[derive(Default)]
pub(crate) struct Webhooks {
    mutating: ArcSwap<Vec<Hook>>,
    validating: ArcSwap<Vec<Hook>>,
    /// Makes one reading of the store follow another.
    following: Mutex<()>,
}

/// A write that webhooks are asked about.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub call: &'a Call,
    pub operation: Operation,
    pub dry_run: bool,
    /// The state before, absent on create.
    pub old: Option<&'a Value>,
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
        let _one_at_a_time = self.following.lock().expect("no one panics while holding it");
        for (table, hooks) in [(MUTATING, &self.mutating), (VALIDATING, &self.validating)] {
            let entries = store.range(table, Range::default()).map(|page| page.entries).unwrap_or_default();
            let read = entries.iter().flat_map(|entry| Hook::all_of(&stored::parse(&entry.value)));
            hooks.store(Arc::new(read.collect()));
        }
    }
}

impl Engine {
    /// Lets every webhook that wants to change the object do so, one after the other.
    pub async fn mutate(&self, asking: &Asking<'_>, object: &mut Value) -> Result<Vec<String>, ApiError> {
        let hooks = self.webhooks.mutating.load_full();
        let mut warnings = Vec::new();
        for hook in hooks.iter() {
            if !self.is_asked(hook, asking, object) {
                continue;
            }
            let answer = self.ask(hook, asking, object).await?;
            if let Some(patch) = answer.patch.filter(|_| asking.operation != Operation::Delete) {
                *object = crate::patch::json_patch(object, &patch).map_err(|error| {
                    ApiError::internal(format!("apply the patch of webhook {}: {error}", quoted(&hook.name)))
                })?;
            }
            warnings.extend(answer.warnings);
        }
        Ok(warnings)
    }

    /// Asks every webhook that wants to see the object, all at once; the first refusal in order counts.
    pub async fn validate(&self, asking: &Asking<'_>, object: &Value) -> Result<Vec<String>, ApiError> {
        let hooks = self.webhooks.validating.load_full();
        if hooks.is_empty() {
            return Ok(Vec::new());
        }
        let asked = hooks.iter().filter(|hook| self.is_asked(hook, asking, object));
        let answers = futures::future::join_all(asked.map(|hook| self.ask(hook, asking, object))).await;
        let answers: Vec<review::Answer> = answers.into_iter().collect::<Result<_, _>>()?;
        Ok(answers.into_iter().flat_map(|answer| answer.warnings).collect())
    }

    fn is_asked(&self, hook: &Hook, asking: &Asking<'_>, object: &Value) -> bool {
        // As in Kubernetes: whoever breaks a webhook must be able to repair it.
        if &*asking.call.resource.group == GROUP || !hook.has_rule_for(asking) {
            return false;
        }
        let namespace = match (&*asking.call.resource.table, &asking.call.namespace) {
            ("/namespaces", _) => Some(object.clone()),
            (_, None) => None,
            (_, Some(name)) => self.store.get("/namespaces", name).map(|entry| stored::parse(&entry.value)),
        };
        let in_namespace = namespace
            .is_none_or(|namespace| hook.namespaces.matches_labels(&namespace["metadata"]["labels"]));
        let labelled = |object: &Value| hook.objects.matches_labels(&object["metadata"]["labels"]);
        in_namespace && (labelled(object) || asking.old.is_some_and(labelled))
    }

    /// Asks one webhook. What fails counts as its policy says.
    async fn ask(
        &self,
        hook: &Hook,
        asking: &Asking<'_>,
        object: &Value,
    ) -> Result<review::Answer, ApiError> {
        if asking.dry_run && hook.side_effects == SideEffects::Some {
            let message = format!("admission webhook {} does not support dry run", quoted(&hook.name));
            return Err(ApiError::bad_request(message));
        }
        let uid = self.uid();
        let question = review::question(&uid, asking, object).to_string();
        let called = client::post(hook, question);
        let answered = match tokio::time::timeout(hook.timeout, called).await {
            Ok(Ok(bytes)) => review::answer(&hook.name, &uid, &bytes),
            Ok(Err(why)) => Ok(Err(why)),
            Err(_) => Ok(Err("context deadline exceeded".to_owned())),
        };
        match answered? {
            Ok(answer) => Ok(answer),
            Err(why) if hook.is_ignored_when_failing => {
                tracing::warn!(webhook = hook.name, why, "a webhook failed and is ignored");
                Ok(review::Answer::default())
            }
            Err(why) => {
                let message =
                    format!("failed calling webhook {}: failed to call webhook: {why}", quoted(&hook.name));
                Err(ApiError::internal(message))
            }
        }
    }
}
