//! `--watch`: prints something again whenever it has changed, until it is done or the user stops it.

use std::time::Duration;

use anyhow::Result;

use crate::output;

/// How often it is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// What there is to see, and whether nothing more is to come.
pub struct View {
    /// As text.
    pub text: String,
    /// True when watching ends.
    pub is_done: bool,
}

/// Prints what `look` sees, and again whenever that has changed.
pub async fn watch(mut look: impl AsyncFnMut() -> Result<View>) -> Result<()> {
    let mut last = String::new();
    loop {
        let View { text, is_done } = look().await?;
        if text != last {
            let gap = if last.is_empty() { "" } else { "\n" };
            output::print(&format!("{gap}{text}"))?;
            last = text;
        }
        if is_done {
            return Ok(());
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
