//! What a binding copies from its policy, what it keeps, and which templates it refuses.

use api::binding::{BindingSuspension, TargetCluster};
use api::{RolloutPolicy, Suspension};
use serde_json::{Value, json};

use api::finalizers;

use super::*;

fn template(api_version: &str, name: &str) -> Template {
    let object = json!({
        "apiVersion": api_version, "kind": "Ingress",
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "7", "labels": {"team": "a"}},
    });
    Template::read(&object).unwrap()
}

fn policy(spec: Value) -> Policy {
    let object = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": "pp", "namespace": "default", "uid": "uid-pp", "generation": 4},
        "spec": spec,
    });
    Policy::from(&serde_json::from_value::<api::PropagationPolicy>(object).unwrap())
}

fn bound(template: &Template, spec: Value, existing: Option<&Binding>) -> Binding {
    let interpretation =
        Interpretation { replicas: 3, schedule_priority: Some(9), ..Interpretation::default() };
    let gates = Gates { schedule_priority: true, workload_affinity: true, ..Gates::default() };
    let (binding, pin) =
        binding(template, &policy(spec), existing.map(Bound::of).as_ref(), interpretation, &gates);
    let mut binding = binding.into_owned();
    pin.write(&mut binding.metadata);
    binding
}

#[test]
fn a_binding_repeats_what_the_policy_says() {
    let spec = json!({
        "propagateDeps": true, "conflictResolution": "Overwrite", "preserveResourcesOnDeletion": true, "schedulerName": "mine",
        "placement": {"clusterAffinity": {"clusterNames": ["m1"]}, "workloadAffinity": {"affinity": {"groupByLabelKey": "team"}}},
        "schedulePriority": {"priorityClassSource": "KubePriorityClass", "priorityClassName": "high"},
        "failover": {"cluster": {"purgeMode": "Directly"}},
    });
    let binding = bound(&template("networking.k8s.io/v1", "web"), spec, None);
    assert_eq!((binding.kind.as_str(), binding.metadata.name.as_str()), ("ResourceBinding", "web-ingress"));
    let written = serde_json::to_value(&binding.spec).unwrap();
    for (pointer, expected) in [
        (
            "/resource",
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "namespace": "default", "name": "web", "uid": "uid-web", "resourceVersion": "7"}),
        ),
        ("/replicas", json!(3)),
        ("/propagateDeps", json!(true)),
        ("/conflictResolution", json!("Overwrite")),
        ("/preserveResourcesOnDeletion", json!(true)),
        ("/schedulerName", json!("mine")),
        ("/placement/clusterAffinity/clusterNames", json!(["m1"])),
        ("/schedulePriority/priority", json!(9)),
        ("/workloadAffinityGroups/affinityGroup", json!("team=a")),
        ("/failover/cluster/purgeMode", json!("Directly")),
    ] {
        assert_eq!(written.pointer(pointer), Some(&expected), "{pointer}");
    }
    assert_eq!(binding.metadata.finalizers, [finalizers::BINDING]);
    assert_eq!(binding.metadata.owner_references[0].uid, "uid-web");
    assert_eq!(Pin::read(&binding.metadata).unwrap().policy.generation, 4);
}

#[test]
fn c6_what_others_write_stays_and_looking_twice_writes_nothing() {
    let template = template("networking.k8s.io/v1", "web");
    let mut first = bound(&template, json!({}), None);
    first.spec.clusters = vec![TargetCluster { name: "m1".into(), replicas: 3 }];
    first.spec.suspension =
        Some(BindingSuspension { scheduling: Some(true), ..BindingSuspension::default() });
    let later = Template { resource_version: "8".into(), ..template.clone() };
    assert_eq!(bound(&later, json!({}), Some(&first)), first, "status and bookkeeping are no news");
    let edited = Template { digest: "other".into(), ..later };
    let moved = bound(&edited, json!({}), Some(&first));
    assert_eq!(moved.spec.resource.resource_version, "8");
    assert_eq!(moved.spec.clusters, first.spec.clusters);
}

#[test]
fn c7_a_binding_that_karmada_made_stays_as_it_is() {
    let template = template("networking.k8s.io/v1", "web");
    let mut made = bound(&template, json!({}), None);
    made.metadata.annotations.clear();
    let later = Template { resource_version: "8".into(), ..template };
    assert_eq!(bound(&later, json!({}), Some(&made)).spec, made.spec);
}

#[test]
fn c7_what_karmadas_scripts_found_out_stays() {
    let check = |api_version: &str, expected: (i32, usize)| {
        let template = template(api_version, "web");
        let mut made = bound(&template, json!({}), None);
        made.metadata.annotations.clear();
        made.spec.replicas = 10;
        made.spec.components = vec![api::binding::Component::default(); 2];
        let spec = bound(&template, json!({}), Some(&made)).spec;
        assert_eq!((spec.replicas, spec.components.len()), expected, "{api_version}");
    };
    check("example.com/v1", (10, 2));
    check("networking.k8s.io/v1", (3, 0));
}

#[test]
fn c5_two_kinds_of_one_name_do_not_share_a_binding() {
    let first = bound(&template("networking.k8s.io/v1", "web"), json!({}), None);
    let check = |other: &Template, expected: Option<&str>| {
        let refused = refusal(other, &first).map(|refusal| refusal.to_string());
        assert_eq!(refused.as_deref(), expected);
    };
    check(&template("networking.k8s.io/v1", "web"), None);
    check(&template("networking.k8s.io/v2", "web"), None);
    check(
        &template("example.com/v1", "web"),
        Some(
            "binding default/web-ingress already belongs to Ingress default/web of networking.k8s.io/v1; rename one of the two (C5)",
        ),
    );
    let reborn = Template { uid: "uid-new".into(), ..template("networking.k8s.io/v1", "web") };
    check(&reborn, Some("binding default/web-ingress still belongs to a deleted object with uid uid-web"));
}

fn suspend(written: Value) -> Suspension {
    serde_json::from_value(written).unwrap()
}

fn rollout(written: Value) -> Rollout {
    let mut policy = RolloutPolicy::new(&kinds::ROLLOUT_POLICY, "default", "rp");
    policy.spec.suspension = Some(suspend(written));
    Rollout::from(&policy)
}

#[test]
fn u7_a_brake_is_on_when_anybody_pulls_it() {
    let check = |policy: Value, rollouts: Vec<Value>, expected: Value| {
        let policy = (!policy.is_null()).then(|| suspend(policy));
        let rollouts: Vec<Rollout> = rollouts.into_iter().map(rollout).collect();
        let merged = suspension(policy.as_ref(), rollouts.iter(), None);
        assert_eq!(serde_json::to_value(merged).unwrap(), expected);
    };
    let on = |names: &[&str]| json!({"dispatchingOnClusters": {"clusterNames": names}});
    check(json!(null), vec![], json!(null));
    check(json!({}), vec![], json!(null));
    check(json!({"dispatching": false}), vec![], json!({"dispatching": false}));
    check(json!({"dispatching": true}), vec![], json!({"dispatching": true}));
    check(on(&["b", "a"]), vec![], on(&["b", "a"]));
    check(on(&["b"]), vec![on(&["a"])], on(&["a", "b"]));
    check(on(&["b"]), vec![json!({"suspendDispatching": true})], json!({"dispatching": true}));
    check(json!(null), vec![json!({})], json!(null));
}

#[test]
fn u3_a_cluster_is_held_by_name_or_with_all() {
    let mut binding = Binding::default();
    assert!(!is_held(&binding, "m1"));
    for (written, expected) in [
        (json!({"dispatching": true}), true),
        (json!({"dispatching": false}), false),
        (json!({"dispatchingOnClusters": {"clusterNames": ["m1"]}}), true),
        (json!({"dispatchingOnClusters": {"clusterNames": ["m2"]}}), false),
    ] {
        binding.spec.suspension = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(is_held(&binding, "m1"), expected, "{written}");
    }
}

#[test]
fn l5_an_edit_that_changes_nothing_leaves_nothing_pending() {
    let on = |cluster: &str| json!({ "placement": { "clusterAffinity": { "clusterNames": [cluster] } } });
    let made = bound(&template("networking.k8s.io/v1", "web"), on("m1"), None);
    let check = |cluster: &str, uid: &str, expected: bool| {
        let mut later = policy(on(cluster));
        // It was suspended and resumed since.
        later.generation += 2;
        uid.clone_into(&mut later.uid);
        assert_eq!(follows(&made, &later), expected, "{cluster} {uid}");
    };
    check("m1", "uid-pp", true);
    check("m2", "uid-pp", false);
    check("m1", "uid-of-a-namesake", false);
}

#[test]
fn m5_what_karmada_made_follows_a_policy_that_says_the_same() {
    let on = |cluster: &str| json!({ "placement": { "clusterAffinity": { "clusterNames": [cluster] } } });
    let template = template("networking.k8s.io/v1", "web");
    let mut karmadas = bound(&template, on("m1"), None);
    put_claim(&mut karmadas, Some(&policy(on("m1"))));
    karmadas.metadata.annotations.remove(api::records::PIN);
    let check = |binding: &Binding, cluster: &str, expected: bool| {
        assert_eq!(follows(binding, &policy(on(cluster))), expected, "{cluster}");
    };
    check(&karmadas, "m1", true);
    check(&karmadas, "m2", false);
    let mut taken_over = karmadas.clone();
    adopted(&template, &policy(on("m1"))).write(&mut taken_over.metadata);
    check(&taken_over, "m1", true);
    check(&taken_over, "m2", false);
    put_claim(&mut karmadas, None);
    check(&karmadas, "m1", false);
}
