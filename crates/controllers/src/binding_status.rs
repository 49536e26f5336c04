//! The status aggregator: collects the status of a binding's Works into the binding's status, and from there into the
//! template's.

use std::sync::Arc;
use std::time::Duration;

use api::Binding;
use decide::status::status;
use decide::{BindingKey, TemplateKey, interpret};

use crate::cache::{Fingerprint, Question, WorkKey};
use crate::ctx::{Ctx, bindings};
use crate::events::{EventType, Regarding};
use crate::rest::Error;
use crate::runtime::Action;

const COMPONENT: &str = "binding-status-controller";
/// The debounce interval of a binding's status: members report several times while something starts, and each report
/// would be a write to the binding and one to the template.
pub const DEBOUNCE: Duration = Duration::from_secs(1);

/// Brings one binding's status, and its template's, in line.
pub async fn reconcile(ctx: &Ctx, key: &BindingKey) -> Result<Action, Error> {
    let is_placed = |binding: &Arc<Binding>| {
        binding.status.last_scheduled_time.is_some() || !binding.spec.required_by.is_empty()
    };
    let Some(seen) = ctx.cache.binding(key).filter(is_placed) else {
        ctx.coalescer.end(key);
        return Ok(Action::AwaitChange);
    };
    let template_key = TemplateKey::of(&seen);
    let template = ctx.cache.snapshot().templates.get(&template_key).cloned();
    let mut version = seen.metadata.resource_version.clone();
    let mut template_version = template.as_ref().map(|template| template.resource_version.clone());
    let known: Vec<(WorkKey, Fingerprint)> =
        ctx.cache.works().fingerprints(&seen).into_iter().map(|(key, version, _)| (key, version)).collect();
    if ctx.cache.memo().holds(key, Question::Status, Fingerprint::of((&version, &template_version, &known))) {
        ctx.coalescer.end(key);
        return Ok(Action::AwaitChange);
    }
    let answer = status(&seen, &ctx.cache.works().statuses(&seen));
    let mut binding = Binding::clone(&seen);
    answer.write(&mut binding, (ctx.now)());
    let path = ctx.template_path(&template_key);
    if path.is_none() {
        template_version = None;
    }
    let of_template = template.zip(path).and_then(|(template, path)| {
        let status = answer.of_template(&template, (ctx.now)())?;
        Some((template, path, status))
    });
    let is_news = binding.status != seen.status || of_template.is_some();
    if is_news
        && answer.is_unfinished(&seen)
        && let Some(wait) = ctx.coalescer.wait(key, answer.is_silent(&seen))
    {
        return Ok(Action::RequeueAfter(wait));
    }
    ctx.coalescer.end(key);
    if binding.status != seen.status {
        version = write_binding_status(ctx, key, &seen, &binding).await?;
    }
    if let Some((template, path, status)) = of_template {
        let before = &template.object()["status"];
        let written = ctx.control.write_status(&path, &template.resource_version, before, &status).await;
        let message = "Update Resource with AggregatedStatus successfully.";
        record_event(ctx, Regarding::from(&*template), message, written.as_ref().err());
        template_version = Some(written?.metadata.resource_version);
    }
    ctx.cache.memo().note(key, Question::Status, Fingerprint::of((&version, &template_version, &known)));
    Ok(Action::AwaitChange)
}

/// Writes a binding's status; the answer is the version that has it.
async fn write_binding_status(
    ctx: &Ctx,
    key: &BindingKey,
    seen: &Binding,
    next: &Binding,
) -> Result<String, Error> {
    let path = bindings(key).object(&key.name);
    let version = &seen.metadata.resource_version;
    let written = ctx.control.write_status(&path, version, &seen.status, &next.status).await;
    let (kind, place) = match key.namespace.as_str() {
        "" => ("ClusterResourceBinding", key.name.clone()),
        namespace => ("ResourceBinding", format!("{namespace}/{}", key.name)),
    };
    let message = format!("Update {kind}({place}) with AggregatedStatus successfully.");
    record_event(ctx, Regarding::from(seen), &message, written.as_ref().err());
    Ok(written?.metadata.resource_version)
}

/// Whether a template's status differs from its binding's. The writer of the binding's status may have seen an older
/// template whose status happened to match.
pub fn is_stale(ctx: &Ctx, key: &TemplateKey) -> bool {
    let snapshot = ctx.cache.snapshot();
    let binding = snapshot.bindings.get(&key.binding()).filter(|binding| TemplateKey::of(binding) == *key);
    let Some((template, binding)) = snapshot.templates.get(key).zip(binding) else { return false };
    let (template, binding) = (Arc::clone(template), Arc::clone(binding));
    drop(snapshot);
    interpret::aggregate(&template.object(), &binding.status.aggregated_status, (ctx.now)()).is_some()
}

fn record_event(ctx: &Ctx, about: Regarding, message: &str, error: Option<&Error>) {
    match error {
        None => ctx.record_event([about], COMPONENT, EventType::Normal, "AggregateStatusSucceed", message),
        Some(error) if error.is_conflict() => {}
        Some(error) => {
            ctx.record_event(
                [about],
                COMPONENT,
                EventType::Warning,
                "AggregateStatusFailed",
                &error.to_string(),
            );
        }
    }
}
