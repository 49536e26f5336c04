//! What every controller runs on: keys in, reconciles out. A reconcile gets a key and nothing else; it
//! may run twice, late, or after a crash. Retries and waits live here, not in controllers.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

mod queue;
mod reflect;
mod watched;

pub use queue::{Priority, Queue, QueueStats};
pub use reflect::{Outline, Reflected, Seen, reflect};
pub use watched::Watched;

/// Failures that come again after less than this have not lasted yet.
const WORTH_A_WARNING: Duration = Duration::from_millis(500);

/// What a reconcile asks for next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing, until something the key depends on changes.
    Wait,
    /// To be run again after a while, because time itself is an input.
    After(Duration),
    /// To be run again once news about the key is gathered.
    Gathered,
}

/// What can be a key: small, comparable, printable.
pub trait Key: Clone + Eq + Ord + Hash + Debug + Send + Sync + 'static {}
impl<Any: Clone + Eq + Ord + Hash + Debug + Send + Sync + 'static> Key for Any {}

/// Runs `reconcile` for every key of the queue with so many workers, until `stop`. A failed key comes back
/// with growing delay; a key is never in the hands of two workers.
pub fn run<K, Reconcile, Running, Error>(
    name: &'static str,
    queue: &Queue<K>,
    workers: usize,
    stop: &CancellationToken,
    reconcile: Reconcile,
) -> Vec<JoinHandle<()>>
where
    K: Key,
    Reconcile: Fn(K) -> Running + Send + Sync + 'static,
    Running: Future<Output = Result<Next, Error>> + Send + 'static,
    Error: std::error::Error + Send + 'static,
{
    let reconcile = Arc::new(reconcile);
    let worker = |_| tokio::spawn(work(name, queue.clone(), stop.clone(), reconcile.clone()));
    (0..workers).map(worker).collect()
}

async fn work<K, Reconcile, Running, Error>(
    name: &'static str,
    queue: Queue<K>,
    stop: CancellationToken,
    reconcile: Arc<Reconcile>,
) where
    K: Key,
    Reconcile: Fn(K) -> Running,
    Running: Future<Output = Result<Next, Error>>,
    Error: std::error::Error,
{
    loop {
        let key = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            key = queue.next() => key,
        };
        match reconcile(key.clone()).await {
            Ok(Next::Wait) => queue.succeeded(&key),
            Ok(Next::After(delay)) => {
                queue.succeeded(&key);
                queue.add_after(key, delay);
            }
            Ok(Next::Gathered) => {
                queue.succeeded(&key);
                queue.add_gathered(key);
            }
            Err(error) => {
                let delay = queue.failed(&key);
                // A view that lags behind our own writes is ordinary and gone at the next look.
                match delay < WORTH_A_WARNING {
                    true => {
                        tracing::debug!(controller = name, ?key, %error, ?delay, "reconcile is tried again")
                    }
                    false => {
                        tracing::warn!(controller = name, ?key, %error, ?delay, "reconcile keeps failing")
                    }
                }
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
        let workers = run("test", &queue, 2, &stop, move |_: u8| {
            let tries = counted.clone();
            async move {
                match tries.fetch_add(1, Ordering::Relaxed) {
                    0..4 => Err(NotYet),
                    _ => Ok(Next::Wait),
                }
            }
        });
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
        let workers = run("test", &queue, 2, &stop, move |key: u8| async move {
            match key == 7 && begun.elapsed() < Duration::from_mins(3) {
                true => Err(NotYet),
                false => Ok(Next::Wait),
            }
        });
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
        run("test", &queue, 1, &stop, move |key: u8| {
            sink.lock().unwrap().push(key);
            async { Ok::<_, NotYet>(Next::Wait) }
        });
        queue.idle().await;
        assert_eq!(*seen.lock().unwrap(), [9, 3, 0, 1, 2, 4]);
    }
}
