//! Passes the changes of a collection to the sink, and retries those whose handling panicked.

use std::fmt;
use std::time::Duration;

use supervise::{Backoff, catch_call};
use tokio::time::Instant;

use super::Seen;
use crate::rest::Collection;
use crate::runtime::Supervisor;

/// How soon everything is listed again after a change whose handling panicked; it doubles.
const RETRY_AFTER_PANIC_MIN: Duration = Duration::from_secs(1);
/// The longest time until then: a list costs, and an object that always panics would do so for ever.
const RETRY_AFTER_PANIC_MAX: Duration = Duration::from_mins(5);

/// After so many lists in a row that could not be handled, others go on without the collection if they can.
const LISTS_FAILED_LASTING: u32 = 3;

/// Passes changes to the sink. A change whose handling panics is passed again with the next list, which then comes
/// soon, and hides no other.
pub(super) struct Handled<'a, Sink> {
    sink: Sink,
    collection: &'a Collection,
    supervisor: &'a Supervisor,
    backoff: Backoff,
    /// When to list again because of a panic; none if everything since the last list was handled.
    pub(super) retry_at: Option<Instant>,
    /// How many lists in a row were not handled as a whole.
    lists_failed: u32,
}

impl<'a, Sink> Handled<'a, Sink> {
    pub(super) fn new(sink: Sink, collection: &'a Collection, supervisor: &'a Supervisor) -> Self {
        let backoff = Backoff::new(RETRY_AFTER_PANIC_MIN, RETRY_AFTER_PANIC_MAX);
        Self { sink, collection, supervisor, backoff, retry_at: None, lists_failed: 0 }
    }

    /// Reports that listing is refused.
    pub(super) fn refused<T>(&mut self)
    where
        Sink: FnMut(Seen<T>),
    {
        self.guarded(&Default::default(), |sink| sink(Seen::Refused));
    }

    /// Reports an object that exists.
    pub(super) fn object<T>(&mut self, place: &(String, String), object: T)
    where
        Sink: FnMut(Seen<T>),
    {
        self.guarded(place, |sink| sink(Seen::Is(Box::new(object))));
    }

    /// Reports a deleted object; false if that was not handled.
    pub(super) fn gone<T>(&mut self, place: &(String, String)) -> bool
    where
        Sink: FnMut(Seen<T>),
    {
        self.guarded(place, |sink| sink(Seen::Gone(place.0.clone(), place.1.clone())))
    }

    /// Reports the end of a list. An object that could not be handled must not be taken for absent.
    pub(super) fn listed<T>(&mut self)
    where
        Sink: FnMut(Seen<T>),
    {
        self.lists_failed = if self.retry_at.is_some() { self.lists_failed + 1 } else { 0 };
        let ended = match self.lists_failed {
            0 => Seen::Complete,
            LISTS_FAILED_LASTING => Seen::Refused,
            _ => return,
        };
        self.guarded(&Default::default(), |sink| sink(ended));
    }

    fn guarded(&mut self, place: &(String, String), act: impl FnOnce(&mut Sink)) -> bool {
        let Self { sink, supervisor, collection, backoff, retry_at, .. } = self;
        let subject = Subject { collection, place };
        let handled = catch_call(|| {
            supervisor.inject("watch", &subject);
            act(sink);
        });
        if let Err(panic) = &handled {
            supervisor.task_panicked("watch", &subject, panic);
            retry_at.get_or_insert_with(|| Instant::now() + backoff.failed());
        }
        handled.is_ok()
    }
}

/// The object that is being handled, formatted only if it is logged.
struct Subject<'s> {
    collection: &'s Collection,
    place: &'s (String, String),
}

impl fmt::Debug for Subject<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}/{}", self.collection, self.place.0, self.place.1)
    }
}
