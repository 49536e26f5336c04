//! Plays one scenario: step after step, each until everything rests, and stops where it is not as expected.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::approval::approved;
use crate::door::{Answer, Door, message, named};
use crate::expectation::Expectation;
use crate::file::Scenario;
use crate::foresight::{self, Foresight};
use crate::ground::{Ground, Trouble};
use crate::judge::{Judge, Marks};
use crate::moment;
use crate::patience::Patience;
use crate::reference::Reference;
use crate::step::{Action, Cluster, Step};
use crate::tide::Tide;
use crate::traces::Traces;
use crate::way::Way;

/// How soon after a step controllers are stopped, at most.
const RESTART_WITHIN_MILLISECONDS: u64 = 20;

/// What timestamps can tell apart.
const SECOND: Duration = Duration::from_secs(1);

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

impl Failure {
    /// One for which no step can be blamed.
    pub(crate) fn before_the_first_step(problems: Vec<String>) -> Self {
        Self { step: 0, title: "before the first step".to_owned(), problems, whys: Vec::new() }
    }
}

/// A scenario while it is played.
pub struct Player<'a> {
    scenario: &'a Scenario,
    way: Way,
    marks: Marks,
    /// What was touched, where that has to be undone.
    traces: Traces,
    pace: Pace,
    /// What the last step was told: warnings and refusals.
    told: Vec<String>,
}

impl<'a> Player<'a> {
    /// Before the first step.
    pub fn new(scenario: &'a Scenario, way: Way) -> Self {
        Self {
            scenario,
            way,
            marks: Marks::default(),
            traces: Traces::default(),
            pace: Pace::default(),
            told: Vec::new(),
        }
    }

    /// Plays every step.
    pub async fn play(&mut self, ground: &mut Ground) -> Result<(), Failure> {
        self.begin(ground).await?;
        for (index, step) in self.scenario.steps.iter().enumerate() {
            self.play_one(ground, index, step).await?;
        }
        Ok(())
    }

    /// Makes what has to be there before the first step.
    pub async fn begin(&mut self, ground: &mut Ground) -> Result<(), Failure> {
        let problems = self.make_namespaces(ground).await.unwrap_or_else(|Trouble(trouble)| vec![trouble]);
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Failure::before_the_first_step(problems)),
        }
    }

    /// Plays a single step, and answers with what was told to who did it: warnings and refusals.
    pub async fn play_one(
        &mut self,
        ground: &mut Ground,
        index: usize,
        step: &Step,
    ) -> Result<Vec<String>, Failure> {
        let outcome = self.step(ground, index, step).await;
        let problems = outcome.unwrap_or_else(|Trouble(trouble)| vec![trouble]);
        match problems.is_empty() {
            true => Ok(std::mem::take(&mut self.told)),
            false => {
                let whys = whys(ground, step).await;
                Err(Failure { step: index + 1, title: step.title.clone(), problems, whys })
            }
        }
    }

    async fn make_namespaces(&mut self, ground: &mut Ground) -> Result<Vec<String>, Trouble> {
        if self.scenario.namespaces.is_empty() {
            return Ok(Vec::new());
        }
        let mut answers = Vec::new();
        for name in &self.scenario.namespaces {
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            self.touch(ground, None, &named(&namespace)).await?;
            answers.push(ground.control().apply(&namespace).await?);
        }
        self.come_to_rest(ground).await?;
        let refused = answers.iter().filter(|answer| !answer.done);
        Ok(refused.map(|answer| message(&answer.body).to_owned()).collect())
    }

    /// Makes everything be as it was before the first step.
    pub async fn clean_up(&self, ground: &Ground) -> Result<(), Trouble> {
        self.traces.erase(ground).await
    }

    async fn step(&mut self, ground: &mut Ground, index: usize, step: &Step) -> Result<Vec<String>, Trouble> {
        let step = &Step { action: moment::at(&step.action, ground.now().await?), ..step.clone() };
        let foresight = self.foresee(ground, index, step).await?;
        let mut problems = match &step.action {
            Action::Expect(expectation) => return self.expect(ground, expectation).await,
            Action::Wait(time) => {
                ground.wait(*time).await?;
                Vec::new()
            }
            Action::Restart => {
                ground.restart().await?;
                Vec::new()
            }
            Action::Join(cluster) => {
                ground.join(cluster).await?;
                Vec::new()
            }
            Action::Reach(name, reachable) => {
                ground.reach(name, *reachable).await?;
                Vec::new()
            }
            Action::Apply(_) | Action::Edit(..) | Action::Touch(_) | Action::Delete(_) => {
                self.change(ground, index, step).await?
            }
        };
        // What was refused sets nothing off, which a simulation proves; a live control plane need not be asked for long.
        let is_refused = matches!(ground, Ground::Live(_)) && step.rejected.is_some();
        if problems.is_empty() && !is_refused {
            self.come_to_rest(ground).await?;
            if let (Some(foresight), Ground::Simulated(simulated)) = (foresight, &*ground) {
                problems = foresight.differences(simulated).await?;
            }
        }
        Ok(problems)
    }

    /// What the plan says about a step. Only what somebody changes in the control plane can be planned, and only
    /// where nothing else disturbs it.
    async fn foresee(
        &self,
        ground: &Ground,
        index: usize,
        step: &Step,
    ) -> Result<Option<Foresight>, Trouble> {
        let (Ground::Simulated(simulated), Way::Plain, None) = (ground, self.way, &step.place) else {
            return Ok(None);
        };
        let deleted = match &step.action {
            Action::Apply(_) | Action::Edit(..) | Action::Touch(_) => Vec::new(),
            Action::Delete(references) => foresight::deleted(&simulated.control(), references).await?,
            _ => return Ok(None),
        };
        let rehearsed = act(&simulated.control().rehearsal(), index, step).await?;
        Foresight::of(simulated, &step.action, &rehearsed, &deleted).await
    }

    async fn come_to_rest(&self, ground: &mut Ground) -> Result<(), Trouble> {
        if self.way == Way::Restarts {
            if let Ground::Simulated(simulated) = &*ground {
                let soon = simulated.faults().below(RESTART_WITHIN_MILLISECONDS);
                ground.wait(Duration::from_millis(soon)).await?;
            }
            ground.restart().await?;
            self.settle(ground).await?;
            ground.restart().await?;
        }
        self.settle(ground).await
    }

    /// Everything comes to rest, as far as that can be known.
    async fn settle(&self, ground: &Ground) -> Result<(), Trouble> {
        match ground {
            Ground::Simulated(simulated) => simulated.settle().await,
            Ground::Live(_) => self.traces.rest(ground).await,
        }
    }

    /// Has to be called before an object is touched, so that it can be as before afterwards.
    async fn touch(
        &mut self,
        ground: &Ground,
        place: Option<&str>,
        reference: &Reference,
    ) -> Result<(), Trouble> {
        match ground {
            Ground::Simulated(_) => Ok(()),
            Ground::Live(_) => self.traces.remember(ground, place, reference).await,
        }
    }

    async fn change(
        &mut self,
        ground: &mut Ground,
        index: usize,
        step: &Step,
    ) -> Result<Vec<String>, Trouble> {
        if let Some(cluster) = returned(ground, step).await? {
            ground.join(&cluster).await?;
            return Ok(Vec::new());
        }
        let ground = &*ground;
        let door = ground.place(step.place.as_deref())?;
        for reference in step.touched() {
            self.touch(ground, step.place.as_deref(), &reference).await?;
        }
        if let Ground::Live(_) = ground {
            self.pace.keep(step).await;
        }
        let answers = act(&door, index, step).await?;
        self.pace.acted(step);
        self.told = answers.iter().flat_map(told).collect();
        Ok(answer_problems(step, &answers))
    }

    async fn expect(&mut self, ground: &Ground, expectation: &Expectation) -> Result<Vec<String>, Trouble> {
        let mut patience = Patience::of(ground.patience());
        loop {
            let tide = match ground {
                Ground::Simulated(_) => None,
                Ground::Live(_) => Some(Tide::now(ground).await?),
            };
            let judge = Judge { ground, way: self.way, marks: &self.marks };
            let problems = judge.problems(expectation).await?;
            if problems.is_empty() {
                self.marks.take(ground, expectation).await?;
            }
            if problems.is_empty() || patience.is_over() {
                return Ok(problems);
            }
            patience.wait().await;
            if let Some(mut tide) = tide {
                while !patience.is_over() && !tide.has_turned(ground).await? {
                    patience.wait().await;
                }
            }
        }
    }
}

/// The member that comes back, if that is what a step is. Elsewhere than in a simulation a Cluster alone leads nowhere:
/// whoever has the credentials has to join it.
async fn returned(ground: &Ground, step: &Step) -> Result<Option<Cluster>, Trouble> {
    let (Ground::Live(live), Action::Apply(manifests)) = (ground, &step.action) else { return Ok(None) };
    let [manifest] = manifests.as_slice() else { return Ok(None) };
    let reference = named(manifest);
    let was_a_member = reference.kind == "Cluster" && live.member(&reference.name).is_some();
    let is_gone = was_a_member && ground.control().get(&reference).await?.is_none();
    Ok(is_gone.then(|| Cluster::named(&reference.name)))
}

/// Does what a step says, and answers with what the server said. Where the step approves what it does, the server has to
/// refuse it first.
async fn act(door: &Door, index: usize, step: &Step) -> Result<Vec<Answer>, Trouble> {
    let answers = send(door, index, &step.action).await?;
    if !step.approved {
        return Ok(answers);
    }
    match approved(&step.action, &answers) {
        Some(action) => send(door, index, &action).await,
        None => Err(Trouble("it needed no approval".to_owned())),
    }
}

async fn send(door: &Door, index: usize, action: &Action) -> Result<Vec<Answer>, Trouble> {
    let mut answers = Vec::new();
    match action {
        Action::Apply(manifests) => {
            for manifest in manifests {
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
    Ok(answers)
}

/// When users last acted, so that a policy and a template are never touched within the same second: which came
/// first is told by timestamps, and those know only seconds.
#[derive(Debug, Default)]
struct Pace {
    policy: Option<Instant>,
    template: Option<Instant>,
}

impl Pace {
    async fn keep(&self, step: &Step) {
        let other = if is_about_policies(step) { self.template } else { self.policy };
        if let Some(other) = other {
            tokio::time::sleep_until(other + SECOND).await;
        }
    }

    fn acted(&mut self, step: &Step) {
        let last = if is_about_policies(step) { &mut self.policy } else { &mut self.template };
        *last = Some(Instant::now());
    }
}

fn is_about_policies(step: &Step) -> bool {
    step.touched().iter().any(|reference| reference.kind.ends_with("PropagationPolicy"))
}

/// What kubectl would print of an answer besides that all is well.
fn told(answer: &Answer) -> Vec<String> {
    let warnings = answer.warnings.iter().map(|warning| format!("Warning: {warning}"));
    let refusal = (!answer.done).then(|| format!("Error from server: {}", message(&answer.body)));
    warnings.chain(refusal).collect()
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
        whys.extend(ground.why(reference).await.map(|why| why.to_string()));
    }
    whys
}
