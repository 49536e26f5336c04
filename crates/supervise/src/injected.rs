//! Fault injection for tests: a function that is called at named points of the program and may panic there. Without
//! one, which is always so outside of tests, a point costs one comparison.

use std::fmt::Debug;
use std::sync::Arc;

type Fault = Arc<dyn Fn(&'static str, &dyn Debug) + Send + Sync>;

/// Calls a test's function at named points. Clones share it.
#[derive(Clone, Default)]
pub struct Injector(Option<Fault>);

impl Injector {
    /// One that calls this function with the point and what is being worked on there.
    pub fn new(fault: impl Fn(&'static str, &dyn Debug) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(fault)))
    }

    /// A point at which a test may let something fail.
    pub fn at(&self, point: &'static str, subject: &dyn Debug) {
        if let Some(fault) = &self.0 {
            fault(point, subject);
        }
    }
}
