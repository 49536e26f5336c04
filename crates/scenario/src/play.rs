//! Plays one scenario: step after step, each until everything rests, and stops where it is not as expected.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::door::{Answer, message, named};
use crate::expectation::Expectation;
use crate::file::Scenario;
use crate::ground::{Ground, Trouble};
use crate::judge::{Judge, Marks};
use crate::reference::Reference;
use crate::step::{Action, Step};
use crate::way::Way;

/// How soon after a step controllers are stopped, at most.
const RESTART_WITHIN_MILLISECONDS: u64 = 20;
/// How often a live control plane is looked at while an expectation has not come true.
const LOOK: Duration = Duration::from_millis(300);

/// Where a scenario did not go as it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The number of the step, counted from 1.
    pub step: usize,
    /// What it was about.
    pub title: String,
    /// What is not as expected.
    pub problems: Vec<String>,
    /// Why things are as they are instead.
    pub whys: Vec<String>,
}

/// A scenario while it is played.
pub struct Player<'a> {
    scenario: &'a Scenario,
    way: Way,
    marks: Marks,
    /// What was made, and where.
    made: Vec<(Option<String>, Reference)>,
}

impl<'a> Player<'a> {
    /// Before the first step.
    pub fn new(scenario: &'a Scenario, way: Way) -> Self {
        Self { scenario, way, marks: Marks::default(), made: Vec::new() }
    }

    /// Plays every step.
    pub async fn play(&mut self, ground: &mut Ground) -> Result<(), Failure> {
        for (index, step) in self.scenario.steps.iter().enumerate() {
            let outcome = self.step(ground, index, step).await;
            let problems = outcome.unwrap_or_else(|Trouble(trouble)| vec![trouble]);
            if !problems.is_empty() {
                let whys = whys(ground, step).await;
                return Err(Failure { step: index + 1, title: step.title.clone(), problems, whys });
            }
        }
        Ok(())
    }

    /// Removes what was made, the last first.
    pub async fn clean_up(&self, ground: &Ground) -> Result<(), Trouble> {
        for (place, reference) in self.made.iter().rev() {
            let door = match place {
                None => ground.control(),
                Some(member) => ground.member(member)?,
            };
            if door.path(reference).await?.is_some() {
                door.delete(reference).await?;
                let begun = Instant::now();
                while door.get(reference).await?.is_some() && begun.elapsed() < ground.patience() {
                    ground.wait(LOOK).await;
                }
            }
        }
        ground.settle().await
    }

    async fn step(&mut self, ground: &mut Ground, index: usize, step: &Step) -> Result<Vec<String>, Trouble> {
        let problems = match &step.action {
            Action::Expect(expectation) => return self.expect(ground, expectation).await,
            Action::Wait(time) => {
                ground.wait(*time).await;
                Vec::new()
            }
            Action::Restart => {
                ground.restart().await;
                Vec::new()
            }
            Action::Join(cluster) => {
                ground.join(cluster).await?;
                Vec::new()
            }
            Action::Reach(name, reachable) => {
                ground.reach(name, *reachable)?;
                Vec::new()
            }
            Action::Apply(_) | Action::Edit(..) | Action::Touch(_) | Action::Delete(_) => {
                self.change(ground, index, step).await?
            }
        };
        if problems.is_empty() {
            self.come_to_rest(ground).await?;
        }
        Ok(problems)
    }

    async fn come_to_rest(&self, ground: &mut Ground) -> Result<(), Trouble> {
        if self.way == Way::Restarts {
            if let Ground::Simulated(simulated) = &*ground {
                let soon = simulated.faults().below(RESTART_WITHIN_MILLISECONDS);
                ground.wait(Duration::from_millis(soon)).await;
            }
            ground.restart().await;
            ground.settle().await?;
            ground.restart().await;
        }
        ground.settle().await
    }

    async fn change(&mut self, ground: &Ground, index: usize, step: &Step) -> Result<Vec<String>, Trouble> {
        let door = match &step.place {
            None => ground.control(),
            Some(member) => ground.member(member)?,
        };
        let mut answers = Vec::new();
        match &step.action {
            Action::Apply(manifests) => {
                for manifest in manifests {
                    self.made.push((step.place.clone(), named(manifest)));
                    answers.push(door.apply(manifest).await?);
                }
            }
            Action::Edit(reference, patch) => answers.push(door.merge(reference, patch).await?),
            Action::Touch(reference) => {
                let patch = json!({ "metadata": { "labels": { "refresh-time": index.to_string() } } });
                answers.push(door.merge(reference, &patch).await?);
            }
            Action::Delete(references) => {
                for reference in references {
                    answers.push(door.delete(reference).await?);
                }
            }
            _ => {}
        }
        Ok(answer_problems(step, &answers))
    }

    async fn expect(&mut self, ground: &Ground, expectation: &Expectation) -> Result<Vec<String>, Trouble> {
        let begun = Instant::now();
        loop {
            let judge = Judge { ground, way: self.way, marks: &self.marks };
            let problems = judge.problems(expectation).await?;
            if problems.is_empty() {
                self.marks.take(ground, expectation).await?;
            }
            if problems.is_empty() || begun.elapsed() >= ground.patience() {
                return Ok(problems);
            }
            ground.wait(LOOK).await;
        }
    }
}

fn answer_problems(step: &Step, answers: &[Answer]) -> Vec<String> {
    let mut problems = Vec::new();
    let refused: Vec<&Value> =
        answers.iter().filter(|answer| !answer.done).map(|answer| &answer.body).collect();
    match &step.rejected {
        None => problems.extend(refused.iter().map(|status| format!("it was refused: {}", message(status)))),
        Some(_) if refused.is_empty() => problems.push("it was accepted".to_owned()),
        Some(part) => {
            let other = refused.iter().filter(|status| !message(status).contains(part.as_str()));
            problems.extend(other.map(|status| format!("it was refused with: {}", message(status))));
        }
    }
    let warnings: Vec<&String> = answers.iter().flat_map(|answer| &answer.warnings).collect();
    for part in &step.warned {
        if !warnings.iter().any(|warning| warning.contains(part.as_str())) {
            problems.push(format!("no warning says {part:?}; there are {warnings:?}"));
        }
    }
    problems
}

/// The brain's reasons for what a step speaks of.
async fn whys(ground: &Ground, step: &Step) -> Vec<String> {
    let Action::Expect(expectation) = &step.action else { return Vec::new() };
    let mut whys = Vec::new();
    for (reference, _) in &expectation.objects {
        whys.extend(ground.why(reference).await);
    }
    whys
}
