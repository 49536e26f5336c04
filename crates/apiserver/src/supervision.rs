//! What becomes of panics in this server, and whether all of it still runs. The tasks that tend to objects without being
//! asked are started here and started again when they panic.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use supervise::{Injector, Panic, keep_running};
use tokio::task::JoinHandle;

use crate::engine::Engine;

/// Says why the process cannot go on, as long as it cannot.
pub(crate) type Liveness = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// What is handed in about the health of whoever runs the server.
#[derive(Default)]
pub(crate) struct Supervision {
    /// What else has to run in this process.
    liveness: OnceLock<Liveness>,
    /// Lets a test panic.
    injector: OnceLock<Injector>,
}

impl Supervision {
    /// Takes in what else has to run; only the first one counts.
    pub fn add_liveness(&self, liveness: Liveness) {
        // A second one would be a mistake of whoever builds the server, and harms nobody.
        let _ = self.liveness.set(liveness);
    }

    /// Lets a test panic; only the first one counts.
    pub fn set_injector(&self, injector: Injector) {
        let _ = self.injector.set(injector);
    }
}

impl Engine {
    /// Why this process cannot go on; none while it can.
    pub fn failure(&self) -> Option<String> {
        self.supervision.liveness.get().and_then(|liveness| liveness())
    }

    /// A point at which a test may let something fail.
    pub fn inject(&self, point: &'static str, subject: &dyn Debug) {
        if let Some(injector) = self.supervision.injector.get() {
            injector.at(point, subject);
        }
    }

    /// Counts and logs a panic that was caught.
    pub fn note_panic(&self, task: &'static str, subject: &dyn Debug, panic: &Panic) {
        self.metrics.count_panic(task);
        tracing::error!(task, ?subject, %panic, "a task panicked; it goes on");
    }

    /// Runs a task until the server shuts down; one that panics is started again.
    pub fn keep_task<Running>(
        self: &Arc<Self>,
        name: &'static str,
        make: impl Fn(Arc<Self>) -> Running + Send + Sync + 'static,
    ) -> JoinHandle<()>
    where
        Running: Future<Output = ()> + Send,
    {
        let engine = self.clone();
        tokio::spawn(async move {
            let panicked = |panic: &Panic, delay: Duration| engine.note_panic(name, &delay, panic);
            keep_running(name, &engine.shutdown, panicked, || make(engine.clone())).await;
        })
    }
}
