//! Where does a manifest lie in its member, and whose Work is it? Reads; writes nothing anywhere.

use api::{Binding, Work, names};
use decide::works::clusters_in_use;
use serde_json::Value;

use super::text;
use crate::ctx::{self, Ctx, bindings};
use crate::discovery;
use crate::reach::Reach;
use crate::rest::{Collection, Error};
use crate::view::{binding_id, binding_of_work};

/// The path of a manifest's object; none if the member does not serve its kind. The control plane mostly knows;
/// where it no longer serves a kind itself, the member still may.
pub async fn path(ctx: &Ctx, reach: &Reach<'_>, manifest: &Value) -> Result<Option<String>, Error> {
    let (api_version, kind) = (text(manifest, "apiVersion"), text(manifest, "kind"));
    let served = match ctx.view.served(api_version, kind) {
        Some(served) => Some(served),
        None => reach.ask(discovery::served(&reach.rest, api_version, kind)).await?,
    };
    Ok(served.map(|served| {
        let metadata = &manifest["metadata"];
        let namespace = if served.namespaced { text(metadata, "namespace") } else { "" };
        Collection::new(api_version, &served.plural, namespace).object(text(metadata, "name"))
    }))
}

/// Whether nobody stands behind a Work any more: it was made in the moment its binding went. Only the server's
/// own word counts, since the view may lag behind either of them.
pub async fn is_abandoned(ctx: &Ctx, work: &Work) -> Result<bool, Error> {
    let id = binding_id(&work.metadata);
    let Some(key) = binding_of_work(&work.metadata).filter(|_| !id.is_empty()) else { return Ok(false) };
    let stays = |binding: &Binding| {
        binding_id(&binding.metadata) == id && binding.metadata.deletion_timestamp.is_none()
    };
    if ctx.view.binding(&key).is_some_and(|binding| stays(&binding)) {
        return Ok(false);
    }
    let cluster = names::cluster_of_execution_namespace(&work.metadata.namespace).unwrap_or_default();
    Ok(match ctx.control.get::<Binding>(&bindings(&key).object(&key.name)).await? {
        None => true,
        Some(binding) if binding_id(&binding.metadata) == id => {
            let own = ctx::binding_finalizer(&binding);
            !stays(&binding) && !binding.metadata.finalizers.iter().any(|one| one == own)
        }
        // A namesake takes over what it needs itself.
        Some(namesake) => !clusters_in_use(&namesake.spec).contains_key(cluster),
    })
}
