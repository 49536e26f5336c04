//! The `Available` and `Progressing` conditions of a Deployment in several members, by which `kubectl wait`, Flux and
//! others judge, in Kubernetes' words. Karmada has none: members' own are not collected, so they follow from the
//! counters.

use api::Time;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{DEPLOYMENT, Told, counters, sum};
use crate::fields::{at, integer, list, text};

/// The status of a Deployment's template: the counters, and the conditions that follow from them.
pub(super) fn aggregate(template: &Value, items: &[Told<'_>], now: Timestamp) -> Value {
    let mut status = counters(template, items, &DEPLOYMENT);
    let before = list(template, &["status", "conditions"]);
    let is_ours = |condition: &&Value| ["Available", "Progressing"].contains(&text(condition, &["type"]));
    // What runs nowhere and never did has nothing to tell.
    if items.is_empty() && !before.iter().any(|condition| is_ours(&condition)) {
        return status;
    }
    let ours = [available(template, items), progressing(template, items, &status)];
    let ours = ours.into_iter().map(|news| dated(news, before, now));
    let others = before.iter().filter(|condition| !is_ours(condition)).cloned();
    status["conditions"] = others.chain(ours).collect();
    status
}

/// A condition without its times.
struct News {
    kind: &'static str,
    status: bool,
    reason: &'static str,
    message: String,
}

/// Available if every member has the least that its rollout may leave, and all of them together have what is wanted.
fn available(template: &Value, items: &[Told<'_>]) -> News {
    let has_least = |item: &Told<'_>| {
        let Some(status) = &item.status else { return false };
        number(status, "availableReplicas") >= least(template, number(status, "replicas"))
    };
    let enough = sum(items, "availableReplicas") >= least(template, wanted(template));
    match enough && !items.is_empty() && items.iter().all(has_least) {
        true => News {
            kind: "Available",
            status: true,
            reason: "MinimumReplicasAvailable",
            message: "Deployment has minimum availability.".to_owned(),
        },
        false => News {
            kind: "Available",
            status: false,
            reason: "MinimumReplicasUnavailable",
            message: "Deployment does not have minimum availability.".to_owned(),
        },
    }
}

/// There once every member has observed this generation and runs nothing but it.
fn progressing(template: &Value, items: &[Told<'_>], status: &Value) -> News {
    let generation = integer(template, &["metadata", "generation"]).unwrap_or(0);
    let is_done = |item: &Told<'_>| {
        let Some(status) = &item.status else { return false };
        let replicas = number(status, "replicas");
        number(status, "updatedReplicas") == replicas && number(status, "availableReplicas") == replicas
    };
    let is_observed = number(status, "observedGeneration") == generation;
    let enough = sum(items, "updatedReplicas") >= wanted(template);
    let name = text(template, &["metadata", "name"]);
    match is_observed && enough && !items.is_empty() && items.iter().all(is_done) {
        true => News {
            kind: "Progressing",
            status: true,
            reason: "NewReplicaSetAvailable",
            message: format!("Deployment \"{name}\" has successfully progressed in all of its clusters."),
        },
        false => News {
            kind: "Progressing",
            status: true,
            reason: "ReplicaSetUpdated",
            message: format!("Deployment \"{name}\" is progressing."),
        },
    }
}

/// The condition with its times, which stay as long as what it says.
fn dated(news: News, before: &[Value], now: Timestamp) -> Value {
    let News { kind, status, reason, message } = news;
    let status = if status { "True" } else { "False" };
    let old = before.iter().find(|condition| text(condition, &["type"]) == kind);
    let since = |is_same: bool, field: &str| {
        let kept = old.filter(|_| is_same).map(|old| text(old, &[field])).filter(|time| !time.is_empty());
        kept.map_or_else(|| Time::from(now).to_string(), str::to_owned)
    };
    let says = |field: &str, value: &str| old.is_some_and(|old| text(old, &[field]) == value);
    let same_status = says("status", status);
    let same = same_status && says("reason", reason) && says("message", &message);
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since(same_status, "lastTransitionTime"),
        "lastUpdateTime": since(same, "lastUpdateTime"),
    })
}

fn number(status: &Value, field: &str) -> i64 {
    integer(status, &[field]).unwrap_or(0)
}

fn wanted(template: &Value) -> i64 {
    integer(template, &["spec", "replicas"]).unwrap_or(1)
}

/// How many of so many replicas have to be available, by the template's strategy.
fn least(template: &Value, replicas: i64) -> i64 {
    if text(template, &["spec", "strategy", "type"]) == "Recreate" {
        return replicas;
    }
    let rolling = at(template, &["spec", "strategy", "rollingUpdate"]).cloned().unwrap_or_default();
    // Kubernetes rounds what may be missing down, and what may be too much up.
    let missing = share(rolling.get("maxUnavailable"), replicas, false);
    let surplus = share(rolling.get("maxSurge"), replicas, true);
    let missing = if missing == 0 && surplus == 0 { 1 } else { missing };
    (replicas - missing).max(0)
}

/// A number, or a percentage of so many; a quarter where nothing is said.
fn share(said: Option<&Value>, of: i64, round_up: bool) -> i64 {
    let percent = match said {
        Some(Value::Number(number)) => return number.as_i64().unwrap_or(0).clamp(0, i64::from(i32::MAX)),
        Some(Value::String(text)) => text.strip_suffix('%').and_then(|text| text.parse::<i64>().ok()),
        _ => None,
    };
    let hundredths = of.saturating_mul(percent.unwrap_or(25).clamp(0, 10_000));
    (hundredths + if round_up { 99 } else { 0 }) / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_what_a_rollout_may_leave() {
        let check = |strategy: Value, replicas: i64, expected: i64| {
            let template = json!({ "spec": { "strategy": strategy } });
            assert_eq!(least(&template, replicas), expected, "{template} {replicas}");
        };
        let rolling =
            |unavailable: Value| json!({ "rollingUpdate": { "maxUnavailable": unavailable, "maxSurge": 0 } });
        check(json!({}), 4, 3);
        check(json!({}), 3, 3);
        check(json!({}), 0, 0);
        check(json!({ "type": "Recreate" }), 4, 4);
        check(rolling(json!(2)), 4, 2);
        check(rolling(json!("50%")), 4, 2);
        check(rolling(json!(0)), 4, 3);
        check(rolling(json!(9)), 4, 0);
    }

    fn status(available: i64, updated: i64) -> Value {
        json!({
            "replicas": 2, "availableReplicas": available, "updatedReplicas": updated,
            "generation": 1, "observedGeneration": 1, "resourceTemplateGeneration": 3,
        })
    }

    /// `status/reason` of both conditions, and the whole status.
    fn check(before: &Value, members: &[Value], second: i64, expected: [&str; 2]) -> Value {
        let template = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "generation": 3 },
            "spec": { "replicas": 4 }, "status": before,
        });
        let items: Vec<Told<'_>> = members
            .iter()
            .map(|status| Told { cluster_name: "m", status: (!status.is_null()).then(|| status.clone()) })
            .collect();
        let now = Timestamp::from_second(second).expect("a time");
        let found = aggregate(&template, &items, now);
        let said: Vec<String> = list(&found, &["conditions"])
            .iter()
            .map(|one| format!("{}/{}", text(one, &["status"]), text(one, &["reason"])))
            .collect();
        assert_eq!(said, expected, "{found}");
        found
    }

    const READY: [&str; 2] = ["True/MinimumReplicasAvailable", "True/NewReplicaSetAvailable"];

    #[test]
    fn conditions_follow_from_the_counters_of_all_members() {
        check(&json!({}), &[status(2, 2), status(2, 2)], 0, READY);
        check(
            &json!({}),
            &[status(2, 2), status(1, 2)],
            0,
            ["False/MinimumReplicasUnavailable", "True/ReplicaSetUpdated"],
        );
        check(
            &json!({}),
            &[status(2, 2), status(2, 1)],
            0,
            ["True/MinimumReplicasAvailable", "True/ReplicaSetUpdated"],
        );
        check(
            &json!({}),
            &[status(2, 2), Value::Null],
            0,
            ["False/MinimumReplicasUnavailable", "True/ReplicaSetUpdated"],
        );
        // One cluster of two that are wanted.
        check(&json!({}), &[status(2, 2)], 0, ["False/MinimumReplicasUnavailable", "True/ReplicaSetUpdated"]);
        let nowhere = json!({ "metadata": { "name": "web" }, "spec": { "replicas": 4 } });
        assert_eq!(aggregate(&nowhere, &[], Timestamp::UNIX_EPOCH), json!({}));
    }

    #[test]
    fn times_change_only_with_what_is_said() {
        let first = check(&json!({}), &[status(2, 2), status(2, 2)], 0, READY);
        let again = check(&first, &[status(2, 2), status(2, 2)], 60, READY);
        assert_eq!(first, again, "C6: the same statuses twice are no change");
        let rolls = check(
            &first,
            &[status(2, 2), status(2, 1)],
            120,
            ["True/MinimumReplicasAvailable", "True/ReplicaSetUpdated"],
        );
        let times = |status: &Value, index: usize| {
            let one = &status["conditions"][index];
            (one["lastTransitionTime"].clone(), one["lastUpdateTime"].clone())
        };
        assert_eq!(times(&rolls, 0), times(&first, 0));
        assert_eq!(times(&rolls, 1), (json!("1970-01-01T00:00:00Z"), json!("1970-01-01T00:02:00Z")));
        let gone = check(&rolls, &[], 180, ["False/MinimumReplicasUnavailable", "True/ReplicaSetUpdated"]);
        assert_eq!(times(&gone, 0).0, json!("1970-01-01T00:03:00Z"));
    }
}
