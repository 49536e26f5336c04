//! The runtime of every controller: a work queue, workers, retries with backoff. A reconcile gets a key and nothing
//! else; it may run twice, late, or after a crash. Retries and requeues live here, not in controllers.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use supervise::{Panic, catch, keep_running};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

mod queue;
mod supervisor;
mod watched;

pub use queue::{Priority, Queue, QueueStats};
pub use supervisor::Supervisor;
pub use watched::Watched;

/// A failure whose retry delay is shorter than this is logged at debug level only.
const WARNING_DELAY_MIN: Duration = Duration::from_millis(500);

/// What a reconcile asks for next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing, until something the key depends on changes.
    AwaitChange,
    /// To be run again after a while, because time itself is an input.
    RequeueAfter(Duration),
    /// Requeue after the debounce interval.
    RequeueDebounced,
}

/// What can be a key: small, comparable, printable.
pub trait Key: Clone + Eq + Ord + Hash + Debug + Send + Sync + 'static {}
impl<Any: Clone + Eq + Ord + Hash + Debug + Send + Sync + 'static> Key for Any {}

/// Runs `reconcile` for every key of the queue with so many workers, until `stop`. A key that failed or panicked is
/// requeued with exponential backoff, and a panic is passed to `panicked`; no two workers ever hold the same key.
pub fn run<K, Reconcile, Running, Error>(
    name: &'static str,
    queue: &Queue<K>,
    workers: usize,
    stop: &CancellationToken,
    panicked: impl Fn(&K, &Panic) + Send + Sync + 'static,
    reconcile: Reconcile,
) -> Vec<JoinHandle<()>>
where
    K: Key,
    Reconcile: Fn(K) -> Running + Send + Sync + 'static,
    Running: Future<Output = Result<Action, Error>> + Send + 'static,
    Error: std::error::Error + Send + 'static,
{
    let (panicked, reconcile) = (Arc::new(panicked), Arc::new(reconcile));
    let worker = |_| {
        let (queue, stop) = (queue.clone(), stop.clone());
        let (panicked, reconcile) = (panicked.clone(), reconcile.clone());
        tokio::spawn(async move {
            let restarted = |panic: &Panic, delay: Duration| {
                tracing::error!(controller = name, %panic, ?delay, "a worker panicked; it is started again");
            };
            keep_running(name, &stop, restarted, || work(name, &queue, &stop, &*panicked, &*reconcile)).await;
        })
    };
    (0..workers).map(worker).collect()
}

async fn work<K, Reconcile, Running, Error>(
    name: &'static str,
    queue: &Queue<K>,
    stop: &CancellationToken,
    panicked: &impl Fn(&K, &Panic),
    reconcile: &Reconcile,
) where
    K: Key,
    Reconcile: Fn(K) -> Running,
    Running: Future<Output = Result<Action, Error>>,
    Error: std::error::Error,
{
    loop {
        let key = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            key = queue.next() => key,
        };
        match catch(async { reconcile(key.clone()).await }).await {
            Ok(Ok(Action::AwaitChange)) => queue.succeeded(&key),
            Ok(Ok(Action::RequeueAfter(delay))) => {
                queue.succeeded(&key);
                queue.add_after(key, delay);
            }
            Ok(Ok(Action::RequeueDebounced)) => {
                queue.succeeded(&key);
                queue.add_debounced(key);
            }
            Ok(Err(error)) => {
                let delay = queue.failed(&key);
                // A cache that lags behind our own writes is ordinary, and the retry succeeds.
                match delay < WARNING_DELAY_MIN {
                    true => {
                        tracing::debug!(controller = name, ?key, %error, ?delay, "reconcile is tried again")
                    }
                    false => {
                        tracing::warn!(controller = name, ?key, %error, ?delay, "reconcile keeps failing")
                    }
                }
            }
            Err(panic) => {
                // Returned to the queue first, so that the key is not lost if the handler panics as well.
                queue.failed(&key);
                panicked(&key, &panic);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("not yet")]
    struct NotYet;

    #[tokio::test(start_paused = true)]
    async fn a_failing_key_comes_back_until_it_succeeds() {
        let queue = Queue::new();
        let stop = CancellationToken::new();
        let tries = Arc::new(AtomicU32::new(0));
        let counted = tries.clone();
        let workers = run(
            "test",
            &queue,
            2,
            &stop,
            |_: &u8, _: &Panic| {},
            move |_: u8| {
                let tries = counted.clone();
                async move {
                    match tries.fetch_add(1, Ordering::Relaxed) {
                        0..4 => Err(NotYet),
                        _ => Ok(Action::AwaitChange),
                    }
                }
            },
        );
        queue.add(7, Priority::User);
        queue.idle().await;
        assert_eq!(tries.load(Ordering::Relaxed), 5);
        stop.cancel();
        for worker in workers {
            worker.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_fails_for_long_is_counted_until_it_succeeds() {
        let queue = Queue::new();
        let stop = CancellationToken::new();
        let begun = tokio::time::Instant::now();
        let workers = run(
            "test",
            &queue,
            2,
            &stop,
            |_: &u8, _: &Panic| {},
            move |key: u8| async move {
                match key == 7 && begun.elapsed() < Duration::from_mins(3) {
                    true => Err(NotYet),
                    false => Ok(Action::AwaitChange),
                }
            },
        );
        queue.add(7, Priority::User);
        queue.add(8, Priority::User);
        for (seconds, failing) in [(3, 0), (30, 1), (170, 1)] {
            tokio::time::sleep_until(begun + Duration::from_secs(seconds)).await;
            assert_eq!(queue.stats().failing, failing, "after {seconds} s");
        }
        queue.idle().await;
        assert_eq!(queue.stats().failing, 0);
        stop.cancel();
        for worker in workers {
            worker.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_panics_comes_back_later_and_later_and_stops_no_worker() {
        let queue = Queue::new();
        let stop = CancellationToken::new();
        let begun = tokio::time::Instant::now();
        let (tries, panics) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (tried, counted) = (tries.clone(), panics.clone());
        let panicked = move |key: &u8, _: &Panic| {
            assert_eq!(*key, 7);
            counted.fetch_add(1, Ordering::Relaxed);
        };
        let workers = run("test", &queue, 2, &stop, panicked, move |key: u8| {
            let number = if key == 7 { tried.fetch_add(1, Ordering::Relaxed) } else { u32::MAX };
            assert!(number > 1, "where the future is made");
            async move {
                assert!(number > 4, "while it runs");
                Ok::<_, NotYet>(Action::AwaitChange)
            }
        });
        (0..20).for_each(|key| queue.add(key, Priority::User));
        tokio::time::timeout(Duration::from_secs(60), queue.idle()).await.expect("every key is done");
        assert_eq!((tries.load(Ordering::Relaxed), panics.load(Ordering::Relaxed)), (6, 5));
        // 5, 10, 20, 40 and 80 milliseconds.
        assert!(begun.elapsed() >= Duration::from_millis(155), "{:?}", begun.elapsed());
        assert!(workers.iter().all(|worker| !worker.is_finished()));
    }

    #[tokio::test(start_paused = true)]
    async fn users_go_before_resyncs_and_a_key_runs_once_at_a_time() {
        let queue = Queue::new();
        for key in 0..5 {
            queue.add(key, Priority::Resync);
        }
        queue.add(9, Priority::User);
        queue.add(3, Priority::User);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let stop = CancellationToken::new();
        let sink = seen.clone();
        run(
            "test",
            &queue,
            1,
            &stop,
            |_: &u8, _: &Panic| {},
            move |key: u8| {
                sink.lock().unwrap().push(key);
                async { Ok::<_, NotYet>(Action::AwaitChange) }
            },
        );
        queue.idle().await;
        assert_eq!(*seen.lock().unwrap(), [9, 3, 0, 1, 2, 4]);
    }
}
