//! Many objects at once.

use crate::cluster::{Cluster, DEPLOYMENTS, deployment, node};

#[tokio::test(start_paused = true)]
async fn five_hundred_deployments_settle_with_few_writes() {
    let cluster = Cluster::with_nodes(vec![node("n1", "1000", 1000), node("n2", "1000", 1000)]).await;
    let writes = cluster
        .writes(async {
            for number in 0..500 {
                cluster.create(DEPLOYMENTS, deployment(&format!("d{number}"), "nginx", 1)).await;
            }
        })
        .await;
    let deployments = cluster.list(DEPLOYMENTS).await;
    assert!(deployments.iter().all(|deployment| deployment["status"]["availableReplicas"] == 1));
    assert_eq!(cluster.pods().await.len(), 500);
    assert_eq!(writes, 500 * 6);
    assert_eq!(cluster.writes(async {}).await, 0);
}
