//! Starts the controllers: watches feed the informer cache, its changes feed the work queues (the table in `watches`),
//! and each queue has its controller (`workers`). The only module that spawns tasks besides `runtime`.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use supervise::{Panic, Recovered as _, catch, keep_running};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::ctx::Ctx;
use crate::discovery::TemplateKind;
use crate::policy_status;
use crate::runtime::Watched;

mod changes;
mod informer;
mod members;
mod regarding;
mod templates;
mod wake;
mod watches;
mod workers;

use informer::Informer;

/// How long tasks may take to end before they are aborted.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Running controllers.
pub struct Controllers {
    stop: CancellationToken,
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Controllers {
    /// Stops every task and waits for it.
    pub async fn shut_down(self) {
        self.stop.cancel();
        let tasks = std::mem::take(&mut *self.tasks.lock().recovered());
        let deadline = tokio::time::Instant::now() + SHUTDOWN_TIMEOUT;
        for mut task in tasks {
            // A panic was logged when it happened. A task that hangs on a member is aborted, as by a crash.
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                task.abort();
                let _ = task.await;
            }
        }
    }
}

/// What the tasks share.
#[derive(Clone)]
struct Starter {
    ctx: Ctx,
    stop: CancellationToken,
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
    /// How many informers have not synced yet; controllers start when it is zero.
    unsynced: Arc<Watched<usize>>,
    /// The informers of template kinds.
    informers: Arc<Mutex<BTreeMap<TemplateKind, Informer>>>,
    /// Whether discovery has succeeded once.
    discovered: Arc<AtomicBool>,
    /// Notified when a CRD changed.
    definitions: Arc<Notify>,
    /// What runs per member.
    members: Arc<Mutex<BTreeMap<String, members::Running>>>,
}

/// Starts every controller.
pub fn start(ctx: Ctx) -> Controllers {
    let stop = CancellationToken::new();
    let tasks = Arc::new(Mutex::new(Vec::new()));
    let starter = Starter {
        ctx,
        stop: stop.clone(),
        tasks: tasks.clone(),
        // Discovery itself counts as one.
        unsynced: Arc::new(Watched::new(1)),
        informers: Arc::default(),
        discovered: Arc::default(),
        definitions: Arc::default(),
        members: Arc::default(),
    };
    starter.watch_control_plane();
    let discovering = starter.clone();
    starter.keep("discovery", stop.clone(), move || discovering.clone().discover());
    starter.spawn("start", starter.clone().work_when_synced());
    Controllers { stop, tasks }
}

impl Starter {
    /// Runs a task that cannot be started again: if it panics, this process cannot go on.
    fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let supervisor = self.ctx.supervisor.clone();
        self.add_task(tokio::spawn(async move {
            if let Err(panic) = catch(task).await {
                supervisor.fail(name, &panic);
            }
        }));
    }

    /// Runs a task until `stop`; one that panics or ends is started again.
    fn keep<Running>(
        &self,
        name: &'static str,
        stop: CancellationToken,
        make: impl Fn() -> Running + Send + 'static,
    ) where
        Running: Future<Output = ()> + Send,
    {
        let supervisor = self.ctx.supervisor.clone();
        self.add_task(tokio::spawn(async move {
            let panicked = |panic: &Panic, delay: Duration| supervisor.task_panicked(name, &delay, panic);
            keep_running(name, &stop, panicked, make).await;
        }));
    }

    fn add_task(&self, task: JoinHandle<()>) {
        let mut tasks = self.tasks.lock().recovered();
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }

    /// Waits until every informer has synced; false if `stop` comes first.
    async fn synced(&self, stop: &CancellationToken) -> bool {
        tokio::select! {
            biased;
            () = stop.cancelled() => false,
            () = self.unsynced.until(|unsynced| (*unsynced == 0).then_some(())) => true,
        }
    }

    /// Waits until this replica leads; false if `stop` comes first. A standby keeps its cache warm and does nothing
    /// else, so that it can take over at once.
    async fn leads(&self, stop: &CancellationToken) -> bool {
        tokio::select! {
            biased;
            () = stop.cancelled() => false,
            () = self.ctx.control.may_write() => true,
        }
    }

    /// Starts the workers as soon as every informer has synced and this replica leads.
    async fn work_when_synced(self) {
        if !self.synced(&self.stop).await {
            return;
        }
        let ctx = &self.ctx;
        ctx.cache.note_synced();
        if !self.leads(&self.stop).await {
            return;
        }
        policy_status::count_all(ctx);
        let workers = self.start_workers();
        self.tasks.lock().recovered().extend(workers);
    }
}
