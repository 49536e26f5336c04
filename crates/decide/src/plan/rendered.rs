//! The Works that a restart of all controllers would write, beside what the plan of it says already. Compares the
//! rendered Works with the existing ones, those of namespaces included, so that taking over from another control plane
//! holds no surprise (M5).

use std::collections::BTreeMap;
use std::sync::Arc;

use api::labels::{CLUSTER_RESOURCE_BINDING_PERMANENT_ID, RESOURCE_BINDING_PERMANENT_ID};
use api::{Binding, ObjectMeta, Work, names};

use super::copies::is_synced;
use super::difference::id;
use super::{Action, ClusterPlan, Plan, TemplatePlan, Totals};
use crate::interpret::told_replicas;
use crate::snapshot::{Interpreters, Snapshot};
use crate::template::{Template, TemplateKey};
use crate::works::{Sources, brings_secret, namespace_works, works};

/// Why a template is in the plan whose Works are rendered otherwise.
const RENDERED: &str = "its Work is not what would be rendered now";

/// Adds to the plan of a restart what would be written because Works are missing or say something else.
pub fn add_rendered(plan: &mut Plan, snapshot: &Snapshot, existing: &[Work], interpreters: Interpreters<'_>) {
    let mut snapshot = snapshot.clone();
    snapshot.settle_all(interpreters);
    let existing = Existing::of(existing);
    for template in snapshot.templates.iter() {
        let written = written(&snapshot, template, &existing);
        if !written.is_empty() {
            add(plan, &template.key, written);
        }
    }
    plan.totals = Totals::of(plan.templates.values());
}

fn add(plan: &mut Plan, key: &Arc<TemplateKey>, written: BTreeMap<String, ClusterPlan>) {
    let planned = plan.templates.entry(id(key)).or_insert_with(|| TemplatePlan {
        template: Arc::clone(key),
        claim: None,
        held: None,
        clusters: Arc::default(),
        fields: Arc::default(),
        nowhere: false,
        why: RENDERED.into(),
    });
    let clusters = Arc::make_mut(&mut planned.clusters);
    for (cluster, plan) in written {
        clusters.entry(cluster).or_insert(plan);
    }
}

/// The Works that exist, by what they are for.
struct Existing<'w> {
    of_bindings: BTreeMap<&'w str, Vec<Work>>,
    of_namespaces: BTreeMap<&'w str, Vec<Work>>,
}

impl<'w> Existing<'w> {
    fn of(works: &'w [Work]) -> Self {
        let mut existing = Existing { of_bindings: BTreeMap::new(), of_namespaces: BTreeMap::new() };
        for work in works {
            match binding_id(&work.metadata) {
                "" => existing.of_namespaces.entry(&work.metadata.name).or_default().push(work.clone()),
                id => existing.of_bindings.entry(id).or_default().push(work.clone()),
            }
        }
        existing
    }
}

fn binding_id(metadata: &ObjectMeta) -> &str {
    match metadata.label(RESOURCE_BINDING_PERMANENT_ID) {
        "" => metadata.label(CLUSTER_RESOURCE_BINDING_PERMANENT_ID),
        id => id,
    }
}

/// What would be written for one template, by cluster.
fn written(
    snapshot: &Snapshot,
    template: &Template,
    existing: &Existing<'_>,
) -> BTreeMap<String, ClusterPlan> {
    let mut all = BTreeMap::new();
    if is_synced(template, snapshot) {
        let overrides = snapshot.overrides_near("");
        let name = names::work_name(&template.key.kind, &template.key.name, "");
        let found = existing.of_namespaces.get(name.as_str()).map_or(&[][..], Vec::as_slice);
        let sources = Sources {
            template: None,
            overrides: &overrides,
            clusters: &snapshot.clusters,
            existing: found,
            needed_in: &[],
        };
        all.extend(differences(namespace_works(template, sources), found));
    }
    let binding = snapshot.bindings.get(&template.key.binding());
    let own = |binding: &&Arc<Binding>| crate::binding::refusal(template, binding).is_none();
    if let Some(binding) = binding.filter(own) {
        let overrides = snapshot.overrides_near(&template.key.namespace);
        let found = existing.of_bindings.get(binding_id(&binding.metadata)).map_or(&[][..], Vec::as_slice);
        let sources = Sources {
            template: Some(template),
            overrides: &overrides,
            clusters: &snapshot.clusters,
            existing: found,
            needed_in: &[],
        };
        all.extend(differences(works(binding, sources).works, found));
    }
    all
}

/// Works that are missing or say something else.
fn differences(
    rendered: BTreeMap<String, Work>,
    existing: &[Work],
) -> impl Iterator<Item = (String, ClusterPlan)> {
    rendered.into_iter().filter_map(move |(cluster, work)| {
        let place = |found: &&Work| {
            (&found.metadata.namespace, &found.metadata.name)
                == (&work.metadata.namespace, &work.metadata.name)
        };
        let action = match existing.iter().find(place) {
            None => {
                let replicas = work.spec.workload.manifests.first().and_then(told_replicas).unwrap_or(0);
                Action::Create { replicas }
            }
            // The values of Secrets were dropped while reading, so what they say cannot be compared.
            Some(_) if brings_secret(&work) => return None,
            Some(found) if found.spec.workload != work.spec.workload => Action::Update,
            Some(_) => return None,
        };
        let suspended = work.spec.suspend_dispatching == Some(true);
        Some((cluster, ClusterPlan::of(action, suspended)))
    })
}
