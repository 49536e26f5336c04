//! The difference between two settled snapshots, for the templates that the change can affect.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;
use std::sync::Arc;

use api::Binding;
use api::records::Pin;

use super::copies::{clusters, has_no_copy, is_synced};
use super::{Action, ClaimChange, ClusterPlan, FieldChange, Plan, TemplatePlan, Totals};
use crate::activation::{Activation, HoldWhy};
use crate::binding::is_held;
use crate::claim::{ClaimSeen, matched};
use crate::policy::PolicyKey;
use crate::snapshot::{Interpreters, Rest, Snapshot};
use crate::template::{BindingKey, Template, TemplateKey};

/// How two settled worlds are compared.
#[derive(Clone, Copy)]
pub(super) struct Comparison<'w> {
    /// Whether any override policy differs between them, or may mean other clusters.
    overrides_differ: bool,
    interpreters: Interpreters<'w>,
}

/// A plan in the making.
#[derive(Default)]
pub(super) struct Draft {
    templates: Vec<(String, TemplatePlan)>,
    totals: Totals,
    /// What happened in the clusters last; it often happens again.
    clusters: Arc<BTreeMap<String, ClusterPlan>>,
    /// Which fields changed last; mostly none.
    fields: Arc<Vec<FieldChange>>,
}

impl Draft {
    /// The plan of all parts. Sorted in one go, which is cheaper than one by one.
    pub(super) fn plan(parts: impl IntoIterator<Item = Draft>) -> Plan {
        let (mut templates, mut totals) = (Vec::new(), Totals::default());
        for mut part in parts {
            templates.append(&mut part.templates);
            totals += part.totals;
        }
        Plan { templates: templates.into_iter().collect(), totals }
    }

    pub(super) fn add(&mut self, plan: TemplatePlan) {
        self.totals.add(&plan);
        self.templates.push((id(&plan.template), plan));
    }

    fn shared(&mut self, clusters: BTreeMap<String, ClusterPlan>) -> Arc<BTreeMap<String, ClusterPlan>> {
        if *self.clusters != clusters {
            self.clusters = Arc::new(clusters);
        }
        Arc::clone(&self.clusters)
    }

    fn shared_fields(&mut self, fields: Vec<FieldChange>) -> Arc<Vec<FieldChange>> {
        if *self.fields != fields {
            self.fields = Arc::new(fields);
        }
        Arc::clone(&self.fields)
    }
}

impl Plan {
    /// The plan of some of its templates alone, and of how many it is not. Totals count what is left.
    pub fn only(mut self, is_meant: impl Fn(&TemplateKey) -> bool) -> (Self, usize) {
        let all = self.templates.len();
        self.templates.retain(|_, one| is_meant(&one.template));
        let skipped = all - self.templates.len();
        self.totals = Totals::default();
        self.templates.values().for_each(|one| self.totals.add(one));
        (self, skipped)
    }
}

impl<'w> Comparison<'w> {
    pub(super) fn new(before: &Snapshot, after: &Snapshot, interpreters: Interpreters<'w>) -> Self {
        let elsewhere = !after.overrides.is_empty() && before.clusters != after.clusters;
        Self { overrides_differ: elsewhere || before.overrides != after.overrides, interpreters }
    }

    /// Compares whole worlds, template by template; both lists are in the same order.
    pub(super) fn worlds(
        self,
        (before, after): (&Snapshot, &Snapshot),
        touched: &BTreeSet<Arc<TemplateKey>>,
        reasons: BTreeMap<Arc<TemplateKey>, Arc<str>>,
    ) -> Plan {
        let mut draft = Draft::default();
        let mut reasons = reasons.into_iter().peekable();
        for key in touched {
            while reasons.next_if(|(seen, _)| seen < key).is_some() {}
            let reason = reasons.next_if(|(seen, _)| seen == key).map(|(_, reason)| reason);
            let binding = key.binding();
            let (was, is) = (View::of(before, key, &binding), View::of(after, key, &binding));
            self.template(key, &was, &is, reason, &mut draft);
        }
        Draft::plan([draft])
    }

    /// Compares what two worlds say about one template.
    pub(super) fn template(
        self,
        key: &Arc<TemplateKey>,
        was: &View<'_>,
        is: &View<'_>,
        reason: Option<Arc<str>>,
        draft: &mut Draft,
    ) {
        let (was_pin, is_pin) = (was.pin(), is.pin());
        let (clusters, fields) = clusters(was, is, self.overrides_differ, self.interpreters);
        let claim = claim(was, is);
        let held = is.held(is_pin.as_ref(), self.interpreters);
        let news = claim.is_some()
            || !clusters.is_empty()
            || (held.is_some() && held != was.held(was_pin.as_ref(), self.interpreters));
        if news {
            // What waits stays where it is.
            let nowhere = held.is_none() && is.is_nowhere() && (claim.is_some() || !was.is_nowhere());
            let (clusters, fields) = (draft.shared(clusters), draft.shared_fields(fields));
            let why = reason.unwrap_or_else(|| is.words(was, self.interpreters));
            let template = Arc::clone(key);
            draft.add(TemplatePlan { template, claim, held, clusters, fields, nowhere, why });
        }
    }
}

/// Sorts by kind, namespace and name, and distinguishes kinds of different groups.
pub(super) fn id(key: &TemplateKey) -> String {
    let TemplateKey { name, namespace, kind, api_version } = key;
    [api_version, "/", kind, " ", namespace, "/", name].concat()
}

/// What one world says about a template.
pub(super) struct View<'w> {
    pub(super) snapshot: &'w Snapshot,
    pub(super) template: Option<&'w Template>,
    owner: Option<ClaimSeen<'w>>,
    /// The binding of its name, whosever it is.
    named: Option<&'w Binding>,
    /// The binding that is about it.
    pub(super) binding: Option<&'w Binding>,
}

impl<'w> View<'w> {
    fn of(snapshot: &'w Snapshot, key: &TemplateKey, binding: &BindingKey) -> View<'w> {
        let template = snapshot.templates.get(key).map(AsRef::as_ref);
        View::new(snapshot, key, template, snapshot.bindings.get(binding).map(AsRef::as_ref))
    }

    /// The same where the world need not have it yet.
    pub(super) fn at(snapshot: &'w Snapshot, key: &TemplateKey, rest: &'w Rest) -> View<'w> {
        View::new(snapshot, key, rest.template.as_deref(), rest.binding.as_deref())
    }

    fn new(
        snapshot: &'w Snapshot,
        key: &TemplateKey,
        template: Option<&'w Template>,
        named: Option<&'w Binding>,
    ) -> View<'w> {
        let owner = template.and_then(|template| ClaimSeen::on(&template.labels, &template.annotations));
        let binding = named.filter(|binding| crate::snapshot::is_about(binding, key));
        View { snapshot, template, owner, named, binding }
    }

    /// Which state of the template its clusters have: the one that its binding is pinned to, or its own where it
    /// needs no binding, or where Karmada keeps the binding up to date.
    pub(super) fn version(&self) -> Option<String> {
        let pinned = self.pin().map(|pin| pin.template);
        pinned.or_else(|| self.template.map(|template| template.digest.clone()))
    }

    fn pin(&self) -> Option<Pin> {
        Pin::read(&self.binding?.metadata)
    }

    /// True when a policy propagates it and no cluster has it or is about to.
    fn is_nowhere(&self) -> bool {
        let bound = self.binding.filter(|binding| binding.spec.placement.is_some());
        self.template.is_some() && bound.is_some() && has_no_copy(self)
    }

    pub(super) fn is_held(&self, cluster: &str) -> bool {
        self.binding.is_some_and(|binding| is_held(binding, cluster))
    }

    /// What waits: a lazy or static policy that is not the one, or not the version, that the binding follows.
    fn held(&self, pin: Option<&Pin>, interpreters: Interpreters<'_>) -> Option<HoldWhy> {
        let policy = self.snapshot.policies.get(&self.owner?.policy())?;
        let of = |pin: &Pin| pin.policy.uid == policy.uid && pin.policy.generation == policy.generation;
        if pin.is_some_and(of) {
            return None;
        }
        match self.snapshot.look_at(self.template?, self.named, interpreters).activation {
            Activation::Hold(why) => Some(why),
            Activation::Follow(_) | Activation::Adopt => None,
        }
    }

    /// For what needed no new decision: it is gone, it has to leave, or it follows what it depends on.
    fn words(&self, was: &View<'_>, interpreters: Interpreters<'_>) -> Arc<str> {
        let Some(template) = self.template else { return "the template is deleted".into() };
        let tasks = |view: &View<'w>| view.binding.map_or(&[][..], |one| &one.spec.graceful_eviction_tasks);
        let known = |name: &str| {
            let mut before = was.binding.into_iter().flat_map(|one| &one.spec.graceful_eviction_tasks);
            before.any(|task| task.from_cluster == name)
        };
        let evicted = tasks(self).iter().filter(|task| !known(&task.from_cluster));
        let evicted: Vec<String> =
            evicted.map(|task| format!("it has to leave {}: {}", task.from_cluster, task.reason)).collect();
        if !evicted.is_empty() {
            return evicted.join("; ").into();
        }
        if self.binding.is_none() && is_synced(template, self.snapshot) {
            return "every namespace goes to every cluster".into();
        }
        self.snapshot.look_at(template, self.named, interpreters).why().to_string().into()
    }
}

fn claim(was: &View<'_>, is: &View<'_>) -> Option<ClaimChange> {
    let owner = |view: &View<'_>| view.owner.map(ClaimSeen::policy);
    match (owner(was), owner(is)) {
        (None, None) => None,
        (None, Some(by)) => Some(ClaimChange::Claimed { by }),
        (Some(from), None) => Some(ClaimChange::Released { from }),
        (Some(from), Some(to)) if from == to => None,
        (Some(from), Some(to)) if taken(is, &from) => Some(ClaimChange::Preempted { from, by: to }),
        (Some(from), Some(to)) => Some(ClaimChange::Handed { from, to }),
    }
}

/// An owner that still matches did not let go; static mode chooses anew instead of taking.
fn taken(is: &View<'_>, from: &PolicyKey) -> bool {
    let owner = is.snapshot.policies.get(from);
    let matches = owner.zip(is.template).is_some_and(|(owner, template)| matched(owner, template).is_some());
    matches && !is.snapshot.gates.static_policy
}

impl AddAssign for Totals {
    fn add_assign(&mut self, more: Totals) {
        let Totals {
            templates,
            claimed,
            released,
            handed,
            preempted,
            moved,
            held,
            created,
            deleted,
            scaled,
            updated,
            suspended,
            resumed,
            nowhere,
        } = more;
        self.templates += templates;
        self.claimed += claimed;
        self.released += released;
        self.handed += handed;
        self.preempted += preempted;
        self.moved += moved;
        self.held += held;
        self.created += created;
        self.deleted += deleted;
        self.scaled += scaled;
        self.updated += updated;
        self.suspended += suspended;
        self.resumed += resumed;
        self.nowhere += nowhere;
    }
}

impl Totals {
    /// A plan in numbers.
    pub(super) fn of<'p>(plans: impl Iterator<Item = &'p TemplatePlan>) -> Totals {
        plans.fold(Totals::default(), |mut totals, plan| {
            totals.add(plan);
            totals
        })
    }

    fn add(&mut self, plan: &TemplatePlan) {
        self.templates += 1;
        match &plan.claim {
            Some(ClaimChange::Claimed { .. }) => self.claimed += 1,
            Some(ClaimChange::Released { .. }) => self.released += 1,
            Some(ClaimChange::Handed { .. }) => self.handed += 1,
            Some(ClaimChange::Preempted { .. }) => self.preempted += 1,
            None => {}
        }
        self.held += usize::from(plan.held.is_some());
        self.nowhere += usize::from(plan.nowhere);
        let (mut enters, mut leaves) = (false, false);
        for cluster in plan.clusters.values() {
            match cluster.action {
                Action::Create { .. } => (self.created, enters) = (self.created + 1, true),
                Action::Delete { .. } => (self.deleted, leaves) = (self.deleted + 1, true),
                Action::Scale { .. } => self.scaled += 1,
                Action::Update => self.updated += 1,
                Action::Suspend => self.suspended += 1,
                Action::Resume => self.resumed += 1,
            }
        }
        self.moved += usize::from(enters && leaves);
    }
}
