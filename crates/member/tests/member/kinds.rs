//! The life cycle of every other kind.

use http::Method;
use serde_json::{Value, json};

use member::Stages;
use store::Store;

use crate::cluster::{Cluster, DEPLOYMENTS, condition, deployment, names, node, options, template};

const STATEFUL_SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const DAEMON_SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const SERVICES: &str = "/api/v1/namespaces/default/services";

fn image(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": image }] } } } })
}

fn claim_spec() -> Value {
    json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } })
}

fn stateful_set(image: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "db" },
        "spec": {
            "replicas": replicas, "serviceName": "db", "selector": { "matchLabels": { "app": "nginx" } },
            "template": template(image),
            "volumeClaimTemplates": [{ "metadata": { "name": "data" }, "spec": claim_spec() }],
        },
    })
}

fn job(image: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "task" },
        "spec": { "template": template(image) },
    });
    object["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_gets_numbered_pods_with_bound_claims() {
    let cluster = Cluster::start().await;
    cluster.create(STATEFUL_SETS, stateful_set("db:1", 3)).await;
    cluster.settle().await;
    let pods = cluster.pods().await;
    assert_eq!(names(&pods), ["db-0", "db-1", "db-2"]);
    assert_eq!(pods[1]["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"], "data-db-1");
    let claims = cluster.list(CLAIMS).await;
    assert_eq!(names(&claims), ["data-db-0", "data-db-1", "data-db-2"]);
    assert!(claims.iter().all(|claim| claim["status"]["phase"] == "Bound"));
    let status = cluster.get(&format!("{STATEFUL_SETS}/db")).await["status"].take();
    assert_eq!(status["readyReplicas"], 3);
    assert_eq!(status["currentRevision"], status["updateRevision"]);

    cluster.patch(&format!("{STATEFUL_SETS}/db"), image("db:2")).await;
    cluster.settle().await;
    assert!(cluster.pods().await.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "db:2"));
    let status = cluster.get(&format!("{STATEFUL_SETS}/db")).await["status"].take();
    assert_eq!((&status["updatedReplicas"], &status["currentReplicas"]), (&json!(3), &json!(3)));

    cluster.patch(&format!("{STATEFUL_SETS}/db"), json!({ "spec": { "replicas": 1 } })).await;
    cluster.settle().await;
    assert_eq!(names(&cluster.pods().await), ["db-0"]);
    assert_eq!(cluster.list(CLAIMS).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_stops_at_the_first_pod_that_fails() {
    let cluster = Cluster::start().await;
    cluster.create(STATEFUL_SETS, stateful_set("fail", 3)).await;
    cluster.settle().await;
    assert_eq!(names(&cluster.pods().await), ["db-0"]);
    cluster.patch(&format!("{STATEFUL_SETS}/db"), image("db:2")).await;
    cluster.settle().await;
    assert_eq!(cluster.get(&format!("{STATEFUL_SETS}/db")).await["status"]["readyReplicas"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_has_one_pod_per_node() {
    let cluster = Cluster::start().await;
    let object = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "agent" },
        "spec": { "selector": { "matchLabels": { "app": "nginx" } }, "template": template("agent:1") },
    });
    cluster.create(DAEMON_SETS, object).await;
    cluster.settle().await;
    let status = |object: &Value| {
        ["desiredNumberScheduled", "numberReady", "updatedNumberScheduled"]
            .map(|name| object["status"][name].clone())
    };
    let agent = format!("{DAEMON_SETS}/agent");
    assert_eq!(status(&cluster.get(&agent).await), [2, 2, 2].map(Value::from));
    cluster
        .create("/api/v1/nodes", json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n3" } }))
        .await;
    cluster.patch(&agent, image("agent:2")).await;
    cluster.settle().await;
    assert_eq!(status(&cluster.get(&agent).await), [3, 3, 3].map(Value::from));
    let pods = cluster.pods().await;
    let mut nodes: Vec<&str> = pods.iter().map(|pod| pod["spec"]["nodeName"].as_str().unwrap()).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["n1", "n2", "n3"]);
    assert!(pods.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "agent:2"));
    cluster.delete("/api/v1/nodes/n1").await;
    cluster.settle().await;
    assert_eq!(status(&cluster.get(&agent).await), [2, 2, 2].map(Value::from));
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_until_enough_pods_succeeded() {
    let cluster = Cluster::start().await;
    cluster.create(JOBS, job("work", json!({ "completions": 5, "parallelism": 2 }))).await;
    cluster.settle().await;
    let task = cluster.get(&format!("{JOBS}/task")).await;
    assert_eq!(task["status"]["succeeded"], 5);
    assert_eq!(condition(&task, "Complete")["status"], "True");
    assert!(task["status"]["completionTime"].is_string() && task["status"]["active"].is_null());
    let pods = cluster.pods().await;
    assert_eq!(pods.len(), 5);
    assert!(pods.iter().all(|pod| pod["status"]["phase"] == "Succeeded"));
    cluster.delete(&format!("{JOBS}/task?propagationPolicy=Background")).await;
    cluster.settle().await;
    assert!(cluster.pods().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_too_often_gives_up() {
    let cluster = Cluster::start().await;
    cluster.create(JOBS, job("fail", json!({ "completions": 2, "parallelism": 2, "backoffLimit": 3 }))).await;
    cluster.settle().await;
    let task = cluster.get(&format!("{JOBS}/task")).await;
    assert_eq!(condition(&task, "Failed")["reason"], "BackoffLimitExceeded");
    assert_eq!(task["status"]["failed"], 4);
    assert!(cluster.pods().await.iter().all(|pod| pod["status"]["phase"] == "Failed"));
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_waits_and_an_indexed_one_counts() {
    let cluster = Cluster::start().await;
    let spec = json!({ "completions": 3, "parallelism": 2, "completionMode": "Indexed", "suspend": true });
    cluster.create(JOBS, job("work", spec)).await;
    cluster.settle().await;
    let path = format!("{JOBS}/task");
    assert!(cluster.pods().await.is_empty());
    assert_eq!(condition(&cluster.get(&path).await, "Suspended")["status"], "True");
    cluster.patch(&path, json!({ "spec": { "suspend": false } })).await;
    cluster.settle().await;
    let task = cluster.get(&path).await;
    assert_eq!(task["status"]["completedIndexes"], "0-2");
    assert_eq!(condition(&task, "Complete")["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_goes_when_its_time_is_over() {
    let cluster = Cluster::start().await;
    cluster.create(JOBS, job("work", json!({ "ttlSecondsAfterFinished": 60 }))).await;
    cluster.settle().await;
    assert_eq!(cluster.list(JOBS).await.len(), 1);
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;
    cluster.settle().await;
    assert!(cluster.list(JOBS).await.is_empty() && cluster.pods().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_bound_to_a_volume_that_goes_with_it() {
    let cluster = Cluster::start().await;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "data" }, "spec": claim_spec(),
    });
    cluster.create(CLAIMS, claim).await;
    cluster.settle().await;
    let claim = cluster.get(&format!("{CLAIMS}/data")).await;
    assert_eq!(claim["status"]["phase"], "Bound");
    assert_eq!(claim["status"]["capacity"]["storage"], "1Gi");
    let volumes = cluster.list("/api/v1/persistentvolumes").await;
    assert_eq!(names(&volumes), [claim["spec"]["volumeName"].as_str().unwrap()]);
    assert_eq!(volumes[0]["status"]["phase"], "Bound");
    cluster.delete(&format!("{CLAIMS}/data")).await;
    cluster.settle().await;
    assert!(cluster.list("/api/v1/persistentvolumes").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn services_and_ingresses_get_addresses() {
    let cluster = Cluster::start().await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
        "spec": { "type": "LoadBalancer", "selector": { "app": "nginx" }, "ports": [{ "port": 80 }] },
    });
    cluster.create(SERVICES, service).await;
    let backend = json!({ "service": { "name": "web", "port": { "number": 80 } } });
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": "web" },
        "spec": { "defaultBackend": backend },
    });
    cluster.create("/apis/networking.k8s.io/v1/namespaces/default/ingresses", ingress).await;
    cluster.settle().await;
    for path in
        [format!("{SERVICES}/web"), "/apis/networking.k8s.io/v1/namespaces/default/ingresses/web".into()]
    {
        let object = cluster.get(&path).await;
        let address = object["status"]["loadBalancer"]["ingress"][0]["ip"].as_str().unwrap();
        assert!(address.starts_with("192.0.2."), "{path}: {address}");
    }
    cluster.patch(&format!("{SERVICES}/web"), json!({ "spec": { "type": "ClusterIP" } })).await;
    cluster.settle().await;
    let service = cluster.get(&format!("{SERVICES}/web")).await;
    assert_eq!(service["status"]["loadBalancer"]["ingress"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_budget_counts_its_pods() {
    let cluster = Cluster::start().await;
    let path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "nginx" },
        "spec": { "minAvailable": 2, "selector": { "matchLabels": { "app": "nginx" } } },
    });
    cluster.create(path, budget).await;
    cluster.create(DEPLOYMENTS, deployment("nginx", "nginx", 3)).await;
    cluster.settle().await;
    let counts = |object: &Value| {
        ["expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed"]
            .map(|name| object["status"][name].as_i64().unwrap())
    };
    let budget = cluster.get(&format!("{path}/nginx")).await;
    assert_eq!(counts(&budget), [3, 3, 2, 1]);
    assert_eq!(condition(&budget, "DisruptionAllowed")["status"], "True");
    cluster.patch(&format!("{DEPLOYMENTS}/nginx"), json!({ "spec": { "replicas": 1 } })).await;
    cluster.settle().await;
    assert_eq!(counts(&cluster.get(&format!("{path}/nginx")).await), [1, 1, 2, 0]);
}

#[tokio::test(start_paused = true)]
async fn own_kinds_advance_by_own_stage_files() {
    let text = "apiVersion: example.io/v1\nkind: Thing\nplural: things\nstages:\n  - name: become-ready\n    \
                when: [{ at: /status/ready, exists: false }]\n    afterMilliseconds: 5000\n    \
                status: { ready: true, since: $(now), size: $(/spec/size) }\n";
    let stages = Stages::builtin().with_text("thing.yaml", text).unwrap();
    let options = member::Options { stages, ..options(&Store::in_memory(), vec![node("n1", "1", 10)]) };
    let cluster = Cluster::with_options(options).await;
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.io" },
        "spec": {
            "group": "example.io", "scope": "Namespaced", "names": { "plural": "things", "kind": "Thing" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    });
    cluster.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    cluster.settle().await;
    let things = "/apis/example.io/v1/namespaces/default/things";
    let thing = json!({
        "apiVersion": "example.io/v1", "kind": "Thing", "metadata": { "name": "a" }, "spec": { "size": 4 },
    });
    cluster.create(things, thing).await;
    let before = tokio::time::Instant::now();
    cluster.settle().await;
    assert!(before.elapsed().as_secs() >= 5);
    let thing = cluster.get(&format!("{things}/a")).await;
    assert_eq!((&thing["status"]["ready"], &thing["status"]["size"]), (&json!(true), &json!(4)));
    let (code, _) = cluster.ask(Method::DELETE, &format!("{things}/a"), "", Value::Null).await;
    assert_eq!(code, 200);
    cluster.settle().await;
}
