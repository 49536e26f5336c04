//! Plays one scenario: step after step, each until the system is idle, and stops at the first failed expectation.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api_client::{Answer, ApiClient, message, named};
use crate::approval::approved;
use crate::changes::ChangeDetector;
use crate::check::{Checker, EarlierStates};
use crate::deadline::Deadline;
use crate::environment::Environment;
use crate::error::PlayError;
use crate::expectation::Expectation;
use crate::file::Scenario;
use crate::now_placeholder;
use crate::plan_check::{self, PlanCheck};
use crate::reference::Reference;
use crate::step::{Action, Cluster, Step};
use crate::touched_objects::TouchedObjects;
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
    earlier: EarlierStates,
    /// What was touched, where that has to be undone.
    touched_objects: TouchedObjects,
    pace: Pace,
    /// Warnings and refusals of the last step.
    messages: Vec<String>,
}

impl<'a> Player<'a> {
    /// Before the first step.
    pub fn new(scenario: &'a Scenario, way: Way) -> Self {
        Self {
            scenario,
            way,
            earlier: EarlierStates::default(),
            touched_objects: TouchedObjects::default(),
            pace: Pace::default(),
            messages: Vec::new(),
        }
    }

    /// Plays every step.
    pub async fn play(&mut self, environment: &mut Environment) -> Result<(), Failure> {
        self.begin(environment).await?;
        for (index, step) in self.scenario.steps.iter().enumerate() {
            self.play_one(environment, index, step).await?;
        }
        Ok(())
    }

    /// Makes what has to be there before the first step.
    pub async fn begin(&mut self, environment: &mut Environment) -> Result<(), Failure> {
        let problems =
            self.make_namespaces(environment).await.unwrap_or_else(|PlayError(trouble)| vec![trouble]);
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Failure::before_the_first_step(problems)),
        }
    }

    /// Plays a single step, and returns the warnings and refusals that the user gets.
    pub async fn play_one(
        &mut self,
        environment: &mut Environment,
        index: usize,
        step: &Step,
    ) -> Result<Vec<String>, Failure> {
        let outcome = self.step(environment, index, step).await;
        let problems = outcome.unwrap_or_else(|PlayError(trouble)| vec![trouble]);
        match problems.is_empty() {
            true => Ok(std::mem::take(&mut self.messages)),
            false => {
                let whys = whys(environment, step).await;
                Err(Failure { step: index + 1, title: step.title.clone(), problems, whys })
            }
        }
    }

    async fn make_namespaces(&mut self, environment: &mut Environment) -> Result<Vec<String>, PlayError> {
        if self.scenario.namespaces.is_empty() {
            return Ok(Vec::new());
        }
        let mut answers = Vec::new();
        for name in &self.scenario.namespaces {
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            self.touch(environment, None, &named(&namespace)).await?;
            answers.push(environment.control().apply(&namespace).await?);
        }
        self.wait_until_idle(environment).await?;
        let refused = answers.iter().filter(|answer| !answer.done);
        Ok(refused.map(|answer| message(&answer.body).to_owned()).collect())
    }

    /// Makes everything be as it was before the first step.
    pub async fn clean_up(&self, environment: &Environment) -> Result<(), PlayError> {
        self.touched_objects.restore_all(environment).await
    }

    async fn step(
        &mut self,
        environment: &mut Environment,
        index: usize,
        step: &Step,
    ) -> Result<Vec<String>, PlayError> {
        let step = &Step {
            action: now_placeholder::replace_now(&step.action, environment.now().await?),
            ..step.clone()
        };
        let plan_check = self.plan_step(environment, index, step).await?;
        let mut problems = match &step.action {
            Action::Expect(expectation) => return self.expect(environment, expectation).await,
            Action::Wait(time) => {
                environment.wait(*time).await?;
                Vec::new()
            }
            Action::Restart => {
                environment.restart().await?;
                Vec::new()
            }
            Action::Join(cluster) => {
                environment.join(cluster).await?;
                Vec::new()
            }
            Action::Reach(name, reachable) => {
                environment.reach(name, *reachable).await?;
                Vec::new()
            }
            Action::Apply(_) | Action::Edit(..) | Action::Touch(_) | Action::Delete(_) => {
                self.change(environment, index, step).await?
            }
        };
        // What was refused sets nothing off, which a simulation proves; a live control plane need not be asked for long.
        let is_refused = matches!(environment, Environment::Live(_)) && step.rejected.is_some();
        if problems.is_empty() && !is_refused {
            self.wait_until_idle(environment).await?;
            if let (Some(plan_check), Environment::Simulated(simulated)) = (plan_check, &*environment) {
                problems = plan_check.differences(simulated).await?;
            }
        }
        Ok(problems)
    }

    /// What the plan says about a step. Only changes to the control plane can be planned, and only
    /// where nothing else disturbs it.
    async fn plan_step(
        &self,
        environment: &Environment,
        index: usize,
        step: &Step,
    ) -> Result<Option<PlanCheck>, PlayError> {
        let (Environment::Simulated(simulated), Way::Plain, None) = (environment, self.way, &step.place)
        else {
            return Ok(None);
        };
        let deleted = match &step.action {
            Action::Apply(_) | Action::Edit(..) | Action::Touch(_) => Vec::new(),
            Action::Delete(references) => plan_check::deleted(&simulated.control(), references).await?,
            _ => return Ok(None),
        };
        let rehearsed = act(&simulated.control().rehearsal(), index, step).await?;
        PlanCheck::of(simulated, &step.action, &rehearsed, &deleted).await
    }

    async fn wait_until_idle(&self, environment: &mut Environment) -> Result<(), PlayError> {
        if self.way == Way::Restarts {
            if let Environment::Simulated(simulated) = &*environment {
                let soon = simulated.faults().below(RESTART_WITHIN_MILLISECONDS);
                environment.wait(Duration::from_millis(soon)).await?;
            }
            environment.restart().await?;
            self.settle(environment).await?;
            environment.restart().await?;
        }
        self.settle(environment).await
    }

    /// Everything comes to rest, as far as that can be known.
    async fn settle(&self, environment: &Environment) -> Result<(), PlayError> {
        match environment {
            Environment::Simulated(simulated) => simulated.settle().await,
            Environment::Live(_) => self.touched_objects.rest(environment).await,
        }
    }

    /// Has to be called before an object is touched, so that it can be as before afterwards.
    async fn touch(
        &mut self,
        environment: &Environment,
        place: Option<&str>,
        reference: &Reference,
    ) -> Result<(), PlayError> {
        match environment {
            Environment::Simulated(_) => Ok(()),
            Environment::Live(_) => self.touched_objects.remember(environment, place, reference).await,
        }
    }

    async fn change(
        &mut self,
        environment: &mut Environment,
        index: usize,
        step: &Step,
    ) -> Result<Vec<String>, PlayError> {
        if let Some(cluster) = returned(environment, step).await? {
            environment.join(&cluster).await?;
            return Ok(Vec::new());
        }
        let environment = &*environment;
        let api_client = environment.place(step.place.as_deref())?;
        for reference in step.touched() {
            self.touch(environment, step.place.as_deref(), &reference).await?;
        }
        if let Environment::Live(_) = environment {
            self.pace.keep(step).await;
        }
        let answers = act(&api_client, index, step).await?;
        self.pace.acted(step);
        self.messages = answers.iter().flat_map(messages_of).collect();
        Ok(answer_problems(step, &answers))
    }

    async fn expect(
        &mut self,
        environment: &Environment,
        expectation: &Expectation,
    ) -> Result<Vec<String>, PlayError> {
        let mut deadline = Deadline::of(environment.deadline());
        loop {
            let changes = match environment {
                Environment::Simulated(_) => None,
                Environment::Live(_) => Some(ChangeDetector::now(environment).await?),
            };
            let checker = Checker { environment, way: self.way, earlier: &self.earlier };
            let problems = checker.problems(expectation).await?;
            if problems.is_empty() {
                self.earlier.take(environment, expectation).await?;
            }
            if problems.is_empty() || deadline.is_over() {
                return Ok(problems);
            }
            deadline.wait().await;
            if let Some(mut changes) = changes {
                while !deadline.is_over() && !changes.has_changed(environment).await? {
                    deadline.wait().await;
                }
            }
        }
    }
}

/// The member that rejoins in this step, if any. On a live control plane a Cluster object alone is not enough: the host,
/// which has the credentials, has to join it.
async fn returned(environment: &Environment, step: &Step) -> Result<Option<Cluster>, PlayError> {
    let (Environment::Live(live), Action::Apply(manifests)) = (environment, &step.action) else {
        return Ok(None);
    };
    let [manifest] = manifests.as_slice() else { return Ok(None) };
    let reference = named(manifest);
    let was_a_member = reference.kind == "Cluster" && live.member(&reference.name).is_some();
    let is_gone = was_a_member && environment.control().get(&reference).await?.is_none();
    Ok(is_gone.then(|| Cluster::named(&reference.name)))
}

/// Does what a step says, and answers with what the server said. Where the step approves what it does, the server has to
/// refuse it first.
async fn act(api_client: &ApiClient, index: usize, step: &Step) -> Result<Vec<Answer>, PlayError> {
    let answers = send(api_client, index, &step.action).await?;
    if !step.approved {
        return Ok(answers);
    }
    match approved(&step.action, &answers) {
        Some(action) => send(api_client, index, &action).await,
        None => Err(PlayError("it needed no approval".to_owned())),
    }
}

async fn send(api_client: &ApiClient, index: usize, action: &Action) -> Result<Vec<Answer>, PlayError> {
    let mut answers = Vec::new();
    match action {
        Action::Apply(manifests) => {
            for manifest in manifests {
                answers.push(api_client.apply(manifest).await?);
            }
        }
        Action::Edit(reference, patch) => answers.push(api_client.merge(reference, patch).await?),
        Action::Touch(reference) => {
            let patch = json!({ "metadata": { "labels": { "refresh-time": index.to_string() } } });
            answers.push(api_client.merge(reference, &patch).await?);
        }
        Action::Delete(references) => {
            for reference in references {
                answers.push(api_client.delete(reference).await?);
            }
        }
        _ => {}
    }
    Ok(answers)
}

/// When users last acted, so that a policy and a template are never touched within the same second: which came
/// first follows from timestamps, which have whole seconds.
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

/// What kubectl would print of a response besides success: warnings or the error.
fn messages_of(answer: &Answer) -> Vec<String> {
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
async fn whys(environment: &Environment, step: &Step) -> Vec<String> {
    let Action::Expect(expectation) = &step.action else { return Vec::new() };
    let mut whys = Vec::new();
    for (reference, _) in &expectation.objects {
        whys.extend(environment.why(reference).await.map(|why| why.to_string()));
    }
    whys
}
