//! The task runtime of a member: all its tasks are spawned here, and end on shutdown.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use supervise::{Backoff, catch};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::worker::Worker;
use crate::write_backoff::WriteBackoff;

/// How many may wait at once for a member to have nothing left to do.
pub const IDLE_WAITERS_MAX: usize = 64;

/// The first pause before a member that panicked begins anew; it doubles.
const RESTART_DELAY_MIN: Duration = Duration::from_millis(100);
/// The longest pause.
const RESTART_DELAY_MAX: Duration = Duration::from_secs(30);

/// A caller that waits until nothing is left to do.
pub type Ask = oneshot::Sender<()>;

/// What a member keeps when its worker has to begin anew.
struct Kept {
    write_backoff: Option<WriteBackoff>,
    asks: mpsc::Receiver<Ask>,
    /// Callers without an answer yet.
    asking: Vec<Ask>,
}

/// Starts the task that reconciles a member's objects, with write back-off where clients' writes can be distinguished.
/// Should it panic, a new worker lists everything again and goes on.
pub fn start(
    name: &str,
    make_worker: impl Fn() -> Worker + Send + 'static,
    write_backoff: Option<WriteBackoff>,
    asks: mpsc::Receiver<Ask>,
    stop: CancellationToken,
) -> JoinHandle<()> {
    let span = tracing::info_span!("member", name);
    let task = async move {
        let mut kept = Kept { write_backoff, asks, asking: Vec::new() };
        let mut backoff = Backoff::new(RESTART_DELAY_MIN, RESTART_DELAY_MAX);
        while let Err(panic) = catch(run(make_worker(), &mut kept, &stop)).await {
            let delay = backoff.failed();
            tracing::error!(%panic, ?delay, "the member panicked and begins anew");
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(delay) => {}
            }
        }
    };
    // The task judges by pending reflectors that it has seen everything; a budget that makes them pend for
    // fairness would mislead it. It yields by itself.
    tokio::spawn(tokio::task::unconstrained(task.instrument(span)))
}

async fn run(mut worker: Worker, kept: &mut Kept, stop: &CancellationToken) {
    let Kept { write_backoff, asks, asking } = kept;
    while !stop.is_cancelled() {
        // The task is free of tokio's budget, so it has to yield by itself, however many changes there are.
        tokio::task::yield_now().await;
        let received = poll_fn(|context| Poll::Ready(worker.take_updates(context))).await;
        // Nothing is reconciled before every informer has synced: an object that was not reported yet is not absent.
        if worker.has_synced() {
            worker.take_due();
            let had_work = worker.has_work();
            while worker.has_work() {
                let writes = worker.writes();
                if let Some(until) = write_backoff.as_mut().and_then(|own| own.wait(writes, Instant::now())) {
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep_until(until) => {}
                    }
                    break;
                }
                worker.work().await;
                tokio::task::yield_now().await;
                if stop.is_cancelled() {
                    return;
                }
            }
            if received > 0 || had_work {
                continue;
            }
            if !worker.expects_work() {
                for ask in asking.drain(..) {
                    // A caller that dropped its receiver needs no answer.
                    let _ = ask.send(());
                }
            }
        }
        let due = worker.next_due();
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = poll_fn(|context| match worker.take_updates(context) {
                0 => Poll::Pending,
                _ => Poll::Ready(()),
            }) => {}
            ask = asks.recv(), if asking.len() < IDLE_WAITERS_MAX => match ask {
                Some(ask) => asking.push(ask),
                None => return,
            },
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
    }
}

#[cfg(test)]
mod tests;
