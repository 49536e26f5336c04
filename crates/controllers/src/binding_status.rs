//! How is the whole doing? Gathers what the Works of a binding report into the binding's status, and from
//! there into the template's.

use std::sync::Arc;

use api::Binding;
use decide::status::status;
use decide::{BindingKey, TemplateKey, interpret};

use crate::ctx::{Ctx, bindings};
use crate::events::{Regarding, Tone};
use crate::rest::Error;
use crate::runtime::Next;
use crate::view::{Mark, Question, WorkKey};

mod unfinished;

pub use unfinished::Unfinished;

const COMPONENT: &str = "binding-status-controller";

/// Brings one binding's status, and its template's, in line.
pub async fn reconcile(ctx: &Ctx, key: &BindingKey) -> Result<Next, Error> {
    let is_placed = |binding: &Arc<Binding>| {
        binding.status.last_scheduled_time.is_some() || !binding.spec.required_by.is_empty()
    };
    let Some(seen) = ctx.view.binding(key).filter(is_placed) else {
        ctx.unfinished.end(key);
        return Ok(Next::Wait);
    };
    let template_key = TemplateKey::of(&seen);
    let template = ctx.view.world().templates.get(&template_key).cloned();
    let mut version = seen.metadata.resource_version.clone();
    let mut template_version = template.as_ref().map(|template| template.resource_version.clone());
    let known: Vec<(WorkKey, Mark)> =
        ctx.view.works_seen(&seen).into_iter().map(|(key, version, _)| (key, version)).collect();
    if ctx.view.settled().holds(key, Question::Status, Mark::of((&version, &template_version, &known))) {
        ctx.unfinished.end(key);
        return Ok(Next::Wait);
    }
    let answer = status(&seen, &ctx.view.work_statuses(&seen));
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
        && let Some(wait) = ctx.unfinished.wait(key, answer.is_silent(&seen))
    {
        return Ok(Next::After(wait));
    }
    ctx.unfinished.end(key);
    if binding.status != seen.status {
        version = tell_binding(ctx, key, &seen, &binding).await?;
    }
    if let Some((template, path, status)) = of_template {
        let before = &template.object()["status"];
        let written = ctx.control.write_status(&path, &template.resource_version, before, &status).await;
        let message = "Update Resource with AggregatedStatus successfully.";
        tell(ctx, Regarding::from(&*template), message, written.as_ref().err());
        template_version = Some(written?.metadata.resource_version);
    }
    ctx.view.settled().note(key, Question::Status, Mark::of((&version, &template_version, &known)));
    Ok(Next::Wait)
}

/// Writes a binding's status; the answer is the version that has it.
async fn tell_binding(ctx: &Ctx, key: &BindingKey, seen: &Binding, next: &Binding) -> Result<String, Error> {
    let path = bindings(key).object(&key.name);
    let version = &seen.metadata.resource_version;
    let written = ctx.control.write_status(&path, version, &seen.status, &next.status).await;
    let (kind, place) = match key.namespace.as_str() {
        "" => ("ClusterResourceBinding", key.name.clone()),
        namespace => ("ResourceBinding", format!("{namespace}/{}", key.name)),
    };
    let message = format!("Update {kind}({place}) with AggregatedStatus successfully.");
    tell(ctx, Regarding::from(seen), &message, written.as_ref().err());
    Ok(written?.metadata.resource_version)
}

/// Whether a template's status is not what its binding says. Who wrote the binding's may have seen an older state of
/// the template that was right by chance.
pub fn lags(ctx: &Ctx, key: &TemplateKey) -> bool {
    let world = ctx.view.world();
    let binding = world.bindings.get(&key.binding()).filter(|binding| TemplateKey::of(binding) == *key);
    let Some((template, binding)) = world.templates.get(key).zip(binding) else { return false };
    let (template, binding) = (Arc::clone(template), Arc::clone(binding));
    drop(world);
    interpret::aggregate(&template.object(), &binding.status.aggregated_status, (ctx.now)()).is_some()
}

fn tell(ctx: &Ctx, about: Regarding, message: &str, error: Option<&Error>) {
    match error {
        None => ctx.tell([about], COMPONENT, Tone::Routine, "AggregateStatusSucceed", message),
        Some(error) if error.is_conflict() => {}
        Some(error) => {
            ctx.tell([about], COMPONENT, Tone::Warning, "AggregateStatusFailed", &error.to_string());
        }
    }
}
