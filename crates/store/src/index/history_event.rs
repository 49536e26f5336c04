//! An event in a table's history: plain while current watchers read it, compressed afterwards, so that history costs
//! little memory and watches may resume for long. Knows nothing of tables, locks or durability.

use std::sync::Arc;

use super::version::Version;
use crate::{Event, EventKind, Revision};

/// An event of a table's history. Clones share it.
#[derive(Clone, Debug)]
pub(crate) enum HistoryEvent {
    /// As it came.
    Whole(Arc<Event>),
    /// A put in little space.
    Packed(Arc<PackedPut>),
}

/// What was put, and what was there before; both are shared with the table where it still knows them.
#[derive(Debug)]
pub(crate) struct PackedPut {
    pub(super) version: Version,
    pub(super) previous: Option<Version>,
}

impl HistoryEvent {
    pub(super) fn key(&self) -> &Arc<str> {
        match self {
            HistoryEvent::Whole(event) => &event.key,
            HistoryEvent::Packed(put) => put.version.key(),
        }
    }

    pub(super) fn revision(&self) -> Revision {
        match self {
            HistoryEvent::Whole(event) => event.revision,
            HistoryEvent::Packed(put) => put.version.revision(),
        }
    }

    /// The bytes that statistics count for it, packed or not.
    pub(super) fn size(&self) -> u64 {
        match self {
            HistoryEvent::Whole(event) => event.size(),
            HistoryEvent::Packed(put) => put.version.size(),
        }
    }

    /// The event for watchers. Decompression takes a few microseconds, so callers must not hold a lock.
    pub(crate) fn event(&self) -> Arc<Event> {
        match self {
            HistoryEvent::Whole(event) => event.clone(),
            HistoryEvent::Packed(put) => {
                let entry = put.version.entry();
                Arc::new(Event {
                    key: entry.key,
                    revision: entry.revision,
                    created: entry.created,
                    value: entry.value,
                    previous: put.previous.as_ref().map(|version| Box::new(version.entry().value)),
                    kind: EventKind::Put,
                })
            }
        }
    }
}
