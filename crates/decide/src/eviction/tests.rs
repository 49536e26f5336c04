//! Taints, failures, purge modes, grace periods, and what suspension holds back.

use api::ClusterTaintPolicy;
use api::work::Health;
use serde_json::{Value, json};

use super::*;

const ADDED: &str = "2026-01-01T00:00:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().expect(text)
}

fn tainted(name: &str, taints: Value) -> Cluster {
    serde_json::from_value(json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
        "spec": {"syncMode": "Push", "taints": taints},
    }))
    .expect("a cluster")
}

/// A binding of a Deployment in m1 and m2 whose scheduled placement has these tolerations.
fn binding(tolerations: Value, spec: Value) -> Binding {
    let mut whole = json!({
        "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "nginx"},
        "propagateDeps": true,
        "clusters": [{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 1}],
    });
    whole.as_object_mut().expect("a spec").extend(spec.as_object().expect("a spec").clone());
    let mut binding: Binding = serde_json::from_value(json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": "nginx-deployment", "namespace": "default", "generation": 1}, "spec": whole,
        "status": {"schedulerObservedGeneration": 1},
    }))
    .expect("a binding");
    let applied = json!({"clusterTolerations": tolerations}).to_string();
    binding.metadata.annotations.insert(annotations::APPLIED_PLACEMENT.to_owned(), applied);
    binding
}

fn no_execute() -> Cluster {
    tainted("m1", json!([{"key": "k", "effect": "NoExecute", "timeAdded": ADDED}]))
}

fn evicted(binding: &Binding, clusters: &[Cluster], now: &str) -> Vec<String> {
    eviction(binding, clusters, at(now), Settings::default()).evictions.into_keys().collect()
}

#[test]
fn c8_taints_that_are_not_borne_evict() {
    let check = |tolerations: Value, now: &str, expected: &[&str], next: Option<&str>| {
        let answer =
            eviction(&binding(tolerations, json!({})), &[no_execute()], at(now), Settings::default());
        assert_eq!(answer.evictions.keys().collect::<Vec<_>>(), expected);
        assert_eq!(answer.next.map(|next| next.to_string()).as_deref(), next);
    };
    let tolerates =
        |seconds: Value| json!([{"key": "k", "operator": "Exists", "tolerationSeconds": seconds}]);
    check(json!([]), ADDED, &["m1"], None);
    check(tolerates(Value::Null), "2030-01-01T00:00:00Z", &[], None);
    check(tolerates(json!(60)), "2026-01-01T00:00:59Z", &[], Some("2026-01-01T00:01:00Z"));
    check(tolerates(json!(60)), "2026-01-01T00:01:00Z", &["m1"], None);
    check(json!([{"key": "other", "operator": "Exists"}]), ADDED, &["m1"], None);
    let soft = tainted("m1", json!([{"key": "k", "effect": "NoSchedule"}]));
    assert_eq!(evicted(&binding(json!([]), json!({})), &[soft], ADDED), [""; 0]);
    let elsewhere = tainted("m3", json!([{"key": "k", "effect": "NoExecute"}]));
    assert_eq!(evicted(&binding(json!([]), json!({})), &[elsewhere], ADDED), [""; 0]);
    let off = Settings { taints_evict: false, ..Settings::default() };
    assert_eq!(
        eviction(&binding(json!([]), json!({})), &[no_execute()], at(ADDED), off),
        Evictions::default()
    );
}

#[test]
fn an_eviction_is_a_task_in_place_of_a_cluster() {
    let mut binding = binding(json!([]), json!({"failover": {"cluster": {"purgeMode": "Directly"}}}));
    eviction(&binding, &[no_execute()], at(ADDED), Settings::default()).write(&mut binding);
    let names: Vec<&str> = binding.spec.clusters.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["m2"]);
    assert_eq!(
        serde_json::to_value(&binding.spec.graceful_eviction_tasks).expect("json"),
        json!([{"fromCluster": "m1", "purgeMode": "Directly", "replicas": 2, "reason": "TaintUntolerated", "producer": "TaintManager"}])
    );
    let again = eviction(&binding, &[no_execute()], at(ADDED), Settings::default());
    assert_eq!(again, Evictions::default(), "what has left is not evicted twice");
}

fn failing(rules: Value, suspension: Value, health: &str) -> Binding {
    let mut binding =
        binding(json!([]), json!({"failover": {"application": rules}, "suspension": suspension}));
    let status = json!([{"clusterName": "m1", "applied": true, "health": health}, {"clusterName": "m2", "applied": true, "health": "Healthy"}]);
    binding.status.aggregated_status = serde_json::from_value(status).expect("statuses");
    binding
}

#[test]
fn r1_a_failing_application_is_timed_across_restarts() {
    let mut binding = failing(
        json!({"decisionConditions": {"tolerationSeconds": 60}, "gracePeriodSeconds": 30}),
        Value::Null,
        "Unhealthy",
    );
    let first = eviction(&binding, &[], at(ADDED), Settings::default());
    assert_eq!(
        (first.evictions.len(), first.next.expect("a time").to_string().as_str()),
        (0, "2026-01-01T00:01:00Z")
    );
    first.write(&mut binding);
    assert_eq!(binding.metadata.annotation(UNHEALTHY_SINCE), format!("{{\"m1\":\"{ADDED}\"}}"));

    let mut recovered = binding.clone();
    recovered.status.aggregated_status[0].health = Some(Health::Unknown);
    eviction(&recovered, &[], at("2026-01-01T00:00:30Z"), Settings::default()).write(&mut recovered);
    assert_eq!(recovered.metadata.annotation(UNHEALTHY_SINCE), "");

    let late = eviction(&binding, &[], at("2026-01-01T00:01:00Z"), Settings::default());
    assert_eq!(
        late.evictions["m1"].why.to_string(),
        "it has been unhealthy since 2026-01-01T00:00:00Z, longer than the 60 s of its toleration"
    );
    late.write(&mut binding);
    let task = &binding.spec.graceful_eviction_tasks[0];
    assert_eq!(
        (task.purge_mode, task.grace_period_seconds, task.suppress_deletion),
        (Some(PurgeMode::Gracefully), Some(30), None)
    );
    assert_eq!(task.producer, "resource-binding-application-failover-controller");
    assert_eq!(binding.metadata.annotation(UNHEALTHY_SINCE), "");
}

#[test]
fn purge_modes_make_different_tasks() {
    let task = |mode: &str| {
        let mut binding = failing(
            json!({"decisionConditions": {"tolerationSeconds": 0}, "purgeMode": mode, "gracePeriodSeconds": 30}),
            Value::Null,
            "Unhealthy",
        );
        eviction(&binding, &[], at(ADDED), Settings::default()).write(&mut binding);
        let task = binding.spec.graceful_eviction_tasks.remove(0);
        (task.grace_period_seconds, task.suppress_deletion)
    };
    assert_eq!(task("Gracefully"), (Some(30), None));
    assert_eq!(task("Directly"), (None, None));
    assert_eq!(task("Never"), (None, Some(true)));
    let mut config =
        failing(json!({"decisionConditions": {"tolerationSeconds": 0}}), Value::Null, "Unhealthy");
    config.spec.resource.kind = "ConfigMap".to_owned();
    assert_eq!(evicted(&config, &[], ADDED), [""; 0], "nobody can tell its health");
    let mut alone =
        failing(json!({"decisionConditions": {"tolerationSeconds": 0}}), Value::Null, "Unhealthy");
    alone.spec.propagate_deps = false;
    assert_eq!(evicted(&alone, &[], ADDED), [""; 0]);
}

#[test]
fn u5_nothing_that_is_suspended_is_evicted_and_resuming_judges_at_once() {
    let everywhere = json!({"dispatching": true});
    let here = json!({"dispatchingOnClusters": {"clusterNames": ["m1"]}});
    let elsewhere = json!({"dispatchingOnClusters": {"clusterNames": ["m2"]}});
    for (suspension, expected) in [(&everywhere, 0), (&here, 0), (&elsewhere, 1), (&Value::Null, 1)] {
        let held = binding(json!([]), json!({"suspension": suspension}));
        let answer = eviction(&held, &[no_execute()], at(ADDED), Settings::default());
        assert_eq!((answer.evictions.len(), answer.held.len()), (expected, 1 - expected), "{suspension}");
        let verb = if expected == 1 { "leaves m1" } else { "would leave m1 if it were not suspended" };
        let told =
            format!("It {verb}, because the cluster has the taint k:NoExecute, which it does not tolerate.");
        assert_eq!(answer.to_string(), told);

        let rules = json!({"decisionConditions": {"tolerationSeconds": 0}});
        let failing = failing(rules, suspension.clone(), "Unhealthy");
        assert_eq!(evicted(&failing, &[], ADDED).len(), expected, "{suspension}");
    }
}

fn leaving(task: Value, suspension: Value, health: &str) -> Binding {
    let mut whole = json!({"fromCluster": "m0", "reason": "r", "producer": "p"});
    whole.as_object_mut().expect("a task").extend(task.as_object().expect("a task").clone());
    let mut binding = failing(Value::Null, suspension, health);
    binding.spec.graceful_eviction_tasks = vec![serde_json::from_value(whole).expect("a task")];
    binding
}

#[test]
fn a_copy_is_let_go_when_it_is_replaced_or_its_time_is_up() {
    let check = |binding: &Binding, now: &str, expected: &str| {
        let answer = graceful(binding, &[], at(now), 600);
        let kept = answer.kept.get("m0").map(ToString::to_string);
        let let_go = answer.let_go.get("m0").map(ToString::to_string);
        assert_eq!(kept.or(let_go).as_deref(), Some(expected));
        assert_eq!(answer.tasks.is_empty(), answer.let_go.contains_key("m0"));
    };
    let begun = |task: Value| {
        let mut task = task;
        task["creationTimestamp"] = json!(ADDED);
        task
    };
    check(&leaving(json!({}), Value::Null, "Healthy"), ADDED, "the eviction has just begun");
    check(&leaving(begun(json!({})), Value::Null, "Healthy"), ADDED, "every new copy is healthy");
    check(&leaving(begun(json!({})), Value::Null, "Unknown"), ADDED, "the new copies are not healthy yet");
    check(
        &leaving(begun(json!({})), Value::Null, "Unknown"),
        "2026-01-01T00:10:00Z",
        "the new copies are not healthy yet",
    );
    check(
        &leaving(begun(json!({})), Value::Null, "Unknown"),
        "2026-01-01T00:10:01Z",
        "its grace period is over",
    );
    check(
        &leaving(begun(json!({"gracePeriodSeconds": 5})), Value::Null, "Unknown"),
        "2026-01-01T00:00:06Z",
        "its grace period is over",
    );
    check(
        &leaving(begun(json!({"suppressDeletion": true})), Value::Null, "Healthy"),
        "2030-01-01T00:00:00Z",
        "its deletion is suppressed until a user changes suppressDeletion",
    );
    check(
        &leaving(begun(json!({"suppressDeletion": false})), Value::Null, "Unknown"),
        ADDED,
        "a user allowed its deletion",
    );
    let mut unscheduled = leaving(begun(json!({})), Value::Null, "Healthy");
    unscheduled.metadata.generation = 2;
    check(&unscheduled, ADDED, "the new copies are not healthy yet");
    // U5: the replacement is held, so letting the old copy go would end the workload.
    let on = |cluster: &str| json!({"dispatchingOnClusters": {"clusterNames": [cluster]}});
    for suspension in [json!({"dispatching": true}), on("m2"), on("m0")] {
        check(
            &leaving(begun(json!({})), suspension, "Unknown"),
            "2030-01-01T00:00:00Z",
            "the workload is suspended",
        );
    }
    let mut stamped = leaving(json!({}), Value::Null, "Unknown");
    let answer = graceful(&stamped, &[], at(ADDED), 600);
    assert_eq!(answer.next.expect("a time").to_string(), "2026-01-01T00:10:00Z");
    answer.write(&mut stamped);
    assert_eq!(
        stamped.spec.graceful_eviction_tasks[0].creation_timestamp.expect("a time").to_string(),
        ADDED
    );
}

#[test]
fn taints_follow_health_and_policies() {
    let check =
        |taints_now: Value, ready: Option<&str>, policies: &[ClusterTaintPolicy], expected: &[&str]| {
            let mut cluster = tainted("m1", taints_now);
            if let Some(ready) = ready {
                cluster.status.conditions = serde_json::from_value(
                    json!([{"type": "Ready", "status": ready, "reason": "", "message": ""}]),
                )
                .expect("conditions");
            }
            let told: Vec<String> = taints(&cluster, policies, at(ADDED))
                .iter()
                .map(|taint| format!("{}:{}", taint.key, taint.effect))
                .collect();
            assert_eq!(told, expected);
        };
    let not_ready = json!([{"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule"}]);
    check(json!([]), None, &[], &["cluster.karmada.io/not-ready:NoSchedule"]);
    check(json!([]), Some("False"), &[], &["cluster.karmada.io/not-ready:NoSchedule"]);
    check(not_ready.clone(), Some("Unknown"), &[], &["cluster.karmada.io/unreachable:NoSchedule"]);
    check(not_ready, Some("True"), &[], &[]);
    check(json!([{"key": "mine", "effect": "NoExecute"}]), Some("True"), &[], &["mine:NoExecute"]);
    let policy: ClusterTaintPolicy = serde_json::from_value(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterTaintPolicy", "metadata": {"name": "p"},
        "spec": {
            "targetClusters": {"clusterNames": ["m1"]},
            "addOnConditions": [{"conditionType": "Ready", "operator": "NotIn", "statusValues": ["True"]}],
            "removeOnConditions": [{"conditionType": "Ready", "operator": "In", "statusValues": ["True"]}],
            "taints": [{"key": "down", "effect": "NoExecute"}],
        },
    }))
    .expect("a policy");
    let policies = [policy];
    check(
        json!([]),
        Some("False"),
        &policies,
        &["cluster.karmada.io/not-ready:NoSchedule", "down:NoExecute"],
    );
    check(json!([{"key": "down", "effect": "NoExecute"}]), Some("True"), &policies, &[]);
    check(json!([]), None, &policies, &["cluster.karmada.io/not-ready:NoSchedule"]);
    let added = taints(&tainted("m1", json!([])), &[], at(ADDED));
    assert_eq!(added[0].time_added, None, "only NoExecute taints are timed");
}

#[test]
fn the_shortest_time_of_all_taints_counts() {
    let taint = |key: &str| json!({"key": key, "effect": "NoExecute", "timeAdded": ADDED});
    let bears =
        |key: &str, seconds: i64| json!({"key": key, "operator": "Exists", "tolerationSeconds": seconds});
    let bound = binding(json!([bears("a", 90), bears("b", 30), bears("c", 60)]), json!({}));
    let cluster = tainted("m1", json!([taint("a"), taint("b"), taint("c")]));
    let next = eviction(&bound, &[cluster], at(ADDED), Settings::default()).next;
    assert_eq!(next.expect("a time").to_string(), "2026-01-01T00:00:30Z");
}

/// A claimed binding of a Deployment in m1 with a placement of its own.
fn claimed(failover: Value) -> Binding {
    let mut binding = binding(json!([]), json!({"failover": failover}));
    binding.metadata.labels.insert(api::labels::PROPAGATION_POLICY_PERMANENT_ID.to_owned(), "id".to_owned());
    binding.spec.clusters.truncate(1);
    binding.spec.replicas = 2;
    binding.spec.placement = serde_json::from_value(json!({"clusterTolerations": []})).expect("a placement");
    binding.metadata.annotations.insert(annotations::APPLIED_PLACEMENT.to_owned(), "{}".to_owned());
    binding
}

fn ready(name: &str) -> Cluster {
    let mut cluster = tainted(name, json!([]));
    let apis =
        json!([{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}]);
    cluster.status.api_enablements = serde_json::from_value(apis).expect("kinds");
    cluster
}

#[test]
fn m2_the_last_copy_stays_where_nothing_else_fits() {
    let check = |failover: Value, clusters: &[Cluster], leaves: bool| {
        let answer = eviction(&claimed(failover.clone()), clusters, at(ADDED), Settings::default());
        let told = (answer.evictions.len(), answer.last_copies.len());
        assert_eq!(told, if leaves { (1, 0) } else { (0, 1) }, "{failover}");
    };
    check(Value::Null, &[no_execute()], false);
    check(Value::Null, &[no_execute(), ready("m2")], true);
    check(json!({"cluster": {"purgeMode": "Gracefully"}}), &[no_execute()], false);
    check(json!({"cluster": {"purgeMode": "Directly"}}), &[no_execute()], true);
    check(json!({"cluster": {"evictLastCopy": true}}), &[no_execute()], true);
    check(json!({"cluster": {"evictLastCopy": false}}), &[no_execute()], false);
    let alone = claimed(Value::Null);
    let answer = eviction(&alone, &[no_execute()], at(ADDED), Settings::default());
    let told = "It would leave m1 if another cluster fitted, because the cluster has the taint k:NoExecute, \
                which it does not tolerate.";
    assert_eq!(answer.to_string(), told);
    let condition = kept(&alone, &answer).expect("it is said");
    assert_eq!((condition.reason.as_str(), condition.observed_generation), ("TaintUntolerated", 1));
    assert_eq!(kept(&alone, &Evictions::default()), None);
}

#[test]
fn m2_a_failing_application_is_timed_while_it_stays() {
    let rules = |more: Value| {
        let mut rules = json!({"decisionConditions": {"tolerationSeconds": 0}, "gracePeriodSeconds": 5});
        rules.as_object_mut().expect("rules").extend(more.as_object().expect("rules").clone());
        let mut binding = claimed(json!({"application": rules}));
        let status = json!([{"clusterName": "m1", "applied": true, "health": "Unhealthy"}]);
        binding.status.aggregated_status = serde_json::from_value(status).expect("statuses");
        binding
    };
    let answer = eviction(&rules(json!({})), &[ready("m1")], at(ADDED), Settings::default());
    assert_eq!(answer.last_copies.len(), 1);
    assert_eq!(answer.unhealthy_since["m1"].to_string(), ADDED, "it is not forgotten since when");
    assert_eq!(evicted(&rules(json!({})), &[ready("m1"), ready("m2")], ADDED), ["m1"]);
    assert_eq!(evicted(&rules(json!({"evictLastCopy": true})), &[ready("m1")], ADDED), ["m1"]);
}

#[test]
fn m2_time_alone_takes_no_last_copy() {
    let leaving = |failover: Value| {
        let mut binding = claimed(failover);
        binding.spec.clusters.clear();
        let task = json!([{"fromCluster": "m1", "replicas": 2, "reason": "TaintUntolerated", "producer": "p",
            "creationTimestamp": ADDED}]);
        binding.spec.graceful_eviction_tasks = serde_json::from_value(task).expect("a task");
        binding
    };
    let late = at("2030-01-01T00:00:00Z");
    let given_up =
        graceful(&leaving(json!({"cluster": {"evictLastCopy": true}})), &[no_execute()], late, 600);
    assert_eq!(given_up.let_go["m1"], LetGo::TimedOut);
    let waiting = graceful(&leaving(Value::Null), &[no_execute(), ready("m2")], late, 600);
    assert_eq!((waiting.kept["m1"], waiting.next), (Kept::LastCopy, None), "a scheduler will choose m2");
    let mut stays = leaving(Value::Null);
    let back = graceful(&stays, &[no_execute()], late, 600);
    back.write(&mut stays);
    assert_eq!((stays.spec.clusters[0].name.as_str(), stays.spec.clusters[0].replicas), ("m1", 2));
    assert!(stays.spec.graceful_eviction_tasks.is_empty());
}
