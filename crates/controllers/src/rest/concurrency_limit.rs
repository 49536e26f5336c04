//! The adaptive concurrency limit (AIMD) per API server. After a 429 no requests are sent for as long as the server
//! asks, and the limit shrinks; rising latency lowers the limit a little, normal latency raises it a little.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use supervise::Recovered as _;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Even a server in trouble is asked for something.
const WINDOW_MIN: f64 = 2.0;
/// Where to begin: more than one worker of each controller.
const WINDOW_START: f64 = 32.0;
/// More than this no server answers faster.
const WINDOW_MAX: f64 = 256.0;
/// How much slower than usual an answer may be.
const SLOW_FACTOR: u32 = 4;
/// And by how much at least, so that a fast server is not punished for a hiccup.
const SLOW_BY: Duration = Duration::from_millis(200);
/// How long requests pause after a 429 without Retry-After.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause after a 429.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The flow of requests to one server. Clones share it.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimit(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Held for moments, never across an await.
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug)]
struct State {
    window: f64,
    under_way: usize,
    paused: Option<Instant>,
    /// How fast an answer usually is.
    usual: Option<Duration>,
}

impl Default for ConcurrencyLimit {
    fn default() -> Self {
        let state = State { window: WINDOW_START, under_way: 0, paused: None, usual: None };
        Self(Arc::new(Inner { state: Mutex::new(state), freed: Notify::new() }))
    }
}

/// The right to make one request; given back when it is dropped.
#[derive(Debug)]
pub struct RequestPermit(ConcurrencyLimit);

impl ConcurrencyLimit {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().recovered()
    }

    /// Waits until one more request may be made.
    pub async fn acquire(&self) -> RequestPermit {
        loop {
            let freed = self.0.freed.notified();
            tokio::pin!(freed);
            // Registered before looking, so that nothing is missed in between.
            freed.as_mut().enable();
            let enter = self.state().enter(Instant::now());
            match enter {
                Enter::Now => return RequestPermit(self.clone()),
                Enter::Later(when) => tokio::time::sleep_until(when).await,
                Enter::Full => freed.await,
            }
        }
    }

    /// How many requests may be under way now.
    pub fn window(&self) -> usize {
        self.state().window as usize
    }
}

impl RequestPermit {
    /// The server answered, after so long.
    pub fn answered(&self, took: Duration) {
        self.0.state().answered(took);
    }

    /// The server had too much; it may have said for how long to leave it alone.
    pub fn refused(&self, pause: Option<Duration>) {
        let pause = pause.unwrap_or(PAUSE).min(PAUSE_MAX);
        self.0.state().refused(Instant::now() + pause);
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.0.state().under_way -= 1;
        self.0.0.freed.notify_waiters();
    }
}

enum Enter {
    Now,
    Later(Instant),
    Full,
}

impl State {
    fn enter(&mut self, now: Instant) -> Enter {
        if let Some(paused) = self.paused.filter(|paused| *paused > now) {
            return Enter::Later(paused);
        }
        if self.under_way as f64 >= self.window {
            return Enter::Full;
        }
        self.under_way += 1;
        Enter::Now
    }

    fn answered(&mut self, took: Duration) {
        let usual = self.usual.map_or(took, |usual| usual.min(took));
        // What is usual forgets slowly, so that one lucky answer does not set the measure for ever.
        self.usual = Some(usual + usual / 1_000);
        self.window = match took > usual * SLOW_FACTOR + SLOW_BY {
            true => self.window * 0.95,
            false => self.window + 1.0 / self.window,
        }
        .clamp(WINDOW_MIN, WINDOW_MAX);
    }

    fn refused(&mut self, until: Instant) {
        // Requests that were under way together are refused together; that is one sign, not many.
        if self.paused.is_none_or(|paused| paused <= Instant::now()) {
            self.window = (self.window / 2.0).max(WINDOW_MIN);
        }
        self.paused = Some(self.paused.map_or(until, |paused| paused.max(until)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_has_too_much_is_left_alone_and_asked_less() {
        let (concurrency_limit, begun) = (ConcurrencyLimit::default(), Instant::now());
        let (one, other) = (concurrency_limit.acquire().await, concurrency_limit.acquire().await);
        one.refused(Some(Duration::from_secs(3)));
        other.refused(Some(Duration::from_secs(3)));
        assert_eq!(concurrency_limit.window(), 16, "two that were refused together are one sign");
        drop((one, other));
        let _turn = concurrency_limit.acquire().await;
        assert_eq!(begun.elapsed().as_secs(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn the_window_follows_the_answers() {
        let concurrency_limit = ConcurrencyLimit::default();
        let turn = concurrency_limit.acquire().await;
        for _ in 0..500 {
            turn.answered(Duration::from_millis(5));
        }
        let fast = concurrency_limit.window();
        assert!(fast > 40, "{fast}");
        for _ in 0..20 {
            turn.answered(Duration::from_secs(2));
        }
        let slow = concurrency_limit.window();
        assert!(slow < fast / 2 && slow >= 2, "{slow}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_window_admits_no_request_until_one_ends() {
        let concurrency_limit = ConcurrencyLimit::default();
        let mut turns = Vec::new();
        for _ in 0..32 {
            turns.push(concurrency_limit.acquire().await);
        }
        let waits = tokio::time::timeout(Duration::from_secs(1), concurrency_limit.acquire()).await;
        assert!(waits.is_err());
        turns.pop();
        let _ = tokio::time::timeout(Duration::from_secs(1), concurrency_limit.acquire())
            .await
            .expect("there is room");
    }
}
