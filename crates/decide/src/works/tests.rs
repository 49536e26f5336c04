//! What members receive, what they keep receiving when a binding is frozen, and which Works are deleted.

use serde_json::{Value, json};

use super::*;
use crate::template::TemplateKey;

mod identity;
mod properties;

fn template(object: Value) -> Template {
    Template::read(&object).expect("a template")
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "nginx", "namespace": "default", "uid": "u1", "generation": 3, "resourceVersion": "9",
            "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"], "managedFields": [],
            "labels": {"app": "web", "propagationpolicy.karmada.io/permanent-id": "id-of-the-next-policy",
                "clusterpropagationpolicy.karmada.io/permanent-id": "not-of-the-binding"},
            "annotations": {"note": "n", "longshore.io/claim": "{}", "deployment.kubernetes.io/revision": "2"},
        },
        "spec": {"replicas": 5, "template": {"spec": {"containers": [{"name": "a", "image": "nginx"}]}}},
        "status": {"replicas": 5},
    })
}

fn binding(template: &Template, mut spec: Value) -> Binding {
    let key = &template.key;
    let TemplateKey { api_version, kind, namespace, name } = &**key;
    spec["resource"] = json!({"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name});
    let cluster_scoped = key.namespace.is_empty();
    let label = if cluster_scoped { "clusterresourcebinding" } else { "resourcebinding" };
    let mut binding: Binding = serde_json::from_value(json!({
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": if cluster_scoped { "ClusterResourceBinding" } else { "ResourceBinding" },
        "metadata": {
            "name": names::binding_name(&key.kind, &key.name), "namespace": key.namespace,
            "labels": {
                format!("{label}.karmada.io/permanent-id"): "rb-id",
                "propagationpolicy.karmada.io/permanent-id": "pp-id",
            },
            "annotations": {"propagationpolicy.karmada.io/name": "pp"},
        },
        "spec": spec,
    }))
    .expect("a binding");
    let pin = Pin { template: template.digest.clone(), ..Pin::default() };
    pin.write(&mut binding.metadata);
    binding
}

fn members(names: &[&str]) -> Vec<Cluster> {
    names.iter().map(|name| Cluster::new(&api::kinds::CLUSTER, "", name)).collect()
}

/// The answer for a template that is as the binding knows it, in the clusters m1 to m3.
fn rendered(
    binding: &Binding,
    template: &Template,
    overrides: &[OverridePolicy],
    existing: &[Work],
) -> Works {
    let clusters = members(&["m1", "m2", "m3"]);
    works(
        binding,
        Sources { template: Some(template), overrides, clusters: &clusters, existing, needed_in: &[] },
    )
}

fn existing(works: &Works) -> Vec<Work> {
    works.works.values().cloned().collect()
}

/// The same, and the members have them.
fn delivered(works: &Works) -> Vec<Work> {
    let mut works = existing(works);
    let applied = json!([{"type": "Applied", "status": "True", "reason": "", "message": ""}]);
    let applied: Vec<api::Condition> = serde_json::from_value(applied).expect("conditions");
    works.iter_mut().for_each(|work| work.status.conditions.clone_from(&applied));
    works
}

#[test]
fn c7_a_work_is_what_karmada_would_write() {
    let template = template(deployment());
    let binding = binding(&template, json!({"replicas": 5, "clusters": [{"name": "m1", "replicas": 2}]}));
    let work = &rendered(&binding, &template, &[], &[]).works["m1"];
    assert_eq!(
        (work.metadata.namespace.as_str(), work.metadata.name.as_str()),
        ("karmada-es-m1", "nginx-687f7fb96f")
    );
    assert_eq!(work.metadata.finalizers, ["karmada.io/execution-controller"]);
    assert_eq!(work.metadata.label("resourcebinding.karmada.io/permanent-id"), "rb-id");
    let id = work.metadata.label("work.karmada.io/permanent-id").to_owned();
    assert_eq!(id.len(), 36);
    assert_eq!(
        serde_json::to_value(&work.metadata.annotations).expect("json"),
        json!({
            "resourcebinding.karmada.io/name": "nginx-deployment",
            "resourcebinding.karmada.io/namespace": "default",
            "work.karmada.io/conflict-resolution": "abort",
        })
    );
    assert_eq!(
        (work.spec.suspend_dispatching, work.spec.preserve_resources_on_deletion),
        (Some(false), Some(false))
    );
    assert_eq!(
        work.spec.workload.manifests,
        [json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "nginx", "namespace": "default",
                "labels": {
                    "app": "web", "karmada.io/managed": "true", "resourcebinding.karmada.io/permanent-id": "rb-id",
                    "propagationpolicy.karmada.io/permanent-id": "pp-id", "work.karmada.io/permanent-id": id,
                },
                "annotations": {
                    "note": "n",
                    "propagationpolicy.karmada.io/name": "pp",
                    "resourcebinding.karmada.io/name": "nginx-deployment",
                    "resourcebinding.karmada.io/namespace": "default",
                    "resourcetemplate.karmada.io/generation": "3",
                    "resourcetemplate.karmada.io/uid": "u1",
                    "resourcetemplate.karmada.io/managed-annotations": "note,propagationpolicy.karmada.io/name,\
                        resourcebinding.karmada.io/name,resourcebinding.karmada.io/namespace,\
                        resourcetemplate.karmada.io/generation,resourcetemplate.karmada.io/managed-annotations,\
                        resourcetemplate.karmada.io/managed-labels,resourcetemplate.karmada.io/uid,\
                        work.karmada.io/conflict-resolution,work.karmada.io/name,work.karmada.io/namespace",
                    "resourcetemplate.karmada.io/managed-labels": "app,karmada.io/managed,\
                        propagationpolicy.karmada.io/permanent-id,resourcebinding.karmada.io/permanent-id,\
                        work.karmada.io/permanent-id",
                    "work.karmada.io/conflict-resolution": "abort",
                    "work.karmada.io/name": "nginx-687f7fb96f",
                    "work.karmada.io/namespace": "karmada-es-m1",
                },
            },
            "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "a", "image": "nginx"}]}}},
        })]
    );
}

#[test]
fn c6_rendering_twice_changes_nothing() {
    let template = template(deployment());
    let binding = binding(
        &template,
        json!({"replicas": 5, "clusters": [{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 3}]}),
    );
    let once = rendered(&binding, &template, &[], &[]);
    assert_eq!(rendered(&binding, &template, &[], &existing(&once)), once);
    let mut adopted = existing(&once);
    adopted[0]
        .metadata
        .labels
        .insert("work.karmada.io/permanent-id".to_owned(), "made-by-karmada".to_owned());
    let again = rendered(&binding, &template, &[], &adopted);
    assert_eq!(again.works["m1"].metadata.label("work.karmada.io/permanent-id"), "made-by-karmada");
}

#[test]
fn r2_a_changed_template_does_not_leak_but_brakes_and_deletions_act() {
    let template_then = template(deployment());
    let mut binding = binding(
        &template_then,
        json!({"replicas": 5, "clusters": [{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 3}]}),
    );
    let before = rendered(&binding, &template_then, &[], &[]);
    let mut changed = deployment();
    changed["spec"]["replicas"] = json!(9);
    let template_now = template(changed);

    let frozen = rendered(&binding, &template_now, &[], &existing(&before));
    assert!(matches!(frozen.frozen, Some(Frozen::OtherTemplate { .. })));
    assert_eq!(frozen.works, before.works, "not even on a restart or an override change");

    binding.spec.suspension =
        serde_json::from_value(json!({"dispatchingOnClusters": {"clusterNames": ["m2"]}}))
            .expect("a suspension");
    let braked = rendered(&binding, &template_now, &[], &existing(&before));
    let held = |works: &Works, cluster: &str| works.works[cluster].spec.suspend_dispatching;
    assert_eq!((held(&braked, "m1"), held(&braked, "m2")), (Some(false), Some(true)));
    assert_eq!(braked.works["m2"].spec.workload, before.works["m2"].spec.workload);

    binding.spec.clusters.retain(|target| target.name == "m1");
    let left = rendered(&binding, &template_now, &[], &delivered(&before));
    assert_eq!(left.orphans, BTreeMap::from([("m2".to_owned(), Orphan::NotChosen)]));
    assert_eq!(
        left.to_string(),
        "No Work is rendered, because the template was changed and no policy has taken the change over; \
         the one in m2 is deleted, because its binding no longer names the cluster."
    );
    binding.metadata.annotations.remove(api::records::PIN);
    assert_eq!(rendered(&binding, &template_now, &[], &[]).frozen, Some(Frozen::NotPinned));
}

#[test]
fn u4_suspension_holds_works_and_never_blocks_deletion() {
    let template = template(deployment());
    let mut binding = binding(
        &template,
        json!({
            "replicas": 5, "clusters": [{"name": "m1", "replicas": 5}], "suspension": {"dispatching": true},
        }),
    );
    let works = rendered(&binding, &template, &[], &[]);
    assert_eq!(works.works["m1"].spec.suspend_dispatching, Some(true));
    binding.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".parse().expect("a time"));
    let deleted = rendered(&binding, &template, &[], &existing(&works));
    assert_eq!(deleted.orphans, BTreeMap::from([("m1".to_owned(), Orphan::BindingDeleted)]));
    assert_eq!((deleted.frozen, deleted.works.len()), (Some(Frozen::Deleting), 0));
}

#[test]
fn u3_a_suspended_work_keeps_up_to_date() {
    let template = template(deployment());
    let mut binding = binding(
        &template,
        json!({
            "replicas": 5, "clusters": [{"name": "m1", "replicas": 5}],
            "suspension": {"dispatchingOnClusters": {"clusterNames": ["m1"]}},
        }),
    );
    let before = rendered(&binding, &template, &[], &[]);
    binding.spec.clusters[0].replicas = 4;
    let after = rendered(&binding, &template, &[], &existing(&before));
    assert_eq!(after.works["m1"].spec.suspend_dispatching, Some(true));
    assert_eq!(after.works["m1"].spec.workload.manifests[0]["spec"]["replicas"], 4);
}

#[test]
fn u6_a_dependency_goes_where_it_is_needed_and_is_held_as_its_binding_says() {
    let config = template(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}),
    );
    let binding = binding(
        &config,
        json!({
            "requiredBy": [
                {"namespace": "default", "name": "a-deployment", "clusters": [{"name": "m1", "replicas": 1}, {"name": "m2", "replicas": 1}]},
                {"namespace": "default", "name": "b-deployment", "clusters": [{"name": "m2", "replicas": 3}]},
            ],
            "suspension": {"dispatchingOnClusters": {"clusterNames": ["m1"]}},
            "conflictResolution": "Overwrite", "preserveResourcesOnDeletion": true,
        }),
    );
    let works = rendered(&binding, &config, &[], &[]).works;
    let held: Vec<_> =
        works.iter().map(|(cluster, work)| (cluster.as_str(), work.spec.suspend_dispatching)).collect();
    assert_eq!(held, [("m1", Some(true)), ("m2", Some(false))]);
    assert_eq!(rendered(&binding, &config, &[], &[]).to_string(), "Works for m1 (held), m2.");
    assert_eq!(works["m1"].spec.preserve_resources_on_deletion, Some(true));
    assert_eq!(works["m1"].metadata.annotation("work.karmada.io/conflict-resolution"), "overwrite");
}

#[test]
fn a_template_without_namespace_and_the_word_of_the_template_on_conflicts() {
    let role = template(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "system:foo", "annotations": {"work.karmada.io/conflict-resolution": "overwrite"}},
    }));
    let binding = binding(&role, json!({"clusters": [{"name": "m1"}], "conflictResolution": "Abort"}));
    let work = &rendered(&binding, &role, &[], &[]).works["m1"];
    assert_eq!(work.metadata.name, "system.foo-5f7d88f69");
    assert_eq!(work.metadata.label("clusterresourcebinding.karmada.io/permanent-id"), "rb-id");
    assert_eq!(work.metadata.annotation("clusterresourcebinding.karmada.io/name"), "system.foo-clusterrole");
    assert_eq!(work.metadata.annotation("work.karmada.io/conflict-resolution"), "overwrite");
}

#[test]
fn job_completions_are_divided_like_the_replicas() {
    for (total, expected) in [(5, [2, 3]), (7, [2, 5]), (10, [3, 7])] {
        let job = template(json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default", "uid": "a"},
            "spec": {"parallelism": 3, "completions": total, "ttlSecondsAfterFinished": 9,
                "selector": {"matchLabels": {"controller-uid": "x"}},
                "template": {"metadata": {"labels": {"batch.kubernetes.io/job-name": "j", "app": "j"}}}},
        }));
        let divided = json!({"replicaScheduling": {"replicaSchedulingType": "Divided"}});
        let clusters = json!([{"name": "m1", "replicas": 1}, {"name": "m2", "replicas": 2}]);
        let spec = json!({"replicas": 3, "clusters": clusters, "placement": divided});
        let works = rendered(&binding(&job, spec.clone()), &job, &[], &[]).works;
        let specs: Vec<&Value> =
            works.values().map(|work| &work.spec.workload.manifests[0]["spec"]).collect();
        assert_eq!(
            specs.iter().map(|spec| spec["completions"].as_i64().expect("a number")).collect::<Vec<_>>(),
            expected
        );
        assert_eq!(
            specs.iter().map(|spec| spec["parallelism"].as_i64().expect("a number")).collect::<Vec<_>>(),
            [1, 2]
        );
        assert_eq!(specs[0]["template"]["metadata"]["labels"], json!({"app": "j"}));
        // As Karmada divided them before, they stay; those that do not add up do not.
        let mut otherwise: Vec<Work> = works.values().cloned().collect();
        for (extra, expected) in [(0, [1, total - 1]), (1, expected)] {
            otherwise[0].spec.workload.manifests[0]["spec"]["completions"] = 1.into();
            otherwise[1].spec.workload.manifests[0]["spec"]["completions"] = (total - 1 + extra).into();
            let again = rendered(&binding(&job, spec.clone()), &job, &[], &otherwise).works;
            let told =
                |cluster: &str| again[cluster].spec.workload.manifests[0]["spec"]["completions"].as_i64();
            assert_eq!([told("m1"), told("m2")], expected.map(Some));
        }
        assert_eq!((specs[0].get("selector"), specs[0].get("ttlSecondsAfterFinished")), (None, None));
        let mut duplicated = spec;
        duplicated["placement"] = json!({});
        let works = rendered(&binding(&job, duplicated), &job, &[], &[]).works;
        assert_eq!(works["m1"].spec.workload.manifests[0]["spec"]["completions"], total);
    }
}

#[test]
fn overrides_differ_per_cluster_and_a_failure_concerns_one_only() {
    let template = template(deployment());
    let policy: OverridePolicy = serde_json::from_value(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
        "metadata": {"namespace": "default", "name": "op"},
        "spec": {"overrideRules": [
            {"targetCluster": {"clusterNames": ["m1"]}, "overriders": {"plaintext": [{"path": "/spec/paused", "operator": "add", "value": true}]}},
            {"targetCluster": {"clusterNames": ["m2"]}, "overriders": {"plaintext": [{"path": "/no/where", "operator": "add", "value": 1}]}},
        ]},
    }))
    .expect("a policy");
    let clusters = json!([{"name": "m1", "replicas": 1}, {"name": "m2", "replicas": 1}, {"name": "m3", "replicas": 1}, {"name": "gone", "replicas": 1}]);
    let works = rendered(
        &binding(&template, json!({"replicas": 4, "clusters": clusters})),
        &template,
        &[policy],
        &[],
    );
    assert_eq!(works.works["m1"].spec.workload.manifests[0]["spec"]["paused"], true);
    assert!(
        works.works["m1"]
            .metadata
            .annotation("policy.karmada.io/applied-overrides")
            .contains("\"policyName\":\"op\"")
    );
    assert_eq!(works.failed.keys().collect::<Vec<_>>(), ["m2"]);
    assert_eq!(works.works.keys().collect::<Vec<_>>(), ["m1", "m3"]);
    assert_eq!(works.works["m3"].metadata.annotation("policy.karmada.io/applied-overrides"), "");
}

#[test]
fn a_cluster_that_is_going_gets_nothing_new() {
    let template = template(deployment());
    let binding = binding(&template, json!({"clusters": [{"name": "m1"}, {"name": "m2"}]}));
    let mut clusters = members(&["m1", "m2"]);
    clusters[1].metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".parse().expect("a time"));
    let there = |existing: &[Work]| {
        let sources = Sources {
            template: Some(&template),
            overrides: &[],
            clusters: &clusters,
            existing,
            needed_in: &[],
        };
        works(&binding, sources).works.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(there(&[]), ["m1"]);
    assert_eq!(
        there(&existing(&rendered(&binding, &template, &[], &[]))),
        ["m1", "m2"],
        "what it has stays right"
    );
}

#[test]
fn a_cluster_left_directly_is_empty_before_another_one_is_filled() {
    let template = template(deployment());
    let mut binding = binding(&template, json!({"replicas": 1, "clusters": [{"name": "m1", "replicas": 1}]}));
    let before = rendered(&binding, &template, &[], &[]);
    binding.spec.clusters[0].name = "m2".to_owned();
    let task = |mode: &str| {
        serde_json::from_value(
            json!([{"fromCluster": "m1", "purgeMode": mode, "reason": "r", "producer": "p"}]),
        )
        .expect("tasks")
    };
    binding.spec.graceful_eviction_tasks = task("Directly");
    let waiting = rendered(&binding, &template, &[], &existing(&before));
    assert_eq!(waiting.frozen, Some(Frozen::Purging { clusters: vec!["m1".to_owned()] }));
    assert_eq!((waiting.works.len(), waiting.orphans["m1"]), (0, Orphan::NotChosen));
    assert_eq!(rendered(&binding, &template, &[], &[]).works.keys().collect::<Vec<_>>(), ["m2"]);
    binding.spec.graceful_eviction_tasks = task("Gracefully");
    let graceful = rendered(&binding, &template, &[], &existing(&before));
    assert_eq!(graceful.orphans, BTreeMap::new());
    assert_eq!(graceful.works.keys().collect::<Vec<_>>(), ["m2"]);
}

#[test]
fn what_belongs_to_the_control_plane_stays_there() {
    let check = |mut object: Value, expected: Value| {
        prune::prune(&mut object);
        assert_eq!(object, expected);
    };
    check(
        json!({"kind": "Service", "metadata": {"name": "s", "uid": "u"}, "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}}),
        json!({"kind": "Service", "metadata": {"name": "s"}, "spec": {}}),
    );
    check(
        json!({"kind": "Service", "spec": {"clusterIP": "None"}}),
        json!({"kind": "Service", "spec": {"clusterIP": "None"}}),
    );
    check(
        json!({"kind": "ServiceAccount", "metadata": {"name": "a"}, "secrets": [{"name": "a-token-x"}, {"name": "a-token-y"}, {"name": "b"}]}),
        json!({"kind": "ServiceAccount", "metadata": {"name": "a"}, "secrets": [{"name": "b"}]}),
    );
    check(
        json!({"kind": "Secret", "type": "kubernetes.io/service-account-token", "data": {"token": "x"}}),
        json!({"kind": "Secret", "type": "kubernetes.io/service-account-token"}),
    );
    check(
        json!({"kind": "PersistentVolumeClaim", "metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n", "x": "y"}}}),
        json!({"kind": "PersistentVolumeClaim", "metadata": {"annotations": {"x": "y"}}}),
    );
    check(
        json!({"kind": "Job", "spec": {"manualSelector": true, "selector": {"matchLabels": {"job-name": "j"}}}}),
        json!({"kind": "Job", "spec": {"manualSelector": true, "selector": {"matchLabels": {"job-name": "j"}}}}),
    );
    let labels = |labels: Value| json!({"metadata": {"labels": labels}});
    check(
        json!({"kind": "Job", "spec": {
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}, "ttlSecondsAfterFinished": 1,
            "template": labels(json!({"job-name": "j", "controller-uid": "u", "app": "a"})),
        }}),
        json!({"kind": "Job", "spec": {"template": labels(json!({"app": "a"}))}}),
    );
}

#[test]
fn a_workload_that_others_need_keeps_its_own_replicas() {
    let template = template(deployment());
    let needs =
        json!([{"namespace": "default", "name": "other", "clusters": [{"name": "m1", "replicas": 9}]}]);
    let works = rendered(&binding(&template, json!({"requiredBy": needs})), &template, &[], &[]);
    assert_eq!(works.works["m1"].spec.workload.manifests[0]["spec"]["replicas"], 5);
}

/// Karmada's scripts know how to divide such a kind, and what they did stays.
#[test]
fn c7_divided_replicas_of_a_kind_that_is_not_understood_stay() {
    let clone_set = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
        "metadata": { "name": "web", "namespace": "default", "uid": "u1" },
        "spec": { "replicas": 5 },
    });
    let template = template(clone_set);
    let mut binding = binding(
        &template,
        json!({"replicas": 5, "clusters": [{"name": "m1", "replicas": 5}, {"name": "m2", "replicas": 5}]}),
    );
    let before = rendered(&binding, &template, &[], &[]);
    assert_eq!(
        (before.works.len(), before.frozen.clone()),
        (2, None),
        "what is whole everywhere is understood"
    );
    binding.spec.clusters[0].replicas = 3;
    binding.spec.clusters[1].replicas = 2;
    let after = rendered(&binding, &template, &[], &existing(&before));
    assert_eq!(after.frozen, Some(Frozen::NotUnderstood { kind: "CloneSet".to_owned() }));
    assert_eq!(after.works, before.works);
}
