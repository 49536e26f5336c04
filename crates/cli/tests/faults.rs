//! Faults on real Kubernetes, while templates keep coming: the replica that leads is killed again and again, the API
//! server and etcd are killed and come back, a member is cut off and comes back. Nothing is lost, nothing is made twice,
//! nothing suspended is written, nothing lazy moves, and nobody waits for the member that is away. Skipped where nobody
//! built Kubernetes. The results are in docs/faults.md.

use std::path::Path;
use std::time::{Duration, Instant};

use checks::bed::{Bed, Plane, Programs, Relay, until};
use checks::client::Door;
use http::Method;
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
const PATIENCE: Duration = Duration::from_secs(120);
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const POLICIES: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_and_nothing_is_made_twice() {
    let Some(programs) = Programs::find() else { return };
    let bed = Bed::start(&programs, 2).await.expect("the bed starts");
    let port = bed.members[1].endpoint.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let relay = Relay::start(&[port]).await.expect("there is a port");
    let mut plane = Plane::without_controllers(bed, Path::new(BINARY));
    plane.run_replicas(2, &["--lease-seconds=9"]).await.expect("the controllers start");
    join(&plane, 0, None);
    join(&plane, 1, Some(&relay));
    until("that both are ready", PATIENCE, async || ready(&plane).await == 2).await.expect("they are");
    let mut story = Story { made: 0 };
    story.begin(&mut plane).await;
    story.leaders_are_killed(&mut plane).await;
    story.servers_are_killed(&mut plane).await;
    story.a_member_is_cut_off(&mut plane, &relay).await;
    story.end(&mut plane).await;
    plane.bed.shut_down().await;
}

fn join(plane: &Plane, member: usize, through: Option<&Relay>) {
    let member = &plane.bed.members[member];
    let mut command =
        plane.longshore(["join".into(), member.name.clone().into(), "--cluster-kubeconfig".into()]);
    command.arg(&member.kubeconfig);
    if let Some(relay) = through {
        command.arg(format!("--cluster-endpoint=https://127.0.0.1:{}", relay.port()));
    }
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

async fn ready(plane: &Plane) -> usize {
    let clusters = try_get(&plane.bed.control.door(), "/apis/cluster.karmada.io/v1alpha1/clusters").await;
    clusters.map_or(0, |clusters| clusters.to_string().matches("ClusterReady").count())
}

async fn try_get(door: &Door, path: &str) -> Option<Value> {
    let mut connection = door.connect().await.ok()?;
    let (status, answer) = connection.json(Method::GET, path, "").await.ok()?;
    status.is_success().then_some(answer)
}

/// Writes until somebody takes it: users try again, too.
async fn write(plane: &Plane, method: Method, path: &str, body: &Value) {
    let door = plane.bed.control.door();
    until(&format!("that {path} is written"), PATIENCE, async || {
        let Ok(mut connection) = door.connect().await else { return false };
        let answer = connection.json(method.clone(), path, body.to_string()).await;
        answer.is_ok_and(|(status, _)| status.is_success() || status.as_u16() == 409)
    })
    .await
    .unwrap_or_else(|error| panic!("{error}: {}", plane.last_words()));
}

fn config_map(name: &str, group: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default", "labels": { "group": group } },
        "data": { "key": "value" },
    })
}

fn policy(name: &str, group: &str, clusters: &[&str], more: Value) -> Value {
    let mut policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "resourceSelectors": [
                { "apiVersion": "v1", "kind": "ConfigMap", "labelSelector": { "matchLabels": { "group": group } } },
            ],
            "placement": { "clusterAffinity": { "clusterNames": clusters } },
        },
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        policy["spec"][key] = value.clone();
    }
    policy
}

/// What keeps happening, and how much of it has happened.
struct Story {
    made: usize,
}

impl Story {
    /// Three policies: one that acts, one that is suspended, one that is lazy and was edited.
    async fn begin(&mut self, plane: &mut Plane) {
        let both = ["member1", "member2"];
        write(plane, Method::POST, POLICIES, &policy("acts", "acts", &both, json!({}))).await;
        let held = json!({ "suspension": { "dispatching": true } });
        write(plane, Method::POST, POLICIES, &policy("held", "held", &both, held)).await;
        let lazy = policy("lazy", "lazy", &["member1"], json!({ "activationPreference": "Lazy" }));
        write(plane, Method::POST, POLICIES, &lazy).await;
        // Which came first is told by whole seconds.
        tokio::time::sleep(Duration::from_secs(2)).await;
        write(plane, Method::POST, CONFIG_MAPS, &config_map("held", "held")).await;
        write(plane, Method::POST, CONFIG_MAPS, &config_map("lazy", "lazy")).await;
        self.arrives(plane, 0, "lazy").await;
        let both = json!({ "spec": { "placement": { "clusterAffinity": { "clusterNames": both } } } });
        write(plane, Method::PATCH, &format!("{POLICIES}/lazy"), &both).await;
    }

    async fn make_some(&mut self, plane: &Plane, count: usize) {
        for _ in 0..count {
            write(plane, Method::POST, CONFIG_MAPS, &config_map(&format!("m-{}", self.made), "acts")).await;
            self.made += 1;
        }
    }

    /// On a busy machine a replica may lose its lease by itself, and whoever runs it starts it again.
    async fn arrives(&self, plane: &mut Plane, member: usize, name: &str) {
        let door = plane.bed.members[member].door();
        let path = format!("{CONFIG_MAPS}/{name}");
        let what = format!("that {name} arrives");
        let there = until(&what, PATIENCE, async || {
            plane.start_ended().expect("a replica starts again");
            try_get(&door, &path).await.is_some()
        });
        there.await.unwrap_or_else(|error| panic!("{error} in member {member}: {}", plane.last_words()));
    }

    async fn leaders_are_killed(&mut self, plane: &mut Plane) {
        for round in 0..4 {
            self.make_some(plane, 5).await;
            plane.replicas[round % 2].kill();
            self.make_some(plane, 5).await;
            let last = format!("m-{}", self.made - 1);
            self.arrives(plane, 0, &last).await;
            plane.start_all().expect("a replica starts again");
            until("that both replicas are ready", PATIENCE, async || {
                plane.start_ended().expect("a replica starts again");
                plane.ready_replicas().await == 2
            })
            .await
            .unwrap_or_else(|error| panic!("{error}: {}", plane.last_words()));
        }
    }

    async fn servers_are_killed(&mut self, plane: &mut Plane) {
        plane.bed.control.server.kill();
        tokio::time::sleep(Duration::from_secs(3)).await;
        plane.bed.control.until_ready().await.expect("the API server comes back");
        revive(plane).await;
        self.make_some(plane, 5).await;
        plane.bed.control.etcd.kill();
        tokio::time::sleep(Duration::from_secs(3)).await;
        plane.bed.control.until_ready().await.expect("etcd comes back");
        revive(plane).await;
        self.make_some(plane, 5).await;
        let last = format!("m-{}", self.made - 1);
        self.arrives(plane, 0, &last).await;
        self.arrives(plane, 1, &last).await;
    }

    async fn a_member_is_cut_off(&mut self, plane: &mut Plane, relay: &Relay) {
        relay.cut();
        let begun = Instant::now();
        self.make_some(plane, 10).await;
        let last = format!("m-{}", self.made - 1);
        self.arrives(plane, 0, &last).await;
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(30), "the other member waited {took:?}");
        tokio::time::sleep(Duration::from_secs(20)).await;
        relay.mend();
        self.arrives(plane, 1, &last).await;
    }

    async fn end(&self, plane: &mut Plane) {
        for number in 0..self.made {
            for member in [0, 1] {
                self.arrives(plane, member, &format!("m-{number}")).await;
            }
        }
        for (number, member) in plane.bed.members.iter().enumerate() {
            let created = |name: &str| {
                let ours = |event: &&Value| {
                    event["user"]["username"].as_str().is_some_and(|user| user.contains(":karmada-member"))
                        && event["objectRef"]["name"] == name
                        && event["responseStatus"]["code"] == 201
                };
                member.audit().iter().filter(ours).count()
            };
            for index in 0..self.made {
                assert_eq!(created(&format!("m-{index}")), 1, "m-{index} in member {number}");
            }
            assert_eq!(created("held"), 0, "suspended in member {number}");
            assert_eq!(created("lazy"), usize::from(number == 0), "lazy in member {number}");
        }
    }
}

/// A replica that could not renew its lease in time ends, and whoever runs it starts it again.
async fn revive(plane: &mut Plane) {
    for _ in 0..12 {
        plane.start_all().expect("a replica starts again");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
