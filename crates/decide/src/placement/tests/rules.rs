//! Triggers, filters, affinity groups, spread constraints, and the rules C1 to C3 (docs/behaviour/placement.md).

use api::annotations;
use api::binding::GracefulEvictionTask;
use jiff::Timestamp;

use super::*;

/// What the scheduler would have written after this decision.
pub(super) fn settle(binding: Binding, clusters: &[Cluster]) -> Binding {
    settle_at(binding, clusters, "2026-01-03T00:00:00Z")
}

/// The same an hour later.
pub(super) fn settle_later(binding: Binding, clusters: &[Cluster]) -> Binding {
    settle_at(binding, clusters, "2026-01-03T01:00:00Z")
}

fn settle_at(mut binding: Binding, clusters: &[Cluster], now: &str) -> Binding {
    let now: Timestamp = now.parse().expect("a time");
    let decision = placement(&binding, clusters, now);
    let before = binding.spec.clone();
    decision.write_spec(&mut binding);
    if binding.spec != before {
        binding.metadata.generation += 1;
    }
    decision.write_status(&mut binding, now);
    binding
}

fn trigger_of(binding: &Binding, clusters: &[Cluster]) -> String {
    match placement(binding, clusters, NOW) {
        Placement::Scheduled(schedule) => schedule.trigger.to_string(),
        other => other.to_string(),
    }
}

#[test]
fn c7_the_same_clusters_in_another_order_are_no_news() {
    let members = clusters(&[9, 9]);
    let mut binding = settle(binding(json!({}), 2), &members);
    binding.spec.clusters.reverse();
    assert_eq!(settle(binding.clone(), &members), binding);
    binding.spec.clusters[0].replicas = 1;
    assert_ne!(settle(binding.clone(), &members), binding);
}

#[test]
fn the_first_trigger_wins() {
    let members = clusters(&[9, 9]);
    let fresh = binding(dynamic(), 4);
    assert_eq!(trigger_of(&fresh, &members), "the placement changed");
    let settled = settle(fresh, &members);
    let rest = "Stays where it is, because nothing triggers scheduling.";
    assert_eq!(trigger_of(&settled, &members), rest);

    let mut scaled = settled.clone();
    scaled.spec.replicas = 6;
    assert_eq!(trigger_of(&scaled, &members), "replicas changed from 4 to 6");
    assert_eq!(
        trigger_of(&asked_again(settled.clone()), &members),
        "a rescheduling was requested at 2026-01-02T00:00:00Z"
    );
    let mut leaving = members.clone();
    leaving[0].metadata.deletion_timestamp = Some("2026-01-03T00:00:00Z".parse().expect("a time"));
    assert_eq!(trigger_of(&settled, &leaving), "the cluster m1 is going away");
    check(&settled, &leaving, "m2:4");

    let duplicated = settle(binding(json!({}), 2), &members);
    assert_eq!(trigger_of(&duplicated, &members), "it follows every change of the clusters");
    let mut unreadable = settled;
    unreadable.metadata.annotations.insert(annotations::APPLIED_PLACEMENT.to_owned(), "{".to_owned());
    assert_eq!(trigger_of(&unreadable, &members), rest, "better stale than moved by a typo");
}

#[test]
fn r1_a_decision_whose_status_was_lost_is_reported() {
    let members = clusters(&[9, 9]);
    let groups = json!([{"affinityName": "a", "clusterNames": ["m9"]}, {"affinityName": "b"}]);
    for (placed, group) in [(dynamic(), ""), (with(dynamic(), "clusterAffinities", groups), "b")] {
        let whole = settle(binding(placed, 4), &members);
        let mut lost = whole.clone();
        lost.status = api::BindingStatus::default();
        let told = settle(lost, &members);
        assert_eq!(told.status, whole.status);
        assert_eq!(told.spec, whole.spec);
        assert_eq!(told.status.scheduler_observed_affinity_name, group);
    }
}

#[test]
fn r1_a_fresh_placement_whose_status_was_lost_is_reported_and_not_made_again() {
    let asked = asked_again(settle(binding(dynamic(), 6), &clusters(&[12, 12])));
    let whole = settle_later(asked.clone(), &clusters(&[12, 12]));
    assert!(whole.status.last_scheduled_time > asked.spec.reschedule_triggered_at);
    let lost = Binding { status: asked.status, ..whole.clone() };
    // Members have not moved yet, so dividing again would come to another result.
    let told = settle_later(lost, &clusters(&[6, 12]));
    assert_eq!((told.spec, told.status), (whole.spec, whole.status));
}

#[test]
fn some_bindings_are_none_of_our_business() {
    let check_skip = |change: fn(&mut Binding), expected: &str| {
        let mut binding = binding(json!({}), 1);
        change(&mut binding);
        check(&binding, &clusters(&[1]), &format!("Not scheduled, because {expected}."));
    };
    check_skip(
        |binding| binding.metadata.deletion_timestamp = Some("2026-01-03T00:00:00Z".parse().expect("a time")),
        "the binding is being deleted",
    );
    check_skip(
        |binding| binding.spec.scheduler_name = "mine".to_owned(),
        "the binding belongs to the scheduler \"mine\"",
    );
    check_skip(
        |binding| {
            binding.spec.suspension =
                serde_json::from_value(json!({"scheduling": true})).expect("a suspension")
        },
        "scheduling of the binding is suspended",
    );
    check_skip(
        |binding| binding.metadata.labels.clear(),
        "no policy claims the binding, so it stays where it is",
    );
    check_skip(|binding| binding.spec.placement = None, "the binding has no placement of its own");
}

/// Otherwise the cluster would wait for ever for a copy that no controller moves.
#[test]
fn what_nobody_claims_leaves_a_cluster_that_goes_and_comes_to_no_other() {
    let mut members = clusters(&[9, 9, 9]);
    let mut frozen = settle(binding(json!({}), 2), &members[..2]);
    frozen.metadata.labels.clear();
    assert_eq!(settle(frozen.clone(), &members), frozen);
    members[0].metadata.deletion_timestamp = Some("2026-01-03T00:00:00Z".parse().expect("a time"));
    let says = "Leaves m1, which is going away; no policy claims the binding, so it stays where it is.";
    assert_eq!(placement(&frozen, &members, NOW).to_string(), says);
    let names = |binding: &Binding| -> Vec<String> {
        binding.spec.clusters.iter().map(|target| target.name.clone()).collect()
    };
    assert_eq!(names(&settle(frozen, &members)), ["m2"]);
}

#[test]
fn each_refused_cluster_has_its_reason() {
    let mut members = clusters(&[9, 9, 9, 9, 9, 9]);
    members[0].metadata.deletion_timestamp = Some("2026-01-03T00:00:00Z".parse().expect("a time"));
    members[1].status.api_enablements.clear();
    members[2].spec.taints = serde_json::from_value(json!([
        {"key": "soft", "effect": "PreferNoSchedule"},
        {"key": "borne", "effect": "NoSchedule"},
        {"key": "k", "value": "v", "effect": "NoExecute"},
    ]))
    .expect("taints");
    let mut binding = binding(
        json!({
            "clusterAffinity": {"exclude": ["m4"]},
            "clusterTolerations": [{"key": "borne", "operator": "Exists"}],
            "spreadConstraints": [{"spreadByField": "zone", "minGroups": 1}, {"spreadByField": "cluster"}],
        }),
        1,
    );
    let task = GracefulEvictionTask { from_cluster: "m5".to_owned(), ..GracefulEvictionTask::default() };
    binding.spec.graceful_eviction_tasks.push(task);
    let expected = "0/6 clusters are available: \
        1 cluster(s) did not have the API resource, \
        1 cluster(s) did not have zones property, \
        1 cluster(s) did not match the placement cluster affinity constraint, \
        1 cluster(s) had untolerated taint {k=v:NoExecute}, \
        1 cluster(s) is being deleted, \
        1 cluster(s) is in the process of eviction.";
    check(&binding, &members, expected);
    check(&binding, &[], "0/0 clusters are available: no cluster exists.");
    let here = with_previous(binding, &[("m2", 1), ("m3", 1)]);
    let Placement::Kept { failure: Failure::NoClusterFit { refused, .. }, .. } =
        placement(&here, &members, NOW)
    else {
        panic!("no cluster has a zone");
    };
    let zone = Refusal::SpreadConstraint { field: api::placement::SpreadField::Zone };
    assert_eq!(
        (&refused["m2"], &refused["m3"]),
        (&zone, &zone),
        "what runs is not driven out by taints or APIs"
    );
}

#[test]
fn a_taint_that_was_borne_for_long_enough_keeps_away() {
    let mut members = clusters(&[9, 9]);
    members[0].spec.taints = serde_json::from_value(json!([
        {"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
    ]))
    .expect("taints");
    let bears = |toleration: Value| {
        let mut whole = json!({"key": "k", "operator": "Exists"});
        whole.as_object_mut().expect("a map").extend(toleration.as_object().expect("a map").clone());
        binding(json!({"clusterTolerations": [whole]}), 1)
    };
    let check = |binding: &Binding, now: &str, expected: &str| {
        let now: Timestamp = now.parse().expect("a time");
        assert_eq!(answer(&placement(binding, &members, now)), expected);
    };
    let (within, after) = ("2026-01-01T00:00:59Z", "2026-01-01T00:01:00Z");
    check(&bears(json!({"tolerationSeconds": 60})), within, "m1:1 m2:1");
    check(&bears(json!({"tolerationSeconds": 60})), after, "m2:1");
    check(&bears(json!({})), after, "m1:1 m2:1");
    let here = with_previous(bears(json!({"tolerationSeconds": 60})), &[("m1", 1), ("m2", 1)]);
    check(&here, after, "m1:1 m2:1");
    members[0].spec.taints[0].effect = "NoSchedule".to_owned();
    let now: Timestamp = after.parse().expect("a time");
    let soft = placement(&bears(json!({"tolerationSeconds": 60})), &members, now);
    assert_eq!(answer(&soft), "m1:1 m2:1", "only what evicts wears a toleration out");
}

#[test]
fn c1_no_upper_bound_and_zones_and_providers_count() {
    let mut members = clusters(&[9, 9, 9, 9]);
    for (cluster, (provider, zones)) in members.iter_mut().zip([
        ("p1", vec!["z1"]),
        ("p1", vec!["z2"]),
        ("p2", vec!["z2", "z3"]),
        ("p2", vec!["z4"]),
    ]) {
        provider.clone_into(&mut cluster.spec.provider);
        cluster.spec.zones = zones.into_iter().map(str::to_owned).collect();
    }
    let check_spread = |constraints: Value, expected: &str| {
        check(&binding(json!({"spreadConstraints": constraints}), 1), &members, expected);
    };
    check_spread(json!([{"spreadByField": "cluster", "minGroups": 1}]), "m1:1 m2:1 m3:1 m4:1");
    check_spread(
        json!([{"spreadByField": "provider", "minGroups": 1, "maxGroups": 1}, {"spreadByField": "cluster"}]),
        "m1:1 m2:1",
    );
    check_spread(
        json!([{"spreadByField": "provider", "minGroups": 2}, {"spreadByField": "cluster", "maxGroups": 2}]),
        "m1:1 m3:1",
    );
    check_spread(
        json!([{"spreadByField": "zone", "minGroups": 2, "maxGroups": 2}, {"spreadByField": "cluster"}]),
        "m1:1 m2:1",
    );
    check_spread(
        json!([
            {"spreadByField": "provider", "minGroups": 2},
            {"spreadByField": "zone", "minGroups": 3, "maxGroups": 3},
            {"spreadByField": "cluster"},
        ]),
        "m1:1 m2:1 m3:1",
    );
    check_spread(
        json!([{"spreadByField": "zone", "minGroups": 5}, {"spreadByField": "cluster"}]),
        "the number of feasible zone is less than spreadConstraint.MinGroups (4 of 5)",
    );
    check_spread(
        json!([{"spreadByField": "provider", "minGroups": 1, "maxGroups": 1}, {"spreadByField": "cluster", "minGroups": 3}]),
        "the number of clusters is less than the cluster spreadConstraint.MinGroups (3) in every allowed choice by provider",
    );
    check_spread(json!([{"spreadByLabel": "rack"}]), "spreadByLabel is not supported: use spreadByField");
}

#[test]
fn roomier_clusters_replace_the_last_ones_when_the_first_are_too_small() {
    let constraints = json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 2}]);
    let placement = with(dynamic(), "spreadConstraints", constraints);
    let previous = [("m1", 5), ("m2", 5)];
    check(&with_previous(binding(placement.clone(), 20), &previous), &clusters(&[5, 0, 40]), "m1:7 m3:13");
    check(
        &with_previous(binding(placement, 60), &previous),
        &clusters(&[5, 0, 40]),
        "no enough resource when selecting 2 clusters",
    );
}

#[test]
fn c2_a_workload_scaled_to_zero_stays_in_its_clusters() {
    let members = clusters(&[9, 9, 9]);
    for placement in [dynamic(), divided("Aggregated"), divided("Weighted"), json!({})] {
        let mut binding = with_previous(binding(placement.clone(), 0), &[("m1", 2), ("m2", 1)]);
        let stays = if placement == json!({}) { "m1:0 m2:0 m3:0" } else { "m1:0 m2:0" };
        check(&binding, &members, stays);
        binding.spec.replica_requirements = Some(Default::default());
        check(&binding, &members, stays);
        let zero = settle(binding, &members);
        assert_eq!(zero, settle_later(zero.clone(), &members), "at zero nothing moves");
    }
    let mut config = with_previous(binding(dynamic(), 0), &[("m1", 0)]);
    config.spec.resource.api_version = "v1".to_owned();
    config.spec.resource.kind = "ConfigMap".to_owned();
    check(&config, &members, "m1:0 m2:0 m3:0");
    check(&binding(dynamic(), 0), &members, "m1:0 m2:0 m3:0");
}

#[test]
fn c3_selecting_nothing_clears_and_too_little_room_keeps() {
    let members = clusters(&[3, 3]);
    let nowhere = with_previous(
        binding(with(dynamic(), "clusterAffinity", json!({"clusterNames": ["m9"]})), 4),
        &[("m1", 4)],
    );
    assert!(matches!(placement(&nowhere, &members, NOW), Placement::Nowhere { .. }));
    let cleared = settle(nowhere, &members);
    assert_eq!(cleared.spec.clusters, []);
    assert_eq!(
        (cleared.status.conditions[0].reason.as_str(), cleared.status.last_scheduled_time),
        ("NoClusterFit", None)
    );

    let kept = settle(with_previous(binding(dynamic(), 40), &[("m1", 4)]), &members);
    assert_eq!(kept.spec.clusters, with_previous(binding(dynamic(), 40), &[("m1", 4)]).spec.clusters);
    assert_eq!(kept.status.conditions[0].reason, "Unschedulable");
}

#[test]
fn groups_are_tried_forward_from_the_one_in_use() {
    let groups = json!([
        {"affinityName": "first", "clusterNames": ["m1"]},
        {"affinityName": "second", "clusterNames": ["m2"]},
    ]);
    let wanted = |replicas: i32| binding(with(dynamic(), "clusterAffinities", groups.clone()), replicas);
    let settled = settle(wanted(5), &clusters(&[2, 9]));
    assert_eq!(settled.status.scheduler_observed_affinity_name, "second");
    let Placement::Scheduled(schedule) = placement(&wanted(5), &clusters(&[2, 9]), NOW) else {
        panic!("it fits")
    };
    assert_eq!(schedule.tried[0].affinity_name, "first");

    let mut later = settled.clone();
    later.spec.replicas = 6;
    check(&later, &clusters(&[20, 9]), "m2:6");
    assert!(matches!(placement(&wanted(50), &clusters(&[2, 9]), NOW), Placement::Kept { .. }));
    let mut gone = settled;
    gone.spec.replicas = 4;
    let left = placement(&gone, &clusters(&[20])[..1], NOW);
    let Placement::Kept { failure, gone, .. } = &left else { panic!("the group in use has no cluster") };
    assert_eq!((failure.reason(), gone.as_slice()), ("NoClusterFit", &["m2".to_owned()][..]));
}

#[test]
fn m2_running_copies_stay_unless_the_policy_allows_eviction() {
    let members = clusters(&[3, 3]);
    let on = |name: &str| with(dynamic(), "clusterAffinity", json!({"clusterNames": [name]}));
    let stays = |binding: &Binding| matches!(placement(binding, &members, NOW), Placement::Kept { .. });
    // An edit that selects no cluster takes effect; a placement that selects none any more does not.
    let edited = with_previous(binding(on("m9"), 4), &[("m1", 4)]);
    assert!(!stays(&edited));
    let mut vanished = edited.clone();
    let json = serde_json::to_string(&vanished.spec.placement).expect("json");
    vanished.metadata.annotations.insert(api::annotations::APPLIED_PLACEMENT.to_owned(), json);
    vanished.spec.replicas = 5;
    assert!(stays(&vanished));
    let mut given_up = vanished.clone();
    given_up.spec.failover =
        serde_json::from_value(json!({"cluster": {"evictLastCopy": true}})).expect("rules");
    assert!(!stays(&given_up));
    // What stayed before because nothing fitted is not let go because less is there to select.
    let mut kept = edited.clone();
    kept.metadata.generation = 2;
    let mut condition =
        crate::conditions::condition("LastCopyKept", api::ConditionStatus::True, "NoClusterFit", "");
    condition.observed_generation = 2;
    kept.status.conditions.push(condition);
    assert!(stays(&kept));
    kept.metadata.generation = 3;
    assert!(!stays(&kept), "that was another placement");
    // It stays where its copies are if the cluster that was to replace them is gone.
    let mut gone = with_previous(vanished, &[("m8", 4)]);
    let item = json!([{"clusterName": "m1", "applied": true}, {"clusterName": "m2", "applied": false}]);
    gone.status.aggregated_status = serde_json::from_value(item).expect("statuses");
    placement(&gone, &members, NOW).write_spec(&mut gone);
    assert_eq!(gone.spec.clusters, [TargetCluster { name: "m1".to_owned(), replicas: 5 }]);
}

#[test]
fn overflow_groups_take_what_does_not_fit() {
    let groups = json!([{
        "affinityName": "home", "clusterNames": ["m1"],
        "overflowAffinities": [{"affinityName": "away", "clusterNames": ["m2"]}, {"affinityName": "far", "clusterNames": ["m3"]}],
    }]);
    let wanted = |replicas: i32| binding(with(dynamic(), "clusterAffinities", groups.clone()), replicas);
    let members = clusters(&[4, 3, 9]);
    check(&wanted(3), &members, "m1:3");
    check(&wanted(6), &members, "m1:4 m2:2");
    check(&wanted(10), &members, "m1:4 m2:3 m3:3");
    check(&wanted(20), &members, "Clusters available replicas 16 are not enough to schedule.");
    check(&with_previous(wanted(5), &[("m1", 4), ("m2", 3)]), &clusters(&[0, 0, 9]), "m1:4 m2:1");
}

#[test]
fn the_answer_tells_its_arithmetic() {
    let up = with_previous(binding(dynamic(), 24), &[("m1", 2), ("m2", 4), ("m3", 6)]);
    let answer = placement(&up, &clusters(&[10, 5, 20]), NOW);
    assert_eq!(
        answer.to_string(),
        "Scheduled because the placement changed: 24 replicas by free capacity, dividing only what is new: \
         m1 5 (2 + 3, weight 10), m2 6 (4 + 2, weight 5), m3 13 (6 + 7, weight 20)."
    );
    let json = serde_json::to_value(&answer).expect("json");
    assert_eq!(
        json["scheduled"]["division"]["shares"][0],
        json!({"cluster": "m1", "weight": 10, "before": 2, "replicas": 5})
    );
    let Placement::Scheduled(schedule) = answer else { panic!("it fits") };
    assert_eq!(listed(&schedule.clusters), "{m1:5, m2:6, m3:13}");
}

#[test]
fn c6_a_placement_that_stays_is_no_write() {
    let members = clusters(&[9, 9]);
    for placement in [json!({}), dynamic()] {
        let once = settle(binding(placement, 2), &members);
        assert_eq!(settle_later(once.clone(), &members), once, "not even the time of the last schedule");
        let mut scaled = once.clone();
        scaled.spec.replicas = 3;
        scaled.metadata.generation += 1;
        assert_eq!(
            settle_later(scaled, &members).status.last_scheduled_time.map(|time| time.to_string()).as_deref(),
            Some("2026-01-03T01:00:00Z")
        );
    }
}

#[test]
fn what_runs_is_preferred_to_more_room() {
    let constraint = json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]);
    let here = with_previous(binding(json!({"spreadConstraints": constraint}), 1), &[("m2", 1)]);
    check(&here, &clusters(&[50, 1]), "m2:1");
}

#[test]
fn only_changes_of_the_group_in_use_count() {
    let group = |name: &str, cluster: &str| json!({"affinityName": name, "clusterNames": [cluster]});
    let groups = |terms: Value| with(dynamic(), "clusterAffinities", terms);
    let members = clusters(&[9, 9, 9]);
    let settled = settle(binding(groups(json!([group("a", "m1"), group("b", "m2")])), 1), &members);
    assert_eq!(settled.status.scheduler_observed_affinity_name, "a");
    let check_change = |terms: Value, observed: &str, expected: bool| {
        let mut changed = settled.clone();
        changed.spec.placement = serde_json::from_value(groups(terms.clone())).expect("a placement");
        changed.status.scheduler_observed_affinity_name = observed.to_owned();
        let changed = trigger_of(&changed, &members) == "the placement changed";
        assert_eq!(changed, expected, "{terms} {observed}");
    };
    check_change(json!([group("a", "m1"), group("b", "m3")]), "a", false);
    check_change(json!([group("a", "m1")]), "a", false);
    check_change(json!([group("a", "m3"), group("b", "m2")]), "a", true);
    check_change(json!([group("c", "m1"), group("b", "m2")]), "a", true);
    check_change(json!([group("a", "m1"), group("b", "m3")]), "", true);
    check_change(json!([group("c", "m1")]), "c", true);
}
