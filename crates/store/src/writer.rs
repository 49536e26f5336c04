//! The writer thread of a store on disk: group commit of all writes that arrived during the last sync. Knows nothing
//! of the file format.

use std::collections::VecDeque;
use std::mem;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use tokio::sync::{mpsc, oneshot};

use crate::commit::Committer;
use crate::disk::{Disk, Installed};
use crate::{OpenError, Revision, StorageError, Write, WriteError};

/// The most writes that wait, and so the most of one group; further callers wait for room.
const GROUP_WRITES_MAX: usize = 1024;
/// A group is not added to once it is this large.
const GROUP_BYTES_MAX: usize = 4 << 20;

type Answer<T> = oneshot::Sender<Result<T, WriteError>>;

enum Job {
    Write { write: Write, answer: Answer<Revision> },
    Compact { revision: Revision, answer: Answer<()> },
    Snapshot { outcome: Result<Installed, StorageError>, answer: Answer<()> },
    TryAgain { answer: Answer<()> },
    Close { answer: oneshot::Sender<Result<(), StorageError>> },
}

/// The way to the thread; dropping it ends the thread and waits for that.
pub(crate) struct Writer {
    queue: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Writer {
    pub(crate) fn start(committer: Committer<Disk>) -> Result<Writer, OpenError> {
        let (queue, jobs) = mpsc::channel(GROUP_WRITES_MAX);
        let stop = Arc::new(AtomicBool::new(false));
        let path = committer.backend.directory();
        let work = Work {
            committer,
            // A weak one, or the thread would keep its own queue open for ever.
            queue: queue.downgrade(),
            stop: stop.clone(),
            group: Vec::new(),
            group_bytes: 0,
            snapshot: None,
            compactions: VecDeque::new(),
        };
        let counters = work.committer.backend.counters();
        let thread = thread::Builder::new().name("store-writer".to_owned()).spawn(move || {
            // The queue is dropped, so waiting callers get an error.
            if std::panic::catch_unwind(AssertUnwindSafe(|| work.run(jobs))).is_err() {
                counters.give_up("the writer thread panicked; restart the process to try again");
                tracing::error!(
                    "the store's writer thread panicked; the store rejects all writes until it is reopened"
                );
            }
        });
        let thread = thread.map_err(|source| OpenError::Io { action: "start a thread for", path, source })?;
        Ok(Writer { queue: Some(queue), thread: Some(thread), stop })
    }

    pub(crate) async fn write(&self, write: Write) -> Result<Revision, WriteError> {
        self.ask(|answer| Job::Write { write, answer }).await
    }

    pub(crate) async fn compact(&self, revision: Revision) -> Result<(), WriteError> {
        self.ask(|answer| Job::Compact { revision, answer }).await
    }

    /// Looks whether writes that failed would succeed now.
    pub(crate) async fn try_again(&self) -> Result<(), WriteError> {
        self.ask(|answer| Job::TryAgain { answer }).await
    }

    /// Ends the thread after the jobs that are waiting; one that has ended already is closed.
    pub(crate) async fn close(&self) -> Result<(), StorageError> {
        let (answer, outcome) = oneshot::channel();
        self.stop.store(true, Ordering::Relaxed);
        let Some(queue) = &self.queue else { return Ok(()) };
        if queue.send(Job::Close { answer }).await.is_err() {
            return Ok(());
        }
        outcome.await.unwrap_or(Ok(()))
    }

    async fn ask<T>(&self, job: impl FnOnce(Answer<T>) -> Job) -> Result<T, WriteError> {
        let (answer, outcome) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or(WriteError::Closed)?;
        queue.send(job(answer)).await.map_err(|_| WriteError::Closed)?;
        outcome.await.map_err(|_| WriteError::Closed)?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // The panic hook has already reported a panic of the thread.
            let _ = thread.join();
        }
    }
}

/// What the thread works with.
struct Work {
    committer: Committer<Disk>,
    queue: mpsc::WeakSender<Job>,
    /// Cancels a running snapshot.
    stop: Arc<AtomicBool>,
    group: Vec<(Write, Answer<Revision>)>,
    group_bytes: usize,
    snapshot: Option<JoinHandle<()>>,
    /// Compactions that wait for a running snapshot, whose versions they would take away.
    compactions: VecDeque<(Revision, Answer<()>)>,
}

impl Work {
    fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        let mut jobs = Vec::new();
        let mut closing = None;
        while closing.is_none() && queue.blocking_recv_many(&mut jobs, GROUP_WRITES_MAX) > 0 {
            for job in jobs.drain(..) {
                closing = closing.or(self.take(job));
            }
            self.commit();
        }
        self.finish(queue, closing);
    }

    /// Takes one job; a request to close is handed back.
    fn take(&mut self, job: Job) -> Option<oneshot::Sender<Result<(), StorageError>>> {
        match job {
            Job::Write { write, answer } => self.gather(write, answer),
            Job::Compact { revision, answer } => {
                self.commit();
                self.compactions.push_back((revision, answer));
                self.compact_waiting();
            }
            Job::Snapshot { outcome, answer } => self.end_snapshot(outcome, answer),
            Job::TryAgain { answer } => {
                self.committer.backend.try_again();
                let _ = answer.send(Ok(()));
            }
            Job::Close { answer } => return Some(answer),
        }
        None
    }

    fn gather(&mut self, write: Write, answer: Answer<Revision>) {
        self.group_bytes += write.change.payload().bytes.len();
        self.group.push((write, answer));
        if self.group_bytes > GROUP_BYTES_MAX {
            self.commit();
        }
    }

    fn commit(&mut self) {
        self.group_bytes = 0;
        let (writes, answers): (Vec<_>, Vec<_>) = mem::take(&mut self.group).into_iter().unzip();
        let outcomes = self.committer.commit(&writes);
        for (answer, outcome) in answers.into_iter().zip(outcomes) {
            // A caller who stopped waiting has no use for the answer.
            let _ = answer.send(outcome);
        }
    }

    fn compact_waiting(&mut self) {
        while self.snapshot.is_none() {
            let Some((revision, answer)) = self.compactions.pop_front() else { return };
            match self.committer.compact(revision) {
                Ok(true) => self.start_snapshot(answer),
                Ok(false) => _ = answer.send(Ok(())),
                Err(error) => _ = answer.send(Err(error)),
            }
        }
    }

    /// Rewrites the live entries on a thread of its own, if enough of the log is dead. The writer goes on.
    fn start_snapshot(&mut self, answer: Answer<()>) {
        let live_bytes = self.committer.index.stats().live_bytes;
        let task = self.committer.backend.snapshot_due(self.committer.index.compacted(), live_bytes);
        let (Some(task), Some(queue)) = (task, self.queue.upgrade()) else {
            let _ = answer.send(Ok(()));
            return;
        };
        let (index, stop) = (self.committer.index.clone(), self.stop.clone());
        let thread = thread::Builder::new().name("store-snapshot".to_owned()).spawn(move || {
            // Without an answer the writer would wait for this thread for ever, and compact nothing.
            let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| task.run(&index, &stop)));
            let panicked =
                |_| Err(StorageError::new("write a snapshot", std::io::Error::other("it panicked")));
            let outcome = outcome.unwrap_or_else(panicked);
            // When the writer has ended, the next start finds the snapshot by itself.
            let _ = queue.blocking_send(Job::Snapshot { outcome, answer });
        });
        match thread {
            Ok(thread) => self.snapshot = Some(thread),
            // The answer went with the thread; the caller learns that the store did not do it.
            Err(error) => tracing::warn!(%error, "start a thread for a snapshot"),
        }
    }

    fn end_snapshot(&mut self, outcome: Result<Installed, StorageError>, answer: Answer<()>) {
        self.snapshot = None;
        let outcome = outcome.map(|installed| self.committer.backend.installed(&installed));
        let _ = answer.send(outcome.map_err(WriteError::from));
        self.compact_waiting();
    }

    fn finish(
        mut self,
        mut queue: mpsc::Receiver<Job>,
        closing: Option<oneshot::Sender<Result<(), StorageError>>>,
    ) {
        use crate::backend::Backend;
        self.stop.store(true, Ordering::Relaxed);
        // The snapshot thread must not block on a full queue that is no longer drained.
        queue.close();
        while queue.try_recv().is_ok() {}
        if let Some(thread) = self.snapshot.take() {
            let _ = thread.join();
        }
        let outcome = self.committer.backend.close();
        self.committer.index.close();
        // The directory is unlocked before the caller of `close` gets its answer.
        drop(self);
        if let Some(answer) = closing {
            let _ = answer.send(outcome);
        }
    }
}
