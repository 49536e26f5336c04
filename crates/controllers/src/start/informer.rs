//! An informer: the reflector of one collection, whose changes go into the cache and from there to the queues, as a row
//! of `watches` says. Controllers start after every required informer has synced.

use std::sync::atomic::{AtomicBool, Ordering};

use api::kinds::Kind;
use kube::core::TypeMeta;
use tokio_util::sync::CancellationToken;

use super::Starter;
use super::watches::Row;
use crate::ctx::Ctx;
use crate::discovery::TemplateKind;
use crate::reflector::{Delta, Reflected, Report, reflect};
use crate::rest::Collection;

/// How the cache takes a change; `None` if that affects nothing.
pub(super) type CacheChange<T, Change> = fn(&Ctx, &TypeMeta, Delta<T>) -> Option<Change>;

/// The collection that an informer lists and watches.
pub(super) struct Source {
    collection: Collection,
    types: TypeMeta,
}

impl Source {
    fn of(kind: &Kind) -> Self {
        let types = TypeMeta { api_version: kind.api_version(), kind: kind.kind.to_owned() };
        Self { collection: Collection::of(kind, ""), types }
    }

    /// A kind that discovery found.
    pub(super) fn discovered(kind: &TemplateKind) -> Self {
        let types = TypeMeta { api_version: kind.api_version.clone(), kind: kind.kind.clone() };
        Self { collection: Collection::new(&kind.api_version, &kind.plural, ""), types }
    }

    /// CustomResourceDefinitions.
    pub(super) fn definitions() -> Self {
        let (api_version, kind) =
            ("apiextensions.k8s.io/v1".to_owned(), "CustomResourceDefinition".to_owned());
        let collection = Collection::new(&api_version, "customresourcedefinitions", "");
        Self { collection, types: TypeMeta { api_version, kind } }
    }
}

/// How an informer is stopped, and whether it has stopped.
#[derive(Clone)]
pub(super) struct Informer {
    /// Stops it.
    pub stop: CancellationToken,
    /// Cancelled once it has stopped.
    pub stopped: CancellationToken,
    /// Whether controllers wait for its first sync even if the server refuses to list the collection.
    pub required: bool,
}

impl Starter {
    /// Watches the kinds of a row.
    pub(super) fn watch<T: Reflected, Change>(&self, row: &'static Row<T, Change>) {
        row.kinds.iter().for_each(|kind| self.watch_source(Source::of(kind), row));
    }

    /// Watches one collection as a row says.
    pub(super) fn watch_source<T: Reflected, Change>(&self, source: Source, row: &'static Row<T, Change>) {
        let informer =
            Informer { stop: self.stop.clone(), stopped: CancellationToken::new(), required: true };
        self.run_informer(informer, source, row);
    }

    /// The same, until the informer is stopped; one that stops before it has synced no longer blocks the start.
    pub(super) fn run_informer<T: Reflected, Change>(
        &self,
        informer: Informer,
        source: Source,
        row: &'static Row<T, Change>,
    ) {
        self.unsynced.change(|unsynced| *unsynced += 1);
        let starter = self.clone();
        self.spawn("watch", async move {
            let Source { collection, types } = source;
            let synced = AtomicBool::new(false);
            let note_synced = || {
                if !synced.swap(true, Ordering::AcqRel) {
                    starter.unsynced.change(|unsynced| *unsynced -= 1);
                }
            };
            let sink = |report: Report<T>| match report {
                Report::Change(delta) => {
                    if let Some(change) = (row.cache)(&starter.ctx, &types, delta) {
                        row.wakes.iter().for_each(|wake| wake.fire(&starter, &change));
                    }
                }
                Report::Synced => note_synced(),
                // A kind that cannot be listed, because its conversion fails for instance, must not stop the others.
                Report::ListRefused if !informer.required => note_synced(),
                Report::ListRefused => {}
            };
            let (rest, supervisor) = (starter.ctx.control.clone(), &starter.ctx.supervisor);
            reflect(rest, collection, types.clone(), "", informer.stop.clone(), supervisor, sink).await;
            note_synced();
            informer.stopped.cancel();
        });
    }
}
