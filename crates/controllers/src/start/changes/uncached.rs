//! Changes of kinds that the informer cache does not keep: their controllers read them from the API server.

use kube::core::TypeMeta;

use crate::ctx::Ctx;
use crate::reflector::{Delta, NamespacedName, PartialObjectMetadata, Reflected as _};

/// A change of an object.
pub(in crate::start) struct Change {
    name: NamespacedName,
    deleted: bool,
}

/// Caches nothing.
pub(in crate::start) fn cache(_: &Ctx, _: &TypeMeta, delta: Delta<PartialObjectMetadata>) -> Option<Change> {
    Some(match delta {
        Delta::Applied(object) => Change { name: object.namespaced_name(), deleted: false },
        Delta::Deleted(name) => Change { name, deleted: true },
    })
}

/// The name of an object of a cluster-scoped kind, unless the object was deleted.
pub(in crate::start) fn name_if_applied(_: &Ctx, change: &Change) -> Vec<String> {
    (!change.deleted).then(|| change.name.name.clone()).into_iter().collect()
}
