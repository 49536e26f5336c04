//! Evaluates comprehension macros over lists and maps. The cost is what cel-go charges for the loops that it expands
//! them to.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use super::{Evaluator, LIST_COST, MAP_COST, Range};
use crate::ast::{Fold, FoldKind};
use crate::budget::Failure;
use crate::functions::lists;
use crate::value::{Key, Map, Value};

/// What has come of the elements so far.
struct Gathered<'a> {
    failed: Option<Failure>,
    count: u64,
    items: Vec<Value<'a>>,
    keys: Vec<Value<'a>>,
    entries: BTreeMap<Key, Value<'a>>,
}

impl<'a> Evaluator<'a, '_> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Result<Value<'a>, Failure> {
        let range = self.evaluate(&fold.range)?;
        if matches!(fold.kind, FoldKind::OptionalMap | FoldKind::OptionalFlatMap) {
            return self.optional(fold, range);
        }
        let range = Range::of(range, self.budget)?;
        self.budget.charge(
            1 + match fold.kind {
                FoldKind::List | FoldKind::Filter | FoldKind::SortBy => LIST_COST,
                FoldKind::Map | FoldKind::MapEntry => MAP_COST,
                _ => 0,
            },
        )?;
        let mut gathered = Gathered {
            failed: None,
            count: 0,
            items: Vec::new(),
            keys: Vec::new(),
            entries: BTreeMap::new(),
        };
        for index in 0..range.len() {
            let depth = self.scope.len();
            if let Some(second) = &fold.second {
                let Some((first, value)) = range.pair(index) else { break };
                self.scope.push((&fold.variable, first));
                self.scope.push((second, value));
            } else if let Some(value) = range.single(index) {
                self.scope.push((&fold.variable, value));
            }
            let step = self.step(fold, &mut gathered);
            self.scope.truncate(depth);
            if step?.is_break() {
                return Ok(Value::Bool(fold.kind == FoldKind::Exists));
            }
        }
        self.finish(fold.kind, gathered)
    }

    /// One element. Breaks when the answer of `all` or `exists` cannot change any more.
    fn step(&mut self, fold: &'a Fold, gathered: &mut Gathered<'a>) -> Result<ControlFlow<()>, Failure> {
        if let Some(filter) = &fold.filter {
            match self.evaluate(filter)? {
                Value::Bool(true) => {}
                Value::Bool(false) => {
                    self.budget.charge(1)?;
                    return Ok(ControlFlow::Continue(()));
                }
                _ => return Err(Failure::no_overload()),
            }
        }
        if matches!(fold.kind, FoldKind::All | FoldKind::Exists) {
            return self.quantify(fold, gathered);
        }
        let body = self.evaluate(&fold.body)?;
        match (fold.kind, body) {
            (FoldKind::ExistsOne | FoldKind::Filter, Value::Bool(false)) => self.budget.charge(1)?,
            (FoldKind::ExistsOne, Value::Bool(true)) => {
                self.budget.charge(2)?;
                gathered.count += 1;
            }
            (FoldKind::Filter, Value::Bool(true)) => {
                self.budget.charge(LIST_COST + 3)?;
                gathered.items.extend(self.scope.last().map(|(_, value)| value.clone()));
            }
            (FoldKind::List, value) => {
                self.budget.charge(LIST_COST + 2)?;
                gathered.items.push(value);
            }
            (FoldKind::Map, value) => {
                self.budget.charge(3)?;
                let key = self.scope.iter().rev().nth(1).and_then(|(_, key)| Key::of(key));
                gathered.entries.insert(key.ok_or_else(Failure::no_overload)?, value);
            }
            (FoldKind::MapEntry, Value::Map(entry)) => self.merge(&entry, gathered)?,
            (FoldKind::SortBy, key) => {
                self.budget.charge(LIST_COST + 3)?;
                gathered.items.extend(self.scope.last().map(|(_, value)| value.clone()));
                gathered.keys.push(key);
            }
            _ => return Err(Failure::no_overload()),
        }
        Ok(ControlFlow::Continue(()))
    }

    /// `all` and `exists` forgive what fails if another element decides.
    fn quantify(&mut self, fold: &'a Fold, gathered: &mut Gathered<'a>) -> Result<ControlFlow<()>, Failure> {
        let ending = fold.kind == FoldKind::Exists;
        self.budget.charge(if ending { 4 } else { 3 })?;
        match self.evaluate(&fold.body) {
            Ok(Value::Bool(value)) if value == ending => return Ok(ControlFlow::Break(())),
            Ok(Value::Bool(_)) => {}
            Ok(_) => gathered.failed = gathered.failed.take().or_else(|| Some(Failure::no_overload())),
            Err(Failure::Exhausted) => return Err(Failure::Exhausted),
            Err(failure) => gathered.failed = gathered.failed.take().or(Some(failure)),
        }
        Ok(ControlFlow::Continue(()))
    }

    fn merge(&mut self, entry: &Map<'a>, gathered: &mut Gathered<'a>) -> Result<(), Failure> {
        self.budget.charge(3 + entry.len() as u64)?;
        for key in entry.keys() {
            let key = Key::of(&key).ok_or_else(Failure::no_overload)?;
            let value = entry.get(&key).ok_or_else(Failure::no_overload)?;
            if gathered.entries.insert(key, value).is_some() {
                return Err(Failure::wrong("insert failed: key already exists"));
            }
        }
        Ok(())
    }

    fn finish(&mut self, kind: FoldKind, gathered: Gathered<'a>) -> Result<Value<'a>, Failure> {
        let Gathered { failed, count, items, keys, entries } = gathered;
        match kind {
            FoldKind::All | FoldKind::Exists => failed.map_or(Ok(Value::Bool(kind == FoldKind::All)), Err),
            FoldKind::ExistsOne => {
                self.budget.charge(1)?;
                Ok(Value::Bool(count == 1))
            }
            FoldKind::SortBy => lists::sort_by(items, &keys, self.budget),
            FoldKind::Map | FoldKind::MapEntry => Ok(Value::Map(Map::Made(Rc::new(entries)))),
            _ => Ok(Value::list(items)),
        }
    }

    fn optional(&mut self, fold: &'a Fold, range: Value<'a>) -> Result<Value<'a>, Failure> {
        let Value::Optional(inner) = range else { return Err(Failure::no_overload()) };
        self.budget.charge(2)?;
        let Some(inner) = inner else { return Ok(Value::Optional(None)) };
        self.scope.push((&fold.variable, Value::clone(&inner)));
        let body = self.evaluate(&fold.body);
        self.scope.pop();
        match (fold.kind, body?) {
            (FoldKind::OptionalMap, value) => Ok(Value::some(value)),
            (_, optional @ Value::Optional(_)) => Ok(optional),
            _ => Err(Failure::no_overload()),
        }
    }
}
