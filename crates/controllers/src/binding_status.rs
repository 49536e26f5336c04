//! How is the whole doing? Gathers what the Works of a binding report into the binding's status, and from
//! there into the template's.

use api::Work;
use decide::BindingKey;
use decide::status::status;
use serde_json::json;

use crate::ctx::{self, Ctx, bindings};
use crate::rest::Error;
use crate::runtime::Next;
use crate::view::{WorkKey, template_key};

/// Brings one binding's status, and its template's, in line.
pub async fn reconcile(ctx: &Ctx, key: &BindingKey) -> Result<Next, Error> {
    let Some(seen) = ctx.view.binding(key) else { return Ok(Next::Wait) };
    if seen.status.last_scheduled_time.is_none() && seen.spec.required_by.is_empty() {
        return Ok(Next::Wait);
    }
    let mut works = Vec::new();
    for WorkKey { cluster, name } in ctx.view.works_of(&seen) {
        works.extend(ctx.control.get::<Work>(&ctx::works(&cluster).object(&name)).await?);
    }
    let answer = status(&seen, &works);
    let mut binding = api::Binding::clone(&seen);
    answer.write(&mut binding, (ctx.now)());
    if binding.status != seen.status {
        let patch = json!({
            "metadata": { "resourceVersion": seen.metadata.resource_version },
            "status": binding.status,
        });
        ctx.control.merge(&format!("{}/status", bindings(key).object(&key.name)), &patch).await?;
    }
    let template_key = template_key(&seen);
    let template = ctx.view.world().templates.get(&template_key).cloned();
    if let (Some(template), Some(path)) = (template, ctx.template_path(&template_key))
        && let Some(status) = answer.of_template(&template, (ctx.now)())
    {
        let patch = json!({ "metadata": { "resourceVersion": template.resource_version }, "status": status });
        ctx.control.merge(&format!("{path}/status"), &patch).await?;
    }
    Ok(Next::Wait)
}
