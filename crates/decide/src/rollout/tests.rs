//! Tables for each rule of rollouts, and what holds for every story.

mod properties;

use api::StagedRollout;
use serde_json::{Value, json};

use super::*;

/// A strategy from what a user writes.
fn stages(written: Value) -> Stages {
    Stages::of(&serde_json::from_value::<StagedRollout>(written).expect("a strategy"))
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).expect("a time")
}

fn healthy() -> Delivery {
    Delivery::Applied { healthy: true, current: true, conditions: Vec::new() }
}

fn unhealthy() -> Delivery {
    Delivery::Applied { healthy: false, current: true, conditions: Vec::new() }
}

/// What was recorded so far, and the clusters as they are.
#[derive(Clone, Default)]
struct Story {
    rollout: Option<BindingRollout>,
    progress: Option<RolloutProgress>,
    clusters: BTreeMap<String, Seen>,
    unwanted: BTreeSet<String>,
    request: String,
    fails_over: bool,
}

impl Story {
    /// Clusters of these stages, none of which has anything.
    fn of(clusters: &[(&str, usize)]) -> Story {
        let seen =
            |(name, stage): &(&str, usize)| ((*name).to_owned(), Seen { stage: *stage, ..Seen::default() });
        Story { clusters: clusters.iter().map(seen).collect(), ..Story::default() }
    }

    fn shows(&mut self, name: &str, delivery: Delivery) {
        self.clusters.get_mut(name).expect("a cluster").delivery = delivery;
    }

    fn next(&self, stages: &Stages, revision: &str, now: Timestamp) -> Step {
        let situation = Situation {
            stages,
            revision,
            recorded: self.rollout.as_ref(),
            progress: self.progress.as_ref(),
            request: &self.request,
            clusters: self.clusters.clone(),
            unwanted: self.unwanted.clone(),
            placed: true,
            fails_over: self.fails_over,
            now,
        };
        step(&situation).expect("it is placed")
    }

    /// Takes a step, which changes nothing when it is taken again (C6).
    fn step(&mut self, stages: &Stages, revision: &str, now: Timestamp) -> Step {
        let step = self.next(stages, revision, now);
        self.rollout.clone_from(&step.rollout);
        self.progress = Some(step.progress.clone());
        let again = self.next(stages, revision, now);
        assert_eq!((&again.rollout, &again.progress), (&step.rollout, &step.progress), "again");
        step
    }
}

fn said(step: &Step) -> String {
    let progress = &step.progress;
    let current = step.rollout.as_ref().map_or("-".to_owned(), |rollout| rollout.current_clusters.join(","));
    format!(
        "{:?} {} [{current}] passed [{}]",
        progress.phase,
        progress.stage,
        progress.completed_clusters.join(",")
    )
}

#[test]
fn g3_stages_come_in_order_and_concurrency_is_bounded() {
    let stages = stages(
        json!({"stages": [{"name": "canary", "clusterAffinity": {"clusterNames": ["a"]}}, {"name": "rest", "maxConcurrency": 2}]}),
    );
    let mut story = Story::of(&[("a", 0), ("b", 1), ("c", 1), ("d", 1)]);
    assert_eq!(said(&story.step(&stages, "r1", at(0))), "Progressing canary [a] passed []");
    story.shows("a", unhealthy());
    assert_eq!(said(&story.step(&stages, "r1", at(1))), "Progressing canary [a] passed []");
    story.shows("a", healthy());
    assert_eq!(said(&story.step(&stages, "r1", at(2))), "Progressing rest [a,b,c] passed [a]");
    story.shows("c", healthy());
    assert_eq!(said(&story.step(&stages, "r1", at(3))), "Progressing rest [a,b,c,d] passed [a,c]");
    story.shows("b", healthy());
    story.shows("d", healthy());
    let end = story.step(&stages, "r1", at(4));
    assert_eq!(said(&end), "Succeeded  [-] passed [a,b,c,d]");
    assert_eq!(end.look_again, None);
}

#[test]
fn g4_a_flap_starts_the_time_anew() {
    let stages = stages(json!({"gate": {"minSuccessTime": "60s"}}));
    let mut story = Story::of(&[("a", 0), ("b", 0)]);
    story.step(&stages, "r1", at(0));
    story.shows("a", healthy());
    assert_eq!(story.step(&stages, "r1", at(10)).look_again, Some(Duration::from_secs(60)));
    story.shows("a", unhealthy());
    story.step(&stages, "r1", at(60));
    story.shows("a", healthy());
    assert_eq!(said(&story.step(&stages, "r1", at(71))), "Progressing others [a] passed []");
    assert_eq!(said(&story.step(&stages, "r1", at(130))), "Progressing others [a] passed []");
    assert_eq!(said(&story.step(&stages, "r1", at(131))), "Progressing others [a,b] passed [a]");
}

#[test]
fn g4_what_the_gate_asks_for() {
    let check = |gate: Value, delivery: Delivery, expected: &str| {
        let stages = stages(json!({ "gate": gate }));
        let mut story = Story::of(&[("a", 0)]);
        story.step(&stages, "r1", at(0));
        story.shows("a", delivery);
        let step = story.step(&stages, "r1", at(1));
        let waits = step.progress.clusters.first().map_or("", |one| one.waits_for.as_str());
        assert_eq!(waits, expected, "{gate}");
    };
    let with = |kind: &str, status| Delivery::Applied {
        healthy: true,
        current: true,
        conditions: vec![(kind.to_owned(), status)],
    };
    let asked = || json!({"requiredConditions": [{"type": "Tested", "status": "True"}]});
    check(json!({}), healthy(), "");
    check(json!({}), unhealthy(), "health");
    check(json!({"requireHealthy": false}), unhealthy(), "");
    check(json!({}), Delivery::UnderWay, "delivery");
    check(json!({}), Delivery::Unreachable, "the cluster, which does not answer");
    let outdated = Delivery::Applied { healthy: true, current: false, conditions: Vec::new() };
    check(json!({}), outdated, "a status of the new revision");
    check(asked(), healthy(), "condition Tested=True");
    check(asked(), with("Tested", ConditionStatus::False), "condition Tested=True");
    check(asked(), with("Tested", ConditionStatus::True), "");
}

#[test]
fn g5_what_has_passed_stays_passed() {
    let stages = stages(json!({}));
    let mut story = Story::of(&[("a", 0), ("b", 0)]);
    story.step(&stages, "r1", at(0));
    story.shows("a", healthy());
    story.step(&stages, "r1", at(1));
    story.shows("a", unhealthy());
    assert_eq!(said(&story.step(&stages, "r1", at(2))), "Progressing others [a,b] passed [a]");
}

#[test]
fn g6_failures_pause_or_do_not() {
    let check = |rules: Value, expected: &str| {
        let stages = stages(rules);
        let mut story = Story::of(&[("a", 0), ("b", 0)]);
        story.step(&stages, "r1", at(0));
        story.shows("a", unhealthy());
        assert_eq!(said(&story.step(&stages, "r1", at(599))), "Progressing others [a] passed []");
        assert_eq!(said(&story.step(&stages, "r1", at(600))), expected);
    };
    check(json!({"timeout": "10m"}), "Paused others [a] passed []");
    check(json!({"timeout": "10m", "maxFailures": 1}), "Progressing others [a,b] passed []");
    check(
        json!({"timeout": "10m", "onFailure": {"action": "Continue"}}),
        "Progressing others [a,b] passed []",
    );
}

#[test]
fn g6_a_refusal_is_a_failure_once_it_lasts() {
    let stages = stages(json!({}));
    let mut story = Story::of(&[("a", 0), ("b", 0)]);
    story.step(&stages, "r1", at(0));
    story.shows("a", Delivery::Refused { why: "taken".to_owned(), since: Some(at(5).into()) });
    let step = story.step(&stages, "r1", at(6));
    assert_eq!(
        (said(&step).as_str(), step.look_again),
        ("Progressing others [a] passed []", Some(Duration::from_secs(9)))
    );
    let step = story.step(&stages, "r1", at(15));
    assert_eq!(
        (said(&step).as_str(), step.progress.message.as_str()),
        ("Paused others [a] passed []", "a: refused: taken")
    );
}

#[test]
fn g7_another_revision_starts_at_the_first_stage() {
    let stages = stages(json!({}));
    let mut story = Story::of(&[("a", 0), ("b", 0)]);
    story.step(&stages, "r1", at(0));
    story.shows("a", healthy());
    story.step(&stages, "r1", at(1));
    story.shows("a", Delivery::UnderWay);
    let step = story.step(&stages, "r2", at(2));
    assert_eq!(said(&step), "Progressing others [a] passed []");
    assert_eq!(step.progress.supersedes, "r1");
    let happened: Vec<Happened> = news(None, &step.progress).iter().map(|one| one.what).collect();
    assert_eq!(happened, [Happened::Superseded, Happened::Started, Happened::StageStarted]);
}

#[test]
fn g8_clusters_that_come_late_go_and_take_over() {
    let stages =
        stages(json!({"stages": [{"name": "canary", "clusterAffinity": {"clusterNames": ["a", "z"]}}]}));
    let mut story = Story::of(&[("a", 0), ("b", 1), ("c", 1)]);
    story.step(&stages, "r1", at(0));
    story.shows("a", healthy());
    assert_eq!(said(&story.step(&stages, "r1", at(1))), "Progressing others [a,b] passed [a]");
    story.clusters.extend(Story::of(&[("z", 0)]).clusters);
    assert_eq!(said(&story.step(&stages, "r1", at(2))), "Progressing others [a,b] passed [a]");
    let mut taking_over = story.clone();
    taking_over.fails_over = true;
    taking_over.clusters.extend(Story::of(&[("y", 1)]).clusters);
    assert_eq!(said(&taking_over.step(&stages, "r1", at(3))), "Progressing others [a,b,y] passed [a]");
    story.clusters.remove("b");
    assert_eq!(said(&story.step(&stages, "r1", at(3))), "Progressing others [a,c] passed [a]");
}

#[test]
fn g9_what_is_left_stays_until_the_end() {
    let stages = stages(json!({}));
    let mut story = Story::of(&[("b", 0)]);
    story.unwanted = ["a".to_owned()].into();
    let step = story.step(&stages, "r2", at(0));
    assert_eq!(step.rollout.expect("in flight").leaving_clusters, ["a"]);
    // What an eviction left later was never part of it.
    story.unwanted.insert("x".to_owned());
    let step = story.step(&stages, "r2", at(1));
    assert_eq!(step.rollout.expect("in flight").leaving_clusters, ["a"]);
    story.shows("b", healthy());
    assert_eq!(story.step(&stages, "r2", at(2)).rollout, None);
}

#[test]
fn g10_what_a_user_suspended_does_not_start_and_does_not_time_out() {
    let stages = stages(json!({"timeout": "10m"}));
    let mut story = Story::of(&[("a", 0), ("b", 0)]);
    story.clusters.get_mut("a").expect("a").held = true;
    assert_eq!(said(&story.step(&stages, "r1", at(0))), "Progressing others [b] passed []");
    story.shows("b", healthy());
    assert_eq!(said(&story.step(&stages, "r1", at(9000))), "Progressing others [b] passed [b]");
    story.clusters.get_mut("a").expect("a").held = false;
    assert_eq!(said(&story.step(&stages, "r1", at(9001))), "Progressing others [a,b] passed [b]");
}

#[test]
fn g12_a_request_is_answered_once() {
    let stages =
        stages(json!({"stages": [{"name": "canary", "gate": {"approval": true}}, {"name": "rest"}]}));
    let mut story = Story::of(&[("a", 0), ("b", 1)]);
    story.step(&stages, "r1", at(0));
    story.shows("a", healthy());
    let step = story.step(&stages, "r1", at(1));
    assert_eq!(
        (said(&step).as_str(), step.progress.reason.as_str()),
        ("Paused canary [a] passed [a]", "ApprovalRequired")
    );
    "approve revision=r0 id=1".clone_into(&mut story.request);
    assert_eq!(said(&story.step(&stages, "r1", at(2))), "Paused canary [a] passed [a]");
    "approve revision=r1 id=2".clone_into(&mut story.request);
    assert_eq!(said(&story.step(&stages, "r1", at(3))), "Progressing rest [a,b] passed [a]");
    story.shows("a", Delivery::UnderWay);
    story.step(&stages, "r2", at(4));
    story.shows("a", healthy());
    assert_eq!(said(&story.step(&stages, "r2", at(5))), "Paused canary [a] passed [a]", "of r1 only");
}

#[test]
fn a_revision_that_changes_nothing_is_complete_at_once() {
    let stages = stages(json!({}));
    let mut story = Story::of(&[("a", 0), ("b", 0)]);
    story.clusters.values_mut().for_each(|seen| seen.same = true);
    let step = story.step(&stages, "r1", at(0));
    assert_eq!((step.progress.phase, step.rollout), (api::RolloutPhase::Succeeded, None));
}

#[test]
fn durations_are_gos() {
    let check = |text: &str, expected: Option<u64>| {
        assert_eq!(seconds(text), expected.map(Duration::from_secs), "{text}");
    };
    check("", None);
    check("90s", Some(90));
    check("1h30m", Some(5400));
    check("1.5h", Some(5400));
    check("90", None);
    check("s", None);
    check("-5s", None);
    check("5d", None);
}
