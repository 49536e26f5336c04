//! Changes of ResourceBindings and ClusterResourceBindings.

use std::sync::Arc;

use api::Binding;
use api::finalizers::DEPENDENCIES_DISTRIBUTOR;
use decide::dependencies::noted;
use decide::{BindingKey, TemplateKey};
use kube::core::TypeMeta;

use crate::cache::{WorkKey, binding_id, binding_key};
use crate::ctx::Ctx;
use crate::reflector::{Delta, NamespacedName};
use crate::scheduler;

/// A change of a binding.
pub(in crate::start) struct Change {
    key: BindingKey,
    template: TemplateKey,
    /// `None` if it was deleted.
    generation: Option<i64>,
    before: Option<Arc<Binding>>,
    /// As controllers see it: `None` if it was deleted or is ignored (M3).
    after: Option<Arc<Binding>>,
}

impl Change {
    fn states(&self) -> impl Iterator<Item = &Arc<Binding>> {
        self.before.iter().chain(&self.after)
    }
}

/// Caches a binding. Deleting one that was not in the cache affects nothing.
pub(in crate::start) fn cache(ctx: &Ctx, _: &TypeMeta, delta: Delta<Binding>) -> Option<Change> {
    match delta {
        Delta::Applied(binding) => {
            let key = binding_key(&binding.metadata);
            let (template, generation) = (TemplateKey::of(&binding), Some(binding.metadata.generation));
            let before = ctx.cache.put_binding(key.clone(), *binding);
            let after = ctx.cache.binding(&key);
            Some(Change { key, template, generation, before, after })
        }
        Delta::Deleted(NamespacedName { namespace, name }) => {
            let key = BindingKey { namespace, name };
            let before = ctx.cache.remove_binding(&key)?;
            let template = TemplateKey::of(&before);
            Some(Change { key, template, generation: None, before: Some(before), after: None })
        }
    }
}

/// The binding itself, unless it was deleted.
pub(in crate::start) fn binding(_: &Ctx, change: &Change) -> Vec<BindingKey> {
    change.generation.map(|_| change.key.clone()).into_iter().collect()
}

/// The template of the binding.
pub(in crate::start) fn template(_: &Ctx, change: &Change) -> Vec<TemplateKey> {
    vec![change.template.clone()]
}

/// The template of the binding, if other bindings depend on it or did.
pub(in crate::start) fn template_if_depended_on(_: &Ctx, change: &Change) -> Vec<TemplateKey> {
    let depended_on = change.states().filter(|binding| !binding.spec.required_by.is_empty());
    depended_on.map(|binding| TemplateKey::of(binding)).collect()
}

/// The templates that the binding depends on, or did.
pub(in crate::start) fn dependencies(ctx: &Ctx, change: &Change) -> Vec<TemplateKey> {
    let snapshot = ctx.cache.snapshot();
    let references = change.states().flat_map(|binding| noted(binding));
    references.flat_map(|one| snapshot.found(&one)).map(Arc::unwrap_or_clone).collect()
}

/// The binding itself, if the dependencies distributor has something to do with it.
pub(in crate::start) fn binding_with_dependencies(_: &Ctx, change: &Change) -> Vec<BindingKey> {
    let has_dependencies = |after: &&Arc<Binding>| {
        after.spec.propagate_deps
            || after.metadata.finalizers.iter().any(|one| one == DEPENDENCIES_DISTRIBUTOR)
    };
    change.after.iter().filter(has_dependencies).map(|_| change.key.clone()).collect()
}

/// The Works of a binding that was deleted or got another permanent id: a Work that was created at that moment has no
/// owner.
pub(in crate::start) fn abandoned_works(ctx: &Ctx, change: &Change) -> Vec<WorkKey> {
    let id = |binding: &Arc<Binding>| binding_id(&binding.metadata).to_owned();
    let id_after = change.after.as_ref().map(id);
    let abandoned = change.before.as_ref().filter(|before| Some(id(before)) != id_after);
    abandoned.map(|before| ctx.cache.works().of(before)).unwrap_or_default()
}

/// Counts a binding that is new, or whose spec changed.
pub(in crate::start) fn count_incoming(ctx: &Ctx, change: &Change) {
    let Some(generation) = change.generation else { return };
    match change.before.as_ref().map(|before| before.metadata.generation) {
        None => scheduler::count_incoming(ctx, "BindingAdd"),
        Some(before) if before != generation => scheduler::count_incoming(ctx, "BindingUpdate"),
        Some(_) => {}
    }
}
