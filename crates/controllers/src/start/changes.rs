//! What a change of each watched kind does to the informer cache, and which keys it affects: the functions that the
//! table in `watches` names. They enqueue nothing themselves.

use std::collections::BTreeSet;

use decide::{BindingKey, TemplateKey};
use kube::core::TypeMeta;

use crate::ctx::Ctx;
use crate::reflector::{Delta, NamespacedName, Reflected as _};

pub(super) mod binding;
pub(super) mod cluster;
pub(super) mod policy;
pub(super) mod template;
pub(super) mod uncached;
pub(super) mod work;

/// A change of an object in the snapshot.
pub(super) struct SnapshotChange {
    types: TypeMeta,
    name: NamespacedName,
    /// The templates whose decisions may be others now.
    affected: BTreeSet<TemplateKey>,
}

/// Puts an object into the snapshot, or removes it.
fn cache_in_snapshot(ctx: &Ctx, types: &TypeMeta, delta: Delta) -> SnapshotChange {
    let (name, affected) = match delta {
        Delta::Applied(object) => (object.namespaced_name(), ctx.cache.put(*object)),
        Delta::Deleted(name) => {
            let affected = ctx.cache.remove(&types.api_version, &types.kind, &name.namespace, &name.name);
            (name, affected)
        }
    };
    SnapshotChange { types: types.clone(), name, affected }
}

pub(super) fn affected_templates(_: &Ctx, change: &SnapshotChange) -> Vec<TemplateKey> {
    change.affected.iter().cloned().collect()
}

pub(super) fn affected_bindings(_: &Ctx, change: &SnapshotChange) -> Vec<BindingKey> {
    change.affected.iter().map(TemplateKey::binding).collect()
}

fn all_namespaces(ctx: &Ctx) -> Vec<String> {
    let snapshot = ctx.cache.snapshot();
    let namespaces = snapshot.templates.in_namespace("v1", "Namespace", "");
    namespaces.map(|namespace| namespace.key.name.clone()).collect()
}
