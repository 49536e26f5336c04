//! A watch: a cursor over a table's events and a wake-up. There is no queue per watcher, so nothing can be lost,
//! repeated or reordered, and a slow watcher does not block writers or other watchers.

use std::sync::Arc;

use tokio::sync::watch;

use crate::index::{Cursor, HistoryEvent, Index, Step};
use crate::{Batch, Event, Revision, WatchError};

/// The most events of one batch.
const BATCH_EVENTS_MAX: usize = 512;

/// A place in the events of a table that moves as they are taken.
pub struct Watch {
    index: Arc<Index>,
    cursor: Cursor,
    wake: watch::Receiver<()>,
}

impl Watch {
    pub(crate) fn new(index: Arc<Index>, cursor: Cursor, wake: watch::Receiver<()>) -> Watch {
        Watch { index, cursor, wake }
    }

    /// Waits for events and takes those that are there. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Batch, WatchError> {
        loop {
            // Marked as seen before looking: a wake-up that comes while we look ends the wait below.
            self.wake.mark_unchanged();
            if let Some(events) = self.take()? {
                return Ok(Batch { events, revision: self.cursor.revision });
            }
            self.wake.changed().await.map_err(|_| WatchError::Closed)?;
        }
    }

    /// Everything that this watch asked for up to this revision has been delivered; on a quiet table it
    /// follows the store, so a caller with a timer can tell its client how far it has seen.
    pub fn revision(&mut self) -> Revision {
        // Taking no event moves the cursor over those that this watch does not want, up to one it wants.
        loop {
            let before = self.cursor.place;
            let step = self.index.advance(&mut self.cursor, 0);
            if !matches!(step, Step::More) || self.cursor.place == before {
                return self.cursor.revision;
            }
        }
    }

    /// The events that are there; `None` when there are none yet.
    fn take(&mut self) -> Result<Option<Vec<Arc<Event>>>, WatchError> {
        loop {
            match self.index.advance(&mut self.cursor, BATCH_EVENTS_MAX) {
                Step::Events(events) => return Ok(Some(events.iter().map(HistoryEvent::event).collect())),
                Step::More => {}
                Step::Nothing { closed: false } => return Ok(None),
                Step::Nothing { closed: true } => return Err(WatchError::Closed),
                Step::Compacted { oldest } => return Err(WatchError::Compacted { oldest }),
            }
        }
    }
}
