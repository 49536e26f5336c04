//! The steps of a handback in order: webhook configurations first, because writes fail while no webhook answers; CRDs
//! and the objects of the controllers last. Every step is idempotent.

use std::time::Duration;

use anyhow::{Context as _, Result};
use controllers::rest::{Collection, Error, Path, Rest};
use decide::Snapshot;
use decide::handback::{Leftover, of_binding, of_template};
use plane::webhooks::CONFIGURATIONS;
use serde_json::{Value, json};

use super::lease;
use crate::kinds::Kinds;

/// How long an API server may go on calling webhooks whose configuration is deleted.
const WEBHOOK_UNLOAD_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a write is retried meanwhile.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// One thing to be done.
#[derive(Debug, PartialEq)]
pub struct Step {
    /// What, for the user.
    pub says: String,
    /// Where.
    pub path: Path,
    /// What is written there; none deletes it.
    pub patch: Option<Value>,
}

impl Step {
    fn delete(says: String, path: Path) -> Self {
        Self { says, path, patch: None }
    }
}

/// Everything that is to be done on this control plane, in order.
pub async fn steps(control: &Rest, snapshot: &Snapshot, namespace: &str) -> Result<Vec<Step>> {
    let kinds = Kinds::of(control).await?;
    let mut steps = Vec::new();
    for (plural, name) in CONFIGURATIONS {
        let path = Collection::new("admissionregistration.k8s.io/v1", plural, "").object(name);
        there(control, &mut steps, format!("delete {plural}/{name}"), path).await?;
    }
    for (key, binding) in snapshot.bindings.iter() {
        let Some(leftover) = of_binding(binding) else { continue };
        let path = controllers::ctx::bindings(key).object(&key.name);
        steps.push(Step {
            says: said(&key.namespace, &key.name, &leftover),
            path,
            patch: Some(patch(&leftover)),
        });
    }
    for template in snapshot.templates.iter() {
        let annotations = of_template(template);
        let Some(target) = kinds.target(&template.key).filter(|_| !annotations.is_empty()) else { continue };
        let says = format!("{}: remove {}", template.key, annotations.join(", "));
        let leftover = Leftover { annotations, suspension: None };
        steps.push(Step { says, path: target.path(), patch: Some(patch(&leftover)) });
    }
    for kind in [api::kinds::ROLLOUT_POLICY, api::kinds::CLUSTER_ROLLOUT_POLICY] {
        let name = kind.crd_name();
        let path = Collection::new("apiextensions.k8s.io/v1", "customresourcedefinitions", "").object(&name);
        there(control, &mut steps, format!("delete the definition {name} and every {}", kind.kind), path)
            .await?;
    }
    let secret = Collection::new("v1", "secrets", namespace).object(crate::controllers::CERTIFICATES);
    for (what, path) in [
        ("the webhooks' certificates", secret),
        ("the ConfigMap with the feature gates", plane::note_path()),
        ("the lease", lease::path(namespace)),
    ] {
        there(control, &mut steps, format!("delete {what}: {path}"), path).await?;
    }
    Ok(steps)
}

/// Adds the deletion of an object, if it is there.
async fn there(control: &Rest, steps: &mut Vec<Step>, says: String, path: Path) -> Result<()> {
    let found: Option<Value> = control.get(&path).await.with_context(|| format!("look for {path}"))?;
    steps.extend(found.map(|_| Step::delete(says, path)));
    Ok(())
}

fn said(namespace: &str, name: &str, leftover: &Leftover) -> String {
    let binding = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    let annotations = match leftover.annotations.as_slice() {
        [] => None,
        annotations => Some(format!("remove {}", annotations.join(", "))),
    };
    let lifted = leftover.suspension.is_some().then(|| "lift the suspension that Longshore set".to_owned());
    let both: Vec<String> = lifted.into_iter().chain(annotations).collect();
    format!("binding {binding}: {}", both.join(", "))
}

fn patch(leftover: &Leftover) -> Value {
    let nulls: Value = leftover.annotations.iter().map(|key| (key.clone(), Value::Null)).collect();
    let mut patch = json!({ "metadata": { "annotations": nulls } });
    if let Some(stays) = &leftover.suspension {
        // Of what is there, only what the new value names stays.
        let fields =
            ["dispatching", "dispatchingOnClusters", "scheduling"].map(|key| (key.to_owned(), Value::Null));
        patch["spec"] = json!({ "suspension": stays.as_ref().map(|stays| {
            let mut all: serde_json::Map<String, Value> = fields.into_iter().collect();
            all.extend(json!(stays).as_object().cloned().unwrap_or_default());
            all
        }) });
    }
    patch
}

/// Does one thing. What has gone meanwhile needs nothing.
pub async fn take(control: &Rest, step: &Step) -> Result<()> {
    let begun = tokio::time::Instant::now();
    loop {
        let done = match &step.patch {
            None => control.delete(&step.path, None).await,
            Some(patch) => control.merge(&step.path, patch).await.map(drop),
        };
        match done {
            Ok(()) | Err(Error::NotFound { .. }) => return Ok(()),
            // API servers ask webhooks that were deleted for a moment longer.
            Err(Error::Refused { code: 500, .. } | Error::Conflict { .. })
                if begun.elapsed() < WEBHOOK_UNLOAD_TIMEOUT =>
            {
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            Err(error) => return Err(anyhow::Error::new(error).context(step.says.clone())),
        }
    }
}
