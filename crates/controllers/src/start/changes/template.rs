//! Changes of templates: objects of every kind that discovery finds.

use api::Cluster;
use api::cluster::SecretReference;
use api::names;
use decide::{BindingKey, TemplateKey};
use kube::core::TypeMeta;

use super::{SnapshotChange, cache_in_snapshot};
use crate::binding_status;
use crate::ctx::Ctx;
use crate::reflector::{Delta, NamespacedName, Reflected as _};

/// Caches a template. An object that is not to be propagated is removed: it may have been a template until now.
pub(in crate::start) fn cache(ctx: &Ctx, types: &TypeMeta, delta: Delta) -> Option<SnapshotChange> {
    match delta {
        Delta::Applied(object) if names::is_no_template(&object.namespaced_name().namespace, &object) => {
            let name = object.namespaced_name();
            let key = template_key(types, &name);
            let affected = ctx.cache.exclude(&key).then_some(key).into_iter().collect();
            Some(SnapshotChange { types: types.clone(), name, affected })
        }
        delta => Some(cache_in_snapshot(ctx, types, delta)),
    }
}

fn template_key(types: &TypeMeta, NamespacedName { namespace, name }: &NamespacedName) -> TemplateKey {
    TemplateKey {
        api_version: types.api_version.clone(),
        kind: types.kind.clone(),
        namespace: namespace.clone(),
        name: name.clone(),
    }
}

/// The affected templates that are Namespaces, which members receive without a policy.
pub(in crate::start) fn affected_namespaces(_: &Ctx, change: &SnapshotChange) -> Vec<String> {
    let is_namespace = |key: &&TemplateKey| key.kind == "Namespace" && key.api_version == "v1";
    change.affected.iter().filter(is_namespace).map(|key| key.name.clone()).collect()
}

/// The bindings of affected templates whose status differs from their binding's.
pub(in crate::start) fn bindings_with_stale_status(ctx: &Ctx, change: &SnapshotChange) -> Vec<BindingKey> {
    let stale = change.affected.iter().filter(|key| binding_status::is_stale(ctx, key));
    stale.map(TemplateKey::binding).collect()
}

/// The clusters whose credentials are in this Secret. It may lie in a namespace that is never propagated.
pub(in crate::start) fn clusters_with_secret(ctx: &Ctx, change: &SnapshotChange) -> Vec<String> {
    clusters_with(ctx, change, |cluster| cluster.spec.secret_ref.as_ref())
}

/// The clusters whose impersonation token is in this Secret.
pub(in crate::start) fn clusters_with_impersonator_secret(ctx: &Ctx, change: &SnapshotChange) -> Vec<String> {
    clusters_with(ctx, change, |cluster| cluster.spec.impersonator_secret_ref.as_ref())
}

fn clusters_with(
    ctx: &Ctx,
    change: &SnapshotChange,
    reference: impl Fn(&Cluster) -> Option<&SecretReference>,
) -> Vec<String> {
    if change.types.kind != "Secret" || change.types.api_version != "v1" {
        return Vec::new();
    }
    let is_this =
        |one: &SecretReference| one.namespace == change.name.namespace && one.name == change.name.name;
    let snapshot = ctx.cache.snapshot();
    let clusters = snapshot.clusters.iter().filter(|cluster| reference(cluster).is_some_and(is_this));
    clusters.map(|cluster| cluster.metadata.name.clone()).collect()
}
