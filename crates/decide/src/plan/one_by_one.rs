//! The fast path of a plan, for changes under which templates are independent, as under most: each is settled before
//! and after and compared at once, and nothing of it is kept. Where templates depend on each other it gives up, and two
//! whole snapshots are settled instead.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use api::Binding;

use super::difference::{Comparison, Draft, View};
use super::{Plan, Texts};
use crate::dependencies;
use crate::placement::Recent;
use crate::snapshot::{Interpreters, Rest, Snapshot, is_definition};
use crate::template::{BindingKey, TemplateKey};

/// Fewer templates than this are not worth another thread; tests want several parts of what little they have.
const PART_MIN: usize = if cfg!(test) { 2 } else { 1_000 };

/// What was found out about a part of the templates, in their order.
struct Part {
    draft: Draft,
    /// Names of bindings that would be made.
    taken: Vec<BindingKey>,
}

/// The plan; none when the world is not at rest yet, or when templates concern each other.
///
/// Templates by themselves can be looked at side by side, so each core takes a part of them. The answer is
/// the same with any number of cores.
pub(super) fn one_by_one(
    before: &Snapshot,
    after: &Snapshot,
    touched: &BTreeSet<Arc<TemplateKey>>,
    interpreters: Interpreters<'_>,
) -> Option<Plan> {
    let keys: Vec<&Arc<TemplateKey>> = touched.iter().collect();
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let size = keys.len().div_ceil(cores).max(PART_MIN);
    let worlds = Worlds { before, after, interpreters };
    let (alone, parts) = thread::scope(|scope| {
        let parts: Vec<_> = keys.chunks(size).map(|keys| scope.spawn(move || worlds.part(keys))).collect();
        (worlds.are_attached(), parts.into_iter().map(joined).collect::<Option<Vec<Part>>>())
    });
    let parts = parts.filter(|_| alone)?;
    // Two templates that want one name are not alone: the second must see that it is taken (C5).
    let mut taken = BTreeSet::new();
    let free = parts.iter().flat_map(|part| &part.taken).all(|name| taken.insert(name));
    free.then(|| Draft::plan(parts.into_iter().map(|part| part.draft)))
}

/// A panic in a part is the caller's panic.
fn joined(part: thread::ScopedJoinHandle<'_, Option<Part>>) -> Option<Part> {
    part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[derive(Clone, Copy)]
struct Worlds<'w> {
    before: &'w Snapshot,
    after: &'w Snapshot,
    interpreters: Interpreters<'w>,
}

impl Worlds<'_> {
    /// True when no attached binding is other than those that need it want it.
    fn are_attached(self) -> bool {
        [self.before, self.after]
            .into_iter()
            .all(|snapshot| snapshot.attachments(self.interpreters).is_empty())
    }

    /// Compares what both worlds say about each of these; none where one concerns another.
    fn part(self, keys: &[&Arc<TemplateKey>]) -> Option<Part> {
        let Worlds { before, after, interpreters } = self;
        let comparison = Comparison::new(before, after, interpreters);
        let (mut part, mut texts) = (Part { draft: Draft::default(), taken: Vec::new() }, Texts::default());
        let (mut recent_before, mut recent_after) = (Recent::default(), Recent::default());
        for key in keys {
            let binding_key = key.binding();
            let was = before.rest(key, &binding_key, interpreters, &mut recent_before, |_| {});
            let mut reason = None;
            let is = after.rest(key, &binding_key, interpreters, &mut recent_after, |decided| {
                reason = (!decided.is_settled()).then(|| texts.of(decided));
            });
            if was.is_news() || (is.bound && self.concerns_others(&was, &is)) {
                return None;
            }
            let views = (View::at(before, key, &was), View::at(after, key, &is));
            comparison.template(key, &views.0, &views.1, reason, &mut part.draft);
            if is.bound && !after.bindings.contains_key(&binding_key) {
                part.taken.push(binding_key);
            }
        }
        Some(part)
    }

    /// True when the binding takes others along, would if it were told to, or is taken along. A definition brings
    /// its kind.
    fn concerns_others(self, was: &Rest, is: &Rest) -> bool {
        if is.template.as_ref().is_some_and(|template| is_definition(&template.key)) {
            return true;
        }
        let taken_along = |binding: &Arc<Binding>| !binding.spec.required_by.is_empty();
        [&was.binding, &is.binding].into_iter().flatten().any(taken_along)
            || self.takes_along(self.before, was)
            || self.takes_along(self.after, is)
    }

    fn takes_along(self, snapshot: &Snapshot, rest: &Rest) -> bool {
        let Some(binding) = rest.binding.as_ref().filter(|binding| binding.spec.propagate_deps) else {
            return false;
        };
        let needs = dependencies::needs(binding, rest.template.as_deref(), self.interpreters.dependencies);
        needs.iter().any(|reference| !snapshot.found(reference).is_empty())
    }
}
