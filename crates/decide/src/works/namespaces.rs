//! Namespace sync: every member receives every namespace, as a Work that the namespace owns, whatever the policies say;
//! except reserved namespaces and those that opt out.

use std::collections::BTreeMap;

use api::{OwnerReference, Work, annotations, finalizers, kinds, labels, names};

use super::kept::Left;
use super::manifest::{Field, Manifest};
use super::render::{new_id, record_managed_keys};
use super::{Sources, cluster_of};
use crate::overrides::{Overridden, overrides, remembered};
use crate::skipped::SkippedResources;
use crate::template::Template;

/// True when a namespace is sent to members.
pub fn is_synced(namespace: &Template, skipped: &SkippedResources) -> bool {
    let name = namespace.key.name.as_str();
    let skip = namespace.labels.get(labels::SKIP_AUTO_PROPAGATION);
    let kept = name == "default"
        || name.starts_with("kube-")
        || names::is_reserved_namespace(name)
        || skipped.has_namespace(name);
    !kept && !namespace.deleting && !skip.is_some_and(|value| value.eq_ignore_ascii_case(labels::TRUE))
}

/// The Works of a namespace that is sent to members, by cluster. A Work that is on its way out, belongs to a binding,
/// or cannot be rendered because an override policy fails is left alone.
pub fn namespace_works(namespace: &Template, sources: Sources<'_>) -> BTreeMap<String, Work> {
    let mut works = BTreeMap::new();
    let object = namespace.object();
    let staying = sources.clusters.iter().filter(|cluster| cluster.metadata.deletion_timestamp.is_none());
    for cluster in staying {
        let old = sources.existing.iter().find(|old| cluster_of(old) == cluster.metadata.name);
        if old.is_some_and(|old| old.metadata.deletion_timestamp.is_some() || has_binding(old)) {
            continue;
        }
        let Overridden::Done { object, cluster_policies, .. } =
            overrides(&object, cluster, sources.overrides)
        else {
            continue;
        };
        let left = Left::of(&object);
        let manifest = Manifest::new(namespace, object);
        let mut work = work(namespace, manifest, &cluster.metadata.name, old);
        left.keep(&mut work, old);
        work.metadata.annotations.extend(remembered(&cluster_policies, &[]));
        works.insert(cluster.metadata.name.clone(), work);
    }
    works
}

/// A policy may claim a namespace, which then has a binding of the cluster. One of a namespace has no say in it (M3).
fn has_binding(work: &Work) -> bool {
    !work.metadata.label(labels::CLUSTER_RESOURCE_BINDING_PERMANENT_ID).is_empty()
}

fn work(namespace: &Template, mut manifest: Manifest, cluster: &str, old: Option<&Work>) -> Work {
    let name = names::work_name(&namespace.key.kind, &namespace.key.name, "");
    let mut work = Work::new(&kinds::WORK, &names::execution_namespace(cluster), &name);
    let known_id = old.map_or("", |old| old.metadata.label(labels::WORK_PERMANENT_ID));
    let work_id = match known_id {
        "" => new_id([&namespace.uid, "", &work.metadata.namespace, &name]),
        known => known.to_owned(),
    };
    manifest.set(Field::Labels, &[(labels::MANAGED, labels::TRUE)]);
    let of_work = [
        (annotations::TEMPLATE_UID, namespace.uid.as_str()),
        (annotations::WORK_NAME, &name),
        (annotations::WORK_NAMESPACE, &work.metadata.namespace),
    ];
    manifest.set(Field::Annotations, &of_work);
    // Only the finalizers of a namespace stand there, and each cluster has its own.
    manifest.remove_spec();
    record_managed_keys(&mut manifest, &work_id);

    work.metadata.finalizers = vec![finalizers::EXECUTION.to_owned()];
    work.metadata.labels = [(labels::WORK_PERMANENT_ID.to_owned(), work_id)].into();
    work.metadata.owner_references = vec![OwnerReference {
        api_version: namespace.key.api_version.clone(),
        kind: namespace.key.kind.clone(),
        name: namespace.key.name.clone(),
        uid: namespace.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }];
    work.spec.workload = manifest.into_workload();
    work.spec.suspend_dispatching = Some(false);
    work.spec.preserve_resources_on_deletion = Some(false);
    work
}

#[cfg(test)]
mod tests {

    use api::Cluster;
    use serde_json::{Value, json};

    use super::*;

    fn namespace(name: &str, labels: Value) -> Template {
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": name, "uid": "u", "resourceVersion": "3", "labels": labels },
            "spec": { "finalizers": ["kubernetes"] }, "status": { "phase": "Active" },
        });
        Template::read(&object).expect("a template")
    }

    fn rendered(namespace: &Template, existing: &[Work]) -> BTreeMap<String, Work> {
        let clusters: Vec<Cluster> =
            ["m1", "m2"].iter().map(|name| Cluster::new(&kinds::CLUSTER, "", name)).collect();
        namespace_works(
            namespace,
            Sources { template: None, overrides: &[], clusters: &clusters, existing, needed_in: &[] },
        )
    }

    #[test]
    fn a_namespace_goes_to_every_member_and_belongs_to_its_original() {
        let works = rendered(&namespace("team", json!({ "owner": "me" })), &[]);
        assert_eq!(works.keys().collect::<Vec<_>>(), ["m1", "m2"]);
        let work = &works["m2"];
        assert_eq!(work.metadata.owner_references[0].uid, "u");
        let manifest = &work.spec.workload.manifests[0];
        assert_eq!(manifest["metadata"]["labels"]["owner"], "me");
        assert_eq!(manifest["metadata"]["labels"]["karmada.io/managed"], "true");
        assert_eq!(manifest["metadata"]["annotations"]["work.karmada.io/namespace"], "karmada-es-m2");
        assert!(manifest.get("spec").is_none() && manifest.get("status").is_none());
        let again = rendered(
            &namespace("team", json!({ "owner": "me" })),
            &works.values().cloned().collect::<Vec<_>>(),
        );
        assert_eq!(again, works, "deciding twice gives the same");
    }

    #[test]
    fn some_namespaces_stay_where_they_are() {
        let skipped = SkippedResources::read("lab-.*", "").expect("readable");
        let check = |name: &str, labels: Value, expected: bool| {
            assert_eq!(is_synced(&namespace(name, labels), &skipped), expected, "{name}");
        };
        check("team", json!({}), true);
        check("lab-1", json!({}), false);
        check("default", json!({}), false);
        check("kube-public", json!({}), false);
        check("karmada-es-m1", json!({}), false);
        check("team", json!({ "namespace.karmada.io/skip-auto-propagation": "True" }), false);
    }
}
