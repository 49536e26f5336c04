//! CPU fairness: while more than one user is active, each may keep at most half of the worker threads busy. A request
//! that waits for the disk or for another server holds no thread, so this limits concurrent computation, not
//! concurrent requests. All unauthenticated clients share half of the worker threads, even if no other user is
//! active.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use tokio::runtime::Handle;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::FairQueue;
use crate::authn::{ANONYMOUS, Identity};

/// A user counts as active for this long after a request.
const ACTIVE_FOR: Duration = Duration::from_secs(10);
/// Above this many users, entries without permits are removed.
const USERS_MANY: usize = 1_000;
/// The key of all unauthenticated clients; no user has this name.
const UNAUTHENTICATED: &str = "";

/// Which users are active, and whether that is more than one.
#[derive(Default)]
pub(super) struct ActiveUsers {
    latest: Option<Box<str>>,
    /// When the requesting user last differed from the one before.
    changed: Option<Instant>,
    /// The semaphore of worker threads of each user; dropped with its last holder.
    threads: HashMap<Box<str>, Weak<Semaphore>>,
}

impl ActiveUsers {
    /// Records a request of this user.
    pub fn note(&mut self, user: &str) {
        if self.latest.as_deref() != Some(user) {
            self.changed = self.latest.is_some().then(Instant::now);
            self.latest = Some(user.into());
        }
    }

    fn are_several_active(&self) -> bool {
        self.changed.is_some_and(|changed| changed.elapsed() < ACTIVE_FOR)
    }

    /// The semaphore of the worker threads that a user may keep busy.
    pub fn threads_of(&mut self, user: &str) -> Arc<Semaphore> {
        if let Some(threads) = self.threads.get(user).and_then(Weak::upgrade) {
            return threads;
        }
        if self.threads.len() > USERS_MANY {
            self.threads.retain(|_, threads| threads.strong_count() > 0);
        }
        let all = Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers());
        let threads = Arc::new(Semaphore::new((all / 2).max(1)));
        self.threads.insert(user.into(), Arc::downgrade(&threads));
        threads
    }
}

/// The user whose CPU share some work uses. For a connection that is the user of the last request on it. Clones share
/// the state.
#[derive(Clone)]
pub(crate) struct CpuShare {
    queue: FairQueue,
    /// None for exempt users.
    threads: Arc<ArcSwapOption<Semaphore>>,
    /// Whether the user is authenticated.
    is_known: Arc<AtomicBool>,
}

impl CpuShare {
    pub(super) fn new(queue: FairQueue, threads: Arc<Semaphore>) -> Self {
        let is_known = Arc::new(AtomicBool::new(true));
        Self { queue, threads: Arc::new(ArcSwapOption::from(Some(threads))), is_known }
    }

    /// The share of a client that has not authenticated yet.
    pub fn of_unauthenticated(queue: &FairQueue) -> Self {
        let share =
            Self::new(queue.clone(), queue.with(|state| state.active_users.threads_of(UNAUTHENTICATED)));
        share.is_known.store(false, Ordering::Relaxed);
        share
    }

    /// Switches to the share of this user, or to that of unauthenticated clients.
    pub fn switch_to(&self, identity: Option<&Identity>) {
        let known = identity.filter(|identity| identity.user != ANONYMOUS);
        let is_counted = known.is_none_or(|identity| !(identity.is_internal || identity.is_administrator()));
        let threads = self.queue.with(|state| {
            // Anonymous requests, such as health probes, do not count as active users.
            if let Some(identity) = known {
                state.active_users.note(&identity.user);
            }
            let user = known.map_or(UNAUTHENTICATED, |identity| &identity.user);
            is_counted.then(|| state.active_users.threads_of(user))
        });
        self.threads.store(threads);
        self.is_known.store(known.is_some(), Ordering::Relaxed);
    }

    /// Wraps work so that it is polled only while its user has a worker thread to spare. Must not be nested: the
    /// inner work would wait for the permit that the outer one holds.
    pub fn run<Work: Future>(&self, work: Work) -> FairWork<Work> {
        FairWork { share: self.clone(), waiting: None, work: Box::pin(work) }
    }
}

/// Work of one user, polled only while that user has a worker thread to spare.
pub(crate) struct FairWork<Work> {
    share: CpuShare,
    waiting: Option<Waiting>,
    work: Pin<Box<Work>>,
}

type Waiting = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

impl<Work: Future> FairWork<Work> {
    /// A permit for one poll; a user who is the only active one needs none.
    fn acquire_thread(&mut self, context: &mut Context<'_>) -> Poll<Option<OwnedSemaphorePermit>> {
        if self.waiting.is_none() {
            let Some(threads) = self.share.threads.load_full() else { return Poll::Ready(None) };
            let is_known = self.share.is_known.load(Ordering::Relaxed);
            if is_known && !self.share.queue.with(|state| state.active_users.are_several_active()) {
                return Poll::Ready(None);
            }
            if let Ok(thread) = threads.clone().try_acquire_owned() {
                return Poll::Ready(Some(thread));
            }
            self.waiting = Some(Box::pin(threads.acquire_owned()));
        }
        let Some(waiting) = &mut self.waiting else { return Poll::Ready(None) };
        let thread = ready!(waiting.as_mut().poll(context));
        self.waiting = None;
        Poll::Ready(thread.ok())
    }
}

impl<Work: Future> Future for FairWork<Work> {
    type Output = Work::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Work::Output> {
        // The permit is released after each poll, whether the work is done or pending.
        let _thread = ready!(self.acquire_thread(context));
        self.work.as_mut().poll(context)
    }
}
