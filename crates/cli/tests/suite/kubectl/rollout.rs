//! `rollout` and `wait`: what kubectl asks of objects that change over time.

use super::{WEB, kubectl};

const FINISHED: &str = r#"'{"status":{"observedGeneration":1,"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3,"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable","message":"ok"}]}}'"#;

#[test]
fn restart_pause_and_resume() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB);
    kubectl.ok("rollout restart deployment web").prints("deployment.apps/web restarted\n");
    let object = kubectl.ok("get deployment web -o json").json();
    let restarted =
        &object["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"];
    assert!(restarted.is_string(), "{object:#}");
    assert_eq!(object["metadata"]["generation"], 2);
    kubectl.ok("rollout pause deployment/web").prints("deployment.apps/web paused\n");
    kubectl
        .fails("rollout restart deployment/web")
        .complains("can't restart paused deployment (run rollout resume first)");
    kubectl.ok("rollout resume deployment/web").prints("deployment.apps/web resumed\n");
}

#[test]
fn history_and_undo_follow_replica_sets() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB);
    let uid = kubectl.ok("get deployment web -o jsonpath={.metadata.uid}").stdout;
    for (revision, image) in [("1", "nginx:1.26"), ("2", "nginx:1.27")] {
        let set = format!(
            "{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: web-{revision}, labels: {{app: web}},
               annotations: {{deployment.kubernetes.io/revision: '{revision}'}},
               ownerReferences: [{{apiVersion: apps/v1, kind: Deployment, name: web, uid: {uid}, controller: true}}]}},
              spec: {{selector: {{matchLabels: {{app: web}}}}, template: {{metadata: {{labels: {{app: web}}}},
               spec: {{containers: [{{name: nginx, image: '{image}'}}]}}}}}}}}"
        );
        kubectl.ok_with("create -f -", &set);
    }
    kubectl.ok("rollout history deployment/web").lists(&[
        "deployment.apps/web",
        "REVISION CHANGE-CAUSE",
        "1 <none>",
        "2 <none>",
        "",
    ]);
    kubectl.ok("rollout history deployment/web --revision=1").has_row("Image: nginx:1.26");
    kubectl.ok("rollout undo deployment/web --to-revision=1").prints("deployment.apps/web rolled back\n");
    kubectl
        .ok("get deployment web -o 'jsonpath={.spec.template.spec.containers[0].image}'")
        .prints("nginx:1.26");
}

#[test]
fn status_follows_the_rollout_to_its_end() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB);
    let mut status = kubectl.start("rollout status deployment/web");
    status.until("Waiting for deployment");
    kubectl.ok(&format!("patch deployment web --subresource=status --type=merge -p {FINISHED}"));
    status.until("deployment \"web\" successfully rolled out");
    assert_eq!(status.end(), Some(0));
}

#[test]
fn wait_for_a_condition() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB);
    kubectl
        .fails("wait deployment/web --for=condition=Available --timeout=1s")
        .complains("error: timed out waiting for the condition on deployments/web\n");
    let mut waiting = kubectl.start("wait deployment/web --for=condition=Available --timeout=30s");
    kubectl.ok(&format!("patch deployment web --subresource=status --type=merge -p {FINISHED}"));
    waiting.until("deployment.apps/web condition met");
    assert_eq!(waiting.end(), Some(0));
    kubectl.ok("wait deployment/web --for=condition=Available").prints("deployment.apps/web condition met\n");
    kubectl
        .ok("wait deployment/web --for=jsonpath={.status.readyReplicas}=3")
        .prints("deployment.apps/web condition met\n");
}

#[test]
fn wait_for_the_end() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("create configmap a");
    let mut waiting = kubectl.start("wait configmap/a --for=delete --timeout=30s");
    let held = kubectl.run("wait configmap/a --for=delete --timeout=1s");
    held.expect_code(1).complains("timed out waiting for the condition on configmaps/a");
    kubectl.ok("delete configmap a");
    waiting.until("configmap/a condition met");
    assert_eq!(waiting.end(), Some(0));
    kubectl.ok("wait configmap/a --for=delete");
}

#[test]
fn wait_for_a_beginning() {
    let Some(kubectl) = kubectl() else { return };
    let mut waiting = kubectl.start("wait configmap/late --for=create --timeout=30s");
    kubectl.ok("create configmap late");
    waiting.until("configmap/late condition met");
    assert_eq!(waiting.end(), Some(0));
}
