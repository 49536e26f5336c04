//! `--watch`: prints something again whenever it has changed, until it is done or the user stops it.

use std::time::Duration;

use anyhow::Result;

use crate::output;

/// The poll interval.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// What there is to see, and whether nothing more is to come.
pub struct View {
    /// As text.
    pub text: String,
    /// What has to be different for it to be shown again: the text without ages.
    pub compared: String,
    /// True when watching ends.
    pub is_done: bool,
}

impl View {
    /// A text that is shown again whenever anything in it is different.
    pub fn of(text: String, is_done: bool) -> Self {
        Self { compared: text.clone(), text, is_done }
    }
}

/// Prints what `look` sees, and again whenever that has changed.
pub async fn watch(mut look: impl AsyncFnMut() -> Result<View>) -> Result<()> {
    let mut last: Option<String> = None;
    loop {
        let View { text, compared, is_done } = look().await?;
        if last.as_ref() != Some(&compared) {
            let gap = if last.is_none() { "" } else { "\n" };
            output::print(&format!("{gap}{text}"))?;
            last = Some(compared);
        }
        if is_done {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
