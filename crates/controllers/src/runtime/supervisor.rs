//! The panic handler: panics are counted and logged with the key of the work. A task that cannot be restarted makes the
//! whole process unhealthy, so that another replica takes over.

use std::fmt::Debug;
use std::sync::Arc;

use supervise::{Injector, Panic};

use super::Watched;
use crate::metrics::Metrics;

/// Counts panics and knows whether every task still runs. Clones share it.
#[derive(Clone, Default)]
pub struct Supervisor(Arc<Inner>);

#[derive(Default)]
struct Inner {
    metrics: Metrics,
    injector: Injector,
    /// The first task that cannot go on, and why.
    failure: Watched<Option<String>>,
}

impl Supervisor {
    /// Counts with these metrics; tests may let something fail.
    pub fn new(metrics: Metrics, injector: Injector) -> Self {
        Self(Arc::new(Inner { metrics, injector, failure: Watched::default() }))
    }

    /// A point at which a test may let something fail.
    pub fn inject(&self, point: &'static str, subject: &dyn Debug) {
        self.0.injector.at(point, subject);
    }

    /// Notes that a reconcile panicked; its key is tried again.
    pub fn reconcile_panicked(&self, controller: &'static str, key: &dyn Debug, panic: &Panic) {
        self.0.metrics.count("reconcile_panics_total", &[("controller", controller)]);
        tracing::error!(controller, ?key, %panic, "a reconcile panicked; the key is tried again");
    }

    /// Notes that a task panicked which goes on or is started again.
    pub fn task_panicked(&self, task: &'static str, subject: &dyn Debug, panic: &Panic) {
        self.0.metrics.count("task_panics_total", &[("task", task)]);
        tracing::error!(task, ?subject, %panic, "a task panicked; it is started again");
    }

    /// Notes that a task ended which cannot be started again.
    pub fn fail(&self, task: &'static str, panic: &Panic) {
        self.0.metrics.count("task_panics_total", &[("task", task)]);
        tracing::error!(task, %panic, "a task panicked and cannot go on; this process has to be restarted");
        let why = format!("task {task} panicked: {panic}");
        self.0.failure.change(|failure| _ = failure.get_or_insert(why));
    }

    /// Why this process cannot go on; none while it can.
    pub fn failure(&self) -> Option<String> {
        self.0.failure.read(Option::clone)
    }

    /// Resolves when a task cannot go on.
    pub async fn failed(&self) -> String {
        self.0.failure.until(Option::clone).await
    }
}
