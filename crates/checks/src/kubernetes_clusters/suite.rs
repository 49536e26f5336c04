//! Plays many scenarios on test clusters: several sets of clusters at once, each with the members and feature gates
//! that a scenario asks for. Scenarios that ask for the same are played one after the other.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::Result;
use scenario::{Cluster, Failure, Host, Live, Scenario, ScenarioResult, Verdict, Way};

use super::host::serve_host_operations;
use super::plane::Plane;
use super::{KubernetesClusters, Programs};

/// How many members a bed has until a scenario asks for more.
const MEMBERS: usize = 3;

/// How often a bed is started before it counts as broken.
const START_TRIES: usize = 3;

/// What a control plane has to be like for a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setup {
    gates: String,
    clusters: Vec<Cluster>,
}

impl Setup {
    fn of(scenario: &Scenario) -> Self {
        let gates = scenario.gates.iter().map(|(name, value)| format!("{name}={value}"));
        Self { gates: gates.collect::<Vec<_>>().join(","), clusters: scenario.clusters.clone() }
    }
}

/// Plays scenarios on so many beds with this binary; `tell` is called for each as soon as it ends.
pub async fn play(
    programs: &Programs,
    binary: &Path,
    beds: usize,
    scenarios: &[Scenario],
    tell: impl Fn(&ScenarioResult<'_>) + Sync,
) -> Result<()> {
    let left: Mutex<Vec<&Scenario>> = Mutex::new(scenarios.iter().rev().collect());
    let lanes = (0..beds).map(|_| async {
        let mut lane = Lane::start(programs, binary).await?;
        while let Some(scenario) = next(&left, lane.setup.as_ref()) {
            let failed = AtomicBool::new(false);
            let listen = |outcome: &ScenarioResult<'_>| {
                failed.store(matches!(outcome.verdict, Verdict::Failed(_)), Ordering::Relaxed);
                tell(outcome);
            };
            lane.play_or_tell(scenario, &listen).await;
            // Whatever a failure leaves behind must not be the next one's.
            if failed.into_inner() {
                lane.end().await?;
                lane = Lane::start(programs, binary).await?;
            }
        }
        lane.end().await
    });
    futures::future::try_join_all(lanes).await.map(drop)
}

/// The next scenario: one that needs nothing changed if there is any.
fn next<'a>(left: &Mutex<Vec<&'a Scenario>>, setup: Option<&Setup>) -> Option<&'a Scenario> {
    let mut left = left.lock().expect("no one panics while holding it");
    let same = left.iter().rposition(|scenario| Some(&Setup::of(scenario)) == setup);
    match same {
        Some(index) => Some(left.remove(index)),
        None => left.pop(),
    }
}

/// One bed, and what it is like now.
struct Lane {
    plane: Plane,
    /// None where nothing is known.
    setup: Option<Setup>,
}

impl Lane {
    /// One that does not come up, on a machine that is busy, is no reason to end what the others play.
    async fn start(programs: &Programs, binary: &Path) -> Result<Self> {
        let mut tries = 1;
        let bed = loop {
            match KubernetesClusters::start(programs, MEMBERS).await {
                Err(error) if tries < START_TRIES => {
                    crate::say(&format!("a bed does not start and is tried again: {error:#}"));
                    tries += 1;
                }
                started => break started?,
            }
        };
        Ok(Self { plane: Plane::without_controllers(bed, binary).with_clock()?, setup: None })
    }

    async fn end(self) -> Result<()> {
        self.plane.keep_logs()?;
        self.plane.bed.shut_down().await;
        Ok(())
    }

    /// A bed that cannot be made ready is the scenario's failure; the next scenario finds it in an unknown state.
    async fn play_or_tell(&mut self, scenario: &Scenario, tell: &impl Fn(&ScenarioResult<'_>)) {
        let begun = Instant::now();
        let Err(error) = self.play(scenario, tell).await else { return };
        self.setup = None;
        let failure = Failure {
            step: 0,
            title: "make the bed ready".to_owned(),
            problems: vec![format!("{error:#}")],
            whys: Vec::new(),
        };
        let (verdict, took) = (Verdict::Failed(failure), begun.elapsed());
        tell(&ScenarioResult { scenario, way: Way::Plain, seed: None, verdict, took });
    }

    async fn play(&mut self, scenario: &Scenario, tell: &impl Fn(&ScenarioResult<'_>)) -> Result<()> {
        self.prepare(Setup::of(scenario)).await?;
        let (host, asked) = Host::new();
        let live = Live::connect(&self.plane.bed.control.kubeconfig, &self.plane.members()).await?;
        let live = live.with_host(host);
        let scenarios = std::slice::from_ref(scenario);
        serve_host_operations(
            &mut self.plane,
            asked,
            scenario::run_live(scenarios, &live, &scenario.gates, tell),
        )
        .await;
        if scenario.changes_clusters() {
            self.plane.forget_members()?;
            self.setup = None;
        }
        Ok(())
    }

    async fn prepare(&mut self, wanted: Setup) -> Result<()> {
        let before = self.setup.take();
        let same_gates = before.is_some_and(|before| before.gates == wanted.gates);
        if !same_gates {
            let gates = format!("--feature-gates={}", wanted.gates);
            // The clock jumps forward, so the lease is long; no other replica competes for it.
            self.plane.run_replicas(1, &[&gates, "--lease-seconds=3600"]).await?;
        }
        self.plane.revive().await?;
        self.plane.arrange(&wanted.clusters).await?;
        self.plane.until_empty().await?;
        self.setup = Some(wanted);
        Ok(())
    }
}
