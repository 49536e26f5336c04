//! The delivery progress of templates, for users who may not read Works. Overlays stored objects on the cache of the
//! controllers, which lags behind: a user who has just written something must not get the progress of the state before.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::kinds::{
    CLUSTER_OVERRIDE_POLICY, CLUSTER_PROPAGATION_POLICY, CLUSTER_RESOURCE_BINDING, CLUSTER_ROLLOUT_POLICY,
    Kind, OVERRIDE_POLICY, PROPAGATION_POLICY, RESOURCE_BINDING, ROLLOUT_POLICY, WORK,
};
use api::{ObjectMeta, Work, names};
use apimachinery::error::ApiError;
use apiserver::extension::{Request, Stored};
use controllers::cache::binding_of_work;
use decide::progress::{Progress, progress};
use decide::snapshot::{Change, Interpreters};
use decide::{PolicyKey, Snapshot, TemplateKey};
use serde::Deserialize;
use serde_json::Value;

use super::rights::Rights;

/// How many templates one request may ask about.
pub const DELIVERY_REVIEW_TEMPLATES_MAX: usize = 1_000;

/// The kinds of policies, namespaced and cluster-scoped.
const RULES: [(&Kind, &Kind); 3] = [
    (&PROPAGATION_POLICY, &CLUSTER_PROPAGATION_POLICY),
    (&OVERRIDE_POLICY, &CLUSTER_OVERRIDE_POLICY),
    (&ROLLOUT_POLICY, &CLUSTER_ROLLOUT_POLICY),
];

#[derive(Deserialize)]
struct Sent {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    templates: Vec<TemplateKey>,
}

/// The progress of the templates that a request names, deleted ones included.
pub fn reviewed(
    request: &Request<'_>,
    rights: &Rights<'_>,
    mut snapshot: Snapshot,
) -> Result<Vec<Progress>, ApiError> {
    let keys = asked(request, rights)?;
    for (namespaced, of_cluster) in RULES {
        refresh_rules(&mut snapshot, request, namespaced, request.namespace);
        refresh_rules(&mut snapshot, request, of_cluster, "");
    }
    for key in &keys {
        refresh_template(&mut snapshot, request.stored, key);
    }
    let works_of = |key: &TemplateKey| works(&snapshot, request.stored, key);
    Ok(progress(&snapshot, &keys, Interpreters::BUILT_IN, works_of))
}

/// The templates that a request names; an error if the caller may not read one of them.
fn asked(request: &Request<'_>, rights: &Rights<'_>) -> Result<BTreeSet<Arc<TemplateKey>>, ApiError> {
    let sent: Sent = serde_json::from_value(request.body.clone()).map_err(|error| {
        ApiError::bad_request(format!("the body is not a DeliveryReview with spec.templates: {error}"))
    })?;
    if sent.spec.templates.len() > DELIVERY_REVIEW_TEMPLATES_MAX {
        return Err(ApiError::bad_request(format!(
            "spec.templates: at most {DELIVERY_REVIEW_TEMPLATES_MAX}"
        )));
    }
    for key in &sent.spec.templates {
        if !request.namespace.is_empty() && request.namespace != key.namespace {
            let place = request.namespace;
            return Err(ApiError::bad_request(format!("{key} is not in namespace {place}")));
        }
        if !rights.sees_template(key) {
            let plural = request.caller.resource(&key.api_version, &key.kind);
            let plural = plural.map_or_else(|| "*".to_owned(), |(plural, _)| plural);
            return Err(request.caller.refusal("get", key.group(), &plural, &key.namespace, &key.name));
        }
    }
    Ok(sent.spec.templates.into_iter().map(Arc::new).collect())
}

/// Replaces the policies of a kind in the snapshot by the stored ones.
fn refresh_rules(snapshot: &mut Snapshot, request: &Request<'_>, kind: &Kind, namespace: &str) {
    let stored = request.stored.objects(&kind.api_version(), kind.kind, namespace);
    let names: BTreeSet<PolicyKey> = stored.iter().map(policy_key).collect();
    let is_of_cluster = kind.scope == api::kinds::Scope::Cluster;
    let is_meant = |key: &PolicyKey| {
        key.namespace.is_empty() == is_of_cluster && (namespace.is_empty() || key.namespace == namespace)
    };
    let known: Vec<PolicyKey> = match kind.kind {
        "PropagationPolicy" | "ClusterPropagationPolicy" => {
            snapshot.policies.iter().map(|policy| policy.key.clone()).collect()
        }
        "OverridePolicy" | "ClusterOverridePolicy" => snapshot.overrides.keys().cloned().collect(),
        _ => snapshot.rollouts.keys().cloned().collect(),
    };
    for PolicyKey { namespace, name } in known.into_iter().filter(|key| is_meant(key) && !names.contains(key))
    {
        let (api_version, kind) = (kind.api_version(), kind.kind.to_owned());
        change(snapshot, &Change::Delete { api_version, kind, namespace, name });
    }
    for object in stored {
        change(snapshot, &Change::Put(object.into()));
    }
}

fn policy_key(object: &Value) -> PolicyKey {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    PolicyKey { namespace: text("namespace"), name: text("name") }
}

/// Replaces a template and its binding in the snapshot by the stored ones.
fn refresh_template(snapshot: &mut Snapshot, stored: Stored<'_>, key: &TemplateKey) {
    let TemplateKey { api_version, kind, namespace, name } = key;
    match stored.object(api_version, kind, namespace, name) {
        Some(object) => change(snapshot, &Change::Put(object.into())),
        // An object that needs a conversion stays as the controllers' cache has it.
        None if stored.has(api_version, kind, namespace, name) => {}
        None => drop(snapshot.remove_template(key)),
    }
    let kind = if namespace.is_empty() { &CLUSTER_RESOURCE_BINDING } else { &RESOURCE_BINDING };
    let binding = key.binding();
    match stored.object(&kind.api_version(), kind.kind, namespace, &binding.name) {
        Some(object) => change(snapshot, &Change::Put(object.into())),
        None => drop(Arc::make_mut(&mut snapshot.bindings).remove(&binding)),
    }
}

/// Applies a change. An object that cannot be parsed is ignored, as in the controllers' cache.
fn change(snapshot: &mut Snapshot, change: &Change) {
    let _ = snapshot.apply(change);
}

/// The stored Works of a template.
fn works(snapshot: &Snapshot, stored: Stored<'_>, key: &TemplateKey) -> Vec<Work> {
    let name = names::work_name(&key.kind, &key.name, &key.namespace);
    let is_own = |metadata: &ObjectMeta| binding_of_work(metadata).is_some_and(|of| of == key.binding());
    let found = snapshot.clusters.iter().filter_map(|cluster| {
        let namespace = names::execution_namespace(&cluster.metadata.name);
        let object = stored.object(&WORK.api_version(), WORK.kind, &namespace, &name)?;
        serde_json::from_value::<Work>(object).ok().filter(|work| is_own(&work.metadata))
    });
    found.collect()
}
