//! One webhook as its configuration describes it: address, matching rules and failure policy.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::admission::conditions::Conditions;
use crate::admission::matching::Matching;
use crate::storage::text;
use crate::webhook_client::Address;
use schema::expressions::Scope;

/// Whether calling it changes something elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SideEffects {
    /// No, or not on a dry run.
    None,
    /// Yes, or unknown.
    Some,
}

/// One webhook.
#[derive(Debug)]
pub(super) struct Hook {
    pub name: String,
    pub address: Address,
    pub timeout: Duration,
    pub is_ignored_when_failing: bool,
    pub side_effects: SideEffects,
    /// Whether it is called again after later webhooks changed the object (`reinvocationPolicy`).
    pub reinvokes: bool,
    pub matching: Matching,
    pub conditions: Conditions,
}

impl Hook {
    /// The webhooks of a configuration, in its order.
    pub fn all_of(configuration: &Value) -> Vec<Self> {
        let hooks = configuration["webhooks"].as_array().map(Vec::as_slice).unwrap_or_default();
        hooks.iter().map(Self::read).collect()
    }

    fn read(hook: &Value) -> Self {
        let seconds = hook["timeoutSeconds"].as_u64().unwrap_or(10).clamp(1, 30);
        Self {
            name: text(hook, "/name").to_owned(),
            address: Address::read(&hook["clientConfig"]),
            timeout: Duration::from_secs(seconds),
            is_ignored_when_failing: hook["failurePolicy"] == "Ignore",
            side_effects: match text(hook, "/sideEffects") {
                "None" | "NoneOnDryRun" => SideEffects::None,
                _ => SideEffects::Some,
            },
            reinvokes: hook["reinvocationPolicy"] == "IfNeeded",
            matching: Matching::of_webhook(hook),
            conditions: Conditions::compile(&hook["matchConditions"], Scope::Webhook, &BTreeMap::new()),
        }
    }
}
