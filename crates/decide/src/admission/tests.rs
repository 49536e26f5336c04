//! Every rule with one object that breaks it and one that does not.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn now() -> jiff::Timestamp {
    "2026-01-01T00:00:00.5Z".parse().unwrap()
}

fn judge_one(object: &Value, old: Option<&Value>, gates: &Gates) -> Result<Vec<Warning>, Rejection> {
    admission(&Review {
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        object,
        old,
        gates,
        is_cluster_scoped: &|_, kind| kind == "ClusterRole",
    })
}

/// A policy as the API server hands it over: merged with `spec`, defaulted.
fn policy(kind: &str, spec: Value) -> Value {
    let group =
        if kind.contains("Binding") { "work.karmada.io/v1alpha2" } else { "policy.karmada.io/v1alpha1" };
    let mut object = json!({
        "apiVersion": group, "kind": kind,
        "metadata": {"name": "p"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}]},
    });
    if !kind.starts_with("Cluster") {
        object["metadata"]["namespace"] = "default".into();
    }
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    defaults(&mut object, None, Operation::Create, [7; 16], now());
    object
}

/// `expected` is empty when the object is fine, or the path and a word of the message.
fn check(kind: &str, spec: Value, expected: &str) {
    let object = policy(kind, spec.clone());
    let verdict = judge_one(&object, None, &Gates { components: true, ..Gates::default() });
    match (expected.split_once(' '), verdict) {
        (None, verdict) => assert_eq!(verdict, Ok(vec![]), "{kind} {spec}"),
        (Some(_), Ok(_)) => panic!("{kind} {spec} was not refused"),
        (Some((path, word)), Err(rejection)) => {
            let hit = |problem: &&Problem| problem.path == path && problem.message.contains(word);
            assert!(rejection.problems.iter().any(|problem| hit(&problem)), "{kind} {spec}: {rejection}");
        }
    }
}

fn check_selector(kind: &str, preemption: &str, selector: Value, expected: &str) {
    let mut whole = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
    whole.as_object_mut().unwrap().extend(selector.as_object().unwrap().clone());
    check(kind, json!({"resourceSelectors": [whole], "preemption": preemption}), expected);
}

#[test]
fn p4_what_takes_from_others_is_bounded() {
    let check =
        |kind: &str, selector: Value, expected: &str| check_selector(kind, "Always", selector, expected);
    check("ClusterPropagationPolicy", json!({}), "spec.resourceSelectors[0] bounded");
    check("ClusterPropagationPolicy", json!({"labelSelector": {}}), "spec.resourceSelectors[0] user1-*");
    check("ClusterPropagationPolicy", json!({"name": "nginx"}), "");
    check("ClusterPropagationPolicy", json!({"namespace": "user1-*"}), "");
    check("ClusterPropagationPolicy", json!({"namespace": "a,b"}), "");
    check("PropagationPolicy", json!({}), "");
    check("PropagationPolicy", json!({"name": "nginx"}), "");
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "namespace": "a"});
    check("ClusterPropagationPolicy", role, "spec.resourceSelectors[0].name ClusterRole");
    check_selector("ClusterPropagationPolicy", "Never", json!({}), "");
}

#[test]
fn b1_patterns_are_refused_with_their_grammar() {
    let path = "spec.resourceSelectors[0].namespace";
    for wrong in ["*", "a*b", "*a", "a,,b", "a, b", "A"] {
        check_selector(
            "ClusterPropagationPolicy",
            "Never",
            json!({"namespace": wrong}),
            &format!("{path} user1-*"),
        );
        check_selector(
            "ClusterOverridePolicy",
            "Never",
            json!({"namespace": wrong}),
            &format!("{path} user1-*"),
        );
        check_selector(
            "ClusterRolloutPolicy",
            "Never",
            json!({"namespace": wrong}),
            &format!("{path} user1-*"),
        );
    }
    for right in ["", "a", "a,b", "user1-*", "a,user1-*"] {
        check_selector("ClusterPropagationPolicy", "Never", json!({"namespace": right}), "");
    }
    for kind in ["PropagationPolicy", "OverridePolicy", "RolloutPolicy"] {
        check_selector(kind, "Never", json!({"namespace": "other"}), &format!("{path} own"));
        check_selector(kind, "Never", json!({"namespace": "default"}), "");
    }
}

#[test]
fn b2_exclusions_say_what_they_leave_out() {
    let cluster = "ClusterPropagationPolicy";
    let inner = |exclude| json!({"exclude": exclude});
    check_selector(cluster, "Never", inner(json!({})), "spec.resourceSelectors[0].exclude.namespace set");
    check_selector(cluster, "Never", inner(json!({"name": "x"})), "");
    check_selector(cluster, "Never", inner(json!({"namespace": "user1-*"})), "");
    check_selector(
        cluster,
        "Never",
        inner(json!({"namespace": "*"})),
        "spec.resourceSelectors[0].exclude.namespace star",
    );
    check_selector("PropagationPolicy", "Never", inner(json!({})), "");
    let outer = |mut exclude: Value| {
        exclude["apiVersion"] = "apps/v1".into();
        exclude["kind"] = "Deployment".into();
        json!({"excludeResourceSelectors": [exclude]})
    };
    let path = "spec.excludeResourceSelectors[0]";
    check(cluster, outer(json!({})), &format!("{path}.namespace set"));
    check(
        cluster,
        outer(json!({"labelSelector": {"matchLabels": {"a": "b"}}})),
        &format!("{path}.namespace set"),
    );
    check(cluster, outer(json!({"namespace": "user1-*", "name": "x"})), "");
    check("PropagationPolicy", outer(json!({})), "");
    check(cluster, json!({"excludeResourceSelectors": [{"name": "x"}]}), &format!("{path} apiVersion"));
}

#[test]
fn u1_both_kinds_of_suspension_at_once_are_refused() {
    for kind in ["PropagationPolicy", "ClusterPropagationPolicy", "RolloutPolicy", "ClusterRolloutPolicy"] {
        let check =
            |suspension: Value, expected: &str| check(kind, json!({"suspension": suspension}), expected);
        check(
            json!({"dispatching": true, "dispatchingOnClusters": {"clusterNames": ["a"]}}),
            "spec.suspension one",
        );
        check(
            json!({"suspendDispatching": true, "dispatchingOnClusters": {"clusterNames": ["a"]}}),
            "spec.suspension one",
        );
        check(json!({"dispatching": false, "dispatchingOnClusters": {"clusterNames": ["a"]}}), "");
        check(json!({"suspendDispatchingOnClusters": {"clusterNames": ["a"]}}), "");
        check(json!({}), "");
    }
}

#[test]
fn placements() {
    let check = |placement: Value, expected: &str| {
        check("PropagationPolicy", json!({"placement": placement}), expected)
    };
    let path = "spec.placement";
    check(
        json!({"clusterAffinity": {}, "clusterAffinities": [{"affinityName": "a"}]}),
        "spec.placement co-exist",
    );
    check(
        json!({"clusterAffinities": [{"affinityName": "a"}, {"affinityName": "a"}]}),
        &format!("{path}.clusterAffinities[1].affinityName twice"),
    );
    check(
        json!({"clusterAffinities": [{"affinityName": "-"}]}),
        &format!("{path}.clusterAffinities[0].affinityName label"),
    );
    let selector = |key, operator| json!({"clusterAffinity": {"fieldSelector": {"matchExpressions": [{"key": key, "operator": operator, "values": ["x"]}]}}});
    check(selector("zone", "In"), "");
    check(
        selector("city", "In"),
        &format!("{path}.clusterAffinity.fieldSelector.matchExpressions[0].key region"),
    );
    check(
        selector("zone", "Exists"),
        &format!("{path}.clusterAffinity.fieldSelector.matchExpressions[0].operator NotIn"),
    );
    check(
        json!({"clusterTolerations": [{"operator": "Lt"}]}),
        &format!("{path}.clusterTolerations[0].operator Exists"),
    );
    let overflow = |scheduling: Value, names: Value, other| {
        json!({
            "replicaScheduling": scheduling,
            "clusterAffinities": [{"affinityName": "a", "clusterNames": names, "overflowAffinities": [{"affinityName": other}]}],
        })
    };
    let aggregated = json!({"replicaDivisionPreference": "Aggregated"});
    check(overflow(aggregated.clone(), json!(["m1"]), "b"), "");
    check(
        overflow(json!({}), json!(["m1"]), "b"),
        &format!("{path}.clusterAffinities[0].overflowAffinities Aggregated"),
    );
    check(
        overflow(aggregated.clone(), json!([]), "b"),
        &format!("{path}.clusterAffinities[0].overflowAffinities affinity"),
    );
    check(
        overflow(aggregated, json!(["m1"]), "a"),
        &format!("{path}.clusterAffinities[0].overflowAffinities[0].affinityName twice"),
    );
    check(
        json!({"workloadAffinity": {"affinity": {"groupByLabelKey": "a"}, "antiAffinity": {"groupByLabelKey": "a"}}}),
        &format!("{path}.workloadAffinity same"),
    );
    check(
        json!({"workloadAffinity": {"affinity": {"groupByLabelKey": "-"}}}),
        &format!("{path}.workloadAffinity.affinity.groupByLabelKey label"),
    );
}

#[test]
fn spread_constraints() {
    let check = |constraints: Value, expected: &str| {
        check("PropagationPolicy", json!({"placement": {"spreadConstraints": constraints}}), expected)
    };
    let path = "spec.placement.spreadConstraints";
    check(json!([{}]), "");
    check(json!([{"maxGroups": 1, "minGroups": 2}]), &format!("{path}[0] less"));
    check(json!([{"maxGroups": -1}]), &format!("{path}[0] negative"));
    check(json!([{"spreadByField": "cluster", "spreadByLabel": "x"}]), &format!("{path}[0] co-exist"));
    check(json!([{"spreadByField": "region"}]), &format!("{path} cluster"));
    check(json!([{"spreadByField": "region"}, {"spreadByField": "cluster"}]), "");
    check(json!([{}, {}]), &format!("{path} twice"));
}

#[test]
fn failover() {
    let check = |deps: bool, application: Value, expected: &str| {
        check(
            "PropagationPolicy",
            json!({"propagateDeps": deps, "failover": {"application": application}}),
            expected,
        )
    };
    let path = "spec.failover.application";
    check(true, json!({}), "");
    check(false, json!({}), "spec.propagateDeps true");
    check(
        true,
        json!({"decisionConditions": {"tolerationSeconds": -1}}),
        &format!("{path}.decisionConditions.tolerationSeconds negative"),
    );
    check(true, json!({"gracePeriodSeconds": 0}), &format!("{path}.gracePeriodSeconds greater"));
    check(
        true,
        json!({"purgeMode": "Never", "gracePeriodSeconds": 5}),
        &format!("{path}.gracePeriodSeconds left"),
    );
    check(true, json!({"purgeMode": "Directly"}), "");
    check(
        true,
        json!({"statePreservation": {"rules": [{"aliasLabelName": "-", "jsonPath": "x"}]}}),
        &format!("{path}.statePreservation.rules[0].aliasLabelName label"),
    );
}

#[test]
fn override_policies() {
    let check = |overriders: Value, expected: &str| {
        check("OverridePolicy", json!({"overrideRules": [{"overriders": overriders}]}), expected)
    };
    let path = "spec.overrideRules[0].overriders";
    check(
        json!({"imageOverrider": [{"component": "Tag", "operator": "add", "predicate": {"path": "x"}}]}),
        &format!("{path}.imageOverrider[0].predicate.path pointer"),
    );
    check(
        json!({"labelsOverrider": [{"operator": "add", "value": {"a": "b c"}}]}),
        &format!("{path}.labelsOverrider[0].value label"),
    );
    check(json!({"annotationsOverrider": [{"operator": "add", "value": {"a": "b c"}}]}), "");
    check(
        json!({"annotationsOverrider": [{"operator": "add", "value": {"a b": "c"}}]}),
        &format!("{path}.annotationsOverrider[0].value key"),
    );
    let patch = |operator, value: Value| json!({"fieldOverrider": [{"fieldPath": "/data/x", "json": [{"subPath": "/a", "operator": operator, "value": value}]}]});
    check(patch("add", json!(1)), "");
    check(patch("add", json!(null)), &format!("{path}.fieldOverrider[0].json[0].value required"));
    check(patch("remove", json!(1)), &format!("{path}.fieldOverrider[0].json[0].value left"));
    check(patch("remove", json!(null)), "");
    check(json!({"fieldOverrider": [{"fieldPath": "/a"}]}), &format!("{path}.fieldOverrider[0] yaml"));
    check(
        json!({"fieldOverrider": [{"fieldPath": "a~2", "yaml": [{"subPath": "", "operator": "remove"}]}]}),
        &format!("{path}.fieldOverrider[0].fieldPath pointer"),
    );
    super::tests::check(
        "OverridePolicy",
        json!({"overrideRules": [{"overriders": {}}], "targetCluster": {}}),
        "spec.targetCluster rule",
    );
    super::tests::check(
        "OverridePolicy",
        json!({"overrideRules": [{"overriders": {}}], "overriders": {"plaintext": [{"path": "/a", "operator": "remove"}]}}),
        "spec.overriders rule",
    );
}

#[test]
fn bindings_and_members_and_taints() {
    let components = json!({"components": [{"name": "a", "replicas": 1}, {"name": "a", "replicas": 1}, {"name": "", "replicas": 1}]});
    check("ResourceBinding", components.clone(), "spec.components[1].name twice");
    check("ResourceBinding", components, "spec.components[2].name empty");
    let taint = |effect| json!({"taints": [{"key": "a", "effect": effect}]});
    for effect in ["NoSchedule", "PreferNoSchedule", "NoExecute"] {
        check("ClusterTaintPolicy", taint(effect), "");
    }
    check("ClusterTaintPolicy", taint("Never"), "spec.taints[0].effect NoExecute");
    check(
        "ClusterTaintPolicy",
        json!({"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]}),
        "spec.taints[1] twice",
    );
    let mut binding = policy("ResourceBinding", json!({}));
    binding["metadata"]["annotations"] = json!({"resourcebinding.karmada.io/dependencies": "{"});
    assert!(judge_one(&binding, None, &Gates::default()).is_err());
    // Karmada writes `null` for a list that it never filled (M5).
    for nothing in ["[]", "null"] {
        binding["metadata"]["annotations"] = json!({"resourcebinding.karmada.io/dependencies": nothing});
        assert_eq!(judge_one(&binding, None, &Gates::default()), Ok(vec![]), "{nothing}");
    }
}

fn check_cluster(spec: Value, expected: &str) {
    let cluster = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "member1"}, "spec": spec});
    let verdict = judge_one(&cluster, None, &Gates::default());
    match (expected, verdict) {
        ("", verdict) => assert_eq!(verdict, Ok(vec![]), "{spec}"),
        (path, Err(rejection)) => assert_eq!(rejection.problems[0].path, path, "{rejection}"),
        (path, Ok(_)) => panic!("{spec} was not refused at {path}"),
    }
}

#[test]
fn members() {
    check_cluster(json!({"apiEndpoint": "https://10.0.0.1:6443", "zones": ["a"]}), "");
    check_cluster(json!({"apiEndpoint": "10.0.0.1"}), "spec.apiEndpoint");
    check_cluster(json!({"proxyURL": "ftp://x"}), "spec.proxyURL");
    check_cluster(json!({"secretRef": {"name": "x"}}), "spec.secretRef");
    check_cluster(json!({"zone": "a", "zones": ["b"]}), "spec.zone");
    check_cluster(json!({"provider": "a b"}), "spec.provider");
    check_cluster(json!({"taints": [{"key": "a", "effect": "Sometimes"}]}), "spec.taints[0].effect");
    let range = |min: &str, max: &str| json!([{"name": "cpu", "min": min, "max": max}]);
    check_cluster(
        json!({"resourceModels": [{"grade": 0, "ranges": range("0", "1")}, {"grade": 1, "ranges": range("1", "2")}]}),
        "",
    );
    check_cluster(
        json!({"resourceModels": [{"grade": 1, "ranges": range("0", "1")}]}),
        "spec.resourceModels[0].grade",
    );
    check_cluster(
        json!({"resourceModels": [{"grade": 0, "ranges": range("0", "1")}, {"grade": 1, "ranges": range("2", "3")}]}),
        "spec.resourceModels[1].ranges",
    );
}

#[test]
fn what_a_policy_is_known_by_does_not_change() {
    let old = policy("PropagationPolicy", json!({"schedulerName": "default-scheduler"}));
    let change = |pointer: &str, value: Value| {
        let mut new = old.clone();
        *new.pointer_mut(pointer).unwrap() = value;
        judge_one(&new, Some(&old), &Gates::default())
    };
    assert!(change("/spec/schedulerName", json!("mine")).is_err());
    assert!(change("/metadata/labels", json!({})).is_err());
    assert!(change("/metadata/labels/propagationpolicy.karmada.io~1permanent-id", json!("other")).is_err());
    assert_eq!(change("/spec/schedulerName", json!("default-scheduler")), Ok(vec![]));
}

#[test]
fn a_rule_that_came_later_does_not_keep_a_finalizer() {
    let mut old = policy("ClusterPropagationPolicy", json!({"preemption": "Always"}));
    assert!(judge_one(&old, None, &Gates::default()).is_err());
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    old["metadata"]["resourceVersion"] = "1".into();
    assert_eq!(judge_one(&new, Some(&old), &Gates::default()), Ok(vec![]));
}

#[test]
fn p1_s5_always_without_effect_is_a_warning() {
    let object = policy("PropagationPolicy", json!({"preemption": "Always"}));
    let warnings = |gates: Gates| judge_one(&object, None, &gates).unwrap().len();
    assert_eq!(warnings(Gates::default()), 0);
    assert_eq!(warnings(Gates { preemption: false, ..Gates::default() }), 1);
    assert_eq!(warnings(Gates { static_policy: true, ..Gates::default() }), 1);
    let role =
        json!({"resourceSelectors": [{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}]});
    assert_eq!(judge_one(&policy("PropagationPolicy", role), None, &Gates::default()).unwrap().len(), 1);
}

#[test]
fn protected_objects_are_not_deleted() {
    let gates = Gates::default();
    let delete = |labels: Value| {
        let object = json!({"kind": "Namespace", "metadata": {"labels": labels}});
        let is_cluster_scoped = &|_: &str, _: &str| false;
        admission(&Review {
            operation: Operation::Delete,
            object: &object,
            old: None,
            gates: &gates,
            is_cluster_scoped,
        })
    };
    assert!(delete(json!({"resourcetemplate.karmada.io/deletion-protected": "Always"})).is_err());
    assert!(delete(json!({"resourcetemplate.karmada.io/deletion-protected": "Never"})).is_ok());
}

#[test]
fn defaults_are_filled_in() {
    let object = policy(
        "PropagationPolicy",
        json!({
            "resourceSelectors": [
                {"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport", "exclude": {}},
                {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "given"},
            ],
            "excludeResourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "placement": {"spreadConstraints": [{}, {"spreadByLabel": "x"}], "replicaScheduling": {"replicaSchedulingType": "Divided"}},
            "failover": {"application": {"purgeMode": "Graciously"}},
            "suspension": {"suspendDispatching": true},
        }),
    );
    for (pointer, expected) in [
        ("/spec/resourceSelectors/0/namespace", json!("default")),
        ("/spec/resourceSelectors/0/exclude/namespace", json!("default")),
        ("/spec/resourceSelectors/1/namespace", json!("given")),
        ("/spec/excludeResourceSelectors/0/namespace", json!("default")),
        ("/spec/placement/spreadConstraints/0", json!({"spreadByField": "cluster", "minGroups": 1})),
        ("/spec/placement/spreadConstraints/1", json!({"spreadByLabel": "x", "minGroups": 1})),
        ("/spec/placement/replicaScheduling/replicaDivisionPreference", json!("Weighted")),
        ("/spec/propagateDeps", json!(true)),
        ("/spec/failover/application/gracePeriodSeconds", json!(600)),
        ("/spec/suspension", json!({"dispatching": true})),
        ("/metadata/finalizers", json!(["karmada.io/propagation-policy-controller"])),
        (
            "/metadata/labels",
            json!({"propagationpolicy.karmada.io/permanent-id": "07070707-0707-4707-8707-070707070707"}),
        ),
    ] {
        assert_eq!(object.pointer(pointer), Some(&expected), "{pointer}");
    }
    let mut twice = object.clone();
    defaults(&mut twice, Some(&object), Operation::Update, [9; 16], now());
    assert_eq!(twice, object, "filling in twice changes nothing");
    defaults(&mut twice, None, Operation::Create, [9; 16], now());
    assert_ne!(twice["metadata"]["labels"], object["metadata"]["labels"], "a copy is another policy");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever JSON arrives as a spec, admission answers.
    #[test]
    fn no_spec_makes_it_fail(text in "\\{(\"[a-z]{1,9}\":(\\[\\]|\\{\\}|1|\"[a-z*,~/]{0,4}\"|null),?){0,3}\\}", field in "resourceSelectors|placement|suspension|failover|overrideRules|taints") {
        let value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        for kind in ["PropagationPolicy", "ClusterOverridePolicy", "ClusterTaintPolicy", "RolloutPolicy"] {
            for written in [value.clone(), json!([value.clone()])] {
                let mut object = policy(kind, json!({}));
                object["spec"][&field] = written;
                defaults(&mut object, None, Operation::Create, [1; 16], now());
                let _ = judge_one(&object, None, &Gates::default());
            }
        }
    }
}
