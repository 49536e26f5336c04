//! A member that does not answer is left alone, says so in its Cluster, and delays nobody.

use std::time::Duration;

use controllers::members::Settings;
use controllers::rest::Collection;
use decide::readiness::Thresholds;
use serde_json::{Value, json};

use crate::harness::{Stack, cluster_path, deployment, has_condition, impatient};

const HOUR: Duration = Duration::from_secs(3600);

fn path(index: usize) -> String {
    format!("/apis/apps/v1/namespaces/default/deployments/app-{index}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_member_delays_nobody_and_is_probed_until_it_answers() {
    let patient = Thresholds { success: Duration::ZERO, failure: HOUR };
    let mut stack = Stack::new(&["member1", "member2"], Settings { health: patient, ..impatient() }).await;
    for name in ["member1", "member2"] {
        stack.control.until("ready", &cluster_path(name), |one| has_condition(one, "Ready", "True")).await;
    }
    stack.policy(&["member1", "member2"], json!({})).await;
    stack.member("member2").gate.shut();
    let deployments = Collection::new("apps/v1", "deployments", "default");
    for index in 0..20 {
        stack.create(&deployments, &deployment(&format!("app-{index}"))).await;
    }
    for index in 0..20 {
        stack.member("member1").until("not delayed", &path(index), Value::is_object).await;
    }
    let given_up = |cluster: &Value| has_condition(cluster, "Dispatching", "False");
    let cluster = stack.control.until("given up", &cluster_path("member2"), given_up).await;
    assert!(has_condition(&cluster, "Ready", "True"), "its health has not lasted: {cluster:#}");
    let going_on = |cluster: &Value| has_condition(cluster, "Dispatching", "True");
    stack.control.until("going on", &cluster_path("member1"), going_on).await;
    assert!(stack.member("member2").get(&path(0)).await.is_none());
    stack.member("member2").gate.open();
    for index in 0..20 {
        stack.member("member2").until("made up for", &path(index), Value::is_object).await;
    }
    stack.control.until("going on", &cluster_path("member2"), going_on).await;
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_falls_silent_becomes_not_ready_and_comes_back() {
    let mut stack = Stack::new(&["member1"], impatient()).await;
    let path = cluster_path("member1");
    let tainted = |cluster: &Value| cluster["spec"]["taints"].to_string().contains("not-ready");
    let well = |cluster: &Value| has_condition(cluster, "Ready", "True") && !tainted(cluster);
    stack.control.until("ready", &path, well).await;
    stack.member("member1").gate.shut();
    let ill = |cluster: &Value| has_condition(cluster, "Ready", "False") && tainted(cluster);
    let cluster = stack.control.until("not ready", &path, ill).await;
    assert!(cluster["status"]["conditions"].to_string().contains("ClusterNotReachable"));
    stack.member("member1").gate.open();
    stack.control.until("ready again", &path, well).await;
    stack.stop().await;
}
