//! API priority and fairness, simplified: the rate limit of clients. A concurrency limit with fair queuing by user, so that one client cannot
//! starve the others, and a limit on watches. Administrators and in-process clients are exempt, as in Kubernetes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use supervise::Recovered as _;
use tokio::sync::oneshot;

use crate::authn::Identity;
use apimachinery::error::ApiError;

mod share;
pub(crate) use share::CpuShare;
use share::{ActiveUsers, FairWork};

/// Concurrency and queue limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests that are worked on at once, of all users together.
    pub in_flight: usize,
    /// Requests of one user that are under way or wait.
    pub of_one_user: usize,
    /// Watches of one user.
    pub watches_of_one_user: usize,
    /// Watches of all users together.
    pub watches: usize,
    /// How long a request may wait in the queue.
    pub queue_timeout: Duration,
    /// The timeout of a request that is no watch.
    pub request: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            in_flight: 100,
            of_one_user: 200,
            watches_of_one_user: 1_000,
            watches: 20_000,
            queue_timeout: Duration::from_secs(15),
            request: Duration::from_secs(60),
        }
    }
}

/// The fair queue: requests in flight and requests that wait, by user. Clones share it.
#[derive(Clone)]
pub(crate) struct FairQueue {
    pub limits: Limits,
    /// Held for moments.
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    running: usize,
    watches: usize,
    users: HashMap<Box<str>, User>,
    /// Users with queued requests, in round-robin order.
    round: VecDeque<Box<str>>,
    active_users: ActiveUsers,
}

#[derive(Default)]
struct User {
    /// Requests under way or waiting.
    present: usize,
    watches: usize,
    waiting: VecDeque<oneshot::Sender<Slot>>,
}

impl User {
    fn is_idle(&self) -> bool {
        self.present == 0 && self.watches == 0
    }
}

/// The permit of one request, counted against its user's limit until it is dropped.
pub(crate) struct InFlightPermit {
    queue: FairQueue,
    user: Box<str>,
    running: Option<Slot>,
    share: CpuShare,
}

/// One slot of the concurrency limit. Dropping it hands the slot to the next request, also when it was sent to a
/// request that has just stopped waiting.
struct Slot(Option<FairQueue>);

/// The permit of one watch, counted until it is dropped.
pub(crate) struct WatchPermit {
    queue: FairQueue,
    user: Box<str>,
}

const TOO_MANY_REQUESTS: &str = "too many requests, please try again later";

impl FairQueue {
    pub fn new(limits: Limits) -> Self {
        Self { limits, state: Arc::default() }
    }

    fn with<Answer>(&self, work: impl FnOnce(&mut State) -> Answer) -> Answer {
        work(&mut self.state.lock().recovered())
    }

    /// Admits a request, unless its user has too many already. Exempt users get no permit.
    pub fn enter(&self, identity: &Identity) -> Result<Option<InFlightPermit>, ApiError> {
        if identity.is_internal {
            return Ok(None);
        }
        let user: Box<str> = identity.user.as_str().into();
        if identity.is_administrator() {
            self.with(|state| state.active_users.note(&user));
            return Ok(None);
        }
        let threads = self.with(|state| {
            state.active_users.note(&user);
            let own = state.users.entry(user.clone()).or_default();
            let fits = own.present < self.limits.of_one_user;
            own.present += usize::from(fits);
            fits.then(|| state.active_users.threads_of(&user))
        });
        match threads {
            Some(threads) => {
                let share = CpuShare::new(self.clone(), threads);
                Ok(Some(InFlightPermit { queue: self.clone(), user, running: None, share }))
            }
            None => Err(ApiError::too_many_requests(TOO_MANY_REQUESTS, 1)),
        }
    }

    /// Lets a watch begin, unless there are too many.
    pub fn watch(&self, identity: &Identity) -> Result<Option<WatchPermit>, ApiError> {
        if identity.is_internal || identity.is_administrator() {
            return Ok(None);
        }
        let user: Box<str> = identity.user.as_str().into();
        let limits = self.limits;
        let is_let_in = self.with(|state| {
            let own = state.users.entry(user.clone()).or_default();
            let fits = own.watches < limits.watches_of_one_user && state.watches < limits.watches;
            own.watches += usize::from(fits);
            state.watches += usize::from(fits);
            fits
        });
        match is_let_in {
            true => Ok(Some(WatchPermit { queue: self.clone(), user })),
            false => Err(ApiError::too_many_requests("too many watches, please try again later", 5)),
        }
    }
}

impl InFlightPermit {
    /// Waits in the queue for a slot.
    pub async fn wait_for_slot(&mut self) -> Result<(), ApiError> {
        let limits = self.queue.limits;
        let wait = self.queue.with(|state| {
            if state.running < limits.in_flight {
                state.running += 1;
                return None;
            }
            let (sender, receiver) = oneshot::channel();
            let own = state.users.entry(self.user.clone()).or_default();
            if own.waiting.is_empty() {
                state.round.push_back(self.user.clone());
            }
            own.waiting.push_back(sender);
            Some(receiver)
        });
        self.running = match wait {
            None => Some(Slot(Some(self.queue.clone()))),
            Some(turn) => match tokio::time::timeout(limits.queue_timeout, turn).await {
                Ok(Ok(running)) => Some(running),
                _ => return Err(ApiError::too_many_requests(TOO_MANY_REQUESTS, 1)),
            },
        };
        Ok(())
    }

    /// Wraps the work of a request, so that it runs only while its user has a worker thread to spare.
    pub fn share<Work: Future>(&self, work: Work) -> FairWork<Work> {
        self.share.run(work)
    }
}

impl State {
    /// Hands the free slot to the next request, round-robin over users, whatever the length of their queues.
    fn admit_next(&mut self, queue: &FairQueue) {
        while let Some(user) = self.round.pop_front() {
            let Some(own) = self.users.get_mut(&user) else { continue };
            let next = own.waiting.pop_front();
            if !own.waiting.is_empty() {
                self.round.push_back(user);
            }
            let Some(next) = next else { continue };
            match next.send(Slot(Some(queue.clone()))) {
                Ok(()) => return,
                // The request timed out in the queue: the slot goes to the next one.
                Err(mut refused) => refused.0 = None,
            }
        }
        self.running -= 1;
    }

    fn leave(&mut self, user: &str) {
        if self.users.get(user).is_some_and(User::is_idle) {
            self.users.remove(user);
        }
    }
}

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        self.queue.with(|state| {
            if let Some(own) = state.users.get_mut(&self.user) {
                own.present -= 1;
            }
            state.leave(&self.user);
        });
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            queue.with(|state| state.admit_next(&queue));
        }
    }
}

impl Drop for WatchPermit {
    fn drop(&mut self) {
        self.queue.with(|state| {
            state.watches -= 1;
            if let Some(own) = state.users.get_mut(&self.user) {
                own.watches -= 1;
            }
            state.leave(&self.user);
        });
    }
}

#[cfg(test)]
mod tests;
