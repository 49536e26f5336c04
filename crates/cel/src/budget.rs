//! The cost budget of an evaluation. Cost is what Kubernetes counts, so that what is refused there is refused here;
//! work is the actual CPU and memory, which cost does not always reflect.

use std::cell::Cell;

/// Work that one evaluation may do beyond what cost sees: elements copied, characters made.
const WORK_MAX: u64 = 20_000_000;

/// Expressions inside of expressions, those of variables included.
const NESTING_MAX: usize = 600;

/// What is left for an evaluation.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    spent: Cell<u64>,
    work: Cell<u64>,
    depth: Cell<usize>,
}

impl Budget {
    /// A budget that ends an evaluation when its cost exceeds the limit.
    pub fn new(limit: u64) -> Self {
        Self { limit, spent: Cell::new(0), work: Cell::new(0), depth: Cell::new(0) }
    }

    /// The cost so far.
    pub fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Goes one expression deeper; every success is followed by `leave`. Variables that are themselves
    /// expressions are evaluated inside of others, which no single tree bounds.
    pub(crate) fn enter(&self) -> Result<(), Failure> {
        if self.depth.get() >= NESTING_MAX {
            return Err(Failure::Exhausted);
        }
        self.depth.set(self.depth.get() + 1);
        Ok(())
    }

    /// Comes back from an expression.
    pub(crate) fn leave(&self) {
        self.depth.set(self.depth.get().saturating_sub(1));
    }

    /// Charges for a step.
    pub(crate) fn charge(&self, cost: u64) -> Result<(), Failure> {
        self.spent.set(self.spent.get().saturating_add(cost));
        self.work(cost.max(1))?;
        match self.spent.get() > self.limit {
            true => Err(Failure::Exhausted),
            false => Ok(()),
        }
    }

    /// Charges for looking at so many characters.
    pub(crate) fn traverse(&self, characters: u64) -> Result<(), Failure> {
        self.charge(tenth(characters))
    }

    /// Notes work, before it is done.
    pub(crate) fn work(&self, amount: u64) -> Result<(), Failure> {
        self.work.set(self.work.get().saturating_add(amount));
        match self.work.get() > WORK_MAX {
            true => Err(Failure::Exhausted),
            false => Ok(()),
        }
    }
}

/// A tenth, rounded up: what a character costs.
pub(crate) fn tenth(characters: u64) -> u64 {
    characters.div_ceil(10)
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It did more than it may. Nothing absorbs this.
    Exhausted,
    /// Something it asked for is not there or cannot be done.
    Wrong(String),
}

impl Failure {
    pub(crate) fn wrong(message: impl Into<String>) -> Self {
        Self::Wrong(message.into())
    }

    pub(crate) fn no_overload() -> Self {
        Self::wrong("no such overload")
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exhausted => formatter.write_str("operation cancelled: actual cost limit exceeded"),
            Self::Wrong(message) => formatter.write_str(message),
        }
    }
}

impl std::error::Error for Failure {}
