//! Supervision of the server's background tasks: counts panics, restarts tasks that panic, and reports liveness.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Duration;

use supervise::{Injector, Panic, Recovered as _, keep_running};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Returns why the process must be restarted; none while it is live.
pub(crate) type Liveness = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// Hooks of the embedding process: its liveness check, and fault injection for tests. Counts the panics that were
/// caught.
#[derive(Default)]
pub(crate) struct Supervision {
    /// The liveness checks of the embedding process.
    liveness: RwLock<Vec<Liveness>>,
    /// Fault injection: lets a test panic.
    injector: OnceLock<Injector>,
    /// Panics by task; held for moments.
    panics: Mutex<BTreeMap<&'static str, u64>>,
}

impl Supervision {
    /// Installs a liveness check of the embedding process.
    pub fn add_liveness(&self, liveness: Liveness) {
        self.liveness.write().recovered().push(liveness);
    }

    /// Lets a test panic; only the first one counts.
    pub fn set_injector(&self, injector: Injector) {
        let _ = self.injector.set(injector);
    }

    /// Why this process must be restarted; none while it is live.
    pub fn failure(&self) -> Option<String> {
        self.liveness.read().recovered().iter().find_map(|failure| failure())
    }

    /// A fault injection point for tests.
    pub fn inject(&self, point: &'static str, subject: &dyn Debug) {
        if let Some(injector) = self.injector.get() {
            injector.at(point, subject);
        }
    }

    /// Counts and logs a panic that was caught.
    pub fn note_panic(&self, task: &'static str, subject: &dyn Debug, panic: &Panic) {
        *self.panics.lock().recovered().entry(task).or_default() += 1;
        tracing::error!(task, ?subject, %panic, "a task panicked; it goes on");
    }

    /// How many panics were caught, by task.
    pub fn panics(&self) -> BTreeMap<&'static str, u64> {
        self.panics.lock().recovered().clone()
    }

    /// Runs a task until the server shuts down; one that panics is started again.
    pub fn keep_task<Running>(
        self: &Arc<Self>,
        name: &'static str,
        shutdown: &CancellationToken,
        make: impl Fn() -> Running + Send + Sync + 'static,
    ) -> JoinHandle<()>
    where
        Running: Future<Output = ()> + Send,
    {
        let (supervision, shutdown) = (self.clone(), shutdown.clone());
        tokio::spawn(async move {
            let panicked = |panic: &Panic, delay: Duration| supervision.note_panic(name, &delay, panic);
            keep_running(name, &shutdown, panicked, make).await;
        })
    }
}
