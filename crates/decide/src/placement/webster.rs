//! Apportionment of seats by votes: Webster's method (Sainte-Laguë), in integers so that no rounding of fractions ever
//! decides.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Who gets the seat when two parties have the same claim and equally many seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// The first by name.
    FirstName,
    /// The last by name.
    LastName,
}

impl Ties {
    /// Karmada's rule: the hash of the template's uid decides, so that not always the same cluster gets more.
    pub fn of(uid: &str) -> Ties {
        let hash = uid
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        if uid.is_empty() || hash & 1 == 0 { Ties::FirstName } else { Ties::LastName }
    }
}

/// Divides the seats among named parties by their votes; the answer has their order. No party gets a seat when there is
/// no vote at all.
pub fn divide(seats: i64, parties: &[(&str, i64)], ties: Ties) -> Vec<i64> {
    let votes: i128 = parties.iter().map(|(_, votes)| i128::from(*votes)).sum();
    if seats <= 0 || votes <= 0 {
        return vec![0; parties.len()];
    }
    let mut given: Vec<i64> =
        parties.iter().map(|(_, own)| certain_seats(seats, *own, votes, parties.len())).collect();
    let ranks = ranks(parties, ties);
    let mut queue: BinaryHeap<Claim> = (0..parties.len())
        .filter(|party| parties[*party].1 > 0)
        .map(|party| Claim { votes: parties[party].1, seats: given[party], rank: ranks[party], party })
        .collect();
    for _ in given.iter().sum::<i64>()..seats {
        let Some(mut first) = queue.peek_mut() else { break };
        first.seats += 1;
        given[first.party] += 1;
    }
    given
}

/// Seats that a party gets in any case, so that a million replicas need no million steps: those whose
/// quotient is above a bound that at most `seats` quotients of all parties can exceed.
fn certain_seats(seats: i64, own: i64, votes: i128, parties: usize) -> i64 {
    let parties = i128::try_from(parties).unwrap_or(i128::MAX);
    let scaled = i128::from(own).saturating_mul(2 * i128::from(seats) - parties);
    if scaled <= 0 {
        return 0;
    }
    i64::try_from(((scaled - 1) / votes + 1) / 2).unwrap_or(i64::MAX)
}

/// Places in the order in which ties are decided; the lower place wins.
fn ranks(parties: &[(&str, i64)], ties: Ties) -> Vec<usize> {
    let mut order: Vec<usize> = (0..parties.len()).collect();
    order.sort_by_key(|party| parties[*party].0);
    if ties == Ties::LastName {
        order.reverse();
    }
    let mut ranks = vec![0; parties.len()];
    for (rank, party) in order.into_iter().enumerate() {
        ranks[party] = rank;
    }
    ranks
}

/// A party's claim to the next seat.
#[derive(PartialEq, Eq)]
struct Claim {
    votes: i64,
    seats: i64,
    rank: usize,
    party: usize,
}

impl Ord for Claim {
    /// The greatest quotient `votes / (2 · seats + 1)` is first, then who has fewer seats, then the name.
    fn cmp(&self, other: &Claim) -> Ordering {
        let mine = i128::from(self.votes) * (2 * i128::from(other.seats) + 1);
        let theirs = i128::from(other.votes) * (2 * i128::from(self.seats) + 1);
        mine.cmp(&theirs).then(other.seats.cmp(&self.seats)).then(other.rank.cmp(&self.rank))
    }
}

impl PartialOrd for Claim {
    fn partial_cmp(&self, other: &Claim) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(seats: i64, votes: &[i64], uid: &str, expected: &[i64]) {
        let names = ["m1", "m2", "m3", "m4"];
        let parties: Vec<_> = names.into_iter().zip(votes.iter().copied()).collect();
        assert_eq!(divide(seats, &parties, Ties::of(uid)), expected, "{seats} seats, votes {votes:?}");
    }

    #[test]
    fn seats_follow_the_votes() {
        check(7, &[1, 1, 1], "", &[3, 2, 2]);
        check(7, &[1, 1, 1], "a", &[3, 2, 2]);
        check(7, &[1, 1, 1], "b", &[2, 2, 3]);
        check(8, &[1, 1, 1], "", &[3, 3, 2]);
        check(8, &[1, 1, 1], "b", &[2, 3, 3]);
        check(10, &[3, 2, 1], "", &[5, 3, 2]);
        check(5, &[0, 0], "", &[0, 0]);
        check(0, &[1, 2], "", &[0, 0]);
        check(2_000_000_000, &[1, 1, 2], "", &[500_000_000, 500_000_000, 1_000_000_000]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn the_short_cut_gives_what_counting_one_by_one_gives(
            votes in prop::collection::vec(0_i64..200, 1..9), seats in 0_i64..300, last in any::<bool>(),
        ) {
            let names: Vec<String> = (0..votes.len()).map(|number| format!("m{number}")).collect();
            let parties: Vec<_> = names.iter().map(String::as_str).zip(votes.iter().copied()).collect();
            let ties = if last { Ties::LastName } else { Ties::FirstName };
            let ranks = ranks(&parties, ties);
            let mut slow = vec![0; votes.len()];
            if votes.iter().sum::<i64>() > 0 {
                for _ in 0..seats {
                    let next = (0..votes.len()).max_by_key(|party| Claim {
                        votes: votes[*party], seats: slow[*party], rank: ranks[*party], party: *party,
                    }).expect("a party");
                    slow[next] += 1;
                }
            }
            prop_assert_eq!(divide(seats, &parties, ties), slow);
        }
    }
}
