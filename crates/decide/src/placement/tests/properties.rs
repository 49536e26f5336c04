//! Property tests for every input: sums, capacity, no needless moves, independence of order.

use std::sync::Arc;

use api::annotations::APPLIED_PLACEMENT;
use api::binding::{BindingSuspension, GracefulEvictionTask};
use proptest::prelude::*;
use proptest::strategy::Strategy;

use super::rules::{settle, settle_later};
use super::*;

fn placements() -> impl Strategy<Value = Value> {
    let strategy = prop::sample::select(vec![
        json!({}),
        divided("Weighted"),
        static_weights(&[("m1", 3), ("m2", 1), ("m4", 2)]),
        dynamic(),
        divided("Aggregated"),
    ]);
    let constraints = prop::sample::select(vec![
        json!([]),
        json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 3}]),
        json!([{"spreadByField": "region", "minGroups": 2, "maxGroups": 2}, {"spreadByField": "cluster", "minGroups": 2, "maxGroups": 4}]),
        json!([{"spreadByField": "zone", "minGroups": 2}, {"spreadByField": "cluster"}]),
    ]);
    (strategy, constraints)
        .prop_map(|(strategy, constraints)| with(strategy, "spreadConstraints", constraints))
}

fn members() -> impl Strategy<Value = Vec<Cluster>> {
    prop::collection::vec((0_i64..30, 0_usize..3, 0_usize..3), 1..7).prop_map(|rooms| {
        let mut members = clusters(&rooms.iter().map(|(room, _, _)| *room).collect::<Vec<_>>());
        for (cluster, (_, region, zones)) in members.iter_mut().zip(rooms) {
            cluster.spec.region = format!("r{region}");
            cluster.spec.zones = (0..=zones).map(|zone| format!("z{zone}{region}")).collect();
        }
        members
    })
}

fn bindings() -> impl Strategy<Value = Binding> {
    let previous = prop::collection::btree_map(1_usize..8, 0_i32..10, 0..4);
    (placements(), 0_i32..60, previous, "[ab]?", any::<bool>()).prop_map(
        |(placement, replicas, previous, uid, again)| {
            let mut binding = binding(placement, replicas);
            binding.spec.resource.uid = uid;
            let target =
                |(number, replicas): (usize, i32)| TargetCluster { name: format!("m{number}"), replicas };
            binding.spec.clusters = previous.into_iter().map(target).collect();
            if again { asked_again(binding) } else { binding }
        },
    )
}

fn replicas_in(clusters: &[TargetCluster], name: &str) -> i32 {
    clusters.iter().find(|target| target.name == name).map_or(0, |target| target.replicas)
}

fn room(cluster: &Cluster) -> i32 {
    let summary = cluster.status.resource_summary.as_ref().expect("a summary");
    summary.allocatable["pods"].as_str().parse().expect("a number")
}

/// The binding with one thing different.
fn varied(mut binding: Binding, what: usize) -> Binding {
    let (metadata, spec, status) = (&mut binding.metadata, &mut binding.spec, &mut binding.status);
    let stamp = |text: &str| Some(text.parse().expect("a time"));
    match what {
        0 => spec.replicas += 1,
        1 => spec.resource.uid.push('b'),
        2 => spec.resource.kind = "Widget".to_owned(),
        3 => spec.resource.api_version = "batch/v1".to_owned(),
        4 => spec.clusters.push(TargetCluster { name: "m1".to_owned(), replicas: 1 }),
        5 => {
            spec.graceful_eviction_tasks = vec![GracefulEvictionTask {
                from_cluster: "m1".to_owned(),
                ..GracefulEvictionTask::default()
            }]
        }
        6 => spec.placement = Some(serde_json::from_value(divided("Aggregated")).expect("a placement")),
        7 => {
            spec.replica_requirements =
                Some(serde_json::from_value(json!({"resourceRequest": {"cpu": "1"}})).expect("a need"))
        }
        8 => spec.scheduler_name = "mine".to_owned(),
        9 => {
            spec.suspension =
                Some(BindingSuspension { scheduling: Some(true), ..BindingSuspension::default() })
        }
        10 => spec.reschedule_triggered_at = stamp("2030-01-01T00:00:00Z"),
        11 => status.last_scheduled_time = stamp("2029-01-01T00:00:00Z"),
        12 => status.scheduler_observed_affinity_name = "group".to_owned(),
        13 => metadata.labels.clear(),
        14 => metadata.deletion_timestamp = stamp("2029-01-01T00:00:00Z"),
        15 => drop(metadata.annotations.insert(APPLIED_PLACEMENT.to_owned(), "{}".to_owned())),
        16 => {
            spec.components =
                serde_json::from_value(json!([{"name": "a", "replicas": 1}, {"name": "b", "replicas": 1}]))
                    .expect("components")
        }
        _ => metadata.name.push('x'),
    }
    binding
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn an_answer_is_repeated_only_for_the_same_question(
        first in bindings(), members in members(), steps in prop::collection::vec((any::<bool>(), 0_usize..18), 1..24),
    ) {
        let (mut recent, mut latest) = (Recent::default(), first.clone());
        for (anew, what) in steps {
            latest = varied(if anew { first.clone() } else { latest }, what);
            let asked = Arc::new(latest.clone());
            prop_assert_eq!(recent.placement(&asked, &members, NOW), &placement(&latest, &members, NOW));
        }
    }

    #[test]
    fn a_division_sums_to_the_replicas_and_respects_capacity(binding in bindings(), members in members()) {
        let Placement::Scheduled(schedule) = placement(&binding, &members, NOW) else { return Ok(()) };
        let (spec, strategy) = (&binding.spec, schedule.division.strategy);
        let sum: i32 = schedule.clusters.iter().map(|target| target.replicas).sum();
        if strategy == super::Strategy::Duplicated {
            prop_assert!(schedule.clusters.iter().all(|target| target.replicas == spec.replicas));
        } else {
            prop_assert_eq!(sum, spec.replicas);
        }
        for target in schedule.clusters.iter().filter(|_| strategy.follows_capacity()) {
            let cluster = members.iter().find(|cluster| cluster.metadata.name == target.name).expect("a member");
            let bound = room(cluster) + replicas_in(&spec.clusters, &target.name);
            prop_assert!(target.replicas <= bound, "{} > {}", target.replicas, bound);
        }
    }

    #[test]
    fn scaling_up_takes_from_nobody_and_scaling_down_gives_nobody(
        members in members(), aggregated in any::<bool>(), first in 1_i32..40, second in 1_i32..40,
    ) {
        let rule = if aggregated { divided("Aggregated") } else { dynamic() };
        let mut settled = settle(binding(rule, first), &members);
        let before = settled.spec.clusters.clone();
        settled.spec.replicas = second;
        let Placement::Scheduled(schedule) = placement(&settled, &members, NOW) else { return Ok(()) };
        for cluster in &members {
            let name = &cluster.metadata.name;
            let (old, new) = (replicas_in(&before, name), replicas_in(&schedule.clusters, name));
            match schedule.division.mode {
                Mode::Up => prop_assert!(new >= old, "{name} had {old} and gets {new}"),
                Mode::Down => prop_assert!(new <= old, "{name} had {old} and gets {new}"),
                Mode::Same => prop_assert_eq!(new, old),
                _ => {}
            }
        }
    }

    #[test]
    fn deciding_twice_changes_nothing(binding in bindings(), members in members()) {
        let once = settle(binding, &members);
        prop_assert_eq!(settle_later(once.clone(), &members), once);
    }

    #[test]
    fn the_order_of_clusters_does_not_matter(
        (binding, members, shuffled) in (bindings(), members())
            .prop_flat_map(|(binding, members)| (Just(binding), Just(members.clone()), Just(members).prop_shuffle())),
    ) {
        prop_assert_eq!(placement(&binding, &shuffled, NOW), placement(&binding, &members, NOW));
    }

    #[test]
    fn bounds_of_constraints_are_kept(binding in bindings(), members in members()) {
        let Placement::Scheduled(schedule) = placement(&binding, &members, NOW) else { return Ok(()) };
        if schedule.division.strategy != super::Strategy::Duplicated { return Ok(()) }
        let rules: Rules = binding.spec.placement.expect("a placement");
        for constraint in rules.spread_constraints {
            let chosen = members.iter().filter(|c| schedule.clusters.iter().any(|t| t.name == c.metadata.name));
            let names: std::collections::BTreeSet<String> = chosen.flat_map(|cluster| match constraint.spread_by_field {
                Some(api::placement::SpreadField::Region) => vec![cluster.spec.region.clone()],
                Some(api::placement::SpreadField::Zone) => cluster.spec.zones.clone(),
                _ => vec![cluster.metadata.name.clone()],
            }).collect();
            let max = if constraint.max_groups == 0 { usize::MAX } else { constraint.max_groups as usize };
            prop_assert!(names.len() >= constraint.min_groups as usize && names.len() <= max, "{constraint:?} {names:?}");
        }
    }

    #[test]
    fn no_numbers_are_too_strange(
        replicas in any::<i32>(), previous in any::<i32>(), weights in any::<[i64; 2]>(),
        bounds in any::<[i64; 2]>(), rooms in any::<[i64; 2]>(), kind in 0_usize..4,
    ) {
        let rule = [json!({}), static_weights(&[("m1", weights[0]), ("m2", weights[1])]), dynamic(), divided("Aggregated")];
        let constraints = json!([
            {"spreadByField": "region", "minGroups": bounds[0], "maxGroups": bounds[1]},
            {"spreadByField": "cluster", "minGroups": bounds[1], "maxGroups": bounds[0]},
        ]);
        let mut members = clusters(&rooms);
        members.iter_mut().for_each(|cluster| cluster.spec.region = "r".to_owned());
        for constraints in [json!([]), constraints] {
            let rule = with(rule[kind].clone(), "spreadConstraints", constraints);
            let once = settle(with_previous(binding(rule, replicas), &[("m1", previous)]), &members);
            prop_assert_eq!(settle_later(once.clone(), &members), once);
        }
    }
}
