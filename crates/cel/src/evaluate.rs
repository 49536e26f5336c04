//! The evaluator. Every step is charged before it runs; logical operators absorb errors that the result does not
//! depend on.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::ast::{Access, Expr, Literal, Node};
use crate::authorizer::{AccessCheck, CHECK_COST, Decision};
use crate::budget::{Budget, Failure};
use crate::functions::{self, Hooks};
use crate::signatures;
use crate::value::{Key, List, Map, Text, Value};

mod fold;

const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;

/// Where an expression finds its variables.
pub trait Activation<'a> {
    /// A variable's value.
    fn variable(&self, name: &str) -> Option<Value<'a>>;

    /// A field of a variable whose fields are made when they are asked for.
    fn member(&self, variable: &str, field: &str, budget: &Budget) -> Option<Result<Value<'a>, Failure>> {
        let _ = (variable, field, budget);
        None
    }

    /// A variable whose name has a dot in it.
    fn dotted(&self, variable: &str, field: &str) -> Option<Value<'a>> {
        let _ = (variable, field);
        None
    }

    /// Asks the authorizer whether the user may do this. Without an authorizer the answer is no.
    fn decide(&self, question: &AccessCheck, verb: &str) -> Decision {
        let _ = (question, verb);
        Decision::default()
    }
}

/// One evaluation.
pub(crate) struct Evaluator<'a, 'b> {
    pub activation: &'b dyn Activation<'a>,
    pub budget: &'b Budget,
    pub hooks: Hooks,
    /// The variables of macros, the innermost last.
    pub scope: Vec<(&'a str, Value<'a>)>,
}

impl<'a> Evaluator<'a, '_> {
    pub fn evaluate(&mut self, expr: &'a Expr) -> Result<Value<'a>, Failure> {
        self.budget.enter()?;
        let value = self.value(expr);
        self.budget.leave();
        value
    }

    fn value(&mut self, expr: &'a Expr) -> Result<Value<'a>, Failure> {
        match &expr.node {
            Node::Literal(literal) => Ok(constant(literal)),
            Node::Ident(name) => self.name(name),
            Node::Select { operand, field, access } => self.select(operand, field, *access),
            Node::Call { function, target, args } => {
                let mut values = Vec::with_capacity(args.len() + 1);
                if let Some(target) = target {
                    values.push(self.evaluate(target)?);
                }
                for arg in args {
                    values.push(self.evaluate(arg)?);
                }
                match (function.as_str(), &values[..]) {
                    ("check", [Value::AccessCheck(question), Value::String(verb)])
                        if question.is_complete() =>
                    {
                        self.budget.charge(CHECK_COST)?;
                        Ok(Value::Decision(Rc::new(self.activation.decide(question, verb))))
                    }
                    _ => functions::call(function, &values, self.budget, self.hooks),
                }
            }
            Node::And(terms) => self.logical(terms, false),
            Node::Or(terms) => self.logical(terms, true),
            Node::If(parts) => {
                let [condition, yes, no] = &**parts;
                match self.evaluate(condition)? {
                    Value::Bool(true) => self.evaluate(yes),
                    Value::Bool(false) => self.evaluate(no),
                    _ => Err(Failure::no_overload()),
                }
            }
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Fold(fold) => self.fold(fold),
        }
    }

    fn local(&self, name: &str) -> Option<Value<'a>> {
        self.scope.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    }

    fn name(&mut self, name: &str) -> Result<Value<'a>, Failure> {
        self.budget.charge(1)?;
        if let Some(value) = self.local(name).or_else(|| self.activation.variable(name)) {
            return Ok(value);
        }
        let kind = signatures::type_name(name).map(Value::Type);
        kind.ok_or_else(|| Failure::wrong(format!("no such attribute(s): {name}")))
    }

    fn select(&mut self, operand: &'a Expr, field: &'a str, access: Access) -> Result<Value<'a>, Failure> {
        if access == Access::Value
            && let Node::Ident(name) = &operand.node
            && self.local(name).is_none()
        {
            if let Some(made) = self.activation.member(name, field, self.budget) {
                self.budget.charge(2)?;
                return made;
            }
            if let Some(value) = self.activation.dotted(name, field) {
                self.budget.charge(1)?;
                return Ok(value);
            }
        }
        let operand = self.evaluate(operand)?;
        if access != Access::Presence {
            self.budget.charge(1)?;
        }
        match (operand, access) {
            (Value::Map(map), Access::Presence) => Ok(Value::Bool(map.field(field).is_some())),
            (Value::Map(map), Access::Value) => {
                map.field(field).ok_or_else(|| Failure::wrong(format!("no such key: {field}")))
            }
            (Value::Map(map), Access::Optional) => Ok(Value::Optional(map.field(field).map(Rc::new))),
            (Value::Optional(inner), access) => through(inner.as_deref(), field, access),
            _ => Err(Failure::no_overload()),
        }
    }

    /// `&&` ends with the first `false`, `||` with the first `true`; what fails counts only when nothing ends it.
    fn logical(&mut self, terms: &'a [Expr], ending: bool) -> Result<Value<'a>, Failure> {
        let mut failed = None;
        for term in terms {
            match self.evaluate(term) {
                Ok(Value::Bool(value)) if value == ending => return Ok(Value::Bool(ending)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failed = failed.or_else(|| Some(Failure::no_overload())),
                Err(Failure::Exhausted) => return Err(Failure::Exhausted),
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        failed.map_or(Ok(Value::Bool(!ending)), Err)
    }

    fn list(&mut self, items: &'a [(Expr, bool)]) -> Result<Value<'a>, Failure> {
        let mut made = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match (self.evaluate(item)?, optional) {
                (value, false) => made.push(value),
                (Value::Optional(value), true) => made.extend(value.map(|value| Value::clone(&value))),
                _ => return Err(Failure::no_overload()),
            }
        }
        self.budget.charge(LIST_COST)?;
        Ok(Value::list(made))
    }

    fn map(&mut self, entries: &'a [(Expr, Expr, bool)]) -> Result<Value<'a>, Failure> {
        let mut made = BTreeMap::new();
        for (key, value, optional) in entries {
            let key = self.evaluate(key)?;
            let key = Key::of(&key).ok_or_else(|| Failure::wrong("unsupported key type"))?;
            let value = match (self.evaluate(value)?, optional) {
                (value, false) => value,
                (Value::Optional(Some(value)), true) => Value::clone(&value),
                (Value::Optional(None), true) => continue,
                _ => return Err(Failure::no_overload()),
            };
            if made.insert(key, value).is_some() {
                return Err(Failure::wrong("Failed with repeated key"));
            }
        }
        self.budget.charge(MAP_COST)?;
        Ok(Value::Map(Map::Made(Rc::new(made))))
    }
}

/// A field of something that may be missing may be missing.
fn through<'a>(inner: Option<&Value<'a>>, field: &str, access: Access) -> Result<Value<'a>, Failure> {
    let found = match inner {
        None => None,
        Some(Value::Map(map)) => map.field(field),
        Some(_) => return Err(Failure::no_overload()),
    };
    Ok(match access {
        Access::Presence => Value::Bool(found.is_some()),
        Access::Value | Access::Optional => Value::Optional(found.map(Rc::new)),
    })
}

fn constant(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(number) => Value::Int(*number),
        Literal::Uint(number) => Value::Uint(*number),
        Literal::Double(number) => Value::Double(*number),
        Literal::String(text) => Value::String(Text::Borrowed(text)),
        Literal::Bytes(bytes) => Value::Bytes(Rc::from(bytes.as_slice())),
        Literal::Type(name) => Value::Type(name),
    }
}

/// The elements that macros go over: those of a list with their numbers, or the keys of a map with their values.
pub(crate) enum Range<'a> {
    List(List<'a>),
    Map(Map<'a>, Vec<Value<'a>>),
}

impl<'a> Range<'a> {
    pub fn of(value: Value<'a>, budget: &Budget) -> Result<Self, Failure> {
        match value {
            Value::List(list) => Ok(Self::List(list)),
            Value::Map(map) => {
                budget.work(map.len() as u64)?;
                let keys = map.keys();
                Ok(Self::Map(map, keys))
            }
            _ => Err(Failure::no_overload()),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Map(_, keys) => keys.len(),
        }
    }

    /// What the one variable of a macro is: the element, or the key.
    pub fn single(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::List(list) => list.get(index),
            Self::Map(_, keys) => keys.get(index).cloned(),
        }
    }

    /// What the two variables are: the number and the element, or the key and the value.
    pub fn pair(&self, index: usize) -> Option<(Value<'a>, Value<'a>)> {
        match self {
            Self::List(list) => Some((Value::Int(i64::try_from(index).ok()?), list.get(index)?)),
            Self::Map(map, keys) => {
                let key = keys.get(index)?.clone();
                let value = map.get(&Key::of(&key)?)?;
                Some((key, value))
            }
        }
    }
}
