//! Random stories of edits, health, clusters that come and go, time and stops between two writes: no cluster gets a
//! revision that did not pass the stages before, no stage has more clusters under way than it may, every story ends.

use api::records::{ROLLOUT_STRATEGY, StrategyRecord};
use api::{Binding, RolloutPhase};
use proptest::prelude::*;

use super::*;

/// What happens.
#[derive(Debug, Clone)]
enum Event {
    /// Another revision.
    Edit(u8),
    /// A cluster becomes healthy or not.
    Health(usize, bool),
    /// A cluster comes, into a stage.
    Join(usize, usize),
    /// A cluster goes.
    Leave(usize),
    /// Time passes.
    Wait(i64),
    /// The controller stops after it has written the status.
    Stop,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        (0_u8..4).prop_map(Event::Edit),
        (0_usize..6, any::<bool>()).prop_map(|(cluster, healthy)| Event::Health(cluster, healthy)),
        (0_usize..6, 0_usize..3).prop_map(|(cluster, stage)| Event::Join(cluster, stage)),
        (0_usize..6).prop_map(Event::Leave),
        (1_i64..400).prop_map(Event::Wait),
        Just(Event::Stop),
    ];
    prop::collection::vec(event, 1..60)
}

fn strategies() -> impl Strategy<Value = StagedRollout> {
    let action = prop::sample::select(vec!["Pause", "Continue"]);
    (1_usize..4, 0_i64..200, 0_i32..2, action).prop_map(|(concurrency, success, failures, action)| {
        let stage = |name: &str| json!({"name": name, "maxConcurrency": concurrency});
        let written = json!({
            "stages": [stage("one"), stage("two"), stage("three")],
            "gate": {"minSuccessTime": format!("{success}s")},
            "timeout": "300s",
            "maxFailures": failures,
            "onFailure": {"action": action},
        });
        serde_json::from_value(written).expect("a strategy")
    })
}

/// What really is in each cluster, beside the story that decisions see.
struct World {
    strategy: StagedRollout,
    stages: Stages,
    story: Story,
    revision: String,
    now: i64,
    /// What each cluster has.
    has: BTreeMap<String, String>,
    /// Whether what it has is healthy.
    health: BTreeMap<String, bool>,
    /// Clusters that came after the revision was started.
    late: BTreeSet<String>,
    /// The controller stops between two writes next time.
    stops: bool,
}

impl World {
    fn new(strategy: StagedRollout) -> World {
        World {
            stages: Stages::of(&strategy),
            strategy,
            story: Story::of(&[("c0", 0), ("c1", 0), ("c2", 1), ("c3", 2)]),
            revision: "r0".to_owned(),
            now: 0,
            has: BTreeMap::new(),
            health: BTreeMap::new(),
            late: BTreeSet::new(),
            stops: false,
        }
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::Edit(number) => {
                let revision = format!("r{number}");
                if revision != self.revision {
                    self.revision = revision;
                    self.late.clear();
                }
            }
            Event::Health(cluster, healthy) => drop(self.health.insert(format!("c{cluster}"), *healthy)),
            Event::Join(cluster, stage) => {
                let name = format!("c{cluster}");
                if !self.story.clusters.contains_key(&name) {
                    self.late.insert(name.clone());
                    self.story.clusters.insert(name, Seen { stage: *stage, ..Seen::default() });
                }
            }
            Event::Leave(cluster) => {
                let name = format!("c{cluster}");
                self.story.clusters.remove(&name);
                self.has.remove(&name);
            }
            Event::Wait(seconds) => self.now += seconds,
            Event::Stop => self.stops = true,
        }
    }

    /// The binding as the renderer sees it.
    fn binding(&self) -> Binding {
        let mut binding = Binding::default();
        let record = StrategyRecord { from: String::new(), staged: self.strategy.clone() };
        let text = serde_json::to_string(&record).expect("a record");
        binding.metadata.annotations.insert(ROLLOUT_STRATEGY.to_owned(), text);
        binding.spec.suspension.get_or_insert_default().rollout.clone_from(&self.story.rollout);
        binding.status.rollout.clone_from(&self.story.progress);
        binding
    }

    /// Delivers what may be delivered.
    fn deliver(&mut self) -> Result<(), TestCaseError> {
        let permit = permit(&self.binding(), &self.revision);
        for name in self.story.clusters.keys().cloned().collect::<Vec<_>>() {
            if !permit.allows(&name) || self.has.get(&name) == Some(&self.revision) {
                continue;
            }
            self.check_order(&name)?;
            self.has.insert(name, self.revision.clone());
        }
        for (name, seen) in &mut self.story.clusters {
            let has = self.has.get(name) == Some(&self.revision);
            seen.same = has;
            seen.delivery = match (has, self.health.get(name).copied().unwrap_or(true)) {
                (false, _) => Delivery::UnderWay,
                (true, true) => healthy(),
                (true, false) => unhealthy(),
            };
        }
        Ok(())
    }

    /// G7: the clusters of all stages before have passed, or have failed as they may.
    fn check_order(&self, name: &str) -> Result<(), TestCaseError> {
        let progress = self.story.progress.clone().unwrap_or_default();
        let of_now = progress.revision == self.revision;
        if of_now && !progress.phase.is_in_flight() {
            return Ok(());
        }
        let stage = self.story.clusters[name].stage;
        let done = |other: &String| {
            progress.completed_clusters.contains(other)
                || progress.failed_clusters.iter().any(|failure| failure.name == *other)
        };
        let before = self.story.clusters.iter().filter(|(_, seen)| seen.stage < stage);
        for (other, _) in before.filter(|(other, _)| !self.late.contains(*other)) {
            prop_assert!(of_now && done(other), "{name} got {} before {other} passed", self.revision);
        }
        Ok(())
    }

    fn check_concurrency(&self) -> Result<(), TestCaseError> {
        let Some(progress) = self.story.progress.as_ref().filter(|one| one.revision == self.revision) else {
            return Ok(());
        };
        let most = self.stages.stages[0].concurrency(usize::MAX / 200);
        prop_assert!(progress.clusters.len() <= most, "{:?}", progress.clusters);
        Ok(())
    }

    /// Decides and delivers until nothing changes any more.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..100 {
            self.deliver()?;
            let before = (self.story.rollout.clone(), self.story.progress.clone());
            let step = self.story.next(&self.stages, &self.revision, at(self.now));
            self.story.progress = Some(step.progress);
            self.check_concurrency()?;
            if std::mem::take(&mut self.stops) {
                continue;
            }
            self.story.rollout = step.rollout;
            if before == (self.story.rollout.clone(), self.story.progress.clone()) {
                return Ok(());
            }
        }
        Err(TestCaseError::fail("it never comes to rest"))
    }
}

proptest! {
    #[test]
    fn g7_no_story_delivers_what_has_not_passed(strategy in strategies(), events in events()) {
        let mut world = World::new(strategy);
        world.settle()?;
        for event in &events {
            world.happen(event);
            world.settle()?;
        }
        // With constant health every rollout ends.
        for _ in 0..40 {
            world.now += 300;
            world.settle()?;
        }
        let phase = world.story.progress.as_ref().map(|progress| progress.phase);
        let ended = matches!(phase, Some(RolloutPhase::Succeeded | RolloutPhase::Failed | RolloutPhase::Paused));
        prop_assert!(ended || world.story.clusters.is_empty(), "{:?}", world.story.progress);
    }
}
