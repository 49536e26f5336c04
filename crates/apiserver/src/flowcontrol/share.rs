//! How many threads one user keeps busy: half of them at most, as soon as somebody else is around. Whoever waits for a
//! disk or for somebody outside keeps none, so this bounds what is computed at once and not what is asked at once.
//! Those who have not proved who they are share one half, always.

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

/// Somebody who asked so recently may ask again.
const AROUND: Duration = Duration::from_secs(10);
/// More users than this are looked through for those who are gone.
const USERS_MANY: usize = 1_000;
/// Whoever has not proved who they are; no user is called so.
const UNAUTHENTICATED: &str = "";

/// Who asks, and whether that is more than one.
#[derive(Default)]
pub(super) struct ActiveUsers {
    latest: Option<Box<str>>,
    /// When somebody else than the one before asked.
    changed: Option<Instant>,
    /// So many threads may be busy with a user at a time, while somebody holds the permits.
    threads: HashMap<Box<str>, Weak<Semaphore>>,
}

impl ActiveUsers {
    /// Notes that this user asks.
    pub fn note(&mut self, user: &str) {
        if self.latest.as_deref() != Some(user) {
            self.changed = self.latest.is_some().then(Instant::now);
            self.latest = Some(user.into());
        }
    }

    fn is_around(&self) -> bool {
        self.changed.is_some_and(|changed| changed.elapsed() < AROUND)
    }

    /// The threads that a user may keep busy.
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

/// Whose threads some work keeps busy. On a connection that is whoever asked last. Clones are one.
#[derive(Clone)]
pub(crate) struct CpuShare {
    turns: FairQueue,
    /// None for those who are not counted.
    threads: Arc<ArcSwapOption<Semaphore>>,
    /// Whether they have proved who they are.
    is_known: Arc<AtomicBool>,
}

impl CpuShare {
    pub(super) fn new(turns: FairQueue, threads: Arc<Semaphore>) -> Self {
        let is_known = Arc::new(AtomicBool::new(true));
        Self { turns, threads: Arc::new(ArcSwapOption::from(Some(threads))), is_known }
    }

    /// Somebody who has proved nothing yet.
    pub fn stranger(turns: &FairQueue) -> Self {
        let payer = Self::new(turns.clone(), turns.with(|state| state.company.threads_of(UNAUTHENTICATED)));
        payer.is_known.store(false, Ordering::Relaxed);
        payer
    }

    /// From now on it is this user, or somebody who could not prove to be one.
    pub fn becomes(&self, identity: Option<&Identity>) {
        let known = identity.filter(|identity| identity.user != ANONYMOUS);
        let is_counted = known.is_none_or(|identity| !(identity.is_internal || identity.is_administrator()));
        let threads = self.turns.with(|state| {
            // Whoever asks whether the server is well is no company.
            if let Some(identity) = known {
                state.company.note(&identity.user);
            }
            let user = known.map_or(UNAUTHENTICATED, |identity| &identity.user);
            is_counted.then(|| state.company.threads_of(user))
        });
        self.threads.store(threads);
        self.is_known.store(known.is_some(), Ordering::Relaxed);
    }

    /// The same work, which goes on whenever its user has a thread to spare. Work inside of such work must not pay
    /// itself: it would wait for what it has.
    pub fn pays_for<Work: Future>(&self, work: Work) -> Shared<Work> {
        Shared { payer: self.clone(), waiting: None, work: Box::pin(work) }
    }
}

/// Work of one user, which keeps a thread busy only while that user has one to spare.
pub(crate) struct Shared<Work> {
    payer: CpuShare,
    waiting: Option<Waiting>,
    work: Pin<Box<Work>>,
}

type Waiting = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

impl<Work: Future> Shared<Work> {
    /// A thread to go on with; none is counted for a user who is alone.
    fn thread(&mut self, context: &mut Context<'_>) -> Poll<Option<OwnedSemaphorePermit>> {
        if self.waiting.is_none() {
            let Some(threads) = self.payer.threads.load_full() else { return Poll::Ready(None) };
            let is_known = self.payer.is_known.load(Ordering::Relaxed);
            if is_known && !self.payer.turns.with(|state| state.company.is_around()) {
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

impl<Work: Future> Future for Shared<Work> {
    type Output = Work::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Work::Output> {
        // It is given back when this step of the work is done, whether the work is done or waits.
        let _thread = ready!(self.thread(context));
        self.work.as_mut().poll(context)
    }
}
