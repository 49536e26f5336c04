//! The copies of a template in each cluster, compared between two settled snapshots: which clusters have one, with how
//! many replicas, with what content, and whether it is suspended. Knows nothing of claims.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use api::binding::GracefulEvictionTask;
use api::cluster::READY;
use api::labels::is_bookkeeping;
use api::records::{Pin, StrategyRecord};
use api::{Binding, ConditionStatus};
use serde_json::Value;

use super::difference::View;
use super::fields::{FIELDS_MAX, FieldChange, fields};
use super::{Action, ClusterPlan};
use crate::binding::is_held;
use crate::conditions;
use crate::interpret::told_replicas;
use crate::overrides::concerns;
use crate::placement::{Strategy, is_workload};
use crate::rollout::Stages;
use crate::snapshot::{Interpreters, Snapshot, render_namespace};
use crate::template::Template;
use crate::works;

/// Fields that say how many replicas there are.
const SCALED: [&str; 2] = ["spec.replicas", "spec.parallelism"];

/// Manifests by cluster.
type Content = BTreeMap<String, Value>;

/// What one world has of a template in its clusters.
struct Copies<'w> {
    replicas: BTreeMap<&'w str, i32>,
    /// Clusters to which nothing new is written, because an override policy fails.
    failed: BTreeSet<&'w str>,
    content: Option<Content>,
}

/// What happens in each cluster, and which fields change where a copy stays.
pub(super) fn clusters(
    was: &View<'_>,
    is: &View<'_>,
    overrides_differ: bool,
    interpreters: Interpreters<'_>,
) -> (BTreeMap<String, ClusterPlan>, Vec<FieldChange>) {
    let (before, after) = compared(was, is, overrides_differ, interpreters);
    let names: BTreeSet<&str> = before.replicas.keys().chain(after.replicas.keys()).copied().collect();
    let (mut plans, mut fields) = (BTreeMap::new(), BTreeSet::new());
    for cluster in names.into_iter().filter(|cluster| !after.failed.contains(cluster)) {
        let (held_before, suspended) = (was.is_held(cluster), is.is_held(cluster));
        let action = match (before.replicas.get(cluster), after.replicas.get(cluster)) {
            (None, Some(replicas)) => Some(Action::Create { replicas: *replicas }),
            (Some(replicas), None) => Some(Action::Delete { replicas: *replicas }),
            (Some(from), Some(to)) if from != to => Some(Action::Scale { from: *from, to: *to }),
            (Some(_), Some(_)) if before.differs(&after, cluster) => Some(Action::Update),
            _ if !held_before && suspended => Some(Action::Suspend),
            _ if held_before && !suspended => Some(Action::Resume),
            _ => None,
        };
        match action {
            Some(Action::Update) => fields.extend(before.fields(&after, cluster)),
            Some(Action::Scale { .. }) => {
                let beside = before.fields(&after, cluster).into_iter();
                fields.extend(beside.filter(|field| !SCALED.contains(&field.path.as_str())));
            }
            _ => {}
        }
        // Suspension never blocks deletion (U4).
        let suspended = suspended && !matches!(action, Some(Action::Delete { .. }));
        plans.extend(action.map(|action| (cluster.to_owned(), ClusterPlan::of(action, suspended))));
    }
    order(is, &mut plans);
    stages(is, &mut plans);
    (plans, fields.into_iter().take(FIELDS_MAX).collect())
}

/// In which stage a change reaches a cluster (G3); what is no longer wanted goes after the last one (G9).
fn stages(is: &View<'_>, plans: &mut BTreeMap<String, ClusterPlan>) {
    let Some(record) = is.binding.and_then(|binding| StrategyRecord::read(&binding.metadata)) else { return };
    let strategy = Stages::of(&record.staged);
    for (name, plan) in plans.iter_mut() {
        let cluster = is.snapshot.clusters.iter().find(|cluster| cluster.metadata.name == *name);
        let stage = match (plan.action, cluster) {
            (Action::Create { .. } | Action::Update, Some(cluster)) => {
                strategy.stages.get(strategy.stage_of(cluster))
            }
            (Action::Delete { .. }, Some(_)) => strategy.stages.last(),
            _ => None,
        };
        plan.stage = stage.map(|stage| stage.name.clone()).unwrap_or_default();
    }
}

/// True when no cluster has a copy, whatever override policies make of it.
pub(super) fn has_no_copy(view: &View<'_>) -> bool {
    Copies::of(view).replicas.is_empty()
}

/// A move delivers first and removes then (M1): what goes waits for what comes, unless it goes with its cluster or is
/// purged directly.
fn order(is: &View<'_>, plans: &mut BTreeMap<String, ClusterPlan>) {
    let Some(binding) = is.binding else { return };
    let comes = |(cluster, plan): (&String, &ClusterPlan)| match plan.action {
        Action::Create { .. } => Some(cluster.clone()),
        Action::Scale { from, to } if to > from && is_divided(binding) => Some(cluster.clone()),
        _ => None,
    };
    let successors: Vec<String> = plans.iter().filter_map(comes).collect();
    if successors.is_empty() {
        return;
    }
    let blocked = |name: &&String| is.is_held(name) || !is_ready(is.snapshot, name);
    let held_by: Vec<String> = successors.iter().filter(blocked).cloned().collect();
    let tasks = binding.spec.graceful_eviction_tasks.iter();
    let purged: Vec<&str> = tasks
        .filter(|task| works::goes_directly(task.purge_mode))
        .map(|task| task.from_cluster.as_str())
        .collect();
    let stays = |name: &str| {
        is.snapshot
            .clusters
            .iter()
            .any(|cluster| cluster.metadata.name == name && cluster.metadata.deletion_timestamp.is_none())
    };
    for (cluster, plan) in plans.iter_mut() {
        let goes = match plan.action {
            Action::Delete { .. } => stays(cluster) && !purged.contains(&cluster.as_str()),
            Action::Scale { from, to } => to < from && is_divided(binding),
            _ => false,
        };
        if goes {
            plan.after.clone_from(&successors);
            plan.held_by.clone_from(&held_by);
        }
    }
}

fn is_divided(binding: &Binding) -> bool {
    let placement = binding.spec.placement.as_ref();
    placement.is_some_and(|placement| Strategy::of(placement) != Strategy::Duplicated)
}

fn is_ready(snapshot: &Snapshot, name: &str) -> bool {
    let mut of_name = snapshot.clusters.iter().filter(|cluster| cluster.metadata.name == name);
    of_name
        .any(|cluster| conditions::status(&cluster.status.conditions, READY) != Some(ConditionStatus::False))
}

/// Both sides, with their content where it can differ: rendering is dear, and most changes change none.
fn compared<'w>(
    was: &View<'w>,
    is: &View<'w>,
    overrides_differ: bool,
    interpreters: Interpreters<'_>,
) -> (Copies<'w>, Copies<'w>) {
    let (mut before, mut after) = (Copies::of(was), Copies::of(is));
    after.stay(&before, is);
    let stays = before.replicas.keys().any(|cluster| after.replicas.contains_key(cluster));
    let rewritten = stays && (overrides_differ || was.version() != is.version());
    let (overridden_before, overridden_after) = (is_overridden(was), is_overridden(is));
    // The same text for both, where it is the same: what is hidden in one may be shown in the other.
    let same = was.template.zip(is.template).filter(|(was, is)| was.digest == is.digest);
    if rewritten || overridden_before {
        before.render(was, same.map_or(was.template, |(_, is)| Some(is)), interpreters);
    }
    if rewritten || overridden_after {
        after.render(is, is.template, interpreters);
    }
    if overridden_before {
        before.override_replicas(was);
        // Only the status says whether a copy existed before its override policy failed.
        let reported = |cluster: &str| {
            let mut items = was.binding.into_iter().flat_map(|binding| &binding.status.aggregated_status);
            items.any(|item| item.cluster_name == cluster)
        };
        let Copies { replicas, failed, .. } = &mut before;
        replicas.retain(|cluster, _| !failed.contains(cluster) || reported(cluster));
    }
    if overridden_after {
        after.override_replicas(is);
    }
    (before, after)
}

impl<'w> Copies<'w> {
    fn of(view: &View<'w>) -> Self {
        let mut replicas = view.binding.map(in_use).unwrap_or_default();
        if view.template.is_some_and(|template| is_synced(template, view.snapshot)) {
            let all = view.snapshot.clusters.iter().map(|cluster| cluster.metadata.name.as_str());
            all.for_each(|cluster| {
                replicas.entry(cluster).or_insert(0);
            });
        }
        let going = going(view.snapshot);
        replicas.retain(|cluster, _| !going.contains(cluster));
        Copies { replicas, failed: BTreeSet::new(), content: None }
    }

    /// A namespace that is sent no more stays where it is.
    fn stay(&mut self, before: &Copies<'w>, is: &View<'w>) {
        let kept =
            is.template.is_some_and(|template| is_namespace(template) && !is_synced(template, is.snapshot));
        if kept {
            let going = going(is.snapshot);
            let there = before.replicas.keys().filter(|cluster| !going.contains(*cluster));
            self.replicas.extend(there.map(|cluster| (*cluster, 0)));
        }
    }

    fn render(&mut self, view: &View<'_>, template: Option<&Template>, interpreters: Interpreters<'_>) {
        let Some(template) = template else { return };
        let mut content = Content::new();
        if is_synced(template, view.snapshot) {
            content.extend(render_namespace(template, view.snapshot));
        }
        if let Some(binding) = view.binding {
            content.extend((interpreters.render)(template, &pinned(binding, template), view.snapshot));
        }
        self.content = Some(content);
    }

    /// What override policies make of the replicas, and where they fail.
    fn override_replicas(&mut self, view: &View<'w>) {
        let Some(content) = &self.content else { return };
        // Nothing is rendered from a template version that no binding has adopted (R2).
        if view.template.map(|template| template.digest.as_str()) != view.version().as_deref() {
            return;
        }
        let workload = view.binding.is_some_and(|binding| is_workload(&binding.spec));
        for (cluster, replicas) in &mut self.replicas {
            match content.get(*cluster) {
                None => drop(self.failed.insert(cluster)),
                Some(manifests) if workload => {
                    *replicas = manifests.get(0).and_then(told_replicas).unwrap_or(*replicas);
                }
                Some(_) => {}
            }
        }
    }

    /// The fields that change in a cluster.
    fn fields(&self, after: &Copies<'_>, cluster: &str) -> Vec<FieldChange> {
        let manifests = |copies: &Copies<'_>| copies.content.as_ref()?.get(cluster).map(essence);
        manifests(self).zip(manifests(after)).map(|(was, is)| fields(&was, &is)).unwrap_or_default()
    }

    fn differs(&self, after: &Copies<'_>, cluster: &str) -> bool {
        let Some(content) = &after.content else { return false };
        let before = self.content.as_ref().and_then(|content| content.get(cluster));
        content.get(cluster).is_some_and(|after| before.map(essence) != Some(essence(after)))
    }
}

/// A binding that Karmada made has no pin, and its clusters have the template as it is.
fn pinned<'b>(binding: &'b Binding, template: &Template) -> Cow<'b, Binding> {
    let mut binding = Cow::Borrowed(binding);
    if Pin::read(&binding.metadata).is_none() {
        let pin = Pin { template: template.digest.clone(), ..Pin::default() };
        pin.write(&mut binding.to_mut().metadata);
    }
    binding
}

/// Manifests without what changes when nothing of the user's does.
fn essence(manifests: &Value) -> Value {
    let mut manifests = manifests.clone();
    for manifest in manifests.as_array_mut().into_iter().flatten() {
        for field in ["/metadata/labels", "/metadata/annotations"] {
            let marks = manifest.pointer_mut(field).and_then(Value::as_object_mut);
            marks.into_iter().for_each(|marks| marks.retain(|key, _| !is_bookkeeping(key)));
        }
    }
    manifests
}

/// The clusters that have a Work, with their replicas: the chosen ones, those of the bindings that need it, and those
/// that it is evicted from and stays in until a user decides. Those it is leaving by itself count as left.
pub(super) fn in_use(binding: &Binding) -> BTreeMap<&str, i32> {
    let spec = &binding.spec;
    let workload = is_workload(spec);
    let needed = spec.required_by.iter().flat_map(|snapshot| &snapshot.clusters);
    let mut clusters = BTreeMap::new();
    for target in spec.clusters.iter().chain(needed) {
        clusters.entry(target.name.as_str()).or_insert(if workload { target.replicas } else { 0 });
    }
    for task in spec.graceful_eviction_tasks.iter().filter(|task| stays(binding, task)) {
        clusters.entry(task.from_cluster.as_str()).or_insert(task.replicas.unwrap_or(0));
    }
    clusters
}

fn stays(binding: &Binding, task: &GracefulEvictionTask) -> bool {
    let held = is_held(binding, &task.from_cluster)
        || binding.spec.clusters.iter().any(|target| is_held(binding, &target.name));
    match task.suppress_deletion {
        Some(suppressed) => suppressed,
        None => held && !works::goes_directly(task.purge_mode),
    }
}

/// Clusters on their way out take everything along; mostly there are none.
fn going(snapshot: &Snapshot) -> Vec<&str> {
    let going = snapshot.clusters.iter().filter(|cluster| cluster.metadata.deletion_timestamp.is_some());
    going.map(|cluster| cluster.metadata.name.as_str()).collect()
}

fn is_namespace(template: &Template) -> bool {
    template.key.kind == "Namespace" && template.key.api_version == "v1"
}

/// True for a namespace that every cluster gets.
pub(super) fn is_synced(template: &Template, snapshot: &Snapshot) -> bool {
    is_namespace(template) && works::is_synced(template, &snapshot.gates.skipped)
}

fn is_overridden(view: &View<'_>) -> bool {
    let Some(template) = view.template else { return false };
    view.snapshot.overrides.values().any(|policy| concerns(policy, &template.key, &template.labels))
}
