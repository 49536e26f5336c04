//! Every event, condition and metric that Karmada's clients look for is produced: one scenario that makes all of them
//! happen, and then a table.

use std::collections::BTreeSet;
use std::time::Duration;

use controllers::rest::Collection;
use http::StatusCode;
use serde_json::{Value, json};

use crate::stack::{
    BINDING, CONFIG, NGINX, Stack, at, cluster_path, condition, config_map, deployment, nginx, policy,
    work_path,
};

const BOTH: [&str; 2] = ["member1", "member2"];
const OVERRIDE: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/default/overridepolicies/op";

fn override_policy(path: &str) -> Value {
    let rule =
        json!({ "overriders": { "plaintext": [{ "path": path, "operator": "replace", "value": "x" }] } });
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
        "metadata": { "namespace": "default", "name": "op" },
        "spec": {
            "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx" }],
            "overrideRules": [rule],
        },
    })
}

/// The reasons of all events, with the kind of object that they are about.
async fn told(stack: &Stack) -> BTreeSet<String> {
    let events = stack.get("/api/v1/events").await;
    let spoken = |event: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!("{} {}", text(&event["involvedObject"]["kind"]), text(&event["reason"]))
    };
    events["items"].as_array().into_iter().flatten().map(spoken).collect()
}

#[track_caller]
fn check(told: &BTreeSet<String>, kinds: &[&str], reasons: &[&str]) {
    for kind in kinds {
        for reason in reasons {
            assert!(told.contains(&format!("{kind} {reason}")), "{kind} {reason} is missing in {told:#?}");
        }
    }
}

async fn report_healthy(stack: &Stack, member: &str) {
    report(stack, member, 2).await;
}

/// A member says how many of two are there.
async fn report(stack: &Stack, member: &str, ready: u32) {
    let member = stack.member(member);
    let generation = member.get(NGINX).await.expect("it is there")["metadata"]["generation"].clone();
    let status = json!({ "status": {
        "replicas": 2, "updatedReplicas": 2, "readyReplicas": ready, "availableReplicas": ready,
        "observedGeneration": generation,
    } });
    member.rest.merge(&at(&format!("{NGINX}/status")), &status).await.expect("the server answers");
}

/// What happens when all is well.
async fn play() -> Stack {
    let stack = Stack::new(&BOTH).await;
    stack.create(override_policy("/metadata/labels/app")).await;
    stack.create(config_map("default", "conf")).await;
    stack.create(policy("low", ("Deployment", "nginx"), &BOTH, json!({}))).await;
    stack.create(nginx()).await;
    stack.create(policy("deps", ("Deployment", "web"), &BOTH, json!({ "propagateDeps": true }))).await;
    stack.create(deployment("web", "conf")).await;
    stack.until_in(NGINX, &BOTH).await;
    let always = json!({ "priority": 5, "preemption": "Always" });
    stack.create(policy("pp", ("Deployment", "nginx"), &BOTH, always)).await;
    stack.settle().await;
    report_healthy(&stack, "member1").await;
    stack.settle().await;
    stack.member("member1").rest.delete(&at(NGINX), None).await.expect("the server answers");
    stack.settle().await;
    stack
}

/// While copies start, intermediate status is delayed for some seconds; final status is written immediately.
#[tokio::test(start_paused = true)]
async fn an_unfinished_status_is_written_seldom() {
    let stack = Stack::new(&BOTH).await;
    stack.create(policy("pp", ("Deployment", "nginx"), &BOTH, json!({}))).await;
    stack.create(nginx()).await;
    stack.until_in(NGINX, &BOTH).await;
    stack.settle().await;
    let told = || {
        let asked = stack.control.gate.asked();
        let of = |path: &str| asked.iter().filter(|one| **one == format!("PATCH {path}/status")).count();
        (of(BINDING), of(NGINX))
    };
    stack.control.gate.forget();
    for (member, ready) in [("member1", 1), ("member1", 2), ("member2", 1), ("member2", 2)] {
        report(&stack, member, ready).await;
        tokio::time::sleep(Duration::from_millis(1_200)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(told(), (1, 1), "four steps on the way, and only the last is final");
    stack.settle().await;
    assert_eq!(told(), (1, 1), "nothing more is to be told");
    stack.control.gate.forget();
    report(&stack, "member2", 1).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(told(), (0, 0), "it may recover");
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(told(), (1, 1), "it did not");
    assert!(stack.ctx.coalescer.is_empty(), "nothing is kept back");
}

/// A new binding is placed before it is created, and the events are the same as if it had been placed afterwards: one
/// about its scheduling, one about its state.
#[tokio::test(start_paused = true)]
async fn a_new_binding_is_placed_before_it_is_written() {
    let weight = |cluster| json!({ "targetCluster": { "clusterNames": [cluster] }, "weight": 1 });
    let divided = json!({
        "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": { "staticWeightList": [weight(BOTH[0]), weight(BOTH[1])] },
    });
    for (scheduling, each) in [(Value::Null, 2), (divided, 1)] {
        let stack = Stack::new(&BOTH).await;
        let mut policy = policy("pp", ("Deployment", "nginx"), &BOTH, json!({}));
        policy["spec"]["placement"]["replicaScheduling"] = scheduling;
        stack.create(policy).await;
        stack.settle().await;
        stack.control.gate.forget();
        stack.create(nginx()).await;
        stack.until_in(NGINX, &BOTH).await;
        for member in BOTH {
            report_healthy(&stack, member).await;
        }
        stack.settle().await;
        let writes = stack.control.gate.writes();
        let count = |path: &str| writes.iter().filter(|one| **one == format!("PATCH {path}")).count();
        let counts = [NGINX, BINDING].map(|path| (count(path), count(&format!("{path}/status"))));
        assert_eq!(counts, [(1, 1), (0, 2)], "{writes:#?}");
        let events = stack.get("/api/v1/events").await.to_string();
        let message = format!("Result: {{member1:{each}, member2:{each}}}");
        assert_eq!(events.matches(&message).count(), 2, "on the binding and on the template: {events}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_success_has_an_event_and_a_metric() {
    let mut stack = play().await;
    assert!(stack.get(&work_path("member1")).await.to_string().contains("ReCreateSuccessful"));
    let taint = json!({ "spec": { "taints": [{ "key": "gone", "effect": "NoExecute" }] } });
    stack.merge(&cluster_path("member2"), taint).await;
    stack
        .until("evicted", async |stack| {
            !stack.told("web", "EvictWorkloadFromClusterSucceed").await.is_empty()
        })
        .await;
    stack.edit_policy(json!({ "suspension": { "dispatching": true } })).await;
    stack.settle().await;
    stack.delete(NGINX).await;
    stack.delete(&cluster_path("member2")).await;
    stack.control.until_gone(&cluster_path("member2")).await;
    stack.settle().await;
    let told = told(&stack).await;
    let template = ["Deployment"];
    check(
        &told,
        &template,
        &[
            "ApplyPolicySucceed",
            "PreemptPolicySucceed",
            "GetReplicasSucceed",
            "GetDependenciesSucceed",
            "ApplyOverridePolicySucceed",
            "SyncSucceed",
        ],
    );
    let both = ["Deployment", "ResourceBinding"];
    check(&told, &both, &["ScheduleBindingSucceed", "SyncWorkSucceed", "AggregateStatusSucceed"]);
    check(&told, &both, &["EvictWorkloadFromClusterSucceed"]);
    check(&told, &["ResourceBinding"], &["SyncScheduleResultToDependenciesSucceed"]);
    check(
        &told,
        &["Work"],
        &["SyncSucceed", "WorkDispatching", "ReflectStatusSucceed", "InterpretHealthSucceed"],
    );
    let clusters = ["CreateExecutionSpaceSucceed", "TaintClusterSucceed", "RemoveExecutionSpaceSucceed"];
    check(&told, &["Cluster"], &clusters);
    check_numbers(&stack);
    stack.stop().await;
}

#[track_caller]
fn check_numbers(stack: &Stack) {
    let text = controllers::scrape::render(&stack.ctx);
    for start in [
        "resource_match_policy_duration_seconds_count ",
        "resource_apply_policy_duration_seconds_count{result=\"success\"} ",
        "policy_apply_attempts_total{result=\"success\"} ",
        "policy_preemption_total{result=\"success\"} 1",
        "binding_sync_work_duration_seconds_count{result=\"success\"} ",
        "work_sync_workload_duration_seconds_count{result=\"success\"} ",
        "create_resource_to_cluster{result=\"success\",apiversion=\"apps/v1\",kind=\"Deployment\",\
         member_cluster=\"member1\",recreate=\"false\"} 2",
        "create_resource_to_cluster{result=\"success\",apiversion=\"apps/v1\",kind=\"Deployment\",\
         member_cluster=\"member1\",recreate=\"true\"} 1",
        "update_resource_to_cluster{result=\"success\",apiversion=\"apps/v1\",kind=\"Deployment\",\
         member_cluster=\"member1\",operationResult=\"updated\"} ",
        "delete_resource_from_cluster{result=\"success\",apiversion=\"apps/v1\",kind=\"Deployment\",\
         member_cluster=\"member1\"} 1",
        "cluster_ready_state{member_cluster=\"member1\"} 1",
        "cluster_node_number{member_cluster=\"member1\"} 0",
        "cluster_ready_node_number{member_cluster=\"member1\"} 0",
        "cluster_sync_status_duration_seconds_count{member_cluster=\"member1\"} ",
        "eviction_queue_depth{name=\"binding-eviction\"} 0",
        "eviction_kind_total{member_cluster=\"member2\",resource_kind=\"Deployment\"} ",
        "eviction_processing_latency_seconds_count{name=\"binding-eviction\"} ",
        "eviction_processing_total{name=\"binding-eviction\",result=\"success\"} ",
        "karmada_scheduler_schedule_attempts_total{result=\"scheduled\",schedule_type=\"ReconcileSchedule\"} ",
        "karmada_scheduler_e2e_scheduling_duration_seconds_count{result=\"scheduled\",",
        "karmada_scheduler_scheduling_algorithm_duration_seconds_count{schedule_step=",
        "karmada_scheduler_queue_incoming_bindings_total{event=\"BindingAdd\"} ",
        "karmada_scheduler_queue_incoming_bindings_total{event=\"BindingUpdate\"} ",
        "karmada_scheduler_queue_incoming_bindings_total{event=\"ClusterChanged\"} ",
    ] {
        let found = text.lines().find(|line| line.starts_with(start));
        assert!(
            found.is_some_and(|line| !line.ends_with(" 0") || start.ends_with(" 0")),
            "{start} in\n{text}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_with_nodes_is_counted() {
    let mut stack = Stack::new(&["member1"]).await;
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" },
        "status": {
            "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "110" },
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    let member = stack.member("member1");
    let nodes = Collection::new("v1", "nodes", "");
    member.rest.create(&nodes, &node).await.expect("the server answers");
    member
        .rest
        .merge(&at("/api/v1/nodes/n/status"), &json!({ "status": node["status"] }))
        .await
        .expect("it answers");
    tokio::time::sleep(Duration::from_secs(30)).await;
    let text = controllers::scrape::render(&stack.ctx);
    for line in [
        "cluster_node_number{member_cluster=\"member1\"} 1",
        "cluster_ready_node_number{member_cluster=\"member1\"} 1",
        "cluster_cpu_allocatable_number{member_cluster=\"member1\"} 4",
        "cluster_memory_allocatable_bytes{member_cluster=\"member1\"} 8589934592",
        "cluster_pod_allocatable_number{member_cluster=\"member1\"} 110",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    stack.stop().await;
}

/// Waits for the event about a refusal, and ends the refusal.
async fn refused(stack: &Stack, about: &str, reason: &str) {
    stack.until(reason, async |stack| !stack.told(about, reason).await.is_empty()).await;
    stack.control.gate.open();
}

#[tokio::test(start_paused = true)]
async fn every_failure_has_an_event() {
    let mut stack = Stack::new(&BOTH).await;
    let bindings = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings";
    stack.create(policy("pp", ("Deployment", "nginx"), &BOTH, json!({}))).await;
    stack.control.gate.refuse(&format!("POST {bindings}"), StatusCode::FORBIDDEN);
    stack.create(nginx()).await;
    refused(&stack, "nginx", "ApplyPolicyFailed").await;
    stack.control.until("applied", BINDING, |binding| condition(binding, "FullyApplied") == "True").await;
    stack.control.gate.refuse(&format!("PATCH {NGINX}/status"), StatusCode::FORBIDDEN);
    report_healthy(&stack, "member1").await;
    refused(&stack, "nginx", "AggregateStatusFailed").await;
    stack.control.gate.refuse(&format!("PATCH {BINDING}/status"), StatusCode::FORBIDDEN);
    report_healthy(&stack, "member2").await;
    refused(&stack, "nginx-deployment", "AggregateStatusFailed").await;
    // Preemption, scheduling, Works and their end.
    stack.control.gate.refuse(&format!("PATCH {NGINX}"), StatusCode::FORBIDDEN);
    let always = json!({ "priority": 5, "preemption": "Always" });
    stack.create(policy("strong", ("Deployment", "nginx"), &["member1"], always)).await;
    refused(&stack, "nginx", "PreemptPolicyFailed").await;
    stack.settle().await;
    let strong = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies/strong";
    let moved = json!({ "spec": { "placement": { "clusterAffinity": { "clusterNames": ["member2"] } } } });
    stack.control.gate.refuse("DELETE /apis/work.karmada.io", StatusCode::FORBIDDEN);
    stack.merge(strong, moved).await;
    refused(&stack, "nginx-deployment", "CleanupWorkFailed").await;
    stack.control.gate.refuse("PUT /apis/work.karmada.io", StatusCode::FORBIDDEN);
    stack.merge(NGINX, json!({ "metadata": { "labels": { "new": "yes" } } })).await;
    refused(&stack, "nginx", "SyncWorkFailed").await;
    let nowhere = json!({ "spec": { "placement": { "clusterAffinity": { "clusterNames": ["none"] } } } });
    stack.merge(strong, nowhere).await;
    stack
        .until("nowhere", async |stack| !stack.told("nginx", "ScheduleBindingFailed").await.is_empty())
        .await;
    let text = controllers::scrape::render(&stack.ctx);
    for start in [
        "policy_apply_attempts_total{result=\"error\"} ",
        "policy_preemption_total{result=\"error\"} ",
        "binding_sync_work_duration_seconds_count{result=\"error\"} ",
        "karmada_scheduler_schedule_attempts_total{result=\"error\",",
    ] {
        assert!(text.lines().any(|line| line.starts_with(start)), "{start} in\n{text}");
    }
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failures_in_members_and_clusters_have_events() {
    let mut stack = Stack::new(&BOTH).await;
    stack.member("member1").gate.refuse("PATCH /apis/apps/v1", StatusCode::FORBIDDEN);
    stack.create(policy("pp", ("Deployment", "nginx"), &BOTH, json!({}))).await;
    stack.create(nginx()).await;
    let work = api::names::work_name("Deployment", "nginx", "default");
    for about in ["nginx", work.as_str()] {
        stack.until("refused", async |stack| !stack.told(about, "SyncFailed").await.is_empty()).await;
    }
    stack.member("member1").gate.open();
    stack.until_work("member1", "Applied", "True").await;
    stack.member("member1").gate.refuse("PATCH /apis/apps/v1", StatusCode::FORBIDDEN);
    stack.member("member1").rest.delete(&at(NGINX), None).await.expect("the server answers");
    let failed = |work: &Value| work["status"]["conditions"].to_string().contains("ReCreateFailed");
    stack.control.until("cannot be made again", &work_path("member1"), failed).await;
    stack.member("member1").gate.open();
    stack.until_work("member1", "Applied", "True").await;
    let text = controllers::scrape::render(&stack.ctx);
    for start in [
        "work_sync_workload_duration_seconds_count{result=\"error\"} ",
        "create_resource_to_cluster{result=\"error\",apiversion=\"apps/v1\",kind=\"Deployment\",\
         member_cluster=\"member1\",recreate=\"false\"} ",
        "create_resource_to_cluster{result=\"error\",apiversion=\"apps/v1\",kind=\"Deployment\",\
         member_cluster=\"member1\",recreate=\"true\"} ",
    ] {
        assert!(text.lines().any(|line| line.starts_with(start)), "{start} in\n{text}");
    }
    // A policy that cannot be applied is reported once, and no member gets a partial result.
    stack.create(override_policy("/spec/none/of/this")).await;
    stack.settle().await;
    assert_eq!(stack.told("nginx", "ApplyOverridePolicyFailed").await.len(), 2, "one per cluster");
    stack.restart().await;
    stack.settle().await;
    let counts: Vec<u64> =
        stack.told("nginx", "ApplyOverridePolicyFailed").await.into_iter().map(|(_, count)| count).collect();
    assert_eq!(counts, [1, 1]);
    stack.delete(OVERRIDE).await;
    stack.control.gate.refuse("POST /api/v1/namespaces$", StatusCode::FORBIDDEN);
    stack.join("member3").await;
    refused(&stack, "member3", "CreateExecutionSpaceFailed").await;
    stack.control.until("ready", &cluster_path("member3"), |one| condition(one, "Ready") == "True").await;
    stack
        .control
        .gate
        .refuse("PATCH /apis/cluster.karmada.io/v1alpha1/clusters/member3", StatusCode::FORBIDDEN);
    stack.merge(&cluster_path("member3"), json!({ "spec": { "taints": [{ "key": "cluster.karmada.io/not-ready", "effect": "NoSchedule" }] } })).await;
    refused(&stack, "member3", "TaintClusterFailed").await;
    stack.control.gate.refuse("DELETE /api/v1/namespaces/karmada-es-member3", StatusCode::FORBIDDEN);
    stack.delete(&cluster_path("member3")).await;
    refused(&stack, "member3", "RemoveExecutionSpaceFailed").await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dependencies_that_disagree_or_cannot_be_attached_have_events() {
    let mut stack = Stack::new(&BOTH).await;
    stack.create(config_map("default", "conf")).await;
    for (name, more) in [
        ("one", json!({ "propagateDeps": true })),
        ("two", json!({ "propagateDeps": true, "conflictResolution": "Overwrite" })),
    ] {
        stack.create(policy(name, ("Deployment", name), &["member1"], more)).await;
    }
    stack
        .control
        .gate
        .refuse("POST /apis/work.karmada.io/v1alpha2/namespaces/default", StatusCode::FORBIDDEN);
    stack.create(deployment("one", "conf")).await;
    stack.create(deployment("two", "conf")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    stack.control.gate.open();
    stack.until_in(CONFIG, &["member1"]).await;
    let told = async |reason: &str| !stack.told("conf-configmap", reason).await.is_empty();
    stack.until("told", async |_| told("DependencyPolicyConflict").await).await;
    stack.control.gate.refuse("PUT /apis/work.karmada.io/v1alpha2/namespaces/default", StatusCode::FORBIDDEN);
    let other = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies/one";
    let moved = json!({ "spec": { "placement": { "clusterAffinity": { "clusterNames": ["member2"] } } } });
    stack.merge(other, moved).await;
    stack.merge(CONFIG, json!({ "data": { "key": "two" } })).await;
    refused(&stack, "two-deployment", "SyncScheduleResultToDependenciesFailed").await;
    stack.stop().await;
}
