//! Changes of Works.

use api::names;
use decide::BindingKey;
use decide::dependencies::noted;
use kube::core::TypeMeta;

use crate::cache::{WorkKey, WorkSummary, binding_of_work, kinds_of};
use crate::ctx::Ctx;
use crate::namespaces;
use crate::reflector::{Delta, NamespacedName, Reflected as _};
use crate::start::Starter;

/// A change of a Work.
pub(in crate::start) struct Change {
    key: WorkKey,
    /// The binding that it belongs to.
    binding: Option<BindingKey>,
    state: State,
}

enum State {
    /// It exists.
    Applied {
        /// Whether it is new or changed in more than its status.
        changed: bool,
        /// The kinds that it brings, as apiVersion and kind.
        kinds: Vec<(String, String)>,
    },
    Deleted,
}

impl Change {
    fn is_deleted(&self) -> bool {
        matches!(self.state, State::Deleted)
    }

    fn is_changed(&self) -> bool {
        matches!(self.state, State::Applied { changed: true, .. })
    }
}

/// Caches a Work; one outside of execution namespaces is ignored.
pub(in crate::start) fn cache(ctx: &Ctx, _: &TypeMeta, delta: Delta<WorkSummary>) -> Option<Change> {
    match delta {
        Delta::Applied(work) => {
            let key = work_key(work.namespaced_name())?;
            let changed = ctx.cache.works().put(key.clone(), &work);
            let state = State::Applied { changed, kinds: kinds_of(&work) };
            Some(Change { key, binding: binding_of_work(&work.metadata), state })
        }
        Delta::Deleted(name) => {
            let key = work_key(name)?;
            let binding = ctx.cache.works().binding_of(&key);
            ctx.cache.works().remove(&key);
            Some(Change { key, binding, state: State::Deleted })
        }
    }
}

fn work_key(NamespacedName { namespace, name }: NamespacedName) -> Option<WorkKey> {
    let cluster = names::cluster_of_execution_namespace(&namespace)?.to_owned();
    Some(WorkKey { cluster, name })
}

/// Starts what the member of the Work needs.
pub(in crate::start) fn start_member(starter: &Starter, change: &Change) {
    if let State::Applied { kinds, .. } = &change.state {
        starter.start_member(&change.key.cluster, kinds.clone());
    }
}

/// The Work itself, if it is new or changed in more than its status.
pub(in crate::start) fn work_if_changed(_: &Ctx, change: &Change) -> Vec<WorkKey> {
    change.is_changed().then(|| change.key.clone()).into_iter().collect()
}

/// The Work itself, if it was deleted.
pub(in crate::start) fn work_if_deleted(_: &Ctx, change: &Change) -> Vec<WorkKey> {
    change.is_deleted().then(|| change.key.clone()).into_iter().collect()
}

/// The binding of the Work.
pub(in crate::start) fn binding(_: &Ctx, change: &Change) -> Vec<BindingKey> {
    change.binding.iter().cloned().collect()
}

/// The binding of the Work, if the Work was deleted.
pub(in crate::start) fn binding_if_deleted(_: &Ctx, change: &Change) -> Vec<BindingKey> {
    change.binding.iter().filter(|_| change.is_deleted()).cloned().collect()
}

/// The binding of the Work, if the Work changed in more than its status, or the binding waits for reports (M1).
pub(in crate::start) fn binding_if_changed_or_moving(ctx: &Ctx, change: &Change) -> Vec<BindingKey> {
    let is_affected =
        |key: &&BindingKey| change.is_changed() || (!change.is_deleted() && ctx.cache.moving().has(key));
    change.binding.iter().filter(is_affected).cloned().collect()
}

/// The bindings that waited for this Work's deletion: those of the dependencies that stay where their dependents are.
pub(in crate::start) fn moving_dependencies_if_deleted(ctx: &Ctx, change: &Change) -> Vec<BindingKey> {
    let moving = ctx.cache.moving();
    let owner = change.binding.as_ref().filter(|_| change.is_deleted() && !moving.is_empty());
    let Some(owner) = owner.and_then(|key| ctx.cache.binding(key)) else { return Vec::new() };
    let snapshot = ctx.cache.snapshot();
    let references = noted(&owner);
    let bound = references.iter().flat_map(|one| snapshot.found(one)).map(|template| template.binding());
    bound.filter(|bound| moving.has(bound)).collect()
}

/// The namespace that a deleted Work brought: nothing else restores such a Work.
pub(in crate::start) fn namespace_if_deleted(_: &Ctx, change: &Change) -> Vec<String> {
    let brought = namespaces::named_by(&change.key).filter(|_| change.is_deleted());
    brought.map(str::to_owned).into_iter().collect()
}
