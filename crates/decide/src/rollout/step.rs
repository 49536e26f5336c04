//! One step of a rollout: what was recorded and what clusters show now, to what is to be recorded. Taking the step twice
//! changes nothing (C6), and no step depends on how often it was taken before (R1).

use std::collections::BTreeSet;
use std::time::Duration;

use api::rollout_progress::{ClusterFailure, ClusterProgress};
use api::rollout_strategy::FailureAction;
use api::{BindingRollout, RolloutPhase, RolloutProgress, Time};
use jiff::Timestamp;

use super::{Action, Delivery, Request, Seen, Situation, Stage, Step};

/// How long a refusal must last to be a failure: a namespace may be on its way.
const REFUSAL: Duration = Duration::from_secs(10);

/// Reasons of a phase.
pub(super) const REQUESTED: &str = "PauseRequested";
pub(super) const ABORTED: &str = "Aborted";
const FAILURES: &str = "TooManyFailures";
const APPROVAL: &str = "ApprovalRequired";
const NO_CLUSTER: &str = "NoCluster";
const HELD: &str = "Suspended";
const UNDER_WAY: &str = "StageInProgress";
const DONE: &str = "AllStagesPassed";
const UNCHANGED: &str = "NothingToDeliver";

/// The next state of a rollout; none while the clusters are still being chosen.
pub fn step(situation: &Situation<'_>) -> Option<Step> {
    if !situation.placed {
        return None;
    }
    let mut run = Run::begin(situation);
    run.answer();
    if run.is_complete() {
        return Some(run.end());
    }
    if run.is_unchanged() {
        run.finish(RolloutPhase::Succeeded, UNCHANGED, "no cluster receives anything else than it has");
        return Some(run.end());
    }
    run.judge();
    match run.halt() {
        Some((phase, reason, message)) => run.stand(phase, reason, message),
        None => run.advance(),
    }
    run.fail_over();
    Some(run.end())
}

/// A step while it is taken.
struct Run<'s> {
    situation: &'s Situation<'s>,
    progress: RolloutProgress,
    /// Clusters that may have the revision.
    released: BTreeSet<String>,
    /// Clusters that were known when the last step was taken; none in the first one.
    known: Option<BTreeSet<String>>,
    look_again: Option<Duration>,
}

impl<'s> Run<'s> {
    fn begin(situation: &'s Situation<'s>) -> Run<'s> {
        let recorded = situation.recorded.filter(|rollout| rollout.revision == situation.revision);
        let is_there = |name: &&String| situation.clusters.contains_key(*name);
        let released = recorded.iter().flat_map(|rollout| &rollout.current_clusters);
        let known = recorded.map(|rollout| {
            let lists = [&rollout.current_clusters, &rollout.suspended_clusters, &rollout.leaving_clusters];
            lists.into_iter().flatten().cloned().collect()
        });
        Run {
            progress: begun(situation),
            released: released.filter(is_there).cloned().collect(),
            known,
            look_again: None,
            situation,
        }
    }

    /// Does what a person asked for since the last step.
    fn answer(&mut self) {
        let asked = self.situation.request;
        if asked.is_empty() || asked == self.progress.answered {
            return;
        }
        asked.clone_into(&mut self.progress.answered);
        let of_this = |request: &Request| {
            request.revision.as_ref().is_none_or(|revision| revision == self.situation.revision)
        };
        let Some(request) = Request::read(asked).filter(of_this).filter(|_| !self.is_complete()) else {
            return;
        };
        let progress = &mut self.progress;
        match request.action {
            Action::Pause => set(progress, RolloutPhase::Paused, REQUESTED, "a person paused it"),
            Action::Resume => {
                progress.failed_clusters.clear();
                set(progress, RolloutPhase::Progressing, UNDER_WAY, "");
            }
            Action::Approve { stage } => {
                let stage = stage.unwrap_or_else(|| progress.stage.clone());
                insert(&mut progress.approved_stages, stage);
            }
            Action::Skip { cluster } => {
                progress.failed_clusters.retain(|failure| failure.name != cluster);
                progress.clusters.retain(|one| one.name != cluster);
                insert(&mut progress.skipped_clusters, cluster);
            }
            Action::Abort => {
                let message = "a person aborted it; clusters that have not started keep what they have";
                set(progress, RolloutPhase::Failed, ABORTED, message);
            }
        }
    }

    fn is_aborted(&self) -> bool {
        self.progress.phase == RolloutPhase::Failed && self.progress.reason == ABORTED
    }

    fn is_complete(&self) -> bool {
        let done = matches!(self.progress.phase, RolloutPhase::Succeeded | RolloutPhase::Failed);
        done && !self.is_aborted()
    }

    /// Nothing is delivered anywhere, so that there is nothing to prove.
    fn is_unchanged(&self) -> bool {
        let clusters = &self.situation.clusters;
        self.known.is_none() && !clusters.is_empty() && clusters.values().all(|seen| seen.same)
    }

    /// What clusters that may have the revision show: they pass, fail, or go on.
    fn judge(&mut self) {
        let clusters = &self.situation.clusters;
        let progress = &mut self.progress;
        progress.completed_clusters.retain(|name| clusters.contains_key(name));
        progress.skipped_clusters.retain(|name| clusters.contains_key(name));
        progress.failed_clusters.retain(|failure| clusters.contains_key(&failure.name));
        let before = std::mem::take(&mut progress.clusters);
        for name in self.released.clone() {
            if self.is_finished(&name) {
                continue;
            }
            let was = before.iter().find(|one| one.name == name).cloned();
            let now = was.unwrap_or_else(|| ClusterProgress { name, ..ClusterProgress::default() });
            self.judge_one(now);
        }
    }

    fn judge_one(&mut self, mut one: ClusterProgress) {
        let situation = self.situation;
        let Some(seen) = situation.clusters.get(&one.name) else { return };
        let now = situation.now;
        if seen.held {
            one.started_at = None;
            one.gate_satisfied_since = None;
            "it is suspended there".clone_into(&mut one.waits_for);
            return self.progress.clusters.push(one);
        }
        let started = *one.started_at.get_or_insert(whole(now));
        let stage = self.stage_at(seen.stage);
        match unmet(stage, &seen.delivery) {
            None => {
                let since = *one.gate_satisfied_since.get_or_insert(whole(now));
                match left(since, stage.min_success, now) {
                    None => return insert(&mut self.progress.completed_clusters, one.name),
                    Some(wait) => self.look_after(wait),
                }
                one.waits_for = format!("minSuccessTime {}s", stage.min_success.as_secs());
            }
            Some(why) => {
                one.gate_satisfied_since = None;
                one.waits_for = why;
            }
        }
        match self.failure(&one, started, &seen.delivery) {
            Some(message) => self.progress.failed_clusters.push(ClusterFailure { name: one.name, message }),
            None => self.progress.clusters.push(one),
        }
    }

    /// Why a cluster has failed (G6).
    fn failure(&mut self, one: &ClusterProgress, started: Time, delivery: &Delivery) -> Option<String> {
        let now = self.situation.now;
        if let Delivery::Refused { why, since } = delivery {
            // Its own time counts from the delivery of this revision on.
            match left(since.map_or(started, |since| since.max(started)), REFUSAL, now) {
                None => return Some(format!("refused: {why}")),
                Some(wait) => self.look_after(wait),
            }
        }
        let timeout = self.situation.stages.timeout?;
        match left(started, timeout, now) {
            None => Some(format!("not passed within {}s: {}", timeout.as_secs(), one.waits_for)),
            Some(wait) => {
                self.look_after(wait);
                None
            }
        }
    }

    /// Why no further cluster starts; none if nothing speaks against it.
    fn halt(&self) -> Option<(RolloutPhase, &'static str, String)> {
        let progress = &self.progress;
        if self.is_aborted() {
            return Some((RolloutPhase::Failed, ABORTED, progress.message.clone()));
        }
        if progress.phase == RolloutPhase::Paused && progress.reason == REQUESTED {
            return Some((RolloutPhase::Paused, REQUESTED, progress.message.clone()));
        }
        if self.has_failed() && self.situation.stages.on_failure == FailureAction::Pause {
            let failures: Vec<String> =
                progress.failed_clusters.iter().map(|one| format!("{}: {}", one.name, one.message)).collect();
            return Some((RolloutPhase::Paused, FAILURES, failures.join("; ")));
        }
        self.situation
            .clusters
            .is_empty()
            .then(|| (RolloutPhase::Pending, NO_CLUSTER, "no cluster is chosen yet".to_owned()))
    }

    fn has_failed(&self) -> bool {
        self.progress.failed_clusters.len() > self.situation.stages.max_failures
    }

    /// Goes on: from stage to stage, and to further clusters of the stage it comes to.
    fn advance(&mut self) {
        let stages = &self.situation.stages.stages;
        let mut index = stages.iter().position(|stage| stage.name == self.progress.stage).unwrap_or(0);
        while self.is_passed(index) {
            let stage = &stages[index];
            let approved = self.progress.approved_stages.contains(&stage.name);
            if stage.approval && self.has_members(index) && !approved {
                stage.name.clone_into(&mut self.progress.stage);
                let message = format!("stage {} has passed and waits for approval", stage.name);
                return self.stand(RolloutPhase::Paused, APPROVAL, message);
            }
            index += 1;
            if index == stages.len() {
                return self.conclude();
            }
        }
        stages[index].name.clone_into(&mut self.progress.stage);
        self.release(index);
        self.tell(index);
    }

    /// Whether every cluster of the stages so far is done.
    fn is_passed(&self, index: usize) -> bool {
        let clusters = &self.situation.clusters;
        clusters.iter().filter(|(_, seen)| seen.stage <= index).all(|(name, _)| self.is_finished(name))
    }

    fn has_members(&self, index: usize) -> bool {
        self.situation.clusters.values().any(|seen| seen.stage == index)
    }

    fn is_finished(&self, name: &str) -> bool {
        let progress = &self.progress;
        let has = |names: &[String]| names.iter().any(|one| one == name);
        has(&progress.completed_clusters)
            || has(&progress.skipped_clusters)
            || progress.failed_clusters.iter().any(|failure| failure.name == name)
    }

    /// Lets further clusters start, in order of their names. Clusters whose stage is over go along (G8).
    fn release(&mut self, index: usize) {
        let clusters = &self.situation.clusters;
        let open = |(name, seen): &(&String, &Seen)| seen.stage <= index && !self.is_finished(name);
        let under_way =
            clusters.iter().filter(open).filter(|(name, _)| self.released.contains(*name)).count();
        let members = clusters.values().filter(|seen| seen.stage == index).count();
        let most = self.situation.stages.stages[index].concurrency(members);
        let waiting =
            clusters.iter().filter(open).filter(|(name, seen)| !seen.held && !self.released.contains(*name));
        let next: Vec<String> =
            waiting.take(most.saturating_sub(under_way)).map(|(name, _)| name.clone()).collect();
        next.into_iter().for_each(|name| self.start(name));
    }

    fn start(&mut self, name: String) {
        let one = ClusterProgress {
            name: name.clone(),
            started_at: Some(whole(self.situation.now)),
            gate_satisfied_since: None,
            waits_for: "delivery".to_owned(),
        };
        self.progress.clusters.push(one);
        if let Some(timeout) = self.situation.stages.timeout {
            self.look_after(timeout);
        }
        self.released.insert(name);
    }

    /// A cluster that takes over from one that fails does not wait: availability goes first (G8).
    fn fail_over(&mut self) {
        let (true, Some(known)) = (self.situation.fails_over, &self.known) else { return };
        let clusters = self.situation.clusters.iter();
        let new = clusters.filter(|(name, seen)| !known.contains(*name) && !seen.held);
        let new = new.filter(|(name, _)| !self.released.contains(*name));
        let new: Vec<String> = new.map(|(name, _)| name.clone()).collect();
        new.into_iter().for_each(|name| self.start(name));
    }

    fn tell(&mut self, index: usize) {
        let (passed, all) = (self.progress.completed_clusters.len(), self.situation.clusters.len());
        let stage = &self.situation.stages.stages[index].name;
        if self.released.is_empty() {
            let message = format!("every cluster of stage {stage} is suspended");
            return self.stand(RolloutPhase::Pending, HELD, message);
        }
        let message = format!("{passed} of {all} clusters have passed; stage {stage} is in progress");
        self.stand(RolloutPhase::Progressing, UNDER_WAY, message);
    }

    fn conclude(&mut self) {
        match self.has_failed() {
            true => {
                let failed = self.progress.failed_clusters.len();
                let message = format!("it went through all stages, and {failed} clusters failed");
                self.finish(RolloutPhase::Failed, FAILURES, &message);
            }
            false => self.finish(RolloutPhase::Succeeded, DONE, "every stage has passed"),
        }
    }

    fn finish(&mut self, phase: RolloutPhase, reason: &str, message: &str) {
        self.progress.clusters.clear();
        self.progress.stage.clear();
        self.look_again = None;
        set(&mut self.progress, phase, reason, message);
    }

    fn stand(&mut self, phase: RolloutPhase, reason: &str, message: String) {
        set(&mut self.progress, phase, reason, &message);
    }

    fn stage_at(&self, index: usize) -> &'s Stage {
        let stages = &self.situation.stages.stages;
        stages.get(index).unwrap_or(&stages[stages.len() - 1])
    }

    fn look_after(&mut self, wait: Duration) {
        self.look_again = Some(self.look_again.map_or(wait, |sooner| sooner.min(wait)));
    }

    fn end(mut self) -> Step {
        self.progress.clusters.sort_by(|one, other| one.name.cmp(&other.name));
        self.progress.failed_clusters.sort_by(|one, other| one.name.cmp(&other.name));
        let rollout = (!self.is_complete()).then(|| self.record());
        Step { rollout, progress: self.progress, look_again: self.look_again }
    }

    fn record(&self) -> BindingRollout {
        let waits = |name: &&String| !self.released.contains(*name);
        let was_here = |name: &&String| self.known.as_ref().is_none_or(|known| known.contains(*name));
        BindingRollout {
            revision: self.situation.revision.to_owned(),
            current_clusters: self.released.iter().cloned().collect(),
            suspended_clusters: self.situation.clusters.keys().filter(waits).cloned().collect(),
            leaving_clusters: self.situation.unwanted.iter().filter(was_here).cloned().collect(),
        }
    }
}

/// The recorded progress, or a new one where another revision is to be rolled out (G7).
fn begun(situation: &Situation<'_>) -> RolloutProgress {
    let before = situation.progress;
    if let Some(same) = before.filter(|before| before.revision == situation.revision) {
        return same.clone();
    }
    let superseded = before.filter(|before| before.phase.is_in_flight());
    RolloutProgress {
        revision: situation.revision.to_owned(),
        started_at: Some(whole(situation.now)),
        supersedes: superseded.map(|before| before.revision.clone()).unwrap_or_default(),
        answered: before.map(|before| before.answered.clone()).unwrap_or_default(),
        ..RolloutProgress::default()
    }
}

/// What a cluster has still to show; none if the whole gate holds (G4).
fn unmet(stage: &Stage, delivery: &Delivery) -> Option<String> {
    let (healthy, current, conditions) = match delivery {
        Delivery::UnderWay => return Some("delivery".to_owned()),
        Delivery::Unreachable => return Some("the cluster, which does not answer".to_owned()),
        Delivery::Refused { why, .. } => return Some(format!("delivery, which is refused: {why}")),
        Delivery::Applied { healthy, current, conditions } => (healthy, current, conditions),
    };
    if !current {
        return Some("a status of the new revision".to_owned());
    }
    if stage.require_healthy && !healthy {
        return Some("health".to_owned());
    }
    let missing = stage.conditions.iter().find(|wanted| {
        !conditions.iter().any(|(kind, status)| *kind == wanted.kind && *status == wanted.status)
    })?;
    Some(format!("condition {}={}", missing.kind, missing.status.as_str()))
}

/// How much of a span is left; none if it is over.
fn left(since: Time, span: Duration, now: Timestamp) -> Option<Duration> {
    let passed = Duration::try_from(now.duration_since(since.timestamp())).unwrap_or_default();
    span.checked_sub(passed).filter(|left| !left.is_zero())
}

/// The next whole second, so that no span is cut short by rounding.
fn whole(now: Timestamp) -> Time {
    let cut = Time::from(now);
    match cut.timestamp() == now {
        true => cut,
        false => Timestamp::from_second(cut.timestamp().as_second() + 1).unwrap_or(now).into(),
    }
}

fn set(progress: &mut RolloutProgress, phase: RolloutPhase, reason: &str, message: &str) {
    progress.phase = phase;
    reason.clone_into(&mut progress.reason);
    message.clone_into(&mut progress.message);
}

/// Sorted lists, each name once (C6).
fn insert(names: &mut Vec<String>, name: String) {
    if let Err(place) = names.binary_search(&name) {
        names.insert(place, name);
    }
}
