//! Starts and stops the informers of template kinds: every kind that discovery finds, discovered again when a CRD
//! changes and periodically. The informer of a kind that is no longer served is stopped.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use decide::TemplateKey;
use supervise::Recovered as _;
use tokio_util::sync::CancellationToken;

use super::Starter;
use super::informer::{Informer, Source};
use super::watches::TEMPLATES;
use crate::cache::Served;
use crate::discovery::{self, Found, TemplateKind};
use crate::runtime::Priority;

/// The interval of discovery when no definition changes: aggregated kinds have no definition.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(30);
/// The debounce interval of changes of definitions, which come in bursts.
const DEFINITIONS_DEBOUNCE: Duration = Duration::from_millis(20);

/// The retry interval of discovery after an API group did not answer.
const DISCOVERY_RETRY_INTERVAL: Duration = Duration::from_secs(2);

impl Starter {
    /// Discovers the kinds of templates and watches each, for ever.
    pub(super) async fn discover(self) {
        loop {
            self.ctx.supervisor.inject("discovery", &"kinds");
            let again = match discovery::template_kinds(&self.ctx.control).await {
                Ok(found) => {
                    let again = if found.unanswered.is_empty() {
                        DISCOVERY_INTERVAL
                    } else {
                        DISCOVERY_RETRY_INTERVAL
                    };
                    self.stop_unserved(&found).await;
                    found.kinds.into_iter().for_each(|kind| self.watch_templates(kind));
                    if !self.discovered.swap(true, Ordering::AcqRel) {
                        self.unsynced.change(|unsynced| *unsynced -= 1);
                    }
                    self.enqueue_templates_of_gone_kinds().await;
                    again
                }
                Err(error) => {
                    tracing::warn!(%error, "discovery failed");
                    DISCOVERY_RETRY_INTERVAL
                }
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = self.definitions.notified() => {}
                () = tokio::time::sleep(again) => {}
            }
            tokio::time::sleep(DEFINITIONS_DEBOUNCE).await;
        }
    }

    fn watch_templates(&self, kind: TemplateKind) {
        let mut informers = self.informers.lock().recovered();
        if informers.contains_key(&kind) {
            return;
        }
        let (stop, stopped) = (self.stop.child_token(), CancellationToken::new());
        let informer = Informer { stop, stopped, required: false };
        informers.insert(kind.clone(), informer.clone());
        drop(informers);
        let source = Source::discovered(&kind);
        let TemplateKind { api_version, kind, plural, namespaced } = kind;
        self.ctx.cache.served().put(&api_version, &kind, Served { plural, namespaced });
        self.run_informer(informer, source, &TEMPLATES);
    }

    /// Stops the informers of kinds that are no longer served. A kind whose group did not answer stays as it is.
    async fn stop_unserved(&self, found: &Found) {
        let stays =
            |kind: &TemplateKind| found.kinds.contains(kind) || found.unanswered.contains(&kind.api_version);
        let vanished: Vec<(TemplateKind, Informer)> = {
            let mut informers = self.informers.lock().recovered();
            informers.extract_if(.., |kind, _| !stays(kind)).collect()
        };
        for (kind, informer) in vanished {
            informer.stop.cancel();
            // No change of an object may arrive after the object was removed from the cache.
            informer.stopped.cancelled().await;
            let left = self.ctx.cache.remove_kind(&kind.api_version, &kind.kind);
            self.enqueue_templates(left);
        }
    }

    /// When a kind is really gone its templates are gone, and their controllers must be notified. Its absence from
    /// discovery is not enough; the server is asked about it by name.
    async fn enqueue_templates_of_gone_kinds(&self) {
        let cache = &self.ctx.cache;
        let templates = cache.templates_of_unserved_kinds();
        let kind = |key: &TemplateKey| (key.api_version.clone(), key.kind.clone());
        let kinds: BTreeSet<(String, String)> = templates.iter().map(kind).collect();
        for (api_version, kind) in kinds {
            match discovery::is_gone(&self.ctx.control, &api_version, &kind).await {
                Ok(true) => cache.served().note_gone(&api_version, &kind),
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(%error, api_version, kind, "cannot find out whether a kind is gone")
                }
            }
        }
        let gone = |key: &TemplateKey| cache.served().is_gone(&key.api_version, &key.kind);
        self.enqueue_templates(templates.into_iter().filter(gone));
    }

    fn enqueue_templates(&self, templates: impl IntoIterator<Item = TemplateKey>) {
        let queue = &self.ctx.queues.detector;
        templates.into_iter().for_each(|key| queue.add(key, Priority::Resync));
    }
}
