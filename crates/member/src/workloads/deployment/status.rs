//! The status of a Deployment: counters, conditions, and the progress deadline.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{REVISION, Rollout};
use crate::plan::{Part, Plan, Write, annotate, pin};
use crate::workloads::{Round, condition, counters};

impl Rollout<'_> {
    /// The status, and the number of the rollout, where they are not what the object says.
    pub(super) fn report(&self, round: &Round<'_>) -> Plan {
        let (status, again) = self.status(round);
        let metadata = &self.object["metadata"];
        let rollout = self.last_rollout().to_string();
        let mut operations = vec![pin(self.object)];
        if metadata["annotations"][REVISION] != *rollout && !self.sets.is_empty() {
            operations.push(annotate(metadata, REVISION, &rollout));
        }
        if self.object["status"] != status {
            operations.push(json!({ "op": "add", "path": "/status", "value": status }));
        }
        if operations.len() == 1 {
            return Plan { writes: Vec::new(), again };
        }
        let patch = operations.into();
        let write = Write::Patch { key: self.key.clone(), part: Part::Status, patch, last: true };
        Plan { writes: vec![write], again }
    }

    fn status(&self, round: &Round<'_>) -> (Value, Option<Duration>) {
        let old = &self.object["status"];
        let sum = |of: fn(&super::Set<'_>) -> i64| self.sets.iter().map(of).sum::<i64>();
        let (total, replicas) = (sum(|set| set.facts.wanted), sum(|set| set.facts.counted.replicas));
        let available = sum(|set| set.facts.counted.available_replicas);
        let updated = self.new_set().map_or(0, |set| set.facts.counted.replicas);
        let mut status = counters(&[
            ("observedGeneration", self.object["metadata"]["generation"].as_i64().unwrap_or(0)),
            ("replicas", replicas),
            ("updatedReplicas", updated),
            ("readyReplicas", sum(|set| set.facts.counted.ready_replicas)),
            ("availableReplicas", available),
            ("unavailableReplicas", (total - available).max(0)),
        ]);
        let complete = [updated, replicas, available].iter().all(|count| *count == self.wanted);
        let moved = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]
            .iter()
            .any(|name| old[name].as_i64() != status[name].as_i64());
        let (progressing, again) = self.progressing(round, complete, moved);
        status["conditions"] = json!([self.available(round, available), progressing]);
        (status, again)
    }

    fn available(&self, round: &Round<'_>, available: i64) -> Value {
        let (status, why) = match available >= self.wanted - self.unavailable_max {
            true => ("True", ("MinimumReplicasAvailable", "Deployment has minimum availability.")),
            false => {
                ("False", ("MinimumReplicasUnavailable", "Deployment does not have minimum availability."))
            }
        };
        updated(
            &self.object["status"],
            condition(&self.object["status"], "Available", status, why, round.stamp),
            round.stamp,
        )
    }

    fn progressing(&self, round: &Round<'_>, complete: bool, moved: bool) -> (Value, Option<Duration>) {
        let old = &self.object["status"];
        let name = self.new_name();
        let mut again = None;
        let (status, reason, message) = match () {
            () if complete => (
                "True",
                "NewReplicaSetAvailable",
                format!("ReplicaSet \"{name}\" has successfully progressed."),
            ),
            () if self.is_paused() => ("Unknown", "DeploymentPaused", "Deployment is paused".to_owned()),
            () => {
                again = self.time_left(round.now, moved);
                match again {
                    Some(left) if left.is_zero() => {
                        again = None;
                        let message = format!("ReplicaSet \"{name}\" has timed out progressing.");
                        ("False", "ProgressDeadlineExceeded", message)
                    }
                    _ => ("True", "ReplicaSetUpdated", format!("ReplicaSet \"{name}\" is progressing.")),
                }
            }
        };
        let next = condition(old, "Progressing", status, (reason, &message), round.stamp);
        let mut next = updated(old, next, round.stamp);
        if moved && !complete {
            next["lastUpdateTime"] = round.stamp.into();
        }
        (next, again)
    }

    /// How long the Deployment may still go without progress; `None` when for ever.
    fn time_left(&self, now: Timestamp, moved: bool) -> Option<Duration> {
        let allowed = self.object["spec"]["progressDeadlineSeconds"].as_i64()?;
        let allowed = Duration::from_secs(u64::try_from(allowed).ok()?);
        // Kubernetes takes the largest number for "no deadline".
        if allowed.as_secs() >= i32::MAX.unsigned_abs().into() {
            return None;
        }
        let before = progressing_of(&self.object["status"]);
        let since = before["lastUpdateTime"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
        let is_going =
            matches!(before["reason"].as_str(), Some("ReplicaSetUpdated" | "ProgressDeadlineExceeded"));
        let Some(since) = since.filter(|_| is_going && !moved) else { return Some(allowed) };
        let passed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        Some(allowed.saturating_sub(passed))
    }
}

fn progressing_of(status: &Value) -> &Value {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().find(|condition| condition["type"] == "Progressing").unwrap_or(&Value::Null)
}

/// The condition with the time of its last change.
fn updated(old: &Value, mut condition: Value, stamp: &str) -> Value {
    let conditions = old["conditions"].as_array().into_iter().flatten();
    let same = |before: &&Value| {
        ["type", "status", "reason", "message"].iter().all(|field| before[field] == condition[field])
    };
    let before = conditions.into_iter().find(same);
    let time = before.and_then(|before| before["lastUpdateTime"].as_str()).unwrap_or(stamp);
    condition["lastUpdateTime"] = time.into();
    condition
}
