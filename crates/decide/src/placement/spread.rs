//! The select step: spread constraints by cluster, region, zone and provider (C1).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use api::Placement;
use api::placement::SpreadField;

use super::candidate::Candidate;
use super::failure::Failure;
use super::groups::{Group, choose};
use super::strategy::Strategy;
use crate::affinity::zones;

/// Makes replicas or clusters count more than scores.
const WEIGHT_UNIT: i64 = 1000;

/// How many groups are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub min: usize,
    pub max: usize,
}

impl Bounds {
    const NONE: Bounds = Bounds { min: 0, max: usize::MAX };

    pub fn contain(self, count: usize) -> bool {
        count >= self.min && count <= self.max
    }
}

/// The taken candidates, in the order in which they were taken; `keep` stays in the groups in use if they do.
pub(super) fn select<'a>(
    placement: &Placement,
    candidates: Vec<Candidate<'a>>,
    replicas: i32,
    keep: bool,
) -> Result<Vec<Candidate<'a>>, Failure> {
    let strategy = Strategy::of(placement);
    // Fixed weights name their clusters themselves, so Karmada does not spread them any further.
    if placement.spread_constraints.is_empty() || strategy == Strategy::StaticWeight {
        return Ok(candidates);
    }
    let constraints = constraints(placement);
    let clusters = constraints.get(&SpreadField::Cluster).copied();
    let groups: Vec<(SpreadField, Bounds)> =
        constraints.into_iter().filter(|(field, _)| *field != SpreadField::Cluster).collect();
    let spread =
        Spread { strategy, replicas: i64::from(replicas), clusters: clusters.unwrap_or(Bounds::NONE) };
    match (groups.split_first(), clusters) {
        (Some((first, finer)), _) => spread.by_groups(&candidates, *first, finer, keep),
        (None, Some(_)) => spread.by_cluster(candidates),
        (None, None) => Err(Failure::SpreadByLabel),
    }
}

/// The bounds per field; regions come first, as they do in Karmada. `maxGroups` 0 is no bound (C1).
fn constraints(placement: &Placement) -> BTreeMap<SpreadField, Bounds> {
    let constraints = placement.spread_constraints.iter().filter_map(|constraint| {
        let field = match constraint.spread_by_field {
            None if constraint.spread_by_label.is_empty() => SpreadField::Cluster,
            field => field?,
        };
        let count = |number: i64| usize::try_from(number).ok().filter(|number| *number > 0);
        let min = count(constraint.min_groups).unwrap_or(0);
        Some((field, Bounds { min, max: count(constraint.max_groups).unwrap_or(usize::MAX) }))
    });
    constraints.collect()
}

struct Spread {
    strategy: Strategy,
    replicas: i64,
    clusters: Bounds,
}

impl Spread {
    /// The first ones in order; if they have too little room, roomier ones in their place, from the last on.
    fn by_cluster<'a>(&self, mut candidates: Vec<Candidate<'a>>) -> Result<Vec<Candidate<'a>>, Failure> {
        self.enough(SpreadField::Cluster, candidates.len(), self.clusters.min)?;
        let count = candidates.len().min(self.clusters.max);
        let mut rest = candidates.split_off(count);
        if self.strategy == Strategy::Duplicated {
            return Ok(candidates);
        }
        let mut room: i64 = candidates.iter().map(Candidate::available).sum();
        for position in (0..count).rev() {
            if room >= self.replicas {
                break;
            }
            let own = candidates[position].available();
            let roomiest = (0..rest.len()).min_by_key(|other| (Reverse(rest[*other].available()), *other));
            if let Some(other) = roomiest.filter(|other| rest[*other].available() > own) {
                room += rest[other].available() - own;
                std::mem::swap(&mut candidates[position], &mut rest[other]);
            }
        }
        match room >= self.replicas {
            true => Ok(candidates),
            false => Err(Failure::TooLittleRoom { clusters: count, available: room }),
        }
    }

    /// Groups first; then the best cluster of each, clusters for the finer fields, and the best of the rest.
    fn by_groups<'a>(
        &self,
        candidates: &[Candidate<'a>],
        (field, bounds): (SpreadField, Bounds),
        finer: &[(SpreadField, Bounds)],
        keep: bool,
    ) -> Result<Vec<Candidate<'a>>, Failure> {
        // What follows the clusters is judged again and again. Karmada weighs the groups anew each time, and
        // the room a workload takes up itself can tip the scales; here the groups in use stay while they do.
        if keep {
            let mut taken = Taken::new((field, bounds), finer);
            taken.take(candidates, |_, candidate| candidate.is_used());
            if let Ok(kept) = taken.filled(candidates, field, self.clusters.max).checked(self.clusters.min) {
                return Ok(kept);
            }
        }
        let members = members(candidates, field);
        self.enough(field, members.len(), bounds.min)?;
        let groups = members.iter().map(|(name, clusters)| Group {
            name,
            count: clusters.len(),
            weight: self.weight(clusters, bounds.min),
        });
        let chosen = choose(groups.collect(), bounds, self.clusters.min)
            .ok_or(Failure::TooFewInGroups { field, need: self.clusters.min })?;
        // One cluster of each group is taken even if that is more than the bound on clusters, as in Karmada.
        let mut taken = Taken::new((field, bounds), finer);
        for group in &chosen {
            taken.take(&members[group.name], |taken, _| !taken.has(field, group.name));
        }
        for (finer, bounds) in finer {
            let wanted = |taken: &Taken, candidate: &Candidate| {
                taken.count(*finer) < bounds.min && taken.adds(*finer, candidate)
            };
            chosen.iter().for_each(|group| taken.take(&members[group.name], wanted));
        }
        taken.filled(candidates, field, self.clusters.max).checked(self.clusters.min)
    }

    /// How good a group is: what it can hold of its share counts first, then what runs there already.
    fn weight(&self, clusters: &[Candidate], groups_min: usize) -> i64 {
        if self.strategy == Strategy::Duplicated {
            let fit = clusters.iter().filter(|candidate| candidate.available() >= self.replicas);
            let (count, score) = fit.fold((0, 0), |(count, score), c| (count + 1, score + c.score));
            return if count == 0 { 0 } else { WEIGHT_UNIT * count + score / count };
        }
        let groups_min = groups_min.max(1);
        let share = (self.replicas + groups_min as i64 - 1) / groups_min as i64;
        let (mut room, mut score, mut walked) = (0, 0, 0);
        for candidate in clusters {
            room += candidate.available();
            score += candidate.score;
            walked += 1;
            if walked >= groups_min.max(self.clusters.min) && room >= share {
                break;
            }
        }
        match room < share {
            true => WEIGHT_UNIT * room + score / clusters.len().max(1) as i64,
            false => WEIGHT_UNIT * share + score / walked.max(1) as i64,
        }
    }

    fn enough(&self, field: SpreadField, have: usize, need: usize) -> Result<(), Failure> {
        if have < need { Err(Failure::TooFewGroups { field, have, need }) } else { Ok(()) }
    }
}

/// Clusters taken so far, and the groups they are in.
struct Taken<'a> {
    clusters: Vec<Candidate<'a>>,
    names: BTreeSet<&'a str>,
    groups: BTreeMap<SpreadField, (Bounds, BTreeSet<&'a str>)>,
}

impl<'a> Taken<'a> {
    fn new(first: (SpreadField, Bounds), finer: &[(SpreadField, Bounds)]) -> Self {
        let fields = std::iter::once(&first).chain(finer);
        let groups = fields.map(|(field, bounds)| (*field, (*bounds, BTreeSet::new()))).collect();
        Taken { clusters: Vec::new(), names: BTreeSet::new(), groups }
    }

    fn count(&self, field: SpreadField) -> usize {
        self.groups.get(&field).map_or(0, |(_, names)| names.len())
    }

    fn has(&self, field: SpreadField, name: &str) -> bool {
        self.groups.get(&field).is_some_and(|(_, names)| names.contains(name))
    }

    fn adds(&self, field: SpreadField, candidate: &Candidate) -> bool {
        group_names(candidate, field).any(|name| !self.has(field, name))
    }

    /// Takes each that is wanted when its turn comes, is not taken yet, and breaks no upper bound.
    fn take(&mut self, from: &[Candidate<'a>], wanted: impl Fn(&Self, &Candidate<'a>) -> bool) {
        for candidate in from {
            if self.may_take(candidate) && wanted(self, candidate) {
                for (field, (_, names)) in &mut self.groups {
                    names.extend(group_names(candidate, *field));
                }
                self.names.insert(candidate.name());
                self.clusters.push(*candidate);
            }
        }
    }

    /// Adds what opens no further group of the field and breaks no upper bound.
    fn filled(mut self, candidates: &[Candidate<'a>], field: SpreadField, clusters_max: usize) -> Self {
        self.take(candidates, |taken, candidate| {
            taken.clusters.len() < clusters_max && !taken.adds(field, candidate)
        });
        self
    }

    fn may_take(&self, candidate: &Candidate<'a>) -> bool {
        !self.names.contains(candidate.name())
            && self.groups.iter().all(|(field, (bounds, names))| {
                let new = group_names(candidate, *field).filter(|name| !names.contains(name)).count();
                names.len() + new <= bounds.max
            })
    }

    fn checked(self, clusters_min: usize) -> Result<Vec<Candidate<'a>>, Failure> {
        let short = self.groups.iter().find(|(_, (bounds, names))| names.len() < bounds.min);
        if let Some((field, (bounds, names))) = short {
            return Err(Failure::TooFewGroups { field: *field, have: names.len(), need: bounds.min });
        }
        let have = self.clusters.len();
        match have < clusters_min || have == 0 {
            true => {
                Err(Failure::TooFewGroups { field: SpreadField::Cluster, have, need: clusters_min.max(1) })
            }
            false => Ok(self.clusters),
        }
    }
}

/// The candidates of each group, in their order.
fn members<'a>(candidates: &[Candidate<'a>], field: SpreadField) -> BTreeMap<&'a str, Vec<Candidate<'a>>> {
    let mut members: BTreeMap<&'a str, Vec<Candidate<'a>>> = BTreeMap::new();
    for candidate in candidates {
        for name in group_names(candidate, field) {
            members.entry(name).or_default().push(*candidate);
        }
    }
    members
}

fn group_names<'a>(candidate: &Candidate<'a>, field: SpreadField) -> impl Iterator<Item = &'a str> {
    let spec = &candidate.cluster.spec;
    let names: &'a [String] = match field {
        SpreadField::Cluster => std::slice::from_ref(&candidate.cluster.metadata.name),
        SpreadField::Region => std::slice::from_ref(&spec.region),
        SpreadField::Provider => std::slice::from_ref(&spec.provider),
        SpreadField::Zone => zones(candidate.cluster),
    };
    names.iter().map(String::as_str)
}
