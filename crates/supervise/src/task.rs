//! A supervised task that must run for ever.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::caught::{Panic, catch};

/// The first pause before a task that ended is started again; it doubles.
const RESTART_DELAY_MIN: Duration = Duration::from_millis(100);
/// The longest pause.
const RESTART_DELAY_MAX: Duration = Duration::from_secs(30);

/// Runs a task until `stop`: one that panics or returns is restarted after a growing back-off. `panicked` is called
/// with each panic and the pause.
pub async fn keep_running<Running>(
    name: &str,
    stop: &CancellationToken,
    panicked: impl Fn(&Panic, Duration),
    mut make: impl FnMut() -> Running,
) where
    Running: Future<Output = ()>,
{
    let mut backoff = Backoff::new(RESTART_DELAY_MIN, RESTART_DELAY_MAX);
    loop {
        // Making it is part of running it.
        let ended = catch(async { make().await }).await;
        if stop.is_cancelled() {
            return;
        }
        let delay = backoff.failed();
        match ended {
            Ok(()) => tracing::error!(task = name, ?delay, "a task ended unexpectedly and is restarted"),
            Err(panic) => panicked(&panic, delay),
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(delay) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_or_ends_is_started_again_until_it_is_stopped() {
        let stop = CancellationToken::new();
        let (starts, panics) = (Cell::new(0), Cell::new(0));
        keep_running(
            "test",
            &stop,
            |_, _| panics.set(panics.get() + 1),
            || {
                starts.set(starts.get() + 1);
                assert!(starts.get() != 1, "while it is made");
                let (number, stop) = (starts.get(), stop.clone());
                async move {
                    match number {
                        2 => panic!("while it runs"),
                        3 => {}
                        _ => stop.cancel(),
                    }
                }
            },
        )
        .await;
        assert_eq!((starts.get(), panics.get()), (4, 2));
    }
}
