//! Passes the changes of a collection to the sink, and retries those whose handling panicked.

use std::fmt;
use std::time::Duration;

use supervise::{Backoff, catch_call};
use tokio::time::Instant;

use super::{Delta, NamespacedName, Report};
use crate::rest::Collection;
use crate::runtime::Supervisor;

/// How soon everything is listed again after a change whose handling panicked; it doubles.
const RETRY_AFTER_PANIC_MIN: Duration = Duration::from_secs(1);
/// The longest time until then: a list costs, and an object that always panics would do so for ever.
const RETRY_AFTER_PANIC_MAX: Duration = Duration::from_mins(5);

/// After so many lists in a row with a panic the collection is reported as refused, so that others can go on.
const LISTS_FAILED_MAX: u32 = 3;

/// Passes changes to the sink. A change whose handling panics is passed again with the next list, which then comes
/// soon, and hides no other.
pub(super) struct GuardedSink<'a, Sink> {
    sink: Sink,
    collection: &'a Collection,
    supervisor: &'a Supervisor,
    backoff: Backoff,
    /// When to list again because of a panic; none if everything since the last list was handled.
    pub(super) retry_at: Option<Instant>,
    /// How many lists in a row were not handled as a whole.
    lists_failed: u32,
}

impl<'a, Sink> GuardedSink<'a, Sink> {
    pub(super) fn new(sink: Sink, collection: &'a Collection, supervisor: &'a Supervisor) -> Self {
        let backoff = Backoff::new(RETRY_AFTER_PANIC_MIN, RETRY_AFTER_PANIC_MAX);
        Self { sink, collection, supervisor, backoff, retry_at: None, lists_failed: 0 }
    }

    /// Reports that listing is refused.
    pub(super) fn list_refused<T>(&mut self)
    where
        Sink: FnMut(Report<T>),
    {
        self.guarded(&Default::default(), |sink| sink(Report::ListRefused));
    }

    /// Reports an object that exists.
    pub(super) fn applied<T>(&mut self, name: &NamespacedName, object: T)
    where
        Sink: FnMut(Report<T>),
    {
        self.guarded(name, |sink| sink(Report::Change(Delta::Applied(Box::new(object)))));
    }

    /// Reports a deleted object; false if that was not handled.
    pub(super) fn deleted<T>(&mut self, name: &NamespacedName) -> bool
    where
        Sink: FnMut(Report<T>),
    {
        self.guarded(name, |sink| sink(Report::Change(Delta::Deleted(name.clone()))))
    }

    /// Reports the end of a list. An object that could not be handled must not be taken for absent.
    pub(super) fn list_ended<T>(&mut self)
    where
        Sink: FnMut(Report<T>),
    {
        self.lists_failed = if self.retry_at.is_some() { self.lists_failed + 1 } else { 0 };
        let ended = match self.lists_failed {
            0 => Report::Synced,
            LISTS_FAILED_MAX => Report::ListRefused,
            _ => return,
        };
        self.guarded(&Default::default(), |sink| sink(ended));
    }

    fn guarded(&mut self, name: &NamespacedName, act: impl FnOnce(&mut Sink)) -> bool {
        let Self { sink, supervisor, collection, backoff, retry_at, .. } = self;
        let subject = Subject { collection, name };
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
    name: &'s NamespacedName,
}

impl fmt::Debug for Subject<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}/{}", self.collection, self.name.namespace, self.name.name)
    }
}
