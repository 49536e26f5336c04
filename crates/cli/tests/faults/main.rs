//! Faults on real Kubernetes while templates keep being made and changed: the replica that leads is killed again and
//! again, API servers, etcd and Kubernetes' own controllers are killed and come back, a member is cut off and comes
//! back. Nothing is lost, nothing is made twice, nothing suspended is written, nothing lazy moves, and an unreachable
//! member delays no other. Skipped where Kubernetes is not built. The results are in docs/faults.md.
//!
//! `LONGSHORE_FAULTS_ROUNDS` says how often everything happens, `LONGSHORE_FAULTS_PAUSE` how many milliseconds lie
//! between two writes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use checks::kubernetes_clusters::{Cluster, KubernetesClusters, Plane, Programs, Relay, until};
use http::Method;
use serde_json::{Value, json};

use load::{Load, Made};
use objects::{CONFIG_MAPS, POLICIES, STEP_TIMEOUT, config_map, policy, try_get, write};

mod load;
mod objects;

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
const BOTH: [&str; 2] = ["member1", "member2"];
/// How many ConfigMaps there are whose lazy policy keeps being edited.
const LAZY: usize = 10;
/// How many arrivals are measured at a time.
const PROBES: usize = 10;
/// How long a server is away.
const SERVER_OUTAGE: Duration = Duration::from_secs(3);
/// How long a member is away: long enough to be given up.
const MEMBER_OUTAGE: Duration = Duration::from_secs(20);

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_and_nothing_is_made_twice() {
    let Some(programs) = Programs::find() else { return };
    let (rounds, pause) = (setting("LONGSHORE_FAULTS_ROUNDS", 1), setting("LONGSHORE_FAULTS_PAUSE", 400));
    let bed = KubernetesClusters::start(&programs, 2).await.expect("the bed starts");
    let port = bed.members[1].port().expect("it has a port");
    let relay = Relay::start(&[port]).await.expect("there is a port");
    let mut plane = Plane::without_controllers(bed, Path::new(BINARY));
    plane.run_replicas(2, &["--lease-seconds=9"]).await.expect("the controllers start");
    join(&plane, 0, None);
    join(&plane, 1, Some(&relay));
    until("that both are ready", STEP_TIMEOUT, async || ready(&plane).await == 2).await.expect("they are");
    let mut story = Story { plane, probes: 0, kills: 0 };
    story.begin().await;
    let begun = Instant::now();
    let load = Load::start(story.plane.bed.control.api_client(), Duration::from_millis(pause));
    for round in 1..=rounds {
        story.leaders_are_killed().await;
        story.servers_are_killed().await;
        story.a_member_dies().await;
        story.a_member_is_cut_off(&relay).await;
        checks::say(&format!("round {round} of {rounds} after {} s", begun.elapsed().as_secs()));
    }
    let made = load.end().await;
    checks::say(&format!(
        "{} ConfigMaps that arrive, {} changes, {} that are suspended, {} edits of a lazy policy, {} kills in {} s",
        made.acts.len(),
        made.acts.values().sum::<usize>(),
        made.held,
        made.edits,
        story.kills,
        begun.elapsed().as_secs()
    ));
    story.end(&made).await;
    story.plane.bed.shut_down().await;
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
    let clusters =
        try_get(&plane.bed.control.api_client(), "/apis/cluster.karmada.io/v1alpha1/clusters").await;
    clusters.map_or(0, |clusters| clusters.to_string().matches("ClusterReady").count())
}

/// What happens, and how much of it has happened.
struct Story {
    plane: Plane,
    probes: usize,
    kills: usize,
}

impl Story {
    /// Three policies: one that acts, one that is suspended, one that is lazy and has acted.
    async fn begin(&mut self) {
        let control = self.plane.bed.control.api_client();
        write(&control, Method::POST, POLICIES, &policy("acts", &BOTH, json!({}))).await;
        let held = json!({ "suspension": { "dispatching": true } });
        write(&control, Method::POST, POLICIES, &policy("held", &BOTH, held)).await;
        let lazy = policy("lazy", &["member1"], json!({ "activationPreference": "Lazy" }));
        write(&control, Method::POST, POLICIES, &lazy).await;
        // Timestamps, which say what came first, have whole seconds.
        tokio::time::sleep(Duration::from_secs(2)).await;
        for number in 0..LAZY {
            write(&control, Method::POST, CONFIG_MAPS, &config_map(&format!("lazy-{number}"), "lazy")).await;
        }
        for number in 0..LAZY {
            self.arrives(0, &format!("lazy-{number}")).await;
        }
    }

    /// On a busy machine a replica may lose its lease by itself; it is restarted, as a kubelet would do.
    async fn arrives(&mut self, member: usize, name: &str) {
        let api_client = self.plane.bed.members[member].api_client();
        let path = format!("{CONFIG_MAPS}/{name}");
        let what = format!("that {name} arrives");
        let there = until(&what, STEP_TIMEOUT, async || {
            self.plane.start_ended().expect("a replica starts again");
            try_get(&api_client, &path).await.is_some()
        })
        .await;
        there.unwrap_or_else(|error| panic!("{error} in member {member}: {}", self.plane.last_words()));
    }

    /// How long some new ConfigMaps take to one member, the slowest last.
    async fn arrivals(&mut self, member: usize) -> Vec<Duration> {
        let mut took = Vec::new();
        for _ in 0..PROBES {
            let name = format!("probe-{}", self.probes);
            self.probes += 1;
            let begun = Instant::now();
            let control = self.plane.bed.control.api_client();
            write(&control, Method::POST, CONFIG_MAPS, &config_map(&name, "acts")).await;
            self.arrives(member, &name).await;
            took.push(begun.elapsed());
        }
        took.sort();
        took
    }

    async fn leaders_are_killed(&mut self) {
        for round in 0..4 {
            self.plane.replicas[round % 2].kill();
            self.kills += 1;
            self.arrivals(0).await;
            self.plane.start_all().expect("a replica starts again");
            until("that both replicas are ready", STEP_TIMEOUT, async || {
                self.plane.start_ended().expect("a replica starts again");
                self.plane.ready_replicas().await == 2
            })
            .await
            .unwrap_or_else(|error| panic!("{error}: {}", self.plane.last_words()));
        }
    }

    async fn servers_are_killed(&mut self) {
        self.plane.bed.control.server.kill();
        self.comes_back().await;
        self.plane.bed.control.etcd.kill();
        self.comes_back().await;
        self.plane.bed.control.controllers.kill();
        self.comes_back().await;
    }

    /// Whatever was killed of the control plane is started again, and what is made then arrives everywhere.
    async fn comes_back(&mut self) {
        self.kills += 1;
        tokio::time::sleep(SERVER_OUTAGE).await;
        self.plane.bed.control.until_ready().await.expect("it comes back");
        self.arrivals(0).await;
        self.everything_so_far_arrives(1).await;
    }

    async fn everything_so_far_arrives(&mut self, member: usize) {
        self.arrives(member, &format!("probe-{}", self.probes - 1)).await;
    }

    async fn a_member_dies(&mut self) {
        self.plane.bed.members[1].server.kill();
        self.kills += 1;
        tokio::time::sleep(SERVER_OUTAGE).await;
        self.arrivals(0).await;
        self.plane.bed.members[1].until_ready().await.expect("it comes back");
        self.everything_so_far_arrives(1).await;
    }

    async fn a_member_is_cut_off(&mut self, relay: &Relay) {
        let before = self.arrivals(0).await;
        relay.cut();
        let while_away = self.arrivals(0).await;
        checks::say(&format!(
            "arrivals in the other member: {before:.1?}; while one was away: {while_away:.1?}"
        ));
        let median = |took: &[Duration]| took[took.len() / 2];
        let bearable = median(&before) * 2 + Duration::from_secs(2);
        assert!(median(&while_away) < bearable, "{before:?}, and then {while_away:?}");
        tokio::time::sleep(MEMBER_OUTAGE).await;
        relay.mend();
        self.everything_so_far_arrives(1).await;
    }

    /// Everything is there as it was left, and was written as often as it was changed.
    async fn end(&mut self, made: &Made) {
        let probes = (0..self.probes).map(|number| (format!("probe-{number}"), 0));
        let acts: BTreeMap<String, usize> = made.acts.clone().into_iter().chain(probes).collect();
        for number in 0..BOTH.len() {
            let api_client = self.plane.bed.members[number].api_client();
            let mut last = Value::Null;
            let arrived = until("that everything arrives", STEP_TIMEOUT, async || {
                self.plane.start_ended().expect("a replica starts again");
                last = try_get(&api_client, &format!("{CONFIG_MAPS}?labelSelector=group%3Dacts"))
                    .await
                    .unwrap_or_default();
                contents(&last) == acts
            });
            if let Err(error) = arrived.await {
                let found = contents(&last);
                let missing: Vec<_> =
                    acts.iter().filter(|(name, changes)| found.get(*name) != Some(changes)).collect();
                panic!("{error} in member {number}: {missing:?}: {}", self.plane.last_words());
            }
            check_writes(number, &self.plane.bed.members[number], &acts).await;
        }
        self.nothing_is_left_over(&acts, made).await;
    }

    /// One binding per template and one Work per copy.
    async fn nothing_is_left_over(&self, acts: &BTreeMap<String, usize>, made: &Made) {
        let control = self.plane.bed.control.api_client();
        let count = async |path: &str| {
            let list = try_get(&control, path).await.unwrap_or_default();
            list["items"].as_array().map_or(0, Vec::len)
        };
        let bindings = count("/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings").await;
        assert_eq!(bindings, acts.len() + made.held + LAZY, "bindings");
        for (member, lazy) in [("member1", LAZY), ("member2", 0)] {
            let path = format!("/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-{member}/works");
            assert_eq!(count(&path).await, acts.len() + made.held + lazy, "Works of {member}");
        }
    }
}

/// What a member has, by name: how often it was changed.
fn contents(list: &Value) -> BTreeMap<String, usize> {
    let items = list["items"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    items
        .map(|item| {
            let changes = text(&item["data"]["key"]).parse().expect("a number");
            (text(&item["metadata"]["name"]), changes)
        })
        .collect()
}

/// What our account made in a member, by its audit log, and how often that was changed, by its store: each was made once
/// and changed no more often than its template; nothing that is suspended, and what is lazy only where it was.
///
/// A replica that is killed during a request never learns that the object was created, and the audit log may lack it
/// too. The object exists all the same, and the next leader finds it.
async fn check_writes(number: usize, member: &Cluster, acts: &BTreeMap<String, usize>) {
    let mut made: BTreeMap<String, usize> = BTreeMap::new();
    let (mut found, mut broken) = (BTreeSet::new(), BTreeMap::new());
    let mut requests = 0;
    for event in member.audit() {
        let user = event["user"]["username"].as_str().unwrap_or_default();
        if !user.contains(":karmada-member") || event["objectRef"]["resource"] != "configmaps" {
            continue;
        }
        let name = event["objectRef"]["name"].as_str().unwrap_or_default().to_owned();
        assert_ne!(event["verb"], "delete", "{name} in member {number}");
        match event["responseStatus"]["code"].as_u64() {
            Some(201) => *made.entry(name).or_default() += 1,
            Some(200) => {
                requests += 1;
                found.insert(name);
            }
            _ => drop(broken.insert(name, event["responseStatus"].clone())),
        }
    }
    let versions = member.versions("configmaps/default").await.expect("etcd answers");
    let mut changed = 0;
    for (name, changes) in acts {
        match made.remove(name) {
            Some(times) => assert_eq!(times, 1, "{name} in member {number}"),
            None => {
                let answer = broken.get(name);
                assert!(found.contains(name), "{name} in member {number}: {answer:?}");
                checks::say(&format!("member {number}: nobody heard that {name} was made: {answer:?}"));
            }
        }
        let written = usize::try_from(versions[name]).expect("a small number") - 1;
        assert!(written <= *changes, "{name} in member {number}: {written} writes for {changes} changes");
        changed += written;
    }
    checks::say(&format!("member {number}: {} made, {changed} changed by {requests} requests", acts.len()));
    let lazy: Vec<String> = (0..LAZY).map(|number| format!("lazy-{number}")).collect();
    let expected: &[String] = if number == 0 { &lazy } else { &[] };
    assert_eq!(made.into_keys().collect::<Vec<_>>(), expected, "in member {number}");
    assert!(expected.iter().all(|name| versions[name] == 1), "lazy in member {number}: {versions:?}");
}
