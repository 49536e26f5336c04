//! Member outage: the circuit breaker stops requests, the Cluster says so, and no other member is delayed.

use std::time::Duration;

use controllers::gates::FeatureGates;
use controllers::members::Settings;
use decide::readiness::Thresholds;
use serde_json::{Value, json};

use crate::stack::{Stack, cluster_path, condition, config_map, impatient, policy};

const HOUR: Duration = Duration::from_secs(3600);

fn path(index: usize) -> String {
    format!("/api/v1/namespaces/default/configmaps/app-{index}")
}

#[tokio::test(start_paused = true)]
async fn a_dead_member_delays_no_other_and_is_probed_until_it_answers() {
    let patient = Thresholds { success: Duration::ZERO, failure: HOUR };
    let settings = Settings { health: patient, ..impatient() };
    let mut stack = Stack::with(&["member1", "member2"], settings, FeatureGates::default()).await;
    let all = json!({ "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap" }] });
    stack.create(policy("pp", ("ConfigMap", ""), &["member1", "member2"], all)).await;
    stack.member("member2").gate.shut();
    for index in 0..20 {
        stack.create(config_map("default", &format!("app-{index}"))).await;
    }
    for index in 0..20 {
        stack.member("member1").until("not delayed", &path(index), Value::is_object).await;
    }
    let given_up = |cluster: &Value| condition(cluster, "Dispatching") == "False";
    let cluster = stack.control.until("given up", &cluster_path("member2"), given_up).await;
    assert!(condition(&cluster, "Ready") == "True", "its health has not lasted: {cluster:#}");
    let going_on = |cluster: &Value| condition(cluster, "Dispatching") == "True";
    stack.control.until("going on", &cluster_path("member1"), going_on).await;
    assert!(stack.member("member2").get(&path(0)).await.is_none());
    stack.member("member2").gate.open();
    for index in 0..20 {
        stack.member("member2").until("made up for", &path(index), Value::is_object).await;
    }
    stack.control.until("going on", &cluster_path("member2"), going_on).await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_falls_silent_becomes_not_ready_and_comes_back() {
    let mut stack = Stack::with(&["member1"], impatient(), FeatureGates::default()).await;
    let path = cluster_path("member1");
    let tainted = |cluster: &Value| cluster["spec"]["taints"].to_string().contains("not-ready");
    let well = |cluster: &Value| condition(cluster, "Ready") == "True" && !tainted(cluster);
    stack.control.until("ready", &path, well).await;
    stack.member("member1").gate.shut();
    let ill = |cluster: &Value| condition(cluster, "Ready") == "False" && tainted(cluster);
    let cluster = stack.control.until("not ready", &path, ill).await;
    assert!(cluster["status"]["conditions"].to_string().contains("ClusterNotReachable"));
    stack.member("member1").gate.open();
    stack.control.until("ready again", &path, well).await;
    stack.stop().await;
}

/// One that is large and far away takes its time to count its pods, and is healthy all the same.
#[tokio::test(start_paused = true)]
async fn a_member_that_is_slow_to_report_its_resources_is_ready() {
    let mut stack = Stack::with(&["member1"], impatient(), FeatureGates::default()).await;
    stack.member("member1").gate.ignore("GET /api/v1/pods");
    let late = stack.place().await;
    late.gate.ignore("GET /api/v1/pods");
    stack.join_at("late", late).await;
    let told = |cluster: &Value| {
        condition(cluster, "Ready") == "True" && cluster["status"]["apiEnablements"].is_array()
    };
    stack.control.until("ready", &cluster_path("late"), told).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let cluster = stack.control.get(&cluster_path("member1")).await.unwrap_or_default();
    assert_eq!(condition(&cluster, "Ready"), "True", "{cluster:#}");
    stack.stop().await;
}
