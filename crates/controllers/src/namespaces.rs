//! The namespace sync controller: propagates every namespace to every member, so that propagated objects find it there.
//! Writes Works, which execution applies. A namespace owns its Works, so they are deleted with it.

use api::{OverridePolicy, Work, names};
use decide::TemplateKey;
use decide::works::{Sources, namespace_works};

use crate::binding::write_work;
use crate::cache::WorkKey;
use crate::ctx::{self, Ctx};
use crate::rest::Error;
use crate::runtime::Action;

/// The key of a namespace as a template.
pub fn template_key(name: &str) -> TemplateKey {
    TemplateKey {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    }
}

/// The namespace that a Work may be for, by its name alone.
pub fn named_by(work: &WorkKey) -> Option<&str> {
    let (namespace, _) = work.name.rsplit_once('-')?;
    (names::work_name("Namespace", namespace, "") == work.name).then_some(namespace)
}

/// Brings the Works of one namespace in line.
pub async fn reconcile(ctx: &Ctx, name: &str) -> Result<Action, Error> {
    let (namespace, overrides, clusters) = {
        let snapshot = ctx.cache.snapshot();
        let Some(namespace) = snapshot.templates.get(&template_key(name)).cloned() else {
            return Ok(Action::AwaitChange);
        };
        let concerned = snapshot.overrides.iter().filter(|(key, _)| key.namespace.is_empty());
        let overrides: Vec<OverridePolicy> =
            concerned.map(|(_, policy)| OverridePolicy::clone(policy)).collect();
        if !decide::works::is_synced(&namespace, &snapshot.gates.skipped) {
            return Ok(Action::AwaitChange);
        }
        (namespace, overrides, snapshot.clusters.clone())
    };
    let work_name = names::work_name("Namespace", name, "");
    let mut existing = Vec::new();
    for cluster in clusters.iter() {
        let path = ctx::works(&cluster.metadata.name).object(&work_name);
        existing.extend(ctx.control.get::<Work>(&path).await?);
    }
    let sources = Sources {
        template: None,
        overrides: &overrides,
        clusters: &clusters,
        existing: &existing,
        needed_in: &[],
    };
    let mut failed = None;
    for (cluster, work) in &namespace_works(&namespace, sources) {
        // A cluster whose execution namespace is not there yet must not keep the others waiting.
        if let Err(error) = write_work(ctx, cluster, work, &existing).await {
            failed = Some(error);
        }
    }
    failed.map_or(Ok(Action::AwaitChange), Err)
}
