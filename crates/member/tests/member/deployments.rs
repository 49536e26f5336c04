//! The life cycle of Deployments.

use serde_json::{Value, json};

use crate::cluster::{Cluster, DEPLOYMENTS, PODS, REPLICA_SETS, condition, deployment, names};

const NGINX: &str = "/apis/apps/v1/namespaces/default/deployments/nginx";

fn image(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": image }] } } } })
}

fn counts(deployment: &Value) -> [Option<i64>; 5] {
    ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"]
        .map(|name| deployment["status"][name].as_i64())
}

#[tokio::test(start_paused = true)]
async fn a_deployment_gets_a_replica_set_and_ready_pods() {
    let cluster = Cluster::start().await;
    cluster.create(DEPLOYMENTS, deployment("nginx", "nginx:1", 3)).await;
    cluster.settle().await;
    let nginx = cluster.get(NGINX).await;
    assert_eq!(counts(&nginx), [Some(3), Some(3), Some(3), Some(3), None]);
    assert_eq!(nginx["status"]["observedGeneration"], nginx["metadata"]["generation"]);
    assert_eq!(nginx["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    assert_eq!(condition(&nginx, "Available")["status"], "True");
    assert_eq!(condition(&nginx, "Progressing")["reason"], "NewReplicaSetAvailable");
    let sets = cluster.list(REPLICA_SETS).await;
    let [set] = sets.as_slice() else { panic!("{sets:?}") };
    let hash = set["metadata"]["labels"]["pod-template-hash"].as_str().unwrap();
    assert_eq!(set["metadata"]["name"], format!("nginx-{hash}"));
    assert_eq!(set["metadata"]["ownerReferences"][0]["uid"], nginx["metadata"]["uid"]);
    assert_eq!(set["status"]["availableReplicas"], 3);
    let pods = cluster.pods().await;
    assert_eq!(pods.len(), 3);
    for pod in &pods {
        assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], set["metadata"]["uid"]);
        assert_eq!(pod["metadata"]["labels"]["pod-template-hash"], hash);
        assert_eq!(pod["status"]["phase"], "Running");
        assert_eq!(condition(pod, "Ready")["status"], "True");
        assert!(pod["spec"]["nodeName"].is_string());
    }
}

#[tokio::test(start_paused = true)]
async fn one_replica_costs_five_writes_and_rest_costs_none() {
    let cluster = Cluster::start().await;
    let writes = cluster.writes(cluster.create(DEPLOYMENTS, deployment("nginx", "nginx:1", 1))).await;
    // The Deployment itself; ReplicaSet, pod, the status of the pod, the ReplicaSet and the Deployment.
    assert_eq!(writes, 1 + 5);
    assert_eq!(cluster.writes(async {}).await, 0);
}

#[tokio::test(start_paused = true)]
async fn scaling_follows_both_ways() {
    let cluster = Cluster::start().await;
    cluster.create(DEPLOYMENTS, deployment("nginx", "nginx:1", 1)).await;
    for replicas in [4, 2, 0, 1] {
        cluster.patch(NGINX, json!({ "spec": { "replicas": replicas } })).await;
        cluster.settle().await;
        assert_eq!(cluster.pods().await.len(), replicas);
        let nginx = cluster.get(NGINX).await;
        let ready = nginx["status"]["readyReplicas"].as_u64().unwrap_or(0);
        assert_eq!(ready, u64::try_from(replicas).unwrap());
        assert_eq!(nginx["status"]["observedGeneration"], nginx["metadata"]["generation"]);
    }
    assert_eq!(cluster.list(REPLICA_SETS).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_quota_keeps_away_is_not_counted() {
    let cluster = Cluster::start().await;
    let quota = json!({ "metadata": { "name": "few" }, "spec": { "hard": { "count/pods": "2" } } });
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    cluster.create(quotas, quota).await;
    cluster.create(DEPLOYMENTS, deployment("nginx", "nginx:1", 3)).await;
    cluster.settle().await;
    assert_eq!(cluster.pods().await.len(), 2);
    assert_eq!(counts(&cluster.get(NGINX).await), [Some(2), Some(2), Some(2), Some(2), Some(1)]);
    let set = &cluster.list(REPLICA_SETS).await[0];
    assert_eq!((&set["status"]["replicas"], &set["status"]["readyReplicas"]), (&json!(2), &json!(2)));
    // There is room again. The next attempt comes by itself.
    cluster.patch(&format!("{quotas}/few"), json!({ "spec": { "hard": { "count/pods": "3" } } })).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    cluster.settle().await;
    assert_eq!(counts(&cluster.get(NGINX).await), [Some(3), Some(3), Some(3), Some(3), None]);
}

#[tokio::test(start_paused = true)]
async fn a_new_image_replaces_the_pods_and_keeps_the_old_replica_set() {
    let cluster = Cluster::start().await;
    cluster.create(DEPLOYMENTS, deployment("nginx", "nginx:1", 2)).await;
    cluster.settle().await;
    let before = cluster.pods().await;
    cluster.patch(NGINX, image("nginx:2")).await;
    cluster.settle().await;
    let after = cluster.pods().await;
    assert_eq!(after.len(), 2);
    assert!(after.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "nginx:2"));
    assert!(names(&after).iter().all(|name| !names(&before).contains(name)));
    let nginx = cluster.get(NGINX).await;
    assert_eq!(counts(&nginx), [Some(2), Some(2), Some(2), Some(2), None]);
    assert_eq!(nginx["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
    let mut sizes: Vec<i64> = cluster
        .list(REPLICA_SETS)
        .await
        .iter()
        .map(|set| set["spec"]["replicas"].as_i64().unwrap())
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [0, 2]);

    cluster.patch(NGINX, image("nginx:1")).await;
    cluster.settle().await;
    let nginx = cluster.get(NGINX).await;
    assert_eq!(nginx["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
    assert_eq!(cluster.list(REPLICA_SETS).await.len(), 2);
    assert!(cluster.pods().await.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "nginx:1"));
}

#[tokio::test(start_paused = true)]
async fn an_image_that_fails_leaves_the_old_pods_serving() {
    let cluster = Cluster::start().await;
    cluster.create(DEPLOYMENTS, deployment("nginx", "nginx:1", 2)).await;
    cluster.settle().await;
    cluster.patch(NGINX, image("registry.example/fail:2")).await;
    cluster.settle().await;
    let nginx = cluster.get(NGINX).await;
    assert_eq!(counts(&nginx), [Some(4), Some(2), Some(2), Some(2), Some(2)]);
    assert_eq!(condition(&nginx, "Available")["status"], "True");
    assert_eq!(condition(&nginx, "Progressing")["reason"], "ReplicaSetUpdated");
    let pods = cluster.pods().await;
    let waiting = pods.iter().filter(|pod| {
        pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ImagePullBackOff"
    });
    assert_eq!(waiting.count(), 2);

    tokio::time::sleep(std::time::Duration::from_secs(601)).await;
    cluster.settle().await;
    assert_eq!(condition(&cluster.get(NGINX).await, "Progressing")["reason"], "ProgressDeadlineExceeded");

    cluster.patch(NGINX, image("nginx:3")).await;
    cluster.settle().await;
    assert_eq!(counts(&cluster.get(NGINX).await), [Some(2), Some(2), Some(2), Some(2), None]);
    assert_eq!(cluster.pods().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_never_worked_says_so() {
    let cluster = Cluster::start().await;
    cluster.create(DEPLOYMENTS, deployment("nginx", "fail", 2)).await;
    cluster.settle().await;
    let nginx = cluster.get(NGINX).await;
    assert_eq!(counts(&nginx), [Some(2), Some(2), None, None, Some(2)]);
    assert_eq!(condition(&nginx, "Available")["reason"], "MinimumReplicasUnavailable");
    assert_eq!(cluster.writes(async {}).await, 0);
}

#[tokio::test(start_paused = true)]
async fn recreate_ends_the_old_pods_first() {
    let cluster = Cluster::start().await;
    let mut object = deployment("nginx", "nginx:1", 2);
    object["spec"]["strategy"] = json!({ "type": "Recreate" });
    cluster.create(DEPLOYMENTS, object).await;
    cluster.settle().await;
    cluster.patch(NGINX, image("fail")).await;
    cluster.settle().await;
    let pods = cluster.pods().await;
    assert_eq!(pods.len(), 2);
    assert!(pods.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "fail"));
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_keeps_its_template() {
    let cluster = Cluster::start().await;
    cluster.create(DEPLOYMENTS, deployment("nginx", "nginx:1", 1)).await;
    cluster.settle().await;
    cluster.patch(NGINX, json!({ "spec": { "paused": true, "replicas": 2 } })).await;
    cluster.patch(NGINX, image("nginx:2")).await;
    cluster.settle().await;
    let pods = cluster.pods().await;
    assert_eq!(pods.len(), 2);
    assert!(pods.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "nginx:1"));
    cluster.patch(NGINX, json!({ "spec": { "paused": null } })).await;
    cluster.settle().await;
    assert!(cluster.pods().await.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "nginx:2"));
}

#[tokio::test(start_paused = true)]
async fn history_is_kept_up_to_its_limit() {
    let cluster = Cluster::start().await;
    let mut object = deployment("nginx", "nginx:0", 1);
    object["spec"]["revisionHistoryLimit"] = 2.into();
    cluster.create(DEPLOYMENTS, object).await;
    for version in 1..6 {
        cluster.patch(NGINX, image(&format!("nginx:{version}"))).await;
        cluster.settle().await;
    }
    assert_eq!(cluster.list(REPLICA_SETS).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn deletion_takes_everything_along() {
    let cluster = Cluster::start().await;
    cluster.create(DEPLOYMENTS, deployment("nginx", "nginx:1", 3)).await;
    cluster.settle().await;
    cluster.delete(NGINX).await;
    cluster.settle().await;
    for path in [DEPLOYMENTS, REPLICA_SETS, PODS] {
        assert!(cluster.list(path).await.is_empty(), "{path}");
    }

    cluster.create(DEPLOYMENTS, deployment("nginx", "nginx:1", 3)).await;
    cluster.settle().await;
    cluster.delete(&format!("{NGINX}?propagationPolicy=Foreground")).await;
    cluster.settle().await;
    for path in [DEPLOYMENTS, REPLICA_SETS, PODS] {
        assert!(cluster.list(path).await.is_empty(), "{path}");
    }

    cluster.create(DEPLOYMENTS, deployment("nginx", "nginx:1", 3)).await;
    cluster.settle().await;
    cluster.delete(&format!("{NGINX}?propagationPolicy=Orphan")).await;
    cluster.settle().await;
    assert_eq!(cluster.list(REPLICA_SETS).await.len(), 1);
    assert_eq!(cluster.pods().await.len(), 3);
}
