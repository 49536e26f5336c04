//! What stays until others are applied, case by case, and the invariant itself over random moves.

use api::work::ManifestStatus;
use api::{Condition, names};
use serde_json::{Value, json};

use super::*;

const NAMES: [&str; 4] = ["m1", "m2", "m3", "m4"];

fn members() -> Vec<Cluster> {
    NAMES.iter().map(|name| Cluster::new(&api::kinds::CLUSTER, "", name)).collect()
}

/// A binding of a Deployment in these clusters.
fn binding(divided: bool, targets: &[(&str, i64)]) -> Binding {
    let kind = if divided { "Divided" } else { "Duplicated" };
    let clusters: Vec<Value> =
        targets.iter().map(|(name, replicas)| json!({"name": name, "replicas": replicas})).collect();
    serde_json::from_value(json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": "web-deployment", "namespace": "default"},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"},
            "replicas": targets.iter().map(|(_, replicas)| replicas).sum::<i64>(),
            "clusters": clusters,
            "placement": {"replicaScheduling": {"replicaSchedulingType": kind}},
        },
    }))
    .expect("a binding")
}

/// A Work of this generation for so many replicas.
fn work(cluster: &str, replicas: i64, generation: i64) -> Work {
    let mut work = Work::new(&api::kinds::WORK, &names::execution_namespace(cluster), "web");
    work.metadata.generation = generation;
    work.spec.workload.manifests =
        vec![json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": replicas}})];
    work
}

/// The same, applied in this generation with so many replicas.
fn applied(mut work: Work, generation: i64, replicas: i64) -> Work {
    let condition = conditions::condition(APPLIED, ConditionStatus::True, "AppliedSuccessful", "");
    work.status.conditions = vec![Condition { observed_generation: generation, ..condition }];
    let status = Some(json!({"replicas": replicas}).into());
    work.status.manifest_statuses = vec![ManifestStatus { status, ..ManifestStatus::default() }];
    work
}

fn has(cluster: &str, replicas: i64) -> Work {
    applied(work(cluster, replicas, 1), 1, replicas)
}

fn refused(mut work: Work) -> Work {
    let condition = conditions::condition(APPLIED, ConditionStatus::False, "AppliedFailed", "no");
    let observed_generation = work.metadata.generation;
    work.status.conditions = vec![Condition { observed_generation, ..condition }];
    work
}

fn suspended(mut work: Work) -> Work {
    work.spec.suspend_dispatching = Some(true);
    work
}

#[track_caller]
fn check(binding: &Binding, works: &[Work], expected: &str) {
    let answer = handover(binding, works, &members(), &[]);
    let told = if answer.is_empty() { String::new() } else { answer.to_string() };
    assert_eq!(told, expected);
}

#[test]
fn m1_a_copy_stays_until_its_successor_is_applied() {
    let moves = binding(false, &[("m2", 1)]);
    let stays = "the copies in m1 stay until the copies in m2 are applied";
    check(&moves, &[has("m1", 1)], stays);
    check(&moves, &[has("m1", 1), work("m2", 1, 1)], stays);
    check(&moves, &[has("m1", 1), suspended(work("m2", 1, 1))], stays);
    check(&moves, &[has("m1", 1), refused(work("m2", 1, 1))], stays);
    check(&moves, &[has("m1", 1), has("m2", 1)], "");
    let silent = work("m1", 1, 1);
    check(&moves, &[silent], stays);
    check(&moves, &[suspended(work("m1", 1, 1))], "");
    check(&moves, &[refused(work("m1", 1, 1))], "");
    let updated = refused(applied(work("m1", 1, 2), 1, 1));
    check(&moves, &[updated], stays);
    let fewer = binding(false, &[("m1", 1)]);
    check(&fewer, &[suspended(applied(work("m1", 1, 2), 1, 1)), has("m2", 1)], "");
    let both = binding(false, &[("m2", 1), ("m3", 1)]);
    let until = "the copies in m1, m4 stay until the copies in m3 are applied";
    check(&both, &[has("m1", 1), has("m4", 1), has("m2", 1)], until);
}

#[test]
fn m1_replicas_stay_until_they_are_applied_elsewhere() {
    let halves = binding(true, &[("m1", 2), ("m2", 2)]);
    let keeps = "m1 keeps 4 replicas until the copies in m2 are applied";
    check(&halves, &[has("m1", 4)], keeps);
    check(&halves, &[has("m1", 4), work("m2", 2, 1)], keeps);
    check(&halves, &[has("m1", 4), has("m2", 2)], "");
    check(&halves, &[has("m1", 3), has("m2", 3)], "");
    // The member has one replica, and two are on their way.
    check(&halves, &[has("m1", 4), applied(work("m2", 2, 2), 1, 1)], keeps);
    check(&halves, &[has("m1", 4), suspended(applied(work("m2", 2, 2), 1, 1))], keeps);
    let grows = binding(true, &[("m2", 4)]);
    let stays = "the copies in m1 stay until the copies in m2 are applied";
    check(&grows, &[has("m1", 2), suspended(applied(work("m2", 4, 2), 1, 2))], stays);
    check(&grows, &[has("m1", 2), applied(work("m2", 4, 2), 2, 4)], "");
    // A cluster that refuses its update does not keep the others from getting smaller.
    let smaller = binding(true, &[("m1", 1), ("m2", 2)]);
    check(&smaller, &[has("m1", 2), refused(applied(work("m2", 2, 2), 1, 2))], "");
    // An agent of Karmada's does not say which state it applied.
    check(&halves, &[has("m1", 4), applied(work("m2", 2, 3), 0, 2)], "");
    check(&halves, &[has("m1", 4), applied(work("m2", 2, 3), 0, 1)], keeps);
}

#[test]
fn m1_what_is_deleted_goes_at_once() {
    let mut going = binding(false, &[("m2", 1)]);
    going.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".parse().expect("a time"));
    check(&going, &[has("m1", 1)], "");
    check(&binding(false, &[]), &[has("m1", 1)], "");
    let moves = binding(false, &[("m2", 1)]);
    let mut clusters = members();
    clusters[0].metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".parse().expect("a time"));
    assert!(handover(&moves, &[has("m1", 1)], &clusters, &[]).is_empty(), "its cluster takes it along");
    let mut purged = moves.clone();
    let task = json!([{"fromCluster": "m1", "purgeMode": "Directly", "reason": "r", "producer": "p"}]);
    purged.spec.graceful_eviction_tasks = serde_json::from_value(task).expect("a task");
    check(&purged, &[has("m1", 1)], "");
}

#[test]
fn m1_what_a_workload_needs_stays_with_it() {
    let moves = binding(false, &[("m2", 1)]);
    let works = [has("m1", 1), has("m2", 1)];
    let answer = handover(&moves, &works, &members(), &["m1".to_owned()]);
    assert_eq!(answer.to_string(), "the copies in m1 stay until the workloads there that need them are gone");
    assert!(handover(&moves, &works, &members(), &["m3".to_owned()]).is_empty());
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % end as u64).expect("it is small")
    }
}

/// Members that take what Works say when it is their turn.
struct Model {
    divided: bool,
    binding: Binding,
    works: BTreeMap<&'static str, Work>,
    members: BTreeMap<&'static str, i64>,
}

impl Model {
    fn new(divided: bool) -> Self {
        Model { divided, binding: binding(divided, &[]), works: BTreeMap::new(), members: BTreeMap::new() }
    }

    fn weight(&self, replicas: i64) -> i64 {
        if self.divided { replicas } else { 1 }
    }

    fn delivered(&self) -> i64 {
        self.members.values().map(|replicas| self.weight(*replicas)).sum()
    }

    fn wanted(&self) -> i64 {
        self.binding.spec.clusters.iter().map(|target| self.weight(target.replicas.into())).sum()
    }

    /// What is on its way to copies that are there arrives: what was decided to go under an earlier placement cannot be
    /// called back.
    fn arrive(&mut self) {
        for _ in 0..3 {
            let known: Vec<&'static str> = self.members.keys().copied().collect();
            known.into_iter().for_each(|name| self.deliver(name));
            self.reconcile();
        }
    }

    fn place(&mut self, dice: &mut Dice) {
        let first = dice.below(NAMES.len());
        let rest: Vec<&str> = NAMES.into_iter().filter(|_| dice.below(2) == 0).collect();
        let names: BTreeSet<&str> = rest.into_iter().chain([NAMES[first]]).collect();
        let targets: Vec<(&str, i64)> =
            names.into_iter().map(|name| (name, 1 + i64::try_from(dice.below(4)).expect("small"))).collect();
        self.binding = binding(self.divided, &targets);
    }

    /// What the controller does: it writes what comes, then it removes what goes.
    fn reconcile(&mut self) {
        let works: Vec<Work> = self.works.values().cloned().collect();
        let answer = handover(&self.binding, &works, &members(), &[]);
        let targets: BTreeMap<&str, i32> =
            self.binding.spec.clusters.iter().map(|target| (target.name.as_str(), target.replicas)).collect();
        for name in NAMES {
            let Some(target) = targets.get(name) else { continue };
            let replicas = i64::from(answer.keeping.get(name).copied().unwrap_or(*target));
            let known = self.works.entry(name).or_insert_with(|| work(name, replicas, 1));
            let next = work(name, replicas, known.metadata.generation + 1);
            if next.spec != known.spec {
                *known = Work { status: known.status.clone(), ..next };
            }
        }
        let gone = |name: &str| !targets.contains_key(name) && !answer.leaving.contains(name);
        self.works.retain(|name, _| !gone(name));
        self.members.retain(|name, _| !gone(name));
    }

    fn deliver(&mut self, name: &'static str) {
        let Some(known) = self.works.get_mut(name) else { return };
        let replicas = known.spec.workload.manifests.first().and_then(told_replicas).map_or(0, i64::from);
        *known = applied(known.clone(), known.metadata.generation, replicas);
        self.members.insert(name, replicas);
    }
}

#[test]
fn m1_never_fewer_are_delivered_than_the_smaller_of_before_and_wanted() {
    for (seed, divided) in (0..400_u64).map(|seed| (seed, seed % 2 == 0)) {
        let (mut dice, mut model) = (Dice(seed), Model::new(divided));
        for step in 0..60 {
            let next = dice.below(4);
            if next == 0 {
                model.arrive();
            }
            let before = model.delivered();
            match next {
                0 => model.place(&mut dice),
                1 => model.deliver(NAMES[dice.below(NAMES.len())]),
                _ => {}
            }
            model.reconcile();
            let (delivered, least) = (model.delivered(), before.min(model.wanted()));
            assert!(delivered >= least, "seed {seed}, step {step}: {delivered} of {least}");
        }
        NAMES.into_iter().chain(NAMES).for_each(|name| {
            model.deliver(name);
            model.reconcile();
        });
        NAMES.into_iter().for_each(|name| model.deliver(name));
        assert_eq!(model.delivered(), model.wanted(), "seed {seed}: everything comes to rest");
    }
}
