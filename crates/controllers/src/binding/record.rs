//! Records events about the Works of a binding. Writes nothing else.

use api::override_policy::AppliedOverride;
use api::{Binding, Work, annotations};
use decide::overrides::Failed;
use decide::works::Frozen;

use crate::ctx::Ctx;
use crate::events::{EventType, Regarding};
use crate::rest::Error;

const COMPONENT: &str = "binding-controller";
const OVERRIDES: &str = "override-manager";

/// How it went with the Works of a binding.
pub fn synced(ctx: &Ctx, binding: &Binding, error: Option<&Error>) {
    let about = [Regarding::from(binding), Regarding::template_of(binding)];
    let api::ObjectMeta { namespace, name, .. } = &binding.metadata;
    let (event_type, reason, message) = match (error, namespace.as_str()) {
        (Some(error), _) => (EventType::Warning, "SyncWorkFailed", error.to_string()),
        (None, "") => {
            let message = format!("Sync work of ClusterResourceBinding({name}) successful.");
            (EventType::Normal, "SyncWorkSucceed", message)
        }
        (None, namespace) => {
            let message = format!("Sync work of ResourceBinding({namespace}/{name}) successful.");
            (EventType::Normal, "SyncWorkSucceed", message)
        }
    };
    ctx.record_event(about, COMPONENT, event_type, reason, &message);
}

/// A Work could not be deleted.
pub fn clean_up_failed(ctx: &Ctx, binding: &Binding, error: &Error) {
    let about = [Regarding::from(binding)];
    ctx.record_event(about, COMPONENT, EventType::Warning, "CleanupWorkFailed", &error.to_string());
}

/// An override policy cannot be applied, and a retry does not help until an object changes.
pub fn override_failed(ctx: &Ctx, binding: &Binding, failed: &Failed) {
    let about = Regarding::template_of(binding);
    let message = failed.to_string();
    ctx.record_standing_event(about, OVERRIDES, EventType::Warning, "ApplyOverridePolicyFailed", &message);
}

/// The copies in members stay as they are until an object changes.
pub fn left_as_it_is(ctx: &Ctx, binding: &Binding, why: &Frozen) {
    let message = format!("Works are left as they are: {why}.");
    let about = Regarding::template_of(binding);
    ctx.record_standing_event(about, COMPONENT, EventType::Warning, "SyncWorkFailed", &message);
}

/// The override policies that a Work which was just written remembers.
pub fn overridden(ctx: &Ctx, binding: &Binding, cluster: &str, work: &Work) {
    let scopes = [
        (annotations::APPLIED_CLUSTER_OVERRIDES, "cluster override policy", String::new()),
        (annotations::APPLIED_OVERRIDES, "override policy", format!("{}/", binding.spec.resource.namespace)),
    ];
    for (annotation, kind, scope) in scopes {
        let applied = serde_json::from_str::<Vec<AppliedOverride>>(work.metadata.annotation(annotation));
        for AppliedOverride { policy_name, .. } in applied.unwrap_or_default() {
            let message = format!("Apply {kind}({scope}{policy_name}) for cluster({cluster}) succeed.");
            let about = [Regarding::template_of(binding)];
            ctx.record_event(about, OVERRIDES, EventType::Normal, "ApplyOverridePolicySucceed", &message);
        }
    }
}
