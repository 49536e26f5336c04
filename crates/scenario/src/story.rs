//! Plays a scenario as a story: reports after each step what was done, the warnings that the user got, and what became
//! of the subjects of the story. Prints nothing.

use std::collections::BTreeMap;

use api::annotations;
use decide::why::Why;
use serde_json::Value;

use crate::environment::Environment;
use crate::error::PlayError;
use crate::file::Scenario;
use crate::play::{Failure, Player};
use crate::reference::Reference;
use crate::simulated::Simulated;
use crate::step::{Action, Step};
use crate::suite::{feature_gates, simulated_time};
use crate::way::Way;

/// Stories are the same every time.
const SEED: u64 = 1;

/// A step that was played.
#[derive(Debug)]
pub struct PlayedStep<'a> {
    /// What the file says about it.
    pub said: Option<&'a str>,
    /// The member in which it was done; the control plane if none.
    pub place: Option<&'a str>,
    /// What was done.
    pub action: StoryAction<'a>,
    /// Warnings and refusals, as kubectl would print them.
    pub messages: Vec<String>,
    /// The subjects of the story, in the order in which it names them.
    pub subjects: Vec<Subject<'a>>,
}

/// What was done in a step.
#[derive(Debug)]
pub enum StoryAction<'a> {
    /// Manifests were applied, which read like this.
    Apply(&'a [Value], String),
    /// Fields of an object were changed by a merge patch, which reads like this.
    Edit(&'a Reference, &'a Value, String),
    /// Objects were deleted.
    Delete(&'a [Reference]),
    /// Nothing; it was looked whether all is as the story says, and these events were found.
    Look(Vec<(&'a Reference, &'a str)>),
    /// Something for which there is no command.
    Other,
}

/// An object that a story is about.
#[derive(Debug)]
pub struct Subject<'a> {
    /// Which one.
    pub reference: &'a Reference,
    /// How it was before the step; none if it was not there.
    pub before: Option<TemplateState>,
    /// How it is now; none if it is not there.
    pub now: Option<TemplateState>,
}

/// How a template fares.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateState {
    /// The policy that owns it.
    pub claimed_by: Option<String>,
    /// What members have of it.
    pub members: BTreeMap<String, Value>,
    /// Why it is so.
    pub why: Option<Why>,
}

/// Plays a story; `tell` is called after each step when the system is idle. Ends at the first step that fails.
pub fn play_story(scenario: &Scenario, mut tell: impl FnMut(&PlayedStep<'_>)) -> Result<(), Failure> {
    let trouble = |PlayError(trouble)| Failure::before_the_first_step(vec![trouble]);
    let feature_gates = feature_gates(&scenario.gates).map_err(trouble)?;
    simulated_time().map_err(trouble)?.block_on(async {
        let start = Simulated::start(&scenario.clusters, feature_gates, Way::Plain, SEED).await;
        let mut environment = Environment::Simulated(Box::new(start.map_err(trouble)?));
        let played = play(scenario, &mut environment, &mut tell).await;
        let Environment::Simulated(simulated) = environment else { unreachable!("it was made so above") };
        simulated.end().await;
        played
    })
}

async fn play(
    scenario: &Scenario,
    environment: &mut Environment,
    tell: &mut impl FnMut(&PlayedStep<'_>),
) -> Result<(), Failure> {
    let mut player = Player::new(scenario, Way::Plain);
    player.begin(environment).await?;
    let subjects = subjects(scenario);
    let mut before: Vec<Option<TemplateState>> = vec![None; subjects.len()];
    for (index, step) in scenario.steps.iter().enumerate() {
        let messages = player.play_one(environment, index, step).await?;
        let mut fared = Vec::new();
        for (reference, before) in subjects.iter().zip(&mut before) {
            let now = look(environment, reference).await.map_err(|PlayError(trouble)| Failure {
                step: index + 1,
                title: step.title.clone(),
                problems: vec![trouble],
                whys: Vec::new(),
            })?;
            fared.push(Subject { reference, before: std::mem::replace(before, now.clone()), now });
        }
        let (said, place) = (step.said.as_deref(), step.place.as_deref());
        tell(&PlayedStep { said, place, action: action_of(step), messages, subjects: fared });
    }
    Ok(())
}

/// Everything that is expected to be claimed or to run somewhere, each once.
fn subjects(scenario: &Scenario) -> Vec<&Reference> {
    let mut subjects: Vec<&Reference> = Vec::new();
    for step in &scenario.steps {
        let Action::Expect(expectation) = &step.action else { continue };
        for (reference, expected) in &expectation.objects {
            let is_template = expected.claimed_by.is_some() || expected.runs_in.is_some();
            if is_template && !subjects.contains(&reference) {
                subjects.push(reference);
            }
        }
    }
    subjects
}

fn action_of(step: &Step) -> StoryAction<'_> {
    match &step.action {
        Action::Apply(manifests) => {
            StoryAction::Apply(manifests, step.text.clone().unwrap_or_else(|| yaml(manifests)))
        }
        Action::Edit(reference, patch) => {
            StoryAction::Edit(reference, patch, yaml(std::slice::from_ref(patch)))
        }
        Action::Delete(references) => StoryAction::Delete(references),
        Action::Expect(expectation) => {
            let events = expectation.objects.iter().flat_map(|(reference, expected)| {
                expected.events.iter().map(move |event| (reference, event.as_str()))
            });
            StoryAction::Look(events.collect())
        }
        Action::Touch(_) | Action::Join(_) | Action::Reach(..) | Action::Restart | Action::Wait(_) => {
            StoryAction::Other
        }
    }
}

fn yaml(manifests: &[Value]) -> String {
    let texts = manifests.iter().map(|manifest| {
        serde_saphyr::to_string(manifest).expect("what was read as YAML can be written as YAML")
    });
    texts.collect::<Vec<_>>().join("---\n")
}

async fn look(environment: &Environment, reference: &Reference) -> Result<Option<TemplateState>, PlayError> {
    let Some(template) = environment.control().get(reference).await? else { return Ok(None) };
    let mut members = BTreeMap::new();
    for member in environment.members() {
        if let Some(object) = environment.member(&member)?.get(reference).await? {
            members.insert(member, object);
        }
    }
    Ok(Some(TemplateState { claimed_by: owner(&template), members, why: environment.why(reference).await }))
}

/// The policy that a template is marked with.
fn owner(template: &Value) -> Option<String> {
    let mark = |key: &str| template["metadata"]["annotations"][key].as_str();
    match mark(annotations::PROPAGATION_POLICY_NAME) {
        Some(name) => Some(format!("PropagationPolicy {name}")),
        None => {
            Some(format!("ClusterPropagationPolicy {}", mark(annotations::CLUSTER_PROPAGATION_POLICY_NAME)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn story(runs_in: &str) -> Result<Vec<String>, Failure> {
        let text = format!(
            "scenario: x\nnamespaces: [web]\nsteps:\n\
             - policy: {{ name: pp, namespace: web, select: Deployment, clusters: [member1] }}\n\
             - say: Here it comes\n  template: web/nginx\n\
             - expect: {{ Deployment web/nginx: {{ runsIn: {runs_in} }} }}\n"
        );
        let scenario = Scenario::parse("story.yaml".as_ref(), &text).expect("it is a scenario");
        let mut lines = Vec::new();
        play_story(&scenario, |played| {
            let [subject] = played.subjects.as_slice() else { return };
            let shown = |found: &Option<TemplateState>| {
                let found = found.as_ref();
                found.map(|found| {
                    (found.claimed_by.clone(), found.members.keys().cloned().collect::<Vec<_>>())
                })
            };
            lines.push(format!(
                "{:?}: {:?} -> {:?}",
                played.said,
                shown(&subject.before),
                shown(&subject.now)
            ));
        })?;
        Ok(lines)
    }

    #[test]
    fn a_story_reports_what_each_step_changed() {
        let there = r#"Some((Some("PropagationPolicy pp"), ["member1"]))"#;
        let lines = story("[member1]").expect("it goes well");
        let expected = [
            "None: None -> None".to_owned(),
            format!("Some(\"Here it comes\"): None -> {there}"),
            format!("None: {there} -> {there}"),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_story_that_lies_is_a_failure() {
        let failure = story("[member2]").expect_err("it runs elsewhere");
        assert_eq!(failure.step, 3);
        assert_eq!(failure.problems, ["Deployment web/nginx: runs in member1, not member2"]);
    }
}
