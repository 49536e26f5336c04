//! Cost estimation of calls, and size estimation of their results, as Kubernetes does it: from the declared sizes of
//! the arguments.

use super::Known;
use crate::ast::{Expr, Literal, Node};
use crate::authorizer::{CHECK_COST, selector_cost};
use crate::budget::tenth;
use crate::types::{Type, UNBOUNDED};

/// What is known of a call's result.
pub(super) fn call(
    function: &str,
    target: Option<&Known>,
    args: &[Known],
    kind: Type,
    exprs: &[Expr],
) -> Known {
    let given: Vec<&Known> = target.into_iter().chain(args).collect();
    let before = given.iter().fold(0_u64, |cost, known| cost.saturating_add(known.cost));
    let size = |index: usize| given.get(index).map_or(1, |known| known.size);
    let own = own_cost(function, &given);
    let cost = before.saturating_add(own);
    if matches!(function, "_[_]")
        && let Some(whole) = given.first()
    {
        return Known::part_of(whole, kind, cost);
    }
    let result = match (function, &kind) {
        ("_+_", Type::String(_) | Type::Bytes(_) | Type::List(..) | Type::Dyn(_)) => {
            size(0).saturating_add(size(1))
        }
        ("lowerAscii" | "upperAscii" | "trim" | "substring" | "split" | "find" | "findAll", _) => size(0),
        ("slice" | "distinct" | "reverse" | "sort" | "dyn", _) => size(0),
        ("charAt", _) => 1,
        ("replace", _) => replaced(size(0), size(1), size(2)),
        ("join", _) => joined(&given),
        ("string", Type::String(_))
            if matches!(given.first().map(|known| &known.kind), Some(Type::Bytes(_))) =>
        {
            size(0)
        }
        ("bytes", _) => size(0).saturating_mul(4),
        ("strings.quote", _) => size(0).saturating_mul(2).saturating_add(2),
        ("lists.range", _) => match exprs.first().map(|expr| &expr.node) {
            Some(Node::Literal(Literal::Int(number))) => u64::try_from(*number).unwrap_or(0),
            _ => UNBOUNDED,
        },
        _ => kind.computed_size(),
    };
    Known { kind, cost, size: result, declared: false }
}

fn own_cost(function: &str, given: &[&Known]) -> u64 {
    let size = |index: usize| given.get(index).map_or(1, |known| known.size);
    let kind = |index: usize| given.get(index).map(|known| &known.kind);
    let least = tenth(size(0).min(size(1)));
    match function {
        "contains" => tenth(size(0)).saturating_mul(tenth(size(1))),
        "startsWith" | "endsWith" => tenth(size(1)),
        "matches" | "find" | "findAll" => {
            tenth(size(0).saturating_add(1)).saturating_mul(size(1).div_ceil(4))
        }
        "_==_" | "_!=_" => least,
        "_<_" | "_<=_" | "_>_" | "_>=_" => match kind(0) {
            Some(Type::String(_) | Type::Bytes(_)) => least,
            Some(Type::Dyn(_)) => least.max(1),
            _ => 1,
        },
        "@in" => match kind(1) {
            Some(Type::Map(..)) => 1,
            _ => size(1),
        },
        "_+_" => match kind(0) {
            Some(Type::String(_) | Type::Bytes(_) | Type::Dyn(_)) => tenth(size(0).saturating_add(size(1))),
            _ => 1,
        },
        "isSorted" | "sum" | "min" | "max" | "indexOf" | "lastIndexOf" => match kind(0) {
            Some(Type::List(element, _)) => size(0).saturating_mul(element_cost(element)),
            _ => tenth(size(0)),
        },
        "lowerAscii" | "upperAscii" | "substring" | "trim" | "url" | "isURL" | "ip" | "isIP" | "cidr"
        | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" | "format" | "strings.quote"
        | "bytes" => tenth(size(0)),
        "string" if matches!(kind(0), Some(Type::Bytes(_))) => tenth(size(0)),
        "replace" | "split" | "ip.isCanonical" => size(0).saturating_mul(2).div_ceil(10),
        "join" => tenth(joined(given)),
        "sets.contains" | "sets.intersects" => size(0).saturating_mul(size(1)).max(1),
        "sets.equivalent" => size(0).saturating_mul(size(1)).saturating_mul(2).max(1),
        "distinct" => size(0).saturating_mul(size(0)).max(1),
        "sort" => size(0).saturating_mul(size(0)).saturating_mul(2).saturating_add(10),
        "reverse" | "flatten" => size(0).max(1),
        "validate" => tenth(size(1).saturating_add(1)).saturating_mul(32),
        "check" => CHECK_COST,
        "fieldSelector" | "labelSelector" => selector_cost(size(1)),
        "containsIP" | "containsCIDR" => tenth(32).saturating_add(tenth(size(1))),
        _ => 1,
    }
}

fn element_cost(element: &Type) -> u64 {
    match element {
        Type::String(size) | Type::Bytes(size) => tenth(*size).saturating_add(1),
        _ => 1,
    }
}

/// The longest text that replacing can make.
fn replaced(size: u64, from: u64, to: u64) -> u64 {
    match from {
        0 => size.saturating_add(1).saturating_mul(to).saturating_add(size),
        from if from < UNBOUNDED && to <= from => size,
        UNBOUNDED => size.saturating_add(1).saturating_mul(to).saturating_add(size),
        from => size.div_ceil(from).saturating_mul(to),
    }
}

fn joined(given: &[&Known]) -> u64 {
    let Some(list) = given.first() else { return 0 };
    let element = match &list.kind {
        Type::List(element, _) => match **element {
            Type::String(size) => size,
            _ => UNBOUNDED,
        },
        _ => UNBOUNDED,
    };
    let between = given.get(1).map_or(0, |by| by.size.saturating_mul(list.size.saturating_sub(1)));
    list.size.saturating_mul(element).saturating_add(between)
}
