//! Replica division among the chosen clusters. The whole arithmetic is part of the answer.

use std::cmp::Reverse;
use std::fmt;

use api::placement::{StaticWeight, WeightPreference};
use api::{BindingSpec, Placement};
use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::failure::Failure;
use super::strategy::Strategy;
use super::trigger::is_workload;
use super::webster::{Ties, divide};
use crate::affinity::cluster_matches;
use crate::interpret;

/// How the replicas were divided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Division {
    /// By which rule.
    pub strategy: Strategy,
    /// Starting from what.
    pub mode: Mode,
    /// How many in all.
    pub replicas: i32,
    /// What each cluster gets, by name.
    pub shares: Vec<Share>,
}

/// What a division starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// There are no replicas to divide: each cluster gets the whole object.
    Whole,
    /// Scaled to zero: it stays where it is, without replicas (C2).
    Zero,
    /// From scratch.
    Fresh,
    /// More than before: only what is new is divided.
    Up,
    /// Fewer than before: each cluster gives in proportion to what it has.
    Down,
    /// As many as before: nothing moves.
    Same,
}

/// What one cluster gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Share {
    /// The cluster.
    pub cluster: String,
    /// By which weight; none when weights did not matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
    /// How many it had.
    pub before: i32,
    /// How many it gets.
    pub replicas: i32,
}

/// How many clusters a sentence names.
const SHARES_TOLD_MAX: usize = 10;

impl fmt::Display for Division {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mode {
            Mode::Whole => write!(formatter, "the whole object to")?,
            Mode::Zero => write!(formatter, "0 replicas in")?,
            mode => {
                let plural = if self.replicas == 1 { "" } else { "s" };
                write!(formatter, "{} replica{plural} {}{mode}:", self.replicas, self.strategy)?;
            }
        }
        for (index, share) in self.shares.iter().take(SHARES_TOLD_MAX).enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(formatter, "{comma} {share}", share = ShareIn(share, self.mode))?;
        }
        match self.shares.len().saturating_sub(SHARES_TOLD_MAX) {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Mode::Whole | Mode::Zero | Mode::Fresh => "",
            Mode::Up => ", dividing only what is new",
            Mode::Down => ", each giving in proportion to what it has",
            Mode::Same => ", nothing moves",
        })
    }
}

/// A share as it is printed in its mode.
struct ShareIn<'a>(&'a Share, Mode);

impl fmt::Display for ShareIn<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShareIn(share, mode) = self;
        formatter.write_str(&share.cluster)?;
        if matches!(mode, Mode::Whole | Mode::Zero) {
            return Ok(());
        }
        write!(formatter, " {}", share.replicas)?;
        match share.weight {
            Some(weight) if *mode == Mode::Up && share.before > 0 => {
                let new = share.replicas - share.before;
                write!(formatter, " ({} + {new}, weight {weight})", share.before)
            }
            Some(weight) => write!(formatter, " (weight {weight})"),
            None => Ok(()),
        }
    }
}

/// Divides the replicas among the chosen candidates; `fresh` forgets what was decided before.
pub(super) fn division(
    spec: &BindingSpec,
    placement: &Placement,
    chosen: &[Candidate],
    fresh: bool,
) -> Result<Division, Failure> {
    let strategy = Strategy::of(placement);
    let task = Task { strategy, replicas: spec.replicas.max(0), fresh, ties: Ties::of(&spec.resource.uid) };
    let mut division = if spec.components.len() > 1 {
        task.whole(chosen)
    } else if task.replicas == 0 {
        task.nothing(chosen, spec)
    } else {
        match strategy {
            Strategy::Duplicated => task.duplicated(chosen),
            Strategy::StaticWeight => task.by_static_weight(chosen, placement),
            Strategy::DynamicWeight | Strategy::Aggregated => task.by_tiers(chosen)?,
        }
    };
    division.shares.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    Ok(division)
}

#[derive(Clone, Copy)]
struct Task {
    strategy: Strategy,
    replicas: i32,
    fresh: bool,
    ties: Ties,
}

impl Task {
    fn answer(&self, mode: Mode, shares: Vec<Share>) -> Division {
        Division { strategy: self.strategy, mode, replicas: self.replicas, shares }
    }

    fn whole(&self, chosen: &[Candidate]) -> Division {
        self.answer(Mode::Whole, chosen.iter().map(|candidate| share(candidate, None, 0)).collect())
    }

    /// A workload without replicas stays in the clusters it is in (C2), and goes to all chosen ones if it is
    /// in none. What has no replicas by nature goes to all chosen ones.
    fn nothing(&self, chosen: &[Candidate], spec: &BindingSpec) -> Division {
        let scales =
            is_workload(spec) || interpret::has_replicas(&spec.resource.api_version, &spec.resource.kind);
        if !scales {
            return self.whole(chosen);
        }
        let here: Vec<&Candidate> = chosen.iter().filter(|candidate| candidate.is_used()).collect();
        let stay = self.strategy != Strategy::Duplicated && !here.is_empty();
        let clusters = if stay { here } else { chosen.iter().collect() };
        self.answer(Mode::Zero, clusters.into_iter().map(|candidate| share(candidate, None, 0)).collect())
    }

    fn duplicated(&self, chosen: &[Candidate]) -> Division {
        let shares = chosen.iter().map(|candidate| share(candidate, None, self.replicas)).collect();
        self.answer(Mode::Fresh, shares)
    }

    /// Always from scratch, whatever there is room for: the weights are an order.
    fn by_static_weight(&self, chosen: &[Candidate], placement: &Placement) -> Division {
        let preference = placement.replica_scheduling.as_ref().and_then(|s| s.weight_preference.as_ref());
        let list =
            preference.map_or(&[][..], |WeightPreference { static_weight_list, .. }| static_weight_list);
        let mut weighted: Vec<(&Candidate, i64)> =
            chosen.iter().map(|candidate| (candidate, weight(candidate, list))).collect();
        match weighted.iter().any(|(_, weight)| *weight > 0) {
            true => weighted.retain(|(_, weight)| *weight > 0),
            false => weighted.iter_mut().for_each(|(_, weight)| *weight = 1),
        }
        self.answer(Mode::Fresh, self.share_out(i64::from(self.replicas), &weighted, false))
    }

    /// Overflow groups take what the groups before them cannot hold.
    fn by_tiers(&self, chosen: &[Candidate]) -> Result<Division, Failure> {
        if chosen.iter().all(|candidate| candidate.tier == 0) {
            return self.by_capacity(chosen);
        }
        let (mut mode, mut shares, mut remaining) = (Mode::Same, Vec::new(), self.replicas);
        let mut tiers: Vec<usize> = chosen.iter().map(|candidate| candidate.tier).collect();
        tiers.sort_unstable();
        tiers.dedup();
        for tier in tiers {
            let members: Vec<Candidate> = chosen.iter().filter(|c| c.tier == tier).copied().collect();
            let room = members.iter().map(Candidate::available).sum::<i64>();
            let replicas = i32::try_from(room).unwrap_or(i32::MAX).min(remaining);
            let part = Task { replicas, ..*self }.by_capacity(&members)?;
            if part.mode != Mode::Same {
                mode = part.mode;
            }
            shares.extend(part.shares);
            remaining -= replicas;
        }
        match remaining {
            0 => Ok(self.answer(mode, shares)),
            _ => Err(Failure::NotEnoughCapacity {
                available: i64::from(self.replicas - remaining),
                wanted: i64::from(self.replicas),
            }),
        }
    }

    fn by_capacity(&self, chosen: &[Candidate]) -> Result<Division, Failure> {
        let assigned: i64 = chosen.iter().map(|candidate| i64::from(candidate.previous)).sum();
        let replicas = i64::from(self.replicas);
        let weigh = |weight: fn(&Candidate) -> i64| chosen.iter().map(|c| (c, weight(c))).collect::<Vec<_>>();
        let (mode, seats, weighted) = if self.fresh {
            (Mode::Fresh, replicas, weigh(|candidate| candidate.available()))
        } else if assigned > replicas {
            let mut given = weigh(|candidate| i64::from(candidate.previous));
            given.sort_by_key(|(candidate, _)| candidate.name());
            (Mode::Down, replicas, given)
        } else if assigned < replicas {
            let mode = if assigned == 0 { Mode::Fresh } else { Mode::Up };
            (mode, replicas - assigned, weigh(|candidate| candidate.allocatable))
        } else {
            let kept = chosen.iter().filter(|c| c.previous > 0).map(|c| share(c, None, c.previous));
            return Ok(self.answer(Mode::Same, kept.collect()));
        };
        let available = weighted.iter().map(|(_, weight)| weight).sum();
        if available < seats {
            return Err(Failure::NotEnoughCapacity { available, wanted: seats });
        }
        let kept = mode == Mode::Up;
        let (weighted, unused) = match self.strategy {
            Strategy::Aggregated => shortest(weighted, seats, !self.fresh && assigned < replicas),
            _ => (weighted, Vec::new()),
        };
        let mut shares = self.share_out(seats, &weighted, kept);
        if kept {
            let used = unused.iter().filter(|(candidate, _)| candidate.previous > 0);
            shares.extend(used.map(|(candidate, _)| share(candidate, None, candidate.previous)));
        }
        Ok(self.answer(mode, shares))
    }

    /// Seats by weight, on top of what was there when `kept`; clusters that end up with none are left out.
    fn share_out(&self, seats: i64, weighted: &[(&Candidate, i64)], kept: bool) -> Vec<Share> {
        let parties: Vec<(&str, i64)> = weighted.iter().map(|(c, weight)| (c.name(), *weight)).collect();
        let given = divide(seats, &parties, self.ties);
        let shares = weighted.iter().zip(given).map(|((candidate, weight), seats)| {
            let base = if kept { i64::from(candidate.previous) } else { 0 };
            let replicas =
                i32::try_from(base + seats).expect("no share is greater than the replicas, an i32");
            share(candidate, Some(*weight), replicas)
        });
        shares.filter(|share| share.replicas > 0).collect()
    }
}

fn share(candidate: &Candidate, weight: Option<i64>, replicas: i32) -> Share {
    Share { cluster: candidate.name().to_owned(), weight, before: candidate.previous, replicas }
}

/// The highest weight of the rules that mean the cluster; 0 if none does.
fn weight(candidate: &Candidate, list: &[StaticWeight]) -> i64 {
    let matching = list.iter().filter(|rule| cluster_matches(&rule.target_cluster, candidate.cluster));
    matching.map(|rule| rule.weight).max().unwrap_or(0).max(0)
}

type Weighted<'c, 'a> = Vec<(&'c Candidate<'a>, i64)>;

/// The fewest clusters that hold the seats, and the others: when scaling up those in use come first, then the
/// heaviest; among equals the order they come in stays.
fn shortest<'c, 'a>(
    mut weighted: Weighted<'c, 'a>,
    seats: i64,
    in_use_first: bool,
) -> (Weighted<'c, 'a>, Weighted<'c, 'a>) {
    weighted.sort_by_key(|(candidate, weight)| (in_use_first && candidate.previous == 0, Reverse(*weight)));
    let mut sum = 0;
    let enough = weighted.iter().position(|(_, weight)| {
        sum += weight;
        sum >= seats
    });
    let unused = weighted.split_off(enough.map_or(weighted.len(), |last| last + 1));
    (weighted, unused)
}
