//! The dependencies distributor (PropagateDeps), level-based on two sides: a binding records which objects it needs,
//! and the binding of each needed object copies the clusters of the bindings that need it. `decide` decides both.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::Binding;
use api::annotations::DEPENDENCIES;
use api::finalizers::DEPENDENCIES_DISTRIBUTOR;
use api::interpreter::DependentObjectReference;
use decide::dependencies::{Attached, attached, needs, noted, outside};
use decide::snapshot::Interpreters;
use decide::{BindingKey, TemplateKey};
use serde_json::{Value, json};

use crate::ctx::{Ctx, bindings};
use crate::events::{EventType, Regarding};
use crate::rest::Error;
use crate::runtime::{Action, Priority};

const COMPONENT: &str = "dependencies-distributor";
/// The requeue interval of a binding to which others are still attached.
const STILL_ATTACHED_REQUEUE_INTERVAL: Duration = Duration::from_millis(50);

/// Brings in line what one binding has written down that it needs.
///
/// The list is written before anything is attached, and the finalizer with it: whatever is attached later can
/// be found and detached, whenever the process stops in between.
pub async fn reconcile(ctx: &Ctx, key: &BindingKey) -> Result<Action, Error> {
    let Some(binding) = ctx.cache.binding(key) else { return Ok(Action::AwaitChange) };
    let leaves = binding.metadata.deletion_timestamp.is_some();
    // With the gate off no dependency is added or removed, but a binding that is being deleted is still released.
    if !ctx.feature_gates.gates.propagate_deps && !leaves {
        return Ok(Action::AwaitChange);
    }
    let takes_along = binding.spec.propagate_deps && !leaves;
    if takes_along {
        record_dependencies_outside_namespace(ctx, &binding);
    }
    let held = binding.metadata.finalizers.iter().any(|one| one == DEPENDENCIES_DISTRIBUTOR);
    if !takes_along {
        return if held { release_finalizer(ctx, key, &binding).await } else { Ok(Action::AwaitChange) };
    }
    let wanted = {
        let snapshot = ctx.cache.snapshot();
        let template = snapshot.templates.get(&TemplateKey::of(&binding)).map(AsRef::as_ref);
        needs(&binding, template, Interpreters::BUILT_IN.dependencies)
    };
    if wanted == noted(&binding) && (held || wanted.is_empty()) {
        return Ok(Action::AwaitChange);
    }
    let mut finalizers = binding.metadata.finalizers.clone();
    if !held {
        finalizers.push(DEPENDENCIES_DISTRIBUTOR.to_owned());
    }
    let list = serde_json::to_string(&wanted).expect("names and labels are always JSON");
    write(ctx, key, &binding, &finalizers, json!(list)).await?;
    let message = format!("Get dependencies([{}]) succeed.", spoken(&wanted));
    let template = Regarding::template_of(&binding);
    ctx.record_event([template], COMPONENT, EventType::Normal, "GetDependenciesSucceed", &message);
    Ok(Action::AwaitChange)
}

/// What lies outside the namespace of a binding does not go along, whatever the binding says (M3).
fn record_dependencies_outside_namespace(ctx: &Ctx, binding: &Binding) {
    let outside = outside(binding);
    if outside.is_empty() {
        return;
    }
    let namespace = &binding.metadata.namespace;
    let message = format!(
        "Dependencies outside namespace {namespace} are ignored: [{}]; a ResourceBinding reaches only objects of its \
         own namespace.",
        spoken(&outside)
    );
    let about = Regarding::from(binding);
    ctx.record_standing_event(about, COMPONENT, EventType::Warning, "DependencyOutsideNamespace", &message);
}

/// Removes the finalizer of a binding without dependencies once no attached binding copies its clusters.
async fn release_finalizer(ctx: &Ctx, key: &BindingKey, binding: &Binding) -> Result<Action, Error> {
    let attached = attached_to(ctx, key, binding);
    if !attached.is_empty() {
        attached.into_iter().for_each(|template| ctx.queues.attachments.add(template, Priority::User));
        return Ok(Action::RequeueAfter(STILL_ATTACHED_REQUEUE_INTERVAL));
    }
    let kept = binding.metadata.finalizers.iter().filter(|one| *one != DEPENDENCIES_DISTRIBUTOR);
    let finalizers: Vec<String> = kept.cloned().collect();
    match write(ctx, key, binding, &finalizers, Value::Null).await {
        Err(Error::NotFound { .. }) | Ok(()) => Ok(Action::AwaitChange),
        Err(error) => Err(error),
    }
}

/// The templates whose bindings still repeat this binding's clusters.
fn attached_to(ctx: &Ctx, key: &BindingKey, binding: &Binding) -> BTreeSet<TemplateKey> {
    let snapshot = ctx.cache.snapshot();
    let repeats = |template: &Arc<TemplateKey>| {
        snapshot.bindings.get(&template.binding()).is_some_and(|attached| {
            let mut by = attached.spec.required_by.iter();
            by.any(|by| by.namespace == key.namespace && by.name == key.name)
        })
    };
    noted(binding)
        .iter()
        .flat_map(|need| snapshot.found(need))
        .filter(repeats)
        .map(Arc::unwrap_or_clone)
        .collect()
}

async fn write(
    ctx: &Ctx,
    key: &BindingKey,
    seen: &Binding,
    finalizers: &[String],
    list: Value,
) -> Result<(), Error> {
    let patch = json!({
        "metadata": {
            "resourceVersion": seen.metadata.resource_version,
            "finalizers": finalizers,
            "annotations": { DEPENDENCIES: list },
        },
    });
    let written = ctx.control.merge(&bindings(key).object(&key.name), &patch).await.map(drop);
    written.inspect_err(|error| ctx.record_rejection(seen, error))
}

/// Reconciles the binding of a needed template with the bindings that need it. This is its only writer, so those
/// bindings never compete; the detector writes other fields, and after a conflict the reconcile is repeated.
pub async fn attach(ctx: &Ctx, key: &TemplateKey) -> Result<Action, Error> {
    let Some((answer, existing, needed_by)) = decide_attached(ctx, key) else {
        return Ok(Action::AwaitChange);
    };
    if existing.as_deref() == Some(&answer.binding) {
        return Ok(Action::AwaitChange);
    }
    let written = ctx.write_binding(&key.binding(), &answer.binding).await;
    if let Some(error) = written.as_ref().err().filter(|error| !error.is_conflict()) {
        let reason = "SyncScheduleResultToDependenciesFailed";
        let about = needed_by.iter().map(|needing| Regarding::from(&**needing));
        ctx.record_event(about, COMPONENT, EventType::Warning, reason, &error.to_string());
    }
    written?;
    if let Some(conflict) = answer.conflict {
        let message = format!("Dependency policy conflict detected: {conflict}.");
        let about = Regarding::from(&answer.binding);
        ctx.record_event([about], COMPONENT, EventType::Warning, "DependencyPolicyConflict", &message);
    }
    for needing in needed_by {
        let message = "Sync schedule results to dependencies succeed.";
        let reason = "SyncScheduleResultToDependenciesSucceed";
        ctx.record_event([Regarding::from(&*needing)], COMPONENT, EventType::Normal, reason, message);
    }
    Ok(Action::AwaitChange)
}

type Decided = (Attached, Option<Arc<Binding>>, Vec<Arc<Binding>>);

/// The binding as it should be; none while there is nothing to attach or the binding is not this template's.
fn decide_attached(ctx: &Ctx, key: &TemplateKey) -> Option<Decided> {
    let snapshot = ctx.cache.snapshot();
    let template = snapshot.templates.get(key)?;
    let existing = snapshot.bindings.get(&key.binding()).cloned();
    let not_ours = existing.as_ref().is_some_and(|existing| {
        existing.metadata.deletion_timestamp.is_some()
            || decide::binding::refusal(template, existing).is_some()
    });
    if not_ours {
        return None;
    }
    let takes_along = |binding: &&Arc<Binding>| {
        binding.spec.propagate_deps && binding.metadata.deletion_timestamp.is_none()
    };
    let own = key.binding();
    let who = ctx.cache.dependencies().dependents(template).into_iter().filter(|by| *by != own);
    let found: Vec<BindingKey> = who.collect();
    // Nothing new is attached to a binding that is being deleted; but a binding that detaches does not have to wait for
    // it.
    let is_attached = |by: &&Arc<Binding>| {
        let mut known = existing.iter().flat_map(|existing| &existing.spec.required_by);
        known.any(|known| known.namespace == by.metadata.namespace && known.name == by.metadata.name)
    };
    let may = |by: &&Arc<Binding>| takes_along(by) && (!template.deleting || is_attached(by));
    let needed_by: Vec<Arc<Binding>> =
        found.iter().filter_map(|by| snapshot.bindings.get(by)).filter(may).cloned().collect();
    let was_needed = existing.as_ref().is_some_and(|existing| !existing.spec.required_by.is_empty());
    if needed_by.is_empty() && !was_needed {
        return None;
    }
    let by: Vec<&Binding> = needed_by.iter().map(AsRef::as_ref).collect();
    let answer = attached(template, existing.as_deref(), &by, snapshot.rollouts.values())?;
    Some((answer, existing, needed_by))
}

/// Enqueues a template's binding if another binding needs it; called after the template was reconciled.
pub fn enqueue_attached(ctx: &Ctx, key: &TemplateKey) {
    let snapshot = ctx.cache.snapshot();
    let Some(template) = snapshot.templates.get(key) else { return };
    let binding = snapshot.bindings.get(&key.binding());
    let was_needed = binding.is_some_and(|binding| !binding.spec.required_by.is_empty());
    if was_needed || !ctx.cache.dependencies().dependents(template).is_empty() {
        ctx.queues.attachments.add(key.clone(), Priority::User);
    }
    if binding.is_some_and(|binding| binding.spec.propagate_deps) {
        ctx.queues.dependencies.add(key.binding(), Priority::User);
    }
}

/// The list as Karmada prints it.
fn spoken(needs: &[DependentObjectReference]) -> String {
    let one = |need: &DependentObjectReference| {
        let DependentObjectReference { api_version, kind, namespace, name, label_selector } = need;
        let labels = match label_selector {
            None => "<nil>".to_owned(),
            Some(wanted) => format!("{:?}", wanted.match_labels),
        };
        format!(
            "{{APIVersion:{api_version} Kind:{kind} Namespace:{namespace} Name:{name} LabelSelector:{labels}}}"
        )
    };
    needs.iter().map(one).collect::<Vec<_>>().join(" ")
}
