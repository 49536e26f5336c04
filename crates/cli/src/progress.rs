//! A progress message for operations that take longer than a second, only on a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// When the first word is said, and how often the next ones.
const MESSAGE_INTERVAL: Duration = Duration::from_secs(1);

/// Waits for `done`; meanwhile says what is being done, on stderr and only on a terminal.
pub async fn with_progress<T>(what: &str, done: impl Future<Output = T>) -> T {
    if !std::io::stderr().is_terminal() {
        return done.await;
    }
    let begun = Instant::now();
    let mut ticks = interval_at(begun + MESSAGE_INTERVAL, MESSAGE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut done = std::pin::pin!(done);
    let mut said = false;
    loop {
        tokio::select! {
            biased;
            answer = &mut done => {
                if said {
                    write_raw("\r\u{1b}[K");
                }
                return answer;
            }
            _ = ticks.tick() => {
                said = true;
                write_raw(&format!("\r\u{1b}[K{what} … {} s", begun.elapsed().as_secs()));
            }
        }
    }
}

/// Writes to a terminal as it is, without the end of a line.
pub fn write_raw(text: &str) {
    let mut stderr = std::io::stderr();
    // If stderr is closed, no reader misses the message.
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
