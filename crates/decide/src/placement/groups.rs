//! Chooses topology groups (regions, zones or providers) by weight within `minGroups` and `maxGroups`, such that
//! together they have enough clusters. Knows nothing of clusters beyond their number.

use std::cmp::Reverse;

use super::spread::Bounds;

/// Steps after which the exact search gives way to a simpler rule, so that hundreds of groups cost no more.
const STEPS_MAX: usize = 20_000;

/// A group to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group<'a> {
    pub name: &'a str,
    /// Clusters in it.
    pub count: usize,
    pub weight: i64,
}

/// The chosen groups, the weightiest first; none if no choice satisfies the bounds.
///
/// Among the sets that are closed as soon as they satisfy the bounds, the weightiest wins, then the one
/// with most clusters, then the one found first; a smaller set that is its beginning wins over it.
pub(super) fn choose<'a>(
    mut groups: Vec<Group<'a>>,
    bounds: Bounds,
    clusters_min: usize,
) -> Option<Vec<Group<'a>>> {
    groups.sort_by_key(|group| (group.count, Reverse(group.weight), group.name));
    let search = Search { groups: &groups, bounds, clusters_min };
    let mut best = match search.exhaustive() {
        Some(found) => found?,
        None => return search.by_weight(),
    };
    best.sort_by_key(|index| (Reverse(groups[*index].weight), groups[*index].name));
    let shortest = (1..=best.len()).find(|length| search.is_found(&best[..*length])).unwrap_or(best.len());
    Some(best[..shortest].iter().map(|index| groups[*index]).collect())
}

struct Search<'s, 'a> {
    groups: &'s [Group<'a>],
    bounds: Bounds,
    clusters_min: usize,
}

impl<'a> Search<'_, 'a> {
    fn closes(&self, length: usize, clusters: usize) -> bool {
        clusters >= self.clusters_min && self.bounds.contain(length)
    }

    /// The best set by looking at all of them, or `None` when there are too many.
    fn exhaustive(&self) -> Option<Option<Vec<usize>>> {
        let mut best: Option<((i64, usize), Vec<usize>)> = None;
        let (mut path, mut clusters, mut next) = (Vec::new(), 0, 0);
        for _ in 0..STEPS_MAX {
            if self.closes(path.len(), clusters) {
                let rank = (path.iter().map(|index: &usize| self.groups[*index].weight).sum(), clusters);
                if best.as_ref().is_none_or(|(known, _)| rank > *known) {
                    best = Some((rank, path.clone()));
                }
            } else if path.len() < self.bounds.max && next < self.groups.len() {
                path.push(next);
                clusters += self.groups[next].count;
                next += 1;
                continue;
            }
            let Some(last) = path.pop() else { return Some(best.map(|(_, path)| path)) };
            clusters -= self.groups[last].count;
            next = last + 1;
        }
        None
    }

    /// True for a set the exhaustive search comes across: it satisfies the bounds, and no beginning of it does.
    fn is_found(&self, set: &[usize]) -> bool {
        let mut order = set.to_vec();
        order.sort_unstable();
        let mut clusters = 0;
        for (position, index) in order.iter().enumerate() {
            if self.closes(position, clusters) {
                return false;
            }
            clusters += self.groups[*index].count;
        }
        self.closes(order.len(), clusters)
    }

    /// As few groups as possible by weight; if they have too few clusters, as many as allowed by size.
    fn by_weight(&self) -> Option<Vec<Group<'a>>> {
        let take = |order: &[Group<'a>]| {
            let lengths = self.bounds.min..=self.bounds.max.min(order.len());
            let clusters = |length: usize| order[..length].iter().map(|group| group.count).sum();
            lengths
                .into_iter()
                .find(|length| self.closes(*length, clusters(*length)))
                .map(|l| order[..l].to_vec())
        };
        let mut order = self.groups.to_vec();
        order.sort_by_key(|group| (Reverse(group.weight), group.name));
        take(&order).or_else(|| {
            order.sort_by_key(|group| (Reverse(group.count), Reverse(group.weight), group.name));
            take(&order)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        groups: &[(&str, usize, i64)],
        bounds: (usize, usize),
        clusters_min: usize,
        expected: Option<&[&str]>,
    ) {
        let groups =
            groups.iter().map(|(name, count, weight)| Group { name, count: *count, weight: *weight });
        let bounds = Bounds { min: bounds.0, max: bounds.1 };
        let chosen = choose(groups.collect(), bounds, clusters_min);
        let names = chosen.map(|groups| groups.iter().map(|group| group.name).collect::<Vec<_>>());
        assert_eq!(names.as_deref(), expected);
    }

    #[test]
    fn the_weightiest_set_wins_and_its_beginning_if_that_suffices() {
        let three = [("r1", 2, 2000), ("r2", 1, 1000), ("r3", 1, 1000)];
        check(&three, (2, 2), 2, Some(&["r1", "r2"]));
        check(&three, (1, 3), 4, Some(&["r1", "r2", "r3"]));
        check(&three, (1, 3), 1, Some(&["r1"]));
        check(&three, (4, 4), 1, None);
        check(&three, (1, 2), 4, None);
        check(&[("a", 1, 10), ("b", 1, 20), ("c", 5, 5)], (1, 3), 5, Some(&["b", "a", "c"]));
        check(&[("a", 1, 1), ("b", 1, 1), ("c", 5, 50)], (1, 3), 5, Some(&["c"]));
    }

    #[test]
    fn hundreds_of_groups_are_chosen_from_by_weight() {
        let names: Vec<String> = (0..400).map(|number| format!("g{number:03}")).collect();
        let groups: Vec<_> =
            names.iter().enumerate().map(|(number, name)| (name.as_str(), 2, number as i64)).collect();
        check(&groups, (3, 5), 4, Some(&["g399", "g398", "g397"]));
        check(&groups, (3, 5), 9, Some(&["g399", "g398", "g397", "g396", "g395"]));
        check(&groups, (3, 5), 11, None);
    }
}
