//! Built-in kinds as behaviour.md 4.5, 6.2, 6.8 and 6.9 describe them.

use api::binding::AggregatedStatusItem;
use api::work::Health;
use jiff::Timestamp;
use serde_json::json;

use super::*;

fn object(api_version: &str, kind: &str, rest: Value) -> Value {
    let mut object =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "ns"}});
    for (field, value) in rest.as_object().expect("fields") {
        match (field.as_str(), object.get_mut(field)) {
            ("metadata", Some(metadata)) => metadata
                .as_object_mut()
                .expect("metadata")
                .extend(value.as_object().expect("metadata").clone()),
            _ => object[field] = value.clone(),
        }
    }
    object
}

fn workload(kind: &str, spec: Value) -> Value {
    object(if kind.ends_with("Job") { "batch/v1" } else { "apps/v1" }, kind, json!({"spec": spec}))
}

#[test]
fn replicas_are_told_and_revised() {
    let check = |object: Value, expected: i32, revised: Value| {
        assert_eq!(replicas(&object).0, expected, "{object}");
        let mut changed = object.clone();
        revise_replicas(&mut changed, 9);
        assert_eq!(changed["spec"], revised, "{object}");
    };
    check(workload("Deployment", json!({"replicas": 3})), 3, json!({"replicas": 9}));
    check(workload("Deployment", json!({})), 0, json!({}));
    check(workload("StatefulSet", json!({"replicas": 2})), 2, json!({"replicas": 9}));
    check(workload("ReplicaSet", json!({"replicas": 1})), 1, json!({"replicas": 9}));
    check(workload("Job", json!({"parallelism": 4})), 4, json!({"parallelism": 9}));
    check(
        workload("Job", json!({"parallelism": 4, "completions": 2})),
        2,
        json!({"parallelism": 9, "completions": 2}),
    );
    check(workload("DaemonSet", json!({"replicas": 1})), 0, json!({"replicas": 1}));
    check(object("v1", "Pod", json!({"spec": {}})), 1, json!({}));
    check(object("v1", "ConfigMap", json!({"spec": {"replicas": 1}})), 0, json!({"replicas": 1}));
    assert!(has_replicas("batch/v1", "Job") && !has_replicas("v1", "Pod"));
}

#[test]
fn a_replica_needs_what_its_pod_asks_for() {
    let check = |pod: Value, expected: Value| {
        let (_, requirements) =
            replicas(&workload("Deployment", json!({"replicas": 1, "template": {"spec": pod}})));
        assert_eq!(serde_json::to_value(requirements).expect("json"), expected, "{pod}");
    };
    check(json!({"containers": [{"name": "a"}]}), Value::Null);
    check(
        json!({
            "containers": [
                {"resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}},
                {"resources": {"requests": {"cpu": "0.2"}, "limits": {"cpu": "2", "memory": "128Mi", "nvidia.com/gpu": 1}}},
            ],
            "initContainers": [{"resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}],
            "overhead": {"cpu": "50m"},
        }),
        json!({"resourceRequest": {"cpu": "1050m", "memory": "256Mi", "nvidia.com/gpu": "1"}}),
    );
    check(
        json!({
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}],
            }}},
        }),
        json!({"nodeClaim": {
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "hardNodeAffinity": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}]},
        }}),
    );
}

#[test]
fn c4_a_member_keeps_its_replicas_when_the_template_says_so() {
    let member = workload("Deployment", json!({"replicas": 7}));
    let mut manifest = workload("Deployment", json!({"replicas": 3}));
    retain(&mut manifest, &member);
    assert_eq!(manifest["spec"]["replicas"], 3);
    put(&mut manifest, &["metadata", "labels", labels::RETAIN_REPLICAS], "true".into());
    retain(&mut manifest, &member);
    assert_eq!(manifest["spec"]["replicas"], 7);
}

#[test]
fn dependencies_are_found_and_sorted() {
    let names = |object: &Value| {
        let found = dependencies(object)?;
        Some(
            found
                .iter()
                .map(|one| format!("{} {}/{}", one.kind, one.namespace, one.name))
                .collect::<Vec<_>>(),
        )
    };
    let pod = json!({
        "serviceAccountName": "robot",
        "imagePullSecrets": [{"name": "pull"}],
        "containers": [{"envFrom": [{"configMapRef": {"name": "c2"}}, {"secretRef": {"name": "s2"}}],
            "env": [{"valueFrom": {"secretKeyRef": {"name": "s1"}}}, {"valueFrom": {"configMapKeyRef": {"name": "c1"}}}]}],
        "initContainers": [{"envFrom": [{"configMapRef": {"name": "c2"}}]}],
        "volumes": [
            {"configMap": {"name": "c3"}}, {"secret": {"secretName": "s3"}},
            {"persistentVolumeClaim": {"claimName": "data"}}, {"persistentVolumeClaim": {"claimName": "own"}},
            {"projected": {"sources": [{"configMap": {"name": "c4"}}, {"secret": {"name": "s4"}}]}},
            {"csi": {"nodePublishSecretRef": {"name": "s5"}}},
        ],
    });
    let expected = [
        "ConfigMap ns/c1",
        "ConfigMap ns/c2",
        "ConfigMap ns/c3",
        "ConfigMap ns/c4",
        "PersistentVolumeClaim ns/data",
        "PersistentVolumeClaim ns/own",
        "Secret ns/pull",
        "Secret ns/s1",
        "Secret ns/s2",
        "Secret ns/s3",
        "Secret ns/s4",
        "Secret ns/s5",
        "ServiceAccount ns/robot",
    ];
    let expected: Vec<String> = expected.map(str::to_owned).to_vec();
    assert_eq!(names(&workload("Deployment", json!({"template": {"spec": pod}}))), Some(expected.clone()));
    assert_eq!(names(&object("v1", "Pod", json!({"spec": pod}))), Some(expected.clone()));
    assert_eq!(
        names(&workload("CronJob", json!({"jobTemplate": {"spec": {"template": {"spec": pod}}}}))),
        Some(expected.clone())
    );
    let stateful =
        json!({"template": {"spec": pod}, "volumeClaimTemplates": [{"metadata": {"name": "own"}}]});
    let without_own: Vec<String> = expected.into_iter().filter(|name| !name.ends_with("/own")).collect();
    assert_eq!(names(&workload("StatefulSet", stateful)), Some(without_own));
    let tls = json!({"spec": {"tls": [{"secretName": "b"}, {"secretName": "a"}, {"hosts": []}]}});
    assert_eq!(
        names(&object("networking.k8s.io/v1", "Ingress", tls)),
        Some(vec!["Secret ns/a".to_owned(), "Secret ns/b".to_owned()])
    );
    let import =
        dependencies(&object("multicluster.x-k8s.io/v1alpha1", "ServiceImport", json!({}))).expect("known");
    assert_eq!((import[0].kind.as_str(), import[1].name.as_str()), ("EndpointSlice", "derived-x"));
    assert_eq!(names(&object("v1", "ConfigMap", json!({}))), None);
}

#[test]
fn health_is_told_from_the_status() {
    let check = |object: Value, expected: Health| assert_eq!(health(&object), expected, "{object}");
    let deployment = |updated: i64, available: i64, observed: i64| {
        object(
            "apps/v1",
            "Deployment",
            json!({
                "metadata": {"generation": 2}, "spec": {"replicas": 2},
                "status": {"updatedReplicas": updated, "availableReplicas": available, "observedGeneration": observed},
            }),
        )
    };
    check(deployment(2, 2, 2), Health::Healthy);
    check(deployment(1, 1, 2), Health::Unhealthy);
    check(deployment(2, 1, 2), Health::Unhealthy);
    check(deployment(2, 2, 1), Health::Unhealthy);
    let service = |kind: &str, status: Value| {
        object("v1", "Service", json!({"spec": {"type": kind}, "status": status}))
    };
    check(service("ClusterIP", json!({})), Health::Healthy);
    check(service("LoadBalancer", json!({})), Health::Unhealthy);
    check(
        service("LoadBalancer", json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}})),
        Health::Healthy,
    );
    let pod = |phase: &str, ready: &str| {
        object(
            "v1",
            "Pod",
            json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}}),
        )
    };
    check(pod("Running", "True"), Health::Healthy);
    check(pod("Running", "False"), Health::Unhealthy);
    check(pod("Succeeded", "False"), Health::Healthy);
    check(pod("Pending", "True"), Health::Unhealthy);
    check(object("v1", "PersistentVolumeClaim", json!({"status": {"phase": "Bound"}})), Health::Healthy);
    check(object("v1", "PersistentVolumeClaim", json!({})), Health::Unhealthy);
    check(
        object(
            "policy/v1",
            "PodDisruptionBudget",
            json!({"status": {"currentHealthy": 1, "desiredHealthy": 2}}),
        ),
        Health::Unhealthy,
    );
    check(workload("DaemonSet", json!({})), Health::Healthy);
    check(workload("Job", json!({})), Health::Healthy);
    check(object("v1", "ConfigMap", json!({})), Health::Healthy);
    assert!(
        has_health("apps/v1", "Deployment")
            && !has_health("batch/v1", "Job")
            && !has_health("v1", "ConfigMap")
    );
}

#[test]
fn only_what_matters_is_collected() {
    let deployment = object(
        "apps/v1",
        "Deployment",
        json!({
            "metadata": {"generation": 4, "annotations": {"resourcetemplate.karmada.io/generation": "3"}},
            "status": {"replicas": 2, "readyReplicas": 1, "observedGeneration": 4, "conditions": [{"type": "Progressing"}]},
        }),
    );
    assert_eq!(
        reflect(&deployment),
        Some(
            json!({"replicas": 2, "readyReplicas": 1, "observedGeneration": 4, "generation": 4, "resourceTemplateGeneration": 3})
        )
    );
    let service = |kind: &str| {
        object(
            "v1",
            "Service",
            json!({"spec": {"type": kind}, "status": {"loadBalancer": {}, "conditions": []}}),
        )
    };
    assert_eq!(reflect(&service("ClusterIP")), None);
    assert_eq!(reflect(&service("LoadBalancer")), Some(json!({"loadBalancer": {}})));
    assert_eq!(reflect(&object("x.io/v1", "Thing", json!({"status": {"any": 1}}))), Some(json!({"any": 1})));
    assert_eq!(reflect(&object("x.io/v1", "Thing", json!({}))), None);
}

fn check_aggregate(template: &Value, members: &[Value], expected: Value) {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
    let item = |(index, status): (usize, &Value)| AggregatedStatusItem {
        cluster_name: format!("m{}", index + 1),
        status: (!status.is_null()).then(|| status.clone().into()),
        ..AggregatedStatusItem::default()
    };
    let items: Vec<_> = members.iter().enumerate().map(item).collect();
    let new = aggregate(template, &items, now);
    assert_eq!(new.clone().unwrap_or(Value::Null), expected, "{template}");
    if let Some(status) = new {
        let mut template = template.clone();
        template["status"] = status;
        assert_eq!(aggregate(&template, &items, now), None, "C6: the same statuses twice are no change");
    }
}

#[test]
fn counters_add_up_and_the_generation_follows_the_slowest_member() {
    let deployment = object(
        "apps/v1",
        "Deployment",
        json!({"metadata": {"generation": 3}, "status": {"conditions": [1], "unavailableReplicas": 2}}),
    );
    let member = |template: i64| json!({"replicas": 2, "readyReplicas": 1, "generation": 5, "observedGeneration": 5, "resourceTemplateGeneration": template});
    let sums = json!({"replicas": 4, "readyReplicas": 2, "conditions": [1]});
    let mut observed = sums.clone();
    observed["observedGeneration"] = json!(3);
    check_aggregate(&deployment, &[], json!({"conditions": [1]}));
    let replica_set = object(
        "apps/v1",
        "ReplicaSet",
        json!({"metadata": {"generation": 3}, "status": {"conditions": [1], "availableReplicas": 2}}),
    );
    check_aggregate(&replica_set, &[member(3), member(3)], observed);
    check_aggregate(&replica_set, &[member(3), member(2)], sums);
    check_aggregate(
        &replica_set,
        &[member(3), Value::Null],
        json!({"replicas": 2, "readyReplicas": 1, "conditions": [1]}),
    );
    let stateful = object("apps/v1", "StatefulSet", json!({"metadata": {"generation": 3}}));
    check_aggregate(
        &stateful,
        &[member(3)],
        json!({"replicas": 2, "readyReplicas": 1, "availableReplicas": 0, "observedGeneration": 3}),
    );
}

#[test]
fn addresses_phases_and_budgets_are_merged() {
    let balancer = object("v1", "Service", json!({"spec": {"type": "LoadBalancer"}}));
    let ingress = |ips: &[&str]| json!({"loadBalancer": {"ingress": ips.iter().map(|ip| json!({"ip": ip})).collect::<Vec<_>>()}});
    check_aggregate(
        &balancer,
        &[ingress(&["2.2.2.2", "1.1.1.1"]), ingress(&["1.1.1.1"])],
        ingress(&["1.1.1.1", "2.2.2.2"]),
    );
    check_aggregate(
        &object("v1", "Service", json!({"spec": {"type": "ClusterIP"}})),
        &[json!({})],
        Value::Null,
    );
    let phase = |phase: &str| json!({"phase": phase});
    let pod = object("v1", "Pod", json!({}));
    check_aggregate(&pod, &[phase("Running"), phase("Succeeded")], phase("Running"));
    check_aggregate(&pod, &[phase("Running"), Value::Null], phase("Pending"));
    check_aggregate(&pod, &[phase("Failed"), Value::Null], phase("Failed"));
    let volume = object("v1", "PersistentVolume", json!({}));
    check_aggregate(&volume, &[phase("Bound"), phase("Available")], phase("Available"));
    let claim = object("v1", "PersistentVolumeClaim", json!({}));
    check_aggregate(&claim, &[phase("Bound"), phase("Pending")], phase("Pending"));
    check_aggregate(&claim, &[phase("Lost"), phase("Pending")], phase("Lost"));
    check_aggregate(
        &object("policy/v1", "PodDisruptionBudget", json!({})),
        &[
            json!({"currentHealthy": 1, "disruptedPods": {"p": "t"}}),
            json!({"currentHealthy": 2, "desiredHealthy": 1}),
        ],
        json!({"currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 0, "disruptionsAllowed": 0, "disruptedPods": {"m1/p": "t"}}),
    );
    check_aggregate(
        &object("autoscaling/v2", "HorizontalPodAutoscaler", json!({})),
        &[json!({"currentReplicas": 1, "desiredReplicas": 2}), json!({"currentReplicas": 3})],
        json!({"currentReplicas": 4, "desiredReplicas": 2}),
    );
    check_aggregate(
        &object("batch/v1", "CronJob", json!({})),
        &[
            json!({"active": [1], "lastScheduleTime": "2026-01-01T00:00:00Z"}),
            json!({"active": [2], "lastScheduleTime": "2026-01-02T00:00:00Z"}),
        ],
        json!({"active": [1, 2], "lastScheduleTime": "2026-01-02T00:00:00Z"}),
    );
    check_aggregate(&object("x.io/v1", "Thing", json!({})), &[json!({"a": 1})], Value::Null);
}

#[test]
fn a_job_is_done_when_it_is_done_everywhere() {
    let job = object("batch/v1", "Job", json!({}));
    let member = |condition: &str, start: &str, end: &str| {
        let mut status = json!({"succeeded": 1, "startTime": start});
        if !condition.is_empty() {
            status["conditions"] = json!([{"type": condition, "status": "True"}]);
        }
        if !end.is_empty() {
            status["completionTime"] = json!(end);
        }
        status
    };
    let (early, late) = ("2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z");
    let told = |kind: &str, reason: &str, message: &str| {
        json!([{"type": kind, "status": "True", "reason": reason, "message": message,
            "lastProbeTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}])
    };
    check_aggregate(
        &job,
        &[member("Complete", late, early), member("Complete", early, late)],
        json!({"succeeded": 2, "startTime": early, "completionTime": late, "conditions": told("Complete", "Completed", "Job completed")}),
    );
    check_aggregate(
        &job,
        &[member("Complete", late, early), member("", early, "")],
        json!({"succeeded": 2, "startTime": early}),
    );
    check_aggregate(&job, &[member("", late, ""), Value::Null], json!({"succeeded": 1}));
    let finished = object(
        "batch/v1",
        "Job",
        json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}}),
    );
    check_aggregate(&finished, &[member("", early, "")], Value::Null);
}

#[test]
fn a_job_has_failed_when_it_failed_somewhere_and_the_rest_is_counted_still() {
    let start = "2026-01-01T01:00:00Z";
    let failed =
        json!({"failed": 1, "startTime": start, "conditions": [{"type": "Failed", "status": "True"}]});
    let told = |clusters: &str| {
        let message = format!("Job executed failed in member clusters {clusters}");
        let condition = |kind: &str| {
            json!({"type": kind, "status": "True", "reason": "JobFailed", "message": message,
                "lastProbeTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        json!([condition("FailureTarget"), condition("Failed")])
    };
    let job = |status: &Value| object("batch/v1", "Job", json!({"status": status}));
    // Kubernetes lets no Job finish that has something active or that never began.
    let first = json!({"failed": 1, "startTime": start, "conditions": told("m1")});
    let active = json!({"active": 2, "startTime": start});
    check_aggregate(&job(&Value::Null), &[failed.clone(), active.clone()], first.clone());
    check_aggregate(&job(&Value::Null), &[failed.clone(), Value::Null], first.clone());
    check_aggregate(&job(&first), &[failed.clone(), active], Value::Null);
    let done =
        json!({"succeeded": 2, "startTime": start, "conditions": [{"type": "Complete", "status": "True"}]});
    let both = json!({"failed": 1, "succeeded": 2, "startTime": start, "conditions": told("m1")});
    check_aggregate(&job(&first), &[failed.clone(), done.clone()], both.clone());
    let twice = json!({"failed": 2, "startTime": start, "conditions": told("m1,m2")});
    check_aggregate(&job(&first), &[failed.clone(), failed], twice);
    check_aggregate(&job(&both), &[done], Value::Null);
}
