//! The type checker and cost estimator: checks that names exist and functions fit their arguments, and computes the
//! result type and the maximum cost, without evaluating anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ast::{Access, Expr, Literal, Node};
use crate::functions::Hooks;
use crate::issue::Issue;
use crate::signatures;
use crate::time_text;
use crate::types::Type;

mod cost;
mod fold;
mod unify;

/// Which variables an expression may use, and what the library needs of outside.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Variables and their types.
    pub variables: BTreeMap<String, Type>,
    /// What the library needs of outside.
    pub hooks: Hooks,
}

/// What is known of an expression before it is evaluated.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub kind: Type,
    /// What evaluating it costs at most.
    pub cost: u64,
    /// How many characters or elements it has at most.
    pub size: u64,
    /// Whether it is a part of a variable, whose type says how large it is.
    pub declared: bool,
}

impl Known {
    fn computed(kind: Type, cost: u64) -> Self {
        let size = kind.computed_size();
        Self { kind, cost, size, declared: false }
    }

    fn declared(kind: Type, cost: u64) -> Self {
        let size = kind.declared_size();
        Self { kind, cost, size, declared: true }
    }

    /// A part of something: declared where the whole is.
    fn part_of(whole: &Known, kind: Type, cost: u64) -> Self {
        match whole.declared {
            true => Self::declared(kind, cost),
            false => {
                let size = kind.computed_size().min(kind.declared_size().max(1));
                Self { kind, cost, size, declared: false }
            }
        }
    }

    /// The type with the size that is known of this very value.
    fn sized(&self) -> Type {
        match &self.kind {
            Type::String(_) => Type::String(self.size),
            Type::Bytes(_) => Type::Bytes(self.size),
            Type::List(element, _) => Type::List(element.clone(), self.size),
            Type::Map(key, value, _) => Type::Map(key.clone(), value.clone(), self.size),
            other => other.clone(),
        }
    }
}

/// One look at an expression.
pub(crate) struct Checker<'e> {
    environment: &'e Environment,
    scope: Vec<(String, Known)>,
    pub issues: Vec<Issue>,
    /// The variables that the expression uses.
    pub used: BTreeSet<String>,
}

/// Upper bound on reported issues.
const ISSUES_MAX: usize = 20;

impl<'e> Checker<'e> {
    pub fn new(environment: &'e Environment) -> Self {
        Self { environment, scope: Vec::new(), issues: Vec::new(), used: BTreeSet::new() }
    }

    fn issue(&mut self, at: usize, message: String) {
        if self.issues.len() < ISSUES_MAX {
            self.issues.push(Issue::new(at, message));
        }
    }

    pub fn check(&mut self, expr: &Expr) -> Known {
        match &expr.node {
            Node::Literal(literal) => constant(literal),
            Node::Ident(name) => self.name(name, expr.at),
            Node::Select { operand, field, access } => self.select(operand, field, *access, expr.at),
            Node::Call { function, target, args } => self.call(function, target.as_deref(), args, expr.at),
            Node::And(terms) | Node::Or(terms) => self.logical(terms),
            Node::If(parts) => self.conditional(parts, expr.at),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Fold(fold) => self.fold(fold),
        }
    }

    fn name(&mut self, name: &str, at: usize) -> Known {
        if let Some((_, known)) = self.scope.iter().rev().find(|(known, _)| known == name) {
            return Known { cost: 1, ..known.clone() };
        }
        if let Some(kind) = self.environment.variables.get(name) {
            self.used.insert(name.to_owned());
            return Known::declared(kind.clone(), 1);
        }
        if signatures::type_name(name).is_none() {
            self.issue(at, format!("undeclared reference to '{name}' (in container '')"));
            return Known::computed(Type::ANY, 1);
        }
        Known::computed(Type::Type, 1)
    }

    /// A variable whose name has a dot in it.
    fn dotted(&mut self, operand: &Expr, field: &str, access: Access) -> Option<Known> {
        let Node::Ident(space) = &operand.node else { return None };
        if access != Access::Value || self.scope.iter().any(|(known, _)| known == space) {
            return None;
        }
        let name = format!("{space}.{field}");
        let kind = self.environment.variables.get(&name)?.clone();
        self.used.insert(name);
        Some(Known::declared(kind, 1))
    }

    fn select(&mut self, operand: &Expr, field: &str, access: Access, at: usize) -> Known {
        if let Some(known) = self.dotted(operand, field, access) {
            return known;
        }
        let operand = self.check(operand);
        let (inner, optional) = match &operand.kind {
            Type::Optional(inner) => (Type::clone(inner), true),
            kind => (kind.clone(), false),
        };
        let (kind, step) = match &inner {
            Type::Dyn(_) => (Type::ANY, 0),
            Type::Map(_, value, _) => (Type::clone(value), 1),
            Type::Object(object) => match object.fields.get(field) {
                Some(field) => (field.kind.clone(), 1),
                None => {
                    self.issue(at, format!("undefined field '{field}'"));
                    (Type::ANY, 1)
                }
            },
            other => {
                self.issue(at, format!("type '{other}' does not support field selection"));
                (Type::ANY, 1)
            }
        };
        match (access, optional) {
            (Access::Presence, _) => Known::computed(Type::Bool, operand.cost),
            (Access::Value, false) => Known::part_of(&operand, kind, operand.cost.saturating_add(step)),
            _ => Known::computed(Type::Optional(Arc::new(kind)), operand.cost.saturating_add(1)),
        }
    }

    fn call(&mut self, function: &str, target: Option<&Expr>, args: &[Expr], at: usize) -> Known {
        let target = target.map(|target| self.check(target));
        let given: Vec<Known> = args
            .iter()
            .map(|arg| match &arg.node {
                // What is printed need not be of one type.
                Node::List(items) if function == "format" => self.mixed(items),
                _ => self.check(arg),
            })
            .collect();
        self.check_constants(function, args);
        let ways = signatures::of(function);
        if ways.is_empty() {
            self.issue(at, format!("undeclared reference to '{function}' (in container '')"));
            return Known::computed(Type::ANY, 1);
        }
        let results: Vec<Type> =
            ways.iter().filter_map(|way| unify::result(way, target.as_ref(), &given)).collect();
        let kind = match results.split_first() {
            Some((first, rest)) if rest.iter().all(|other| other.same(first)) => first.clone(),
            Some(_) => Type::ANY,
            None => {
                let shown: Vec<String> = given.iter().map(|arg| arg.kind.to_string()).collect();
                let before = target.as_ref().map(|target| format!("{}.", target.kind)).unwrap_or_default();
                let applied = format!("{before}({})", shown.join(", "));
                self.issue(at, format!("found no matching overload for '{function}' applied to '{applied}'"));
                Type::ANY
            }
        };
        cost::call(function, target.as_ref(), &given, kind, args)
    }

    /// Constants that some functions read are read here, so that a mistake is found before it matters.
    fn check_constants(&mut self, function: &str, args: &[Expr]) {
        let Some(last) = args.last() else { return };
        let Node::Literal(Literal::String(text)) = &last.node else { return };
        let invalid = match function {
            "matches" | "find" | "findAll" => (self.environment.hooks.pattern)(text).is_err(),
            "duration" => time_text::duration(text).is_none(),
            "timestamp" => time_text::timestamp(text).is_none(),
            _ => false,
        };
        if invalid {
            self.issue(last.at, format!("invalid {function} argument"));
        }
    }

    fn logical(&mut self, terms: &[Expr]) -> Known {
        let mut cost = 0_u64;
        for term in terms {
            let known = self.check(term);
            self.expect_bool(&known, term.at);
            cost = cost.saturating_add(known.cost);
        }
        Known::computed(Type::Bool, cost)
    }

    fn expect_bool(&mut self, known: &Known, at: usize) {
        if !matches!(known.kind, Type::Bool | Type::Dyn(_)) {
            self.issue(at, format!("expected type 'bool' but found '{}'", known.kind));
        }
    }

    fn conditional(&mut self, parts: &[Expr; 3], at: usize) -> Known {
        let [condition, yes, no] = parts.each_ref().map(|part| self.check(part));
        let fits =
            matches!(condition.kind, Type::Bool | Type::Dyn(_)) && unify::compatible(&yes.kind, &no.kind);
        if !fits {
            let shown = format!("({}, {}, {})", condition.kind, yes.kind, no.kind);
            self.issue(at, format!("found no matching overload for '_?_:_' applied to '{shown}'"));
        }
        Known {
            kind: if yes.kind.is_dyn() || no.kind.is_dyn() { Type::ANY } else { yes.kind },
            cost: condition.cost.saturating_add(yes.cost.max(no.cost)),
            size: yes.size.max(no.size),
            declared: false,
        }
    }

    fn list(&mut self, items: &[(Expr, bool)]) -> Known {
        let mut element: Option<Type> = None;
        let mut cost = 10_u64;
        for (item, optional) in items {
            let known = self.check(item);
            cost = cost.saturating_add(known.cost);
            let kind = self.unwrapped(&known, *optional, item.at);
            element = Some(self.joined(element, kind, item.at));
        }
        let size = items.len() as u64;
        let kind = Type::List(Arc::new(element.unwrap_or(Type::ANY)), size);
        Known { kind, cost, size, declared: false }
    }

    fn mixed(&mut self, items: &[(Expr, bool)]) -> Known {
        let cost = items.iter().fold(10_u64, |cost, (item, _)| cost.saturating_add(self.check(item).cost));
        let size = items.len() as u64;
        Known { kind: Type::List(Arc::new(Type::ANY), size), cost, size, declared: false }
    }

    fn map(&mut self, entries: &[(Expr, Expr, bool)]) -> Known {
        let (mut key, mut value): (Option<Type>, Option<Type>) = (None, None);
        let mut cost = 30_u64;
        for (one, two, optional) in entries {
            let (known_key, known_value) = (self.check(one), self.check(two));
            cost = cost.saturating_add(known_key.cost).saturating_add(known_value.cost);
            key = Some(self.joined(key, known_key.sized(), one.at));
            let kind = self.unwrapped(&known_value, *optional, two.at);
            value = Some(self.joined(value, kind, two.at));
        }
        let size = entries.len() as u64;
        let or_any = |kind: Option<Type>| Arc::new(kind.unwrap_or(Type::ANY));
        Known { kind: Type::Map(or_any(key), or_any(value), size), cost, size, declared: false }
    }

    fn unwrapped(&mut self, known: &Known, optional: bool, at: usize) -> Type {
        match (&known.kind, optional) {
            (_, false) => known.sized(),
            (Type::Optional(inner), true) => Type::clone(inner),
            (Type::Dyn(_), true) => Type::ANY,
            (other, true) => {
                self.issue(at, format!("expected type 'optional_type({other})' but found '{other}'"));
                Type::ANY
            }
        }
    }

    /// The elements of one literal are of one type.
    fn joined(&mut self, before: Option<Type>, next: Type, at: usize) -> Type {
        let Some(before) = before else { return next };
        if before.is_dyn() || next.is_dyn() {
            return Type::ANY;
        }
        if !unify::compatible(&before, &next) {
            self.issue(at, format!("expected type '{before}' but found '{next}'"));
            return before;
        }
        match (&before, &next) {
            (Type::String(one), Type::String(two)) => Type::String(*one.max(two)),
            _ => before,
        }
    }
}

fn constant(literal: &Literal) -> Known {
    let (kind, size) = match literal {
        Literal::Null => (Type::Null, 1),
        Literal::Bool(_) => (Type::Bool, 1),
        Literal::Int(_) => (Type::Int, 1),
        Literal::Uint(_) => (Type::Uint, 1),
        Literal::Double(_) => (Type::Double, 1),
        Literal::String(text) => (Type::TEXT, text.chars().count() as u64),
        Literal::Bytes(bytes) => (Type::Bytes(bytes.len() as u64), bytes.len() as u64),
        Literal::Type(_) => (Type::Type, 1),
    };
    Known { kind, cost: 0, size, declared: false }
}
