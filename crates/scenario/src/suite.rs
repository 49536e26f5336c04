//! Plays many scenarios, each in every requested way, as many at once as there are processors.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use controllers::gates::FeatureGates;
use controllers::members::Settings;
use serde_json::Value;

use crate::environment::Environment;
use crate::error::PlayError;
use crate::file::Scenario;
use crate::final_state::{FinalState, differences, final_state};
use crate::live::Live;
use crate::play::{Failure, Player};
use crate::simulated::Simulated;
use crate::step::Cluster;
use crate::way::Way;

/// How scenarios are played.
#[derive(Debug, Clone)]
pub struct Options {
    /// The ways; endings are compared with the plain one if it is among them.
    pub ways: Vec<Way>,
    /// What random choices follow from.
    pub seed: u64,
    /// How many at once.
    pub jobs: usize,
}

/// What became of one scenario in one way.
#[derive(Debug)]
pub struct ScenarioResult<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The way.
    pub way: Way,
    /// The seed; none where nothing is left to chance but the control plane itself.
    pub seed: Option<u64>,
    /// What became of it.
    pub verdict: Verdict,
    /// How long it took.
    pub took: Duration,
}

/// What became of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Everything was as expected.
    Passed,
    /// Something was not.
    Failed(Failure),
    /// Every step was as expected, but it did not end as in the plain way.
    Differs(Vec<String>),
    /// It cannot be played here.
    Skipped(String),
}

/// Plays scenarios in this process; `tell` is called for each as soon as it ends.
pub fn run(scenarios: &[Scenario], options: &Options, tell: impl Fn(&ScenarioResult<'_>) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, scenarios.len().max(1)) {
            scope.spawn(|| {
                while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run_one(scenario, options, &tell);
                }
            });
        }
    });
}

fn run_one(scenario: &Scenario, options: &Options, tell: &impl Fn(&ScenarioResult<'_>)) {
    let mut plain: Option<FinalState> = None;
    for &way in &options.ways {
        let begun = Instant::now();
        let verdict = match simulate(scenario, way, options.seed) {
            Err(failure) => Verdict::Failed(failure),
            Ok(final_state) => match &plain {
                None => {
                    plain = (way == Way::Plain).then_some(final_state);
                    Verdict::Passed
                }
                Some(plain) => match differences(plain, &final_state) {
                    lines if lines.is_empty() => Verdict::Passed,
                    lines => Verdict::Differs(lines),
                },
            },
        };
        tell(&ScenarioResult { scenario, way, seed: Some(options.seed), verdict, took: begun.elapsed() });
    }
}

/// Plays a scenario in a runtime of its own.
fn simulate(scenario: &Scenario, way: Way, seed: u64) -> Result<FinalState, Failure> {
    let trouble = |PlayError(trouble)| Failure::before_the_first_step(vec![trouble]);
    let feature_gates = feature_gates(&scenario.gates).map_err(trouble)?;
    simulated_time().map_err(trouble)?.block_on(async {
        let simulated =
            Simulated::start(&scenario.clusters, feature_gates, way, seed).await.map_err(trouble)?;
        let mut environment = Environment::Simulated(Box::new(simulated));
        let played = Player::new(scenario, way).play(&mut environment).await;
        let Environment::Simulated(simulated) = environment else { unreachable!("it was made so above") };
        let ended = match played {
            Ok(()) => {
                // What is asked of members now and then has to be as new as the rest.
                tokio::time::sleep(2 * Settings::default().status_interval).await;
                simulated.settle().await.map_err(trouble)?;
                final_state(&simulated).await.map_err(trouble)
            }
            Err(failure) => Err(failure),
        };
        simulated.end().await;
        ended
    })
}

/// A runtime whose time only passes when nothing is left to do.
pub(crate) fn simulated_time() -> Result<tokio::runtime::Runtime, PlayError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.map_err(|error| PlayError(error.to_string()))
}

/// The switches that gates by their names stand for.
pub(crate) fn feature_gates(gates: &BTreeMap<String, bool>) -> Result<FeatureGates, PlayError> {
    controllers::gates::parse(&listed(gates)).map_err(|error| PlayError(error.to_string()))
}

fn listed(gates: &BTreeMap<String, bool>) -> String {
    let gates: Vec<String> = gates.iter().map(|(name, value)| format!("{name}={value}")).collect();
    gates.join(",")
}

/// Plays scenarios one after the other on a control plane that is running somewhere, whose gates differ from
/// the default by these.
pub async fn run_live(
    scenarios: &[Scenario],
    live: &Live,
    gates: &BTreeMap<String, bool>,
    tell: impl Fn(&ScenarioResult<'_>),
) {
    for scenario in scenarios {
        let begun = Instant::now();
        let verdict = match live.joined().await {
            Err(PlayError(trouble)) => Verdict::Failed(Failure::before_the_first_step(vec![trouble])),
            Ok(joined) => match unfit(scenario, live, &joined, gates) {
                Some(reason) => Verdict::Skipped(reason),
                None => play_live(scenario, live).await,
            },
        };
        tell(&ScenarioResult { scenario, way: Way::Plain, seed: None, verdict, took: begun.elapsed() });
    }
}

async fn play_live(scenario: &Scenario, live: &Live) -> Verdict {
    let mut environment = Environment::Live(live.clone());
    let mut player = Player::new(scenario, Way::Plain);
    let played = player.play(&mut environment).await;
    let cleaned = player.clean_up(&environment).await;
    match (played, cleaned) {
        (Err(failure), Ok(())) => Verdict::Failed(failure),
        (Err(mut failure), Err(PlayError(trouble))) => {
            failure.problems.push(format!("and it could not be cleaned up: {trouble}"));
            Verdict::Failed(failure)
        }
        (Ok(()), Err(PlayError(trouble))) => Verdict::Failed(Failure {
            step: 0,
            title: "clean up".to_owned(),
            problems: vec![trouble],
            whys: Vec::new(),
        }),
        (Ok(()), Ok(())) => Verdict::Passed,
    }
}

/// Why a scenario cannot be played on this control plane.
fn unfit(
    scenario: &Scenario,
    live: &Live,
    joined: &[Value],
    gates: &BTreeMap<String, bool>,
) -> Option<String> {
    if scenario.gates != *gates {
        return Some(match scenario.gates.is_empty() {
            true => "it needs the feature gates as they are by default".to_owned(),
            false => format!("it needs the feature gates {}", listed(&scenario.gates)),
        });
    }
    let there = live.members();
    for cluster in &scenario.clusters {
        if !there.contains(&cluster.name) {
            return Some(format!("there is no member {}", cluster.name));
        }
        // A cluster without properties matches any.
        if *cluster == Cluster::named(&cluster.name) {
            continue;
        }
        let object = joined.iter().find(|object| object["metadata"]["name"] == cluster.name.as_str());
        if !object.is_some_and(|object| cluster.is_described_by(object)) {
            return Some(format!("it needs a cluster {} with other properties", cluster.name));
        }
    }
    let names = joined.iter().filter_map(|object| object["metadata"]["name"].as_str());
    let wanted = |name: &&str| scenario.clusters.iter().any(|cluster| cluster.name == **name);
    if let Some(other) = names.into_iter().find(|name| !wanted(name)) {
        return Some(format!("it needs a control plane without {other}"));
    }
    let beyond = scenario.steps.iter().find(|step| step.needs_host() && !live.has_host());
    beyond.map(|step| format!("{:?} can only be simulated", step.title))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORY: &str = "
scenario: Some templates come, move and go
steps:
- policy: { name: pp, select: Deployment, clusters: [member1, member2] }
- template: { name: a, replicas: 2 }
- template: { name: b, mounts: [ConfigMap c] }
- policy: { name: pp, select: Deployment, clusters: [member2, member3], spec: { propagateDeps: true } }
- template: { kind: ConfigMap, name: c, data: { key: value } }
- delete: Deployment a
- expect:
    Deployment a: { runsIn: [] }
    Deployment b: { runsIn: [member2, member3] }
    ConfigMap c: { runsIn: [member2, member3] }
";

    fn record(way: Way, seed: u64) -> Vec<(String, String)> {
        let scenario = Scenario::parse("story.yaml".as_ref(), STORY).expect("it is a scenario");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let start = Simulated::start(&scenario.clusters, FeatureGates::default(), way, seed).await;
            let mut environment = Environment::Simulated(Box::new(start.expect("it starts")));
            let played = Player::new(&scenario, way).play(&mut environment).await;
            assert_eq!(played, Ok(()));
            let Environment::Simulated(simulated) = environment else { unreachable!("it was made so above") };
            simulated.faults().record_so_far()
        })
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        for way in Way::ALL {
            let (once, again) = (record(way, 7), record(way, 7));
            let first = once.iter().zip(&again).position(|(one, other)| one != other);
            assert_eq!(first, None, "{way}: {:?}", first.map(|first| (&once[first], &again[first])));
            assert_eq!(once.len(), again.len(), "{way}");
        }
    }
}
