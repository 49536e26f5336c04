//! The fixed point of one template: its claim, its binding and its clusters when nothing is left to write for it. What
//! other templates need of it is decided elsewhere.

use std::sync::Arc;

use api::taint::NO_EXECUTE;
use api::{Binding, Cluster};

use super::{Interpreters, Snapshot};
use crate::claim::ClaimSeen;
use crate::eviction::{Settings, eviction, graceful};
use crate::placement::Recent;
use crate::propagation::Propagation;
use crate::template::{BindingKey, Template, TemplateKey};

/// More looks than any template needs.
const LOOKS_MAX: usize = 8;

/// A template and the binding of its name, with all that is to be written.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// The template; none if there is none.
    pub template: Option<Arc<Template>>,
    /// The binding; none if there is none.
    pub binding: Option<Arc<Binding>>,
    /// The template differs from the snapshot's.
    pub marked: bool,
    /// The binding differs from the snapshot's.
    pub bound: bool,
}

impl Rest {
    /// True when there is something to write.
    pub fn is_news(&self) -> bool {
        self.marked || self.bound
    }
}

impl Snapshot {
    /// Where one template comes to rest. One look is enough, but for the waiting mark, which goes only when a
    /// look has seen that a policy acted (S3). Shows the first decision, which is the one that has the reasons.
    pub(crate) fn rest(
        &self,
        key: &TemplateKey,
        binding_key: &BindingKey,
        interpreters: Interpreters<'_>,
        recent: &mut Recent,
        see: impl FnOnce(&Propagation),
    ) -> Rest {
        let mut rest = Rest { binding: self.bindings.get(binding_key).cloned(), ..Rest::default() };
        let Some(mut template) = self.templates.get(key).cloned() else { return rest };
        let mut see = Some(see);
        for _ in 0..LOOKS_MAX {
            let decided = self.look_at(&template, rest.binding.as_deref(), interpreters);
            if let Some(see) = see.take() {
                see(&decided);
            }
            let settled = decided.is_settled();
            if let Some(marks) = decided.template {
                template = Arc::new(template.with_marks(marks.labels, marks.annotations));
                rest.marked = true;
            }
            if let Some(mut binding) = decided.binding {
                if rest.binding.as_ref().is_some_and(|before| before.spec != binding.spec) {
                    // As the server does, so that what was said of an earlier state does not count.
                    binding.metadata.generation += 1;
                }
                rest.binding = Some(Arc::new(binding));
                rest.bound = true;
            }
            if let Some(binding) = rest.binding.as_mut() {
                rest.bound |= self.place(binding, interpreters, recent);
                // What has to leave a cluster is placed anew.
                if self.evict(binding) {
                    rest.bound = true;
                    self.place(binding, interpreters, recent);
                }
                rest.bound |= self.take_back(binding);
            }
            if settled || !template.is_waiting() {
                break;
            }
        }
        rest.template = Some(template);
        rest
    }

    /// Brings one template to rest; true when something was written.
    pub(super) fn settle_one(
        &mut self,
        key: &TemplateKey,
        interpreters: Interpreters<'_>,
        recent: &mut Recent,
        see: impl FnOnce(&Propagation),
    ) -> bool {
        let binding_key = key.binding();
        let rest = self.rest(key, &binding_key, interpreters, recent, see);
        let wrote = rest.is_news();
        if let Some(template) = rest.template.filter(|_| rest.marked) {
            self.templates.insert(template);
        }
        if let Some(binding) = rest.binding.filter(|_| rest.bound) {
            self.put_binding(&binding_key, binding);
        }
        wrote
    }

    pub(crate) fn put_binding(&mut self, key: &BindingKey, binding: Arc<Binding>) {
        let bindings = Arc::make_mut(&mut self.bindings);
        match bindings.get_mut(key) {
            Some(slot) => *slot = binding,
            None => drop(bindings.insert(Arc::new(key.clone()), binding)),
        }
    }

    /// Takes it out of the clusters that it has to leave; true when there are any.
    fn evict(&self, binding: &mut Arc<Binding>) -> bool {
        let fails_over = binding.spec.failover.as_ref().is_some_and(|rules| rules.application.is_some());
        let evicts = |cluster: &Cluster| cluster.spec.taints.iter().any(|taint| taint.effect == NO_EXECUTE);
        // Most have nothing to be judged, and are many.
        if !fails_over && !self.clusters.iter().any(evicts) {
            return false;
        }
        let settings = Settings { taints_evict: self.gates.failover, ..Settings::default() };
        let evictions = eviction(binding, &self.clusters, self.now, settings);
        let leaves = !evictions.evictions.is_empty();
        if leaves {
            evictions.write(Arc::make_mut(binding));
        }
        leaves
    }

    /// Chooses the clusters again that it was leaving for others that are gone (M2); true when there are any.
    fn take_back(&self, binding: &mut Arc<Binding>) -> bool {
        if !binding.spec.clusters.is_empty() || binding.spec.graceful_eviction_tasks.is_empty() {
            return false;
        }
        let tasks = graceful(binding, &self.clusters, self.now, 0);
        let returns = !tasks.returned.is_empty();
        if returns {
            tasks.write(Arc::make_mut(binding));
        }
        returns
    }

    /// A binding without a claim is frozen, so no scheduler looks at it.
    fn place(&self, binding: &mut Arc<Binding>, interpreters: Interpreters<'_>, recent: &mut Recent) -> bool {
        let claim = ClaimSeen::on(&binding.metadata.labels, &binding.metadata.annotations);
        claim.is_some() && (interpreters.place)(binding, self, recent)
    }
}
