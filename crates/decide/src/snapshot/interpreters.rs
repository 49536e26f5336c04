//! The interpreters that a settling snapshot calls besides the decisions about claims and bindings. Tests and
//! interpreters with scripts replace them.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::interpreter::DependentObjectReference;
use api::{Binding, OverridePolicy};
use serde_json::Value;

use super::Snapshot;
use crate::interpret::Interpretation;
use crate::placement::{Placement, Recent, Schedule, Trigger, is_same};
use crate::template::Template;
use crate::works::{Sources, complete, namespace_works};

/// The interpreters.
#[derive(Clone, Copy)]
pub struct Interpreters<'a> {
    /// How many replicas, and what does one need?
    pub interpret: &'a (dyn Fn(&Template) -> Interpretation + Sync),
    /// The dependencies of a template. `None` if no interpreter knows its kind.
    pub dependencies: &'a (dyn Fn(&Template) -> Option<Vec<DependentObjectReference>> + Sync),
    /// Where does it run? Leaves the binding as a scheduler does, and says whether it changed it.
    pub place: &'a (dyn Fn(&mut Arc<Binding>, &Snapshot, &mut Recent) -> bool + Sync),
    /// What does each cluster receive?
    pub render: &'a (dyn Fn(&Template, &Binding, &Snapshot) -> BTreeMap<String, Value> + Sync),
}

impl Interpreters<'static> {
    /// The answers of this crate, for the kinds that are built in.
    pub const BUILT_IN: Interpreters<'static> = Interpreters {
        interpret: &|template| template.interpretation.clone(),
        dependencies: &|template| template.dependencies.clone(),
        place: &place,
        render: &render,
    };
}

/// What the scheduler writes, without its time stamps.
fn place(binding: &mut Arc<Binding>, snapshot: &Snapshot, recent: &mut Recent) -> bool {
    let outcome = recent.placement(binding, &snapshot.clusters, snapshot.now);
    match outcome {
        Placement::Skipped(_) | Placement::Unchanged => false,
        Placement::Scheduled(schedule) if is_written(schedule, binding) => false,
        Placement::Scheduled(schedule) => {
            let placed = Arc::make_mut(binding);
            outcome.write_spec(placed);
            placed.status.scheduler_observed_affinity_name.clone_from(&schedule.affinity_name);
            true
        }
        Placement::Kept { gone, .. } if gone.is_empty() => false,
        Placement::Nowhere { .. } | Placement::Left { .. } | Placement::Kept { .. } => {
            let before = Arc::clone(binding);
            outcome.write_spec(Arc::make_mut(binding));
            before != *binding
        }
    }
}

/// The same clusters by the same rules: true for nearly every binding that is looked at again.
fn is_written(schedule: &Schedule, binding: &Binding) -> bool {
    schedule.trigger != Trigger::PlacementChanged
        && is_same(&schedule.clusters, &binding.spec.clusters)
        && schedule.affinity_name == binding.status.scheduler_observed_affinity_name
}

/// What every cluster receives of a namespace by itself.
pub(crate) fn render_namespace(namespace: &Template, snapshot: &Snapshot) -> BTreeMap<String, Value> {
    let concerned = snapshot.overrides.iter().filter(|(key, _)| key.namespace.is_empty());
    let overrides: Vec<OverridePolicy> = concerned.map(|(_, policy)| OverridePolicy::clone(policy)).collect();
    let sources = Sources {
        template: None,
        overrides: &overrides,
        clusters: &snapshot.clusters,
        existing: &[],
        needed_in: &[],
    };
    let rendered = namespace_works(namespace, sources).into_iter();
    rendered.map(|(cluster, work)| (cluster, Value::Array(work.spec.workload.manifests))).collect()
}

fn render(template: &Template, binding: &Binding, snapshot: &Snapshot) -> BTreeMap<String, Value> {
    let concerned = snapshot
        .overrides
        .iter()
        .filter(|(key, _)| key.namespace.is_empty() || key.namespace == template.key.namespace);
    let overrides: Vec<OverridePolicy> = concerned.map(|(_, policy)| OverridePolicy::clone(policy)).collect();
    let sources = Sources {
        template: Some(template),
        overrides: &overrides,
        clusters: &snapshot.clusters,
        existing: &[],
        needed_in: &[],
    };
    let rendered = complete(binding, sources).works.into_iter();
    rendered.map(|(cluster, work)| (cluster, Value::Array(work.spec.workload.manifests))).collect()
}
