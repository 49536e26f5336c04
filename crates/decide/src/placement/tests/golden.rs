//! The golden vectors, one row each.

use super::*;

#[test]
fn equal_weights() {
    let check_uid = |replicas: i32, uid: &str, expected: &str| {
        let mut binding = binding(divided("Weighted"), replicas);
        binding.spec.resource.uid = uid.to_owned();
        check(&binding, &clusters(&[0, 0, 0]), expected);
    };
    check_uid(7, "", "m1:3 m2:2 m3:2");
    check_uid(7, "a", "m1:3 m2:2 m3:2");
    check_uid(7, "b", "m1:2 m2:2 m3:3");
    check_uid(8, "", "m1:3 m2:3 m3:2");
    check_uid(8, "b", "m1:2 m2:3 m3:3");
}

#[test]
fn static_weight_lists() {
    let check_weights = |weights: &[(&str, i64)], replicas: i32, expected: &str| {
        check(&binding(static_weights(weights), replicas), &clusters(&[0, 0, 0]), expected);
    };
    check_weights(&[("m1", 1), ("m2", 2)], 9, "m1:3 m2:6");
    check_weights(&[("m1", 1), ("m2", 3)], 9, "m1:2 m2:7");
    check_weights(&[("m1", 3), ("m2", 2), ("m3", 1)], 10, "m1:5 m2:3 m3:2");
    check_weights(&[("m1", 2), ("m2", 1), ("m3", 1)], 5, "m1:3 m2:1 m3:1");
    check_weights(&[("m1", 2), ("m2", 1), ("m3", 1)], 2, "m1:1 m2:1");
    check_weights(&[("m1", 2), ("m2", 1), ("m3", 1)], 1, "m1:1");
    check_weights(&[("m9", 2)], 5, "m1:2 m2:2 m3:1");
    let previous = with_previous(binding(static_weights(&[("m1", 1), ("m2", 1)]), 6), &[("m1", 6)]);
    check(&previous, &clusters(&[0, 0]), "m1:3 m2:3");
}

/// Placement, room, previous result, wanted replicas, expected result.
type Row<'a> = (&'a [i64], &'a [(&'a str, i32)], i32, &'a str);

fn check_rows(placement: &Value, rows: &[Row]) {
    for (rooms, previous, replicas, expected) in rows {
        check(&with_previous(binding(placement.clone(), *replicas), previous), &clusters(rooms), expected);
    }
}

#[test]
fn dynamic_weights() {
    let previous: &[(&str, i32)] = &[("m1", 3), ("m2", 5), ("m3", 4)];
    check_rows(
        &dynamic(),
        &[
            (&[6, 12, 18], &[], 12, "m1:2 m2:4 m3:6"),
            (&[6, 12, 18], &[], 40, "Clusters available replicas 36 are not enough to schedule."),
            (&[10, 5, 20], &[("m1", 2), ("m2", 4), ("m3", 6)], 24, "m1:5 m2:6 m3:13"),
            (&[0, 0, 0], previous, 6, "m1:2 m2:2 m3:2"),
            (&[0, 0, 0], previous, 1, "m2:1"),
        ],
    );
    let without_m3 = with(dynamic(), "clusterAffinity", json!({"clusterNames": ["m1", "m2"]}));
    check_rows(&without_m3, &[(&[10, 5, 0], previous, 12, "m1:6 m2:6")]);
}

#[test]
fn aggregated() {
    let rooms: &[i64] = &[4, 10, 6];
    check_rows(
        &divided("Aggregated"),
        &[
            (rooms, &[], 8, "m2:8"),
            (rooms, &[], 12, "m2:7 m3:5"),
            (rooms, &[], 20, "m1:4 m2:10 m3:6"),
            (rooms, &[("m1", 2)], 5, "m1:5"),
            (rooms, &[("m1", 2)], 10, "m1:4 m2:6"),
            (rooms, &[("m1", 4), ("m2", 6)], 5, "m2:5"),
            (rooms, &[("m1", 4), ("m2", 6)], 8, "m1:3 m2:5"),
        ],
    );
}

#[test]
fn fresh_placements_forget_the_previous_one() {
    let fresh = |placement: Value, previous: &[(&str, i32)], replicas: i32| {
        asked_again(with_previous(binding(placement, replicas), previous))
    };
    check(&fresh(dynamic(), &[("m1", 12)], 12), &clusters(&[10, 5, 20]), "m1:6 m2:1 m3:5");
    check(&fresh(divided("Aggregated"), &[("m1", 2), ("m3", 2)], 4), &clusters(&[4, 10, 6]), "m2:4");
}

/// The order in which clusters are taken, which the sorted result no longer shows.
fn check_selection(constraints: Value, previous: &[(&str, i32)], expected: &str) {
    let mut clusters = clusters(&[9, 9, 9, 9]);
    for (cluster, region) in clusters.iter_mut().zip(["r1", "r1", "r2", "r3"]) {
        region.clone_into(&mut cluster.spec.region);
    }
    let binding = with_previous(binding(json!({"spreadConstraints": constraints}), 1), previous);
    let rules = binding.spec.placement.as_ref().expect("a placement");
    let feasible = clusters.iter().map(|cluster| (cluster, 0)).collect();
    let candidates = candidate::rank(&binding.spec, feasible);
    let taken = match spread::select(rules, candidates, 1, false) {
        Ok(taken) => taken.iter().map(|candidate| candidate.name()).collect::<Vec<_>>().join(" "),
        Err(failure) => failure.reason().to_owned(),
    };
    assert_eq!(taken, expected, "{constraints}");
}

#[test]
fn cluster_selection() {
    let by =
        |field: &str, min: i64, max: i64| json!({"spreadByField": field, "minGroups": min, "maxGroups": max});
    check_selection(json!([by("cluster", 1, 2)]), &[], "m1 m2");
    check_selection(json!([by("cluster", 1, 2)]), &[("m4", 1)], "m4 m1");
    check_selection(json!([by("region", 2, 2), by("cluster", 2, 3)]), &[], "m1 m3 m2");
    check_selection(json!([by("region", 1, 3), by("cluster", 4, 4)]), &[], "m1 m3 m4 m2");
    check_selection(json!([by("region", 4, 4)]), &[], "SchedulerError");
}
