//! Cluster affinity and taint toleration: does a cluster match an affinity, is a taint tolerated? Knows nothing of
//! bindings.

use api::placement::FieldSelector;
use api::selector::{Operator, Requirement};
use api::taint::NO_EXECUTE;
use api::{Cluster, ClusterAffinity, Taint, Time, Toleration};
use jiff::{SignedDuration, Timestamp};

use crate::selector::labels_match;

/// True when the cluster is one of those the affinity means: not excluded, and every part that is set holds.
pub fn cluster_matches(affinity: &ClusterAffinity, cluster: &Cluster) -> bool {
    let name = &cluster.metadata.name;
    !affinity.exclude_clusters.contains(name)
        && (affinity.cluster_names.is_empty() || affinity.cluster_names.contains(name))
        && affinity
            .label_selector
            .as_ref()
            .is_none_or(|selector| labels_match(selector, &cluster.metadata.labels))
        && affinity.field_selector.as_ref().is_none_or(|selector| fields_match(selector, cluster))
}

/// The zones of a cluster; the deprecated single zone counts when there is no list.
pub fn zones(cluster: &Cluster) -> &[String] {
    match cluster.spec.zones.is_empty() && !cluster.spec.zone.is_empty() {
        true => std::slice::from_ref(&cluster.spec.zone),
        false => &cluster.spec.zones,
    }
}

/// How long a taint is borne.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Borne {
    /// Not at all.
    Never,
    /// Until then, and no longer.
    Until(Time),
    /// For ever.
    Always,
}

impl Borne {
    /// True when it is borne now.
    pub fn is_borne(self, now: Timestamp) -> bool {
        match self {
            Borne::Never => false,
            Borne::Until(end) => end.timestamp() > now,
            Borne::Always => true,
        }
    }
}

/// How long the tolerations bear a taint: the first that bears it says so. Only taints that evict wear
/// tolerations out.
pub fn borne(taint: &Taint, tolerations: &[Toleration]) -> Borne {
    let first = tolerations.iter().find(|toleration| tolerates(toleration, taint));
    let Some(toleration) = first else { return Borne::Never };
    match toleration.toleration_seconds.zip(taint.time_added) {
        Some((seconds, added)) if taint.effect == NO_EXECUTE => Borne::Until(later(added, seconds)),
        _ => Borne::Always,
    }
}

/// A time so many seconds later; beyond the end of time it stays at its end.
pub(crate) fn later(time: Time, seconds: i64) -> Time {
    let shifted = time.timestamp().checked_add(SignedDuration::from_secs(seconds.max(0)));
    shifted.unwrap_or(Timestamp::MAX).into()
}

/// True when the toleration bears the taint, for however long.
fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.is_empty() || toleration.effect == taint.effect;
    let key = toleration.key.is_empty() || toleration.key == taint.key;
    let value = match toleration.operator.as_str() {
        "" | "Equal" => toleration.value == taint.value,
        "Exists" => true,
        _ => false,
    };
    effect && key && value
}

fn fields_match(selector: &FieldSelector, cluster: &Cluster) -> bool {
    selector.match_expressions.iter().all(|requirement| match requirement.key.as_str() {
        "zone" => requirement_holds(requirement, zones(cluster)),
        "region" => requirement_holds(requirement, present(&cluster.spec.region)),
        "provider" => requirement_holds(requirement, present(&cluster.spec.provider)),
        _ => requirement_holds(requirement, &[]),
    })
}

fn present(value: &String) -> &[String] {
    if value.is_empty() { &[] } else { std::slice::from_ref(value) }
}

/// A cluster can be in several zones: `In` needs one of them, `NotIn` none.
fn requirement_holds(requirement: &Requirement, values: &[String]) -> bool {
    let listed = || values.iter().any(|value| requirement.values.contains(value));
    match requirement.operator {
        // Kubernetes refuses these two without values, and what is refused selects nothing.
        Operator::In => listed(),
        Operator::NotIn => !requirement.values.is_empty() && !listed(),
        Operator::Exists => !values.is_empty(),
        Operator::DoesNotExist => values.is_empty(),
        Operator::Gt | Operator::Lt | Operator::Other(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cluster() -> Cluster {
        serde_json::from_value(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": "m1", "labels": {"tier": "gold", "size": "7"}},
            "spec": {"syncMode": "Push", "provider": "p1", "region": "r1", "zones": ["z1", "z2"]},
        }))
        .expect("a cluster")
    }

    fn check(affinity: Value, expected: bool) {
        let parsed: ClusterAffinity = serde_json::from_value(affinity.clone()).expect("an affinity");
        assert_eq!(cluster_matches(&parsed, &cluster()), expected, "{affinity}");
    }

    #[test]
    fn every_part_of_an_affinity_must_hold() {
        check(json!({}), true);
        check(json!({"clusterNames": ["m1", "m2"]}), true);
        check(json!({"clusterNames": ["m2"]}), false);
        check(json!({"clusterNames": ["m1"], "exclude": ["m1"]}), false);
        check(json!({"labelSelector": {"matchLabels": {"tier": "gold"}}, "clusterNames": ["m2"]}), false);
        check(json!({"labelSelector": {}}), true);
    }

    #[test]
    fn labels_are_compared_by_every_operator() {
        let expression = |key: &str, operator: &str, values: &[&str]| json!({"labelSelector": {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}});
        check(expression("tier", "In", &["gold", "silver"]), true);
        check(expression("tier", "In", &["silver"]), false);
        check(expression("absent", "In", &["x"]), false);
        check(expression("tier", "NotIn", &["silver"]), true);
        check(expression("absent", "NotIn", &["x"]), true);
        check(expression("absent", "NotIn", &[]), false);
        check(expression("tier", "Exists", &[]), true);
        check(expression("tier", "DoesNotExist", &[]), false);
        check(expression("size", "Gt", &["6"]), false);
        check(expression("tier", "Like", &["gold"]), false);
    }

    #[test]
    fn fields_are_provider_region_and_zones() {
        let expression = |key: &str, operator: &str, values: &[&str]| json!({"fieldSelector": {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}});
        check(expression("provider", "In", &["p1"]), true);
        check(expression("region", "NotIn", &["r1"]), false);
        check(expression("zone", "In", &["z2", "z9"]), true);
        check(expression("zone", "NotIn", &["z2"]), false);
        check(expression("zone", "NotIn", &["z3"]), true);
        check(expression("planet", "In", &["earth"]), false);
    }

    #[test]
    fn tolerations_bear_taints() {
        let taint =
            Taint { key: "k".into(), value: "v".into(), effect: "NoExecute".into(), time_added: None };
        let check = |toleration: Value, expected: bool| {
            let parsed: Toleration = serde_json::from_value(toleration.clone()).expect("a toleration");
            assert_eq!(tolerates(&parsed, &taint), expected, "{toleration}");
        };
        check(json!({"operator": "Exists"}), true);
        check(json!({"key": "k", "operator": "Exists"}), true);
        check(json!({"key": "k", "operator": "Equal", "value": "v"}), true);
        check(json!({"key": "k", "value": "v", "effect": "NoExecute"}), true);
        check(json!({"key": "k", "value": "w"}), false);
        check(json!({"key": "k", "operator": "Exists", "effect": "NoSchedule"}), false);
        check(json!({"key": "other", "operator": "Exists"}), false);
        check(json!({"key": "k", "operator": "Gt", "value": "1"}), false);
    }
}
