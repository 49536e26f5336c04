//! Type checking and cost estimation of comprehension macros (`all`, `exists`, `map`, `filter`).

use std::sync::Arc;

use super::{Checker, Known};
use crate::ast::{Fold, FoldKind};
use crate::types::Type;

impl Checker<'_> {
    pub(super) fn fold(&mut self, fold: &Fold) -> Known {
        let range = self.check(&fold.range);
        if matches!(fold.kind, FoldKind::OptionalMap | FoldKind::OptionalFlatMap) {
            return self.optional(fold, &range);
        }
        let (key, value) = match &range.kind {
            Type::List(element, _) => (Type::Int, Type::clone(element)),
            Type::Map(key, value, _) => (Type::clone(key), Type::clone(value)),
            Type::Dyn(_) => (Type::ANY, Type::ANY),
            other => {
                let wanted = "cannot be range of a comprehension (must be list, map, or dynamic)";
                self.issue(fold.range.at, format!("expression of type '{other}' {wanted}"));
                (Type::ANY, Type::ANY)
            }
        };
        let depth = self.scope.len();
        let single = if matches!(range.kind, Type::Map(..)) { key.clone() } else { value.clone() };
        match &fold.second {
            Some(second) => {
                self.scope.push((fold.variable.clone(), Known::part_of(&range, key.clone(), 1)));
                self.scope.push((second.clone(), Known::part_of(&range, value, 1)));
            }
            None => self.scope.push((fold.variable.clone(), Known::part_of(&range, single.clone(), 1))),
        }
        let filter = fold.filter.as_ref().map(|filter| (filter.at, self.check(filter)));
        let body = self.check(&fold.body);
        self.scope.truncate(depth);
        if let Some((at, filter)) = &filter {
            self.expect_bool(filter, *at);
        }
        let is_question =
            matches!(fold.kind, FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne | FoldKind::Filter);
        if is_question {
            self.expect_bool(&body, fold.body.at);
        }
        let count = range.size;
        let per_element = per_element(fold.kind, &body, filter.as_ref().map(|(_, filter)| filter));
        let (kind, once) = match fold.kind {
            FoldKind::All | FoldKind::Exists => (Type::Bool, 1),
            FoldKind::ExistsOne => (Type::Bool, 2),
            FoldKind::List => (Type::List(Arc::new(body.sized()), count), 11),
            FoldKind::Map => (Type::Map(Arc::new(key), Arc::new(body.sized()), count), 31),
            FoldKind::MapEntry => (body.kind.clone(), 31),
            FoldKind::SortBy => (
                Type::List(Arc::new(single), count),
                count.saturating_mul(count).saturating_mul(2).saturating_add(21),
            ),
            _ => (Type::List(Arc::new(single), count), 11),
        };
        let cost = range.cost.saturating_add(count.saturating_mul(per_element)).saturating_add(once);
        let size = if matches!(kind, Type::Bool) { 1 } else { count };
        Known { kind, cost, size, declared: false }
    }

    fn optional(&mut self, fold: &Fold, range: &Known) -> Known {
        let inner = match &range.kind {
            Type::Optional(inner) => Type::clone(inner),
            Type::Dyn(_) => Type::ANY,
            other => {
                let macro_name = if fold.kind == FoldKind::OptionalMap { "optMap" } else { "optFlatMap" };
                let message = format!("found no matching overload for '{macro_name}' applied to '{other}'");
                self.issue(fold.range.at, message);
                Type::ANY
            }
        };
        self.scope.push((fold.variable.clone(), Known::part_of(range, inner, 1)));
        let body = self.check(&fold.body);
        self.scope.pop();
        let cost = range.cost.saturating_add(body.cost).saturating_add(12);
        let kind = match (fold.kind, &body.kind) {
            (FoldKind::OptionalMap, kind) => Type::Optional(Arc::new(kind.clone())),
            (_, kind) => kind.clone(),
        };
        Known::computed(kind, cost)
    }
}

/// What one turn of cel's loop costs, beside the number of turns.
fn per_element(kind: FoldKind, body: &Known, filter: Option<&Known>) -> u64 {
    let own = match kind {
        FoldKind::All => 3,
        FoldKind::Exists => 4,
        FoldKind::ExistsOne => 2,
        FoldKind::List => 12,
        FoldKind::Map | FoldKind::MapEntry => 3,
        _ => 13,
    };
    own.max(1_u64).saturating_add(body.cost).saturating_add(filter.map_or(0, |filter| filter.cost))
}
