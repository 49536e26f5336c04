//! The fast path of a plan gives the same plan as two whole snapshots, wherever it gives any.

use api::{Work, kinds};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fields::put as put_value;
use crate::works::{Sources, namespace_works, works};

mod reach;

fn put(object: Value) -> Change {
    Change::Put(Arc::new(object))
}

fn cluster(name: &str) -> Change {
    let kind = |group_version: &str, kind: &str| json!({"groupVersion": group_version, "resources": [{"name": "x", "kind": kind}]});
    put(json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
        "status": {"apiEnablements": [kind("apps/v1", "Deployment"), kind("v1", "ConfigMap"), kind("other/v1", "Deployment")]},
    }))
}

/// Deployments of two groups share the names of their bindings, and some mount a ConfigMap.
fn template(number: usize, version: u64) -> Value {
    let name = format!("t{}", number % 3);
    let metadata = json!({
        "name": name, "namespace": "default", "uid": format!("u{number}"), "resourceVersion": version.to_string(),
        "creationTimestamp": "2024-01-01T00:00:00Z", "labels": {"app": name},
    });
    let volumes = if number < 3 {
        json!([{"name": "v", "configMap": {"name": format!("t{}", version % 3)}}])
    } else {
        json!([])
    };
    let spec = json!({"replicas": 1 + version % 3, "template": {"spec": {"volumes": volumes}}});
    let (api_version, kind) =
        [("apps/v1", "Deployment"), ("v1", "ConfigMap"), ("other/v1", "Deployment")][number / 3];
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
}

fn policy(number: usize, generation: i64, clusters: usize, flags: (bool, bool)) -> Value {
    let kind = if number == 0 { kinds::PROPAGATION_POLICY } else { kinds::CLUSTER_PROPAGATION_POLICY };
    let namespace = if number == 0 { "default" } else { "" };
    let clusters = [["m1"].as_slice(), &["m2"], &["m1", "m2"]][clusters];
    let select = |api_version: &str, kind: &str| match number {
        2 => json!({"apiVersion": api_version, "kind": kind}),
        _ => json!({"apiVersion": api_version, "kind": kind, "name": "t1"}),
    };
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": kind.kind,
        "metadata": {"name": format!("p{number}"), "namespace": namespace, "uid": format!("p{number}"), "generation": generation},
        "spec": {
            "resourceSelectors": [select("apps/v1", "Deployment"), select("other/v1", "Deployment")],
            "activationPreference": flags.0.then_some("Lazy"), "propagateDeps": flags.1,
            "placement": {"clusterAffinity": {"clusterNames": clusters}},
        },
    })
}

fn override_policy(value: &str) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterOverridePolicy", "metadata": {"name": "o"},
        "spec": {"overrideRules": [{"overriders": {"labelsOverrider": [{"operator": "add", "value": {"x": value}}]}}]},
    })
}

/// Taking over from Karmada is a restart.
#[test]
fn c7_what_karmada_propagated_is_not_updated() {
    let mut snapshot = Snapshot::default();
    let past =
        [cluster("m1"), cluster("m2"), put(override_policy("a")), put(policy(2, 1, 2, (false, false)))];
    for change in past.into_iter().chain((0..2).map(|number| put(template(number, 1)))) {
        snapshot.apply(&change).expect("readable");
    }
    snapshot.settle_all(Interpreters::BUILT_IN);
    for binding in Arc::make_mut(&mut snapshot.bindings).values_mut() {
        Arc::make_mut(binding).metadata.annotations.remove(api::records::PIN);
    }
    let plan = unsettled(&snapshot, Interpreters::BUILT_IN);
    let acts: Vec<_> = plan.templates.values().flat_map(|template| template.clusters.iter()).collect();
    assert!(snapshot.bindings.len() == 2 && acts.is_empty(), "{acts:?}");
    snapshot.apply(&put(policy(2, 2, 0, (false, false)))).expect("readable");
    let moves = unsettled(&snapshot, Interpreters::BUILT_IN);
    assert_eq!(moves.templates.values().map(|template| template.clusters.len()).sum::<usize>(), 2);
}

/// Every Work of a settled world, as its controllers would have written it.
fn rendered(snapshot: &Snapshot) -> Vec<Work> {
    let of_template = |template: &Arc<Template>| {
        let sources = Sources {
            template: Some(template.as_ref()),
            overrides: &[],
            clusters: &snapshot.clusters,
            existing: &[],
            needed_in: &[],
        };
        let binding = snapshot.bindings.get(&template.key.binding());
        let of_binding = binding.map(|binding| works(binding, sources).works);
        let of_namespace = (template.key.kind == "Namespace").then(|| namespace_works(template, sources));
        of_binding.into_iter().chain(of_namespace).flat_map(BTreeMap::into_values).collect::<Vec<_>>()
    };
    snapshot.templates.iter().flat_map(of_template).collect()
}

#[test]
fn m5_the_plan_of_a_restart_names_every_work_that_would_be_written() {
    let mut snapshot = Snapshot::default();
    let metadata = json!({"name": "team", "uid": "n", "resourceVersion": "1", "labels": {"owner": "me"}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    let past = [cluster("m1"), cluster("m2"), put(policy(2, 1, 2, (false, false)))];
    for change in past.into_iter().chain([put(template(0, 1)), put(namespace)]) {
        snapshot.apply(&change).expect("readable");
    }
    snapshot.settle_all(Interpreters::BUILT_IN);
    for binding in Arc::make_mut(&mut snapshot.bindings).values_mut() {
        let label = api::labels::RESOURCE_BINDING_PERMANENT_ID.to_owned();
        Arc::make_mut(binding).metadata.labels.insert(label, "id".to_owned());
    }
    let planned = |existing: &[Work]| {
        let mut plan = unsettled(&snapshot, Interpreters::BUILT_IN);
        add_rendered(&mut plan, &snapshot, existing, Interpreters::BUILT_IN);
        plan
    };
    let mut existing = rendered(&snapshot);
    assert_eq!(existing.len(), 4);
    assert_eq!(planned(&existing), Plan::default());
    for work in &mut existing {
        let manifest = &mut work.spec.workload.manifests[0];
        if work.metadata.namespace == "karmada-es-m1" {
            put_value(manifest, &["metadata", "labels", "edited"], "by somebody".into());
        }
    }
    assert_eq!((planned(&existing).totals.updated, planned(&existing).totals.templates), (2, 2));
    existing.retain(|work| work.metadata.namespace == "karmada-es-m1");
    assert_eq!((planned(&existing).totals.updated, planned(&existing).totals.created), (2, 2));
}

fn changes() -> impl Strategy<Value = Change> {
    let template = (0_usize..9, 1_u64..9);
    let policy = (0_usize..3, 1_i64..9, 0_usize..3, any::<(bool, bool)>());
    prop_oneof![
        3 => template.clone().prop_map(|(number, version)| put(self::template(number, version))),
        1 => template.prop_map(|(number, version)| {
            let object = self::template(number, version);
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).expect("a text").to_owned();
            Change::Delete {
                api_version: text("/apiVersion"),
                kind: text("/kind"),
                namespace: text("/metadata/namespace"),
                name: text("/metadata/name"),
            }
        }),
        4 => policy.prop_map(|(number, generation, clusters, flags)| put(self::policy(number, generation, clusters, flags))),
        1 => (0_usize..3).prop_map(|number| Change::Delete {
            api_version: "policy.karmada.io/v1alpha1".to_owned(),
            kind: if number == 0 { "PropagationPolicy" } else { "ClusterPropagationPolicy" }.to_owned(),
            namespace: if number == 0 { "default" } else { "" }.to_owned(),
            name: format!("p{number}"),
        }),
        1 => prop::sample::select(vec!["a", "b"]).prop_map(|value| put(override_policy(value))),
        1 => Just(cluster("m3")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn both_ways_lead_to_the_same_plan(
        past in prop::collection::vec((changes(), any::<bool>()), 0..12),
        edits in prop::collection::vec(changes(), 1..3),
        at_rest in prop::bool::weighted(0.8),
    ) {
        let mut snapshot = Snapshot::default();
        for member in ["m1", "m2"] {
            snapshot.apply(&cluster(member)).expect("a cluster");
        }
        for (change, settle) in past {
            snapshot.apply(&change).expect("readable");
            if settle {
                snapshot.settle_all(Interpreters::BUILT_IN);
            }
        }
        if at_rest {
            snapshot.settle_all(Interpreters::BUILT_IN);
        }
        let (after, touched) = made(&snapshot, &edits).expect("readable");
        if let Some(short) = one_by_one(&snapshot, &after, &touched, Interpreters::BUILT_IN) {
            prop_assert_eq!(short, between_worlds(&snapshot, &edits, Interpreters::BUILT_IN).expect("readable"));
        }
        let plan = plan(&snapshot, &edits, Interpreters::BUILT_IN).expect("readable");
        let read: Plan = serde_json::from_value(json!(plan)).expect("what was written can be read");
        prop_assert_eq!(&read, &plan);
        prop_assert_eq!(plan.clone().only(|_| true), (plan, 0));
    }
}
