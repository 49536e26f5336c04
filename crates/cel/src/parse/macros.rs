//! Macro expansion at parse time, because macros introduce variables of their own.

use super::Parser;
use crate::ast::{Access, Expr, Fold, FoldKind, Node};
use crate::issue::Issue;

impl Parser {
    /// `has(a.b)`.
    pub(super) fn presence(&self, args: Vec<Expr>, at: usize) -> Result<Expr, Issue> {
        let place = args.first().map_or(at, |arg| arg.at);
        let invalid = Issue::new(place, "invalid argument to has() macro".to_owned());
        let mut args = args.into_iter();
        match (args.next().map(|arg| arg.node), args.next()) {
            (Some(Node::Select { operand, field, access: Access::Value }), None) => {
                self.node(at, Node::Select { operand, field, access: Access::Presence })
            }
            _ => Err(invalid),
        }
    }

    /// What a call means if it is a macro.
    pub(super) fn member_macro(
        &self,
        name: &str,
        range: &Expr,
        args: &[Expr],
        at: usize,
    ) -> Result<Option<Expr>, Issue> {
        let Some((kind, variables, has_filter)) = shape(name, args.len()) else { return Ok(None) };
        let variable = |index: usize| match &args[index].node {
            Node::Ident(name) => Ok(name.clone()),
            _ if matches!(name, "map" | "filter") => {
                Err(Issue::new(args[index].at, "argument is not an identifier".to_owned()))
            }
            _ => Err(Issue::new(args[index].at, "argument must be a simple name".to_owned())),
        };
        let second = if variables == 2 { Some(variable(1)?) } else { None };
        let fold = Fold {
            kind,
            range: range.clone(),
            variable: variable(0)?,
            second,
            filter: has_filter.then(|| args[variables].clone()),
            body: args[args.len() - 1].clone(),
        };
        self.node(at, Node::Fold(Box::new(fold))).map(Some)
    }
}

/// Which macro a call is, how many variables it has, and whether it filters before it does anything.
fn shape(name: &str, args: usize) -> Option<(FoldKind, usize, bool)> {
    Some(match (name, args) {
        ("all", 2 | 3) => (FoldKind::All, args - 1, false),
        ("exists", 2 | 3) => (FoldKind::Exists, args - 1, false),
        ("exists_one", 2) => (FoldKind::ExistsOne, 1, false),
        ("existsOne", 2 | 3) => (FoldKind::ExistsOne, args - 1, false),
        ("map", 2 | 3) => (FoldKind::List, 1, args == 3),
        ("filter", 2) => (FoldKind::Filter, 1, false),
        ("transformList", 3 | 4) => (FoldKind::List, 2, args == 4),
        ("transformMap", 3 | 4) => (FoldKind::Map, 2, args == 4),
        ("transformMapEntry", 3 | 4) => (FoldKind::MapEntry, 2, args == 4),
        ("sortBy", 2) => (FoldKind::SortBy, 1, false),
        ("optMap", 2) => (FoldKind::OptionalMap, 1, false),
        ("optFlatMap", 2) => (FoldKind::OptionalFlatMap, 1, false),
        _ => return None,
    })
}
