//! Results of Karmada v1.18.2 for random inputs. Each line of the file beside this one is `strategy constraints
//! room+region,… previous replicas uid fresh = result`, with `-` for nothing.

use super::*;

fn pairs(text: &str, separator: char) -> Vec<(&str, i64)> {
    let number = |text: &str| text.parse::<i64>().expect("a number");
    let pair = |text| str::split_once(text, separator).map(|(name, value)| (name, number(value)));
    text.split(',').filter_map(pair).collect()
}

fn rules(strategy: &str, constraints: &str) -> Value {
    let placement = match strategy.split_once(':') {
        Some((_, weights)) => static_weights(&pairs(weights, '=')),
        None => match strategy {
            "duplicated" => json!({}),
            "dynamic" => dynamic(),
            _ => divided("Aggregated"),
        },
    };
    let constraint = |text: &str| {
        let (field, bounds) = text.split_once(':')?;
        let (min, max) = bounds.split_once('-')?;
        let number = |text: &str| text.parse::<i64>().expect("a number");
        Some(json!({"spreadByField": field, "minGroups": number(min), "maxGroups": number(max)}))
    };
    with(placement, "spreadConstraints", constraints.split(',').filter_map(constraint).collect())
}

fn members(text: &str) -> Vec<Cluster> {
    let member = |(index, text): (usize, &str)| {
        let (room, region) = text.split_at(text.find('r').expect("a region"));
        let mut cluster = cluster(&format!("m{}", index + 1), room.parse().expect("a number"));
        region.clone_into(&mut cluster.spec.region);
        cluster
    };
    text.split(',').enumerate().map(member).collect()
}

#[test]
fn answers_are_those_of_karmada() {
    for line in include_str!("karmada.txt").lines() {
        let (question, expected) = line.split_once(" = ").expect("an answer");
        let parts: Vec<&str> = question.split(' ').collect();
        let [strategy, constraints, clusters, previous, replicas, uid, fresh] = parts[..] else {
            panic!("{line}");
        };
        let mut binding = binding(rules(strategy, constraints), replicas.parse().expect("a number"));
        let previous: Vec<(&str, i32)> =
            pairs(previous, ':').into_iter().map(|(name, count)| (name, count as i32)).collect();
        binding = with_previous(binding, &previous);
        binding.spec.resource.uid = uid.trim_matches('-').to_owned();
        if fresh == "fresh" {
            binding = asked_again(binding);
        }
        let answer = match placement(&binding, &members(clusters), NOW) {
            decided @ Placement::Scheduled(_) => answer(&decided),
            _ => "error".to_owned(),
        };
        assert_eq!(answer, expected, "{line}");
    }
}
