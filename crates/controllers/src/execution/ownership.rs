//! The location of a manifest in its member, and the ownership of its Work. Reads; writes nothing anywhere.

use api::binding::SCHEDULED;
use api::{Binding, Work, names};
use decide::binding::trespass;
use decide::snapshot::Interpreters;
use decide::works::{Foreign, clusters_in_use, foreign};
use decide::{TemplateKey, conditions};
use serde_json::Value;

use super::text;
use crate::cache::{binding_id, binding_of_work};
use crate::ctx::{self, Ctx, bindings};
use crate::discovery;
use crate::member_client::MemberClient;
use crate::rest::{Collection, Error, Path};

/// The path of a manifest's object; none if the member does not serve its kind. The control plane mostly knows;
/// where it no longer serves a kind itself, the member still may.
pub async fn manifest_path(
    ctx: &Ctx,
    reach: &MemberClient<'_>,
    manifest: &Value,
) -> Result<Option<Path>, Error> {
    let (api_version, kind) = (text(manifest, "apiVersion"), text(manifest, "kind"));
    let served = match ctx.cache.served().get(api_version, kind) {
        Some(served) => Some(served),
        None => reach.call(discovery::served(&reach.rest, api_version, kind)).await?,
    };
    Ok(served.map(|served| {
        let metadata = &manifest["metadata"];
        let namespace = if served.namespaced { text(metadata, "namespace") } else { "" };
        Collection::new(api_version, &served.plural, namespace).object(text(metadata, "name"))
    }))
}

/// The ownership of a Work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// Its binding exists, or the Work needs none.
    Backed,
    /// Its binding, which is about something else (M3).
    Foreign(Foreign),
    /// It has no owner any more: it was created in the moment its binding was deleted.
    Abandoned,
    /// It has no owner yet: a binding of the same name is being created, and may adopt it.
    Unclear,
}

/// The ownership of a Work. That it has no owner is only accepted from the API server, since the cache may lag behind.
pub async fn find_ownership(ctx: &Ctx, work: &Work) -> Result<Ownership, Error> {
    let id = binding_id(&work.metadata);
    let Some(key) = binding_of_work(&work.metadata).filter(|_| !id.is_empty()) else {
        return Ok(Ownership::Backed);
    };
    let stays = |binding: &Binding| {
        binding_id(&binding.metadata) == id && binding.metadata.deletion_timestamp.is_none()
    };
    let backed = |binding: &Binding| foreign(work, binding).map_or(Ownership::Backed, Ownership::Foreign);
    if let Some(binding) = ctx.cache.binding(&key).filter(|binding| stays(binding)) {
        return Ok(backed(&binding));
    }
    Ok(match ctx.control.get::<Binding>(&bindings(&key).object(&key.name)).await? {
        None if is_to_be_bound(ctx, work) => Ownership::Unclear,
        None => Ownership::Abandoned,
        // The binding names a template outside its namespace (M3).
        Some(binding) if trespass(&binding).is_some() => Ownership::Abandoned,
        Some(binding) if binding_id(&binding.metadata) == id => {
            let own = ctx::binding_finalizer(&binding);
            match stays(&binding) || binding.metadata.finalizers.iter().any(|one| one == own) {
                true => backed(&binding),
                false => Ownership::Abandoned,
            }
        }
        Some(namesake) => match ownership_beside(&namesake, work) {
            Ownership::Backed => backed(&namesake),
            ownership => ownership,
        },
    })
}

/// Whether a template of this Work's is about to get a binding.
fn is_to_be_bound(ctx: &Ctx, work: &Work) -> bool {
    let snapshot = ctx.cache.snapshot();
    let bound = |manifest: &Value| {
        let template = TemplateKey {
            api_version: text(manifest, "apiVersion").to_owned(),
            kind: text(manifest, "kind").to_owned(),
            namespace: text(&manifest["metadata"], "namespace").to_owned(),
            name: text(&manifest["metadata"], "name").to_owned(),
        };
        snapshot.look(&template, Interpreters::BUILT_IN).is_some_and(|decided| decided.binding.is_some())
    };
    work.spec.workload.manifests.iter().any(bound)
}

/// What a binding of the same name makes of a Work: it takes over what it needs itself, once it knows.
fn ownership_beside(namesake: &Binding, work: &Work) -> Ownership {
    let cluster = names::cluster_of_execution_namespace(&work.metadata.namespace).unwrap_or_default();
    let decided = conditions::find(&namesake.status.conditions, SCHEDULED).is_some();
    match clusters_in_use(&namesake.spec).contains_key(cluster) {
        true => Ownership::Backed,
        false if decided || namesake.spec.placement.is_none() => Ownership::Abandoned,
        false => Ownership::Unclear,
    }
}
