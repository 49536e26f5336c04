//! Jobs: pods until enough of them succeeded, or too many failed. A finished Job is never reconciled again, except to
//! delete it when its TTL is over.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    BURST_MAX, Round, as_count, condition, count, counters, free_names, is_deleting, name_stem, uid,
};
use crate::cache::Cache;
use crate::facts::{Phase, Pod};
use crate::hash;
use crate::key::{Key, Kind};
use crate::plan::{Plan, Write, status};

const BACKOFF_LIMIT: i64 = 6;
/// Which index of an indexed Job a pod works on.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// A Job with its pods.
struct Work<'a> {
    cache: &'a Cache,
    key: &'a Key,
    object: &'a Value,
    pods: Vec<(&'a Key, &'a Pod)>,
    active: i64,
    succeeded: i64,
    failed: i64,
}

/// How a Job stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Open,
    Suspended,
    Complete,
    Failed,
}

/// What is to be done about a Job.
pub fn reconcile(round: &mut Round<'_>, key: &Key, object: &Value) -> Plan {
    if is_deleting(object) {
        return Plan::nothing();
    }
    if let Some(finished) = finished_at(object) {
        return end_of_life(round.now, key, object, finished);
    }
    let work = Work::read(round.cache, key, object);
    let outcome = work.outcome();
    let mut writes = match outcome {
        Outcome::Open => work.missing(),
        _ => Vec::new(),
    };
    writes.extend(work.surplus(outcome));
    if writes.is_empty() {
        let write = status(key, object, work.status(outcome, round.stamp));
        let ends = matches!(outcome, Outcome::Complete | Outcome::Failed);
        let again = time_to_live(object).filter(|_| ends);
        return Plan { writes: write.into_iter().collect(), again };
    }
    let placed = writes.into_iter().map(|write| match write {
        Write::Create { kind, object } => {
            Write::Create { kind, object: super::pod::placed(round.cache, object) }
        }
        other => other,
    });
    placed.collect::<Vec<_>>().into()
}

impl<'a> Work<'a> {
    fn read(cache: &'a Cache, key: &'a Key, object: &'a Value) -> Work<'a> {
        let pods = cache.pods(uid(object));
        let in_phase = |phase: Phase| as_count(pods.iter().filter(|(_, pod)| pod.phase == phase).count());
        let status = &object["status"];
        Work {
            cache,
            key,
            object,
            active: in_phase(Phase::Waiting) + in_phase(Phase::Ready),
            // Pods that were cleaned away still count.
            succeeded: in_phase(Phase::Succeeded).max(count(&status["succeeded"], 0)),
            failed: in_phase(Phase::Failed).max(count(&status["failed"], 0)),
            pods,
        }
    }

    fn parallelism(&self) -> i64 {
        count(&self.object["spec"]["parallelism"], 1)
    }

    /// Without a number of completions, one success is enough.
    fn completions(&self) -> Option<i64> {
        self.object["spec"]["completions"].as_i64()
    }

    fn is_indexed(&self) -> bool {
        self.object["spec"]["completionMode"] == "Indexed"
    }

    fn outcome(&self) -> Outcome {
        let enough = match self.completions() {
            Some(_) if self.is_indexed() => self.open_indexes().next().is_none(),
            Some(completions) => self.succeeded >= completions,
            None => self.succeeded > 0 && self.active == 0,
        };
        match () {
            () if self.failed > count(&self.object["spec"]["backoffLimit"], BACKOFF_LIMIT) => Outcome::Failed,
            () if enough => Outcome::Complete,
            () if self.object["spec"]["suspend"] == true => Outcome::Suspended,
            () => Outcome::Open,
        }
    }

    /// How many pods may be active now.
    fn allowed(&self) -> i64 {
        match self.completions() {
            Some(completions) => self.parallelism().min(completions - self.succeeded),
            // After the first success no new pods are started.
            None if self.succeeded > 0 => self.active,
            None => self.parallelism(),
        }
    }

    fn missing(&self) -> Vec<Write> {
        let missing = usize::try_from(self.allowed() - self.active).unwrap_or(0).min(BURST_MAX);
        let create = |object: Value| Write::Create { kind: Kind::Pod, object };
        if self.is_indexed() {
            let running: BTreeSet<u32> = self.indexes(|pod| pod.is_active());
            let indexes = self.open_indexes().filter(|index| !running.contains(index)).take(missing);
            return indexes.map(|index| create(self.indexed_pod(index))).collect();
        }
        let names = free_names(self.cache, self.object, "").take(missing);
        names.map(|name| create(super::pod(self.object, &name, &[]))).collect()
    }

    fn surplus(&self, outcome: Outcome) -> Vec<Write> {
        let allowed = if outcome == Outcome::Open { self.allowed().max(0) } else { 0 };
        let surplus = usize::try_from(self.active - allowed).unwrap_or(0);
        let uid = |key: &Key| self.cache.facts(key).map(|facts| facts.uid.to_string()).unwrap_or_default();
        let active = self.pods.iter().rev().filter(|(_, pod)| pod.is_active()).take(surplus);
        active.map(|(key, _)| Write::Delete { key: (*key).clone(), uid: uid(key) }).collect()
    }

    fn indexes(&self, test: impl Fn(&Pod) -> bool) -> BTreeSet<u32> {
        self.pods.iter().filter(|(_, pod)| test(pod)).filter_map(|(_, pod)| pod.index).collect()
    }

    /// The indexes that have not succeeded.
    fn open_indexes(&self) -> impl Iterator<Item = u32> + use<'_> {
        let done = self.indexes(|pod| pod.phase == Phase::Succeeded);
        let end = u32::try_from(self.completions().unwrap_or(0)).unwrap_or(0);
        (0..end).filter(move |index| !done.contains(index))
    }

    fn indexed_pod(&self, index: u32) -> Value {
        let stem = name_stem(self.key.name());
        let number = index.to_string();
        let name = |slot: u64| {
            format!("{stem}{index}-{}", hash::word(5, &[uid(self.object), &number, &slot.to_string()]))
        };
        let is_free =
            |name: &String| self.cache.facts(&Key::new(Kind::Pod, self.key.namespace(), name)).is_none();
        let name = (0..).map(name).find(is_free).expect("names do not run out");
        let mut pod = super::pod(self.object, &name, &[(INDEX, &number)]);
        pod["metadata"]["annotations"][INDEX] = number.into();
        pod
    }

    fn status(&self, outcome: Outcome, stamp: &str) -> Value {
        let old = &self.object["status"];
        let ready = self.pods.iter().filter(|(_, pod)| pod.phase == Phase::Ready).count();
        let active = if matches!(outcome, Outcome::Open) { self.active } else { 0 };
        let mut status =
            counters(&[("active", active), ("succeeded", self.succeeded), ("failed", self.failed)]);
        status["ready"] = if active > 0 { as_count(ready) } else { 0 }.into();
        status["terminating"] = 0.into();
        status["uncountedTerminatedPods"] = json!({});
        if outcome != Outcome::Suspended {
            status["startTime"] = old["startTime"].as_str().unwrap_or(stamp).into();
        }
        if self.is_indexed() {
            let done = self.indexes(|pod| pod.phase == Phase::Succeeded);
            status["completedIndexes"] = ranges(&done).into();
        }
        let conditions = self.conditions(outcome, stamp);
        if !conditions.is_empty() {
            status["conditions"] = conditions.into();
        }
        if outcome == Outcome::Complete {
            status["completionTime"] = stamp.into();
        }
        status
    }

    fn conditions(&self, outcome: Outcome, stamp: &str) -> Vec<Value> {
        let old = &self.object["status"];
        let made = |kind: &str, status: &str, why: (&str, &str)| {
            let mut condition = condition(old, kind, status, why, stamp);
            condition["lastProbeTime"] = condition["lastTransitionTime"].clone();
            condition
        };
        let was_suspended = old["conditions"].as_array().is_some_and(|conditions| !conditions.is_empty());
        let done = ("CompletionsReached", "Reached expected number of succeeded pods");
        let gave_up = ("BackoffLimitExceeded", "Job has reached the specified backoff limit");
        match outcome {
            Outcome::Suspended => vec![made("Suspended", "True", ("JobSuspended", "Job suspended"))],
            Outcome::Open if was_suspended => {
                vec![made("Suspended", "False", ("JobResumed", "Job resumed"))]
            }
            Outcome::Open => Vec::new(),
            Outcome::Complete => {
                vec![made("SuccessCriteriaMet", "True", done), made("Complete", "True", done)]
            }
            Outcome::Failed => vec![made("FailureTarget", "True", gave_up), made("Failed", "True", gave_up)],
        }
    }
}

/// When a Job finished.
fn finished_at(object: &Value) -> Option<&str> {
    let conditions = object["status"]["conditions"].as_array()?;
    let is_end = |condition: &&Value| {
        matches!(condition["type"].as_str(), Some("Complete" | "Failed")) && condition["status"] == "True"
    };
    conditions.iter().find(is_end)?["lastTransitionTime"].as_str()
}

fn end_of_life(now: Timestamp, key: &Key, object: &Value, finished: &str) -> Plan {
    let (Some(allowed), Ok(finished)) = (time_to_live(object), finished.parse::<Timestamp>()) else {
        return Plan::nothing();
    };
    let passed = Duration::try_from(now.duration_since(finished)).unwrap_or_default();
    match allowed.saturating_sub(passed) {
        Duration::ZERO => Plan::one(Write::Delete { key: key.clone(), uid: uid(object).to_owned() }),
        left => Plan { writes: Vec::new(), again: Some(left) },
    }
}

fn time_to_live(object: &Value) -> Option<Duration> {
    let seconds = object["spec"]["ttlSecondsAfterFinished"].as_i64()?;
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// `0-2,5` for {0, 1, 2, 5}.
fn ranges(indexes: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for index in indexes {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => ranges.push((*index, *index)),
        }
    }
    let text = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_told_as_ranges() {
        for (indexes, expected) in [(vec![], ""), (vec![3], "3"), (vec![0, 1, 2, 5, 7, 8], "0-2,5,7-8")] {
            assert_eq!(ranges(&indexes.into_iter().collect()), expected);
        }
    }
}
