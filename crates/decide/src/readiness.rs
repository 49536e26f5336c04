//! The readiness of a member. A single probe result may be chance, so a flip is debounced before it is reported. Also
//! since when a member's state is unknown, because it does not answer.

use std::fmt;
use std::time::Duration;

use api::cluster::{DISPATCHING, READY};
use api::{Cluster, ConditionStatus, Time};
use serde::{Deserialize, Serialize};

use crate::conditions;

/// That the state of a member is unknown: what was last reported of it may be out of date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    /// Since when; absent if the member has never reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Why.
    pub because: String,
}

/// Whether the state of a member is unknown: it is not ready, or Works are held back because it does not answer.
pub fn unknown(cluster: &Cluster) -> Option<Unknown> {
    let conditions = &cluster.status.conditions;
    let not_ready = match conditions::find(conditions, READY) {
        Some(ready) if ready.status == ConditionStatus::True => None,
        Some(ready) => Some(ready),
        None => {
            let because = "the cluster has not reported its status yet".to_owned();
            return Some(Unknown { since: None, because });
        }
    };
    let silent = conditions::find(conditions, DISPATCHING)
        .filter(|dispatching| dispatching.status == ConditionStatus::False);
    let reason = not_ready.or(silent)?;
    let since = [not_ready, silent].into_iter().flatten().filter_map(|one| one.last_transition_time).min();
    let because = match reason.message.as_str() {
        "" => "the cluster is not ready",
        message => message,
    };
    Some(Unknown { since, because: because.to_owned() })
}

impl fmt::Display for Unknown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("unknown")?;
        if let Some(since) = self.since {
            write!(formatter, " since {since}")?;
        }
        write!(formatter, ": {}", self.because.trim_end_matches('.'))
    }
}

/// How long a change has to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Until a member that was not ready is called ready.
    pub success: Duration,
    /// Until a member that was ready is no longer called so.
    pub failure: Duration,
}

/// How long to wait until what is seen can be reported; none if it can be now. `lasted` says for how long
/// it has been seen. The first answer of a member is taken as it is, and so is a new reason for the same.
pub fn not_yet(
    reported: Option<ConditionStatus>,
    seen: ConditionStatus,
    lasted: Duration,
    thresholds: Thresholds,
) -> Option<Duration> {
    let reported = reported?;
    let is_ready = |status| status == ConditionStatus::True;
    if is_ready(reported) == is_ready(seen) {
        return None;
    }
    let needed = if is_ready(seen) { thresholds.success } else { thresholds.failure };
    needed.checked_sub(lasted).filter(|missing| !missing.is_zero())
}

#[cfg(test)]
mod tests {
    use ConditionStatus::{False, True, Unknown};

    use super::*;

    #[test]
    fn a_member_that_does_not_answer_is_unknown() {
        let check = |conditions: serde_json::Value, expected: Option<&str>| {
            let cluster =
                serde_json::json!({ "metadata": { "name": "m1" }, "status": { "conditions": conditions } });
            let cluster: Cluster = serde_json::from_value(cluster).expect("a cluster");
            assert_eq!(unknown(&cluster).map(|unknown| unknown.to_string()).as_deref(), expected);
        };
        let condition = |kind: &str, status: &str, second: u32, message: &str| {
            let time = format!("2026-01-01T00:00:{second:02}Z");
            serde_json::json!({ "type": kind, "status": status, "lastTransitionTime": time, "message": message })
        };
        let ready = condition("Ready", "True", 1, "");
        check(serde_json::json!([ready]), None);
        check(serde_json::json!([]), Some("unknown: the cluster has not reported its status yet"));
        let not_ready = condition("Ready", "False", 7, "cluster is not reachable");
        check(
            serde_json::json!([not_ready]),
            Some("unknown since 2026-01-01T00:00:07Z: cluster is not reachable"),
        );
        let silent = condition("Dispatching", "False", 3, "Works wait.");
        check(serde_json::json!([ready, silent]), Some("unknown since 2026-01-01T00:00:03Z: Works wait"));
        check(
            serde_json::json!([not_ready, silent]),
            Some("unknown since 2026-01-01T00:00:03Z: cluster is not reachable"),
        );
        let agent = condition("Ready", "Unknown", 9, "");
        check(
            serde_json::json!([agent]),
            Some("unknown since 2026-01-01T00:00:09Z: the cluster is not ready"),
        );
    }

    #[test]
    fn a_flip_has_to_last() {
        let seconds = Duration::from_secs;
        let thresholds = Thresholds { success: seconds(30), failure: seconds(20) };
        let check = |reported, seen, lasted: u64, expected: Option<u64>| {
            assert_eq!(
                not_yet(reported, seen, seconds(lasted), thresholds),
                expected.map(seconds),
                "{reported:?} {seen:?} {lasted}"
            );
        };
        check(None, False, 0, None);
        check(Some(True), True, 0, None);
        check(Some(Unknown), False, 0, None);
        check(Some(True), False, 0, Some(20));
        check(Some(True), False, 19, Some(1));
        check(Some(True), False, 20, None);
        check(Some(False), True, 20, Some(10));
        check(Some(Unknown), True, 30, None);
    }
}
