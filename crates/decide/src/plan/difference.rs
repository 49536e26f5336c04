//! The difference between two settled worlds, for the templates to which anything can have happened.

use std::collections::{BTreeMap, BTreeSet};

use api::Binding;
use api::records::Pin;

use super::{Action, ClaimChange, ClusterPlan, Plan, TemplatePlan, Totals};
use crate::activation::{Activation, HoldWhy};
use crate::binding::is_held;
use crate::claim::{claim_on, matched};
use crate::policy::PolicyKey;
use crate::template::TemplateKey;
use crate::works;
use crate::world::{Answers, World};

/// Two settled worlds.
#[derive(Clone, Copy)]
pub(super) struct Worlds<'w> {
    pub before: &'w World,
    pub after: &'w World,
    /// Whether any override policy differs between them.
    pub overrides_differ: bool,
    pub answers: Answers<'w>,
}

impl Worlds<'_> {
    /// Compares template by template.
    pub(super) fn difference(
        self,
        touched: &BTreeSet<TemplateKey>,
        mut reasons: BTreeMap<TemplateKey, String>,
    ) -> Plan {
        let mut plan = Plan::default();
        for key in touched {
            if let Some(found) = self.template(key, reasons.remove(key)) {
                plan.totals.add(&found);
                plan.templates.insert(id(key), found);
            }
        }
        plan
    }

    /// Another pinned version of the template changes all, other overrides change what they touch.
    fn rewritten(self, was: &View<'_>, is: &View<'_>, key: &TemplateKey) -> Rewritten {
        if was.digest() != is.digest() {
            return Rewritten::All;
        }
        if !self.overrides_differ {
            return Rewritten::Only(BTreeSet::new());
        }
        let rendered = |view: &View<'_>| match (view.world.templates.get(key), view.binding) {
            (Some(template), Some(binding)) => (self.answers.render)(template, binding, view.world),
            _ => BTreeMap::new(),
        };
        let (before, after) = (rendered(was), rendered(is));
        let changed = after.into_iter().filter(|(cluster, manifests)| before.get(cluster) != Some(manifests));
        Rewritten::Only(changed.map(|(cluster, _)| cluster).collect())
    }

    fn template(self, key: &TemplateKey, reason: Option<String>) -> Option<TemplatePlan> {
        let (was, is) = (View::of(self.before, key), View::of(self.after, key));
        let clusters = clusters(&was, &is, &self.rewritten(&was, &is, key));
        let claim = claim(&was, &is, key);
        let held = is.held(key, self.answers);
        let news = claim.is_some()
            || !clusters.is_empty()
            || (held.is_some() && held != was.held(key, self.answers));
        news.then(|| TemplatePlan {
            template: key.clone(),
            claim,
            held,
            clusters,
            why: reason.unwrap_or_else(|| is.words(key, self.answers)),
        })
    }
}

/// Sorts by kind, namespace and name, and tells kinds of different groups apart.
fn id(key: &TemplateKey) -> String {
    format!("{}/{} {}/{}", key.api_version, key.kind, key.namespace, key.name)
}

/// What one world says about a template.
struct View<'w> {
    world: &'w World,
    owner: Option<PolicyKey>,
    binding: Option<&'w Binding>,
    pin: Option<Pin>,
    targets: BTreeMap<String, i32>,
}

impl<'w> View<'w> {
    fn of(world: &'w World, key: &TemplateKey) -> View<'w> {
        let template = world.templates.get(key);
        let mark = template.and_then(|template| claim_on(&template.labels, &template.annotations));
        let own = |binding: &&Binding| crate::world::is_about(binding, key);
        let binding = world.bindings.get(&key.binding()).map(AsRef::as_ref).filter(own);
        View {
            world,
            owner: mark.map(|mark| mark.policy),
            binding,
            pin: binding.and_then(|binding| Pin::read(&binding.metadata)),
            targets: binding.map(targets).unwrap_or_default(),
        }
    }

    fn is_held(&self, cluster: &str) -> bool {
        self.binding.is_some_and(|binding| is_held(binding, cluster))
    }

    /// What waits: a lazy or static policy that is not the one, or not the version, that the binding follows.
    fn held(&self, key: &TemplateKey, answers: Answers<'_>) -> Option<HoldWhy> {
        let policy = self.world.policies.get(self.owner.as_ref()?)?;
        let of = |pin: &Pin| pin.policy.uid == policy.uid && pin.policy.generation == policy.generation;
        if self.pin.as_ref().is_some_and(of) {
            return None;
        }
        match self.world.look(key, answers)?.activation {
            Activation::Hold(why) => Some(why),
            Activation::Follow(_) | Activation::Adopt => None,
        }
    }

    /// For what needed no new decision: it is gone, or it follows what it depends on.
    fn words(&self, key: &TemplateKey, answers: Answers<'_>) -> String {
        match self.world.look(key, answers) {
            None => "the template is deleted".to_owned(),
            Some(decided) => decided.why().to_string(),
        }
    }

    fn digest(&self) -> Option<&str> {
        self.pin.as_ref().map(|pin| pin.template.as_str())
    }
}

/// Clusters that have a Work: the chosen ones, those of whoever needs it, and those it is still leaving.
fn targets(binding: &Binding) -> BTreeMap<String, i32> {
    let leaving = works::clusters_in_use(&binding.spec).into_iter().map(|cluster| (cluster, 0));
    let targets = works::targets(&binding.spec).into_iter().map(|target| (target.name, target.replicas));
    leaving.chain(targets).collect()
}

fn claim(was: &View<'_>, is: &View<'_>, key: &TemplateKey) -> Option<ClaimChange> {
    match (was.owner.clone(), is.owner.clone()) {
        (None, None) => None,
        (None, Some(by)) => Some(ClaimChange::Claimed { by }),
        (Some(from), None) => Some(ClaimChange::Released { from }),
        (Some(from), Some(to)) if from == to => None,
        (Some(from), Some(to)) if taken(is, &from, key) => Some(ClaimChange::Preempted { from, by: to }),
        (Some(from), Some(to)) => Some(ClaimChange::Handed { from, to }),
    }
}

/// An owner that still matches did not let go; static mode chooses anew instead of taking.
fn taken(is: &View<'_>, from: &PolicyKey, key: &TemplateKey) -> bool {
    let owner = is.world.policies.get(from);
    let template = is.world.templates.get(key);
    let matches = owner.zip(template).is_some_and(|(owner, template)| matched(owner, template).is_some());
    matches && !is.world.gates.static_policy
}

fn clusters(was: &View<'_>, is: &View<'_>, rewritten: &Rewritten) -> BTreeMap<String, ClusterPlan> {
    let names: BTreeSet<&String> = was.targets.keys().chain(is.targets.keys()).collect();
    let mut plans = BTreeMap::new();
    for cluster in names {
        let (held_before, suspended) = (was.is_held(cluster), is.is_held(cluster));
        let action = match (was.targets.get(cluster), is.targets.get(cluster)) {
            (None, Some(replicas)) => Some(Action::Create { replicas: *replicas }),
            (Some(replicas), None) => Some(Action::Delete { replicas: *replicas }),
            (Some(from), Some(to)) if from != to => Some(Action::Scale { from: *from, to: *to }),
            (Some(_), Some(_)) if rewritten.contains(cluster) => Some(Action::Update),
            _ if !held_before && suspended => Some(Action::Suspend),
            _ if held_before && !suspended => Some(Action::Resume),
            _ => None,
        };
        // Suspension never blocks deletion (U4).
        let suspended = suspended && !matches!(action, Some(Action::Delete { .. }));
        plans.extend(action.map(|action| (cluster.clone(), ClusterPlan { action, suspended })));
    }
    plans
}

/// Which clusters get other content.
enum Rewritten {
    All,
    Only(BTreeSet<String>),
}

impl Rewritten {
    fn contains(&self, cluster: &str) -> bool {
        match self {
            Rewritten::All => true,
            Rewritten::Only(clusters) => clusters.contains(cluster),
        }
    }
}

impl Totals {
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
