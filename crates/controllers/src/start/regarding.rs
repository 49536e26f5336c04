//! The object that an Event is about (`involvedObject`), from the key of a queue. No event is recorded for an object
//! that is no longer known.

use api::kinds;
use decide::{BindingKey, PolicyKey, TemplateKey};

use crate::cache::WorkKey;
use crate::ctx::Ctx;
use crate::events::{EventKey, Regarding};

/// The template of a key.
pub(super) fn template(ctx: &Ctx, key: &TemplateKey) -> Option<Regarding> {
    ctx.cache.snapshot().templates.get(key).map(|template| Regarding::from(&**template))
}

/// The binding of a key.
pub(super) fn binding(ctx: &Ctx, key: &BindingKey) -> Option<Regarding> {
    ctx.cache.binding(key).map(|binding| Regarding::from(&*binding))
}

/// The binding that a Work belongs to; the Namespace for a Work that brings one.
pub(super) fn work(ctx: &Ctx, key: &WorkKey) -> Option<Regarding> {
    match ctx.cache.works().binding_of(key) {
        Some(owner) => binding(ctx, &owner),
        None => namespace(ctx, crate::namespaces::named_by(key)?),
    }
}

/// A Cluster.
pub(super) fn cluster(ctx: &Ctx, name: &str) -> Option<Regarding> {
    ctx.cache.cluster(name).map(|cluster| Regarding::from(&cluster))
}

/// A Namespace.
pub(super) fn namespace(ctx: &Ctx, name: &str) -> Option<Regarding> {
    let key = TemplateKey {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    };
    template(ctx, &key)
}

/// A policy.
pub(super) fn policy(ctx: &Ctx, key: &PolicyKey) -> Option<Regarding> {
    let kind = match key.namespace.as_str() {
        "" => &kinds::CLUSTER_PROPAGATION_POLICY,
        _ => &kinds::PROPAGATION_POLICY,
    };
    let snapshot = ctx.cache.snapshot();
    let uid = snapshot.policies.get(key)?.uid.clone();
    let PolicyKey { namespace, name } = key.clone();
    Some(Regarding { api_version: kind.api_version(), kind: kind.kind.to_owned(), namespace, name, uid })
}

/// A rebalancer, of which nothing but its name is known.
pub(super) fn rebalancer(_: &Ctx, name: &str) -> Option<Regarding> {
    let kind = &kinds::WORKLOAD_REBALANCER;
    let (api_version, kind) = (kind.api_version(), kind.kind.to_owned());
    Some(Regarding { api_version, kind, name: name.to_owned(), ..Regarding::default() })
}

/// Events get no events of their own.
pub(super) fn nothing(_: &Ctx, _: &EventKey) -> Option<Regarding> {
    None
}
