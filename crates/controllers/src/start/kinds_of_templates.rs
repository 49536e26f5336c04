//! Starts and stops the informers of template kinds: every kind that discovery finds, discovered again when a CRD
//! changes and periodically. The informer of a kind that is no longer served is stopped.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use decide::TemplateKey;
use supervise::Recovered as _;
use tokio_util::sync::CancellationToken;

use super::{Starter, place};
use crate::cache::Served;
use crate::ctx::Ctx;
use crate::discovery::{self, Found, TemplateKind};
use crate::rest::Collection;
use crate::runtime::{Outline, Priority, Seen};
use crate::{binding_status, clients};

/// How often kinds are looked for when no definition changes: aggregated ones come without.
const DISCOVER_EVERY: Duration = Duration::from_secs(30);
/// How long changes of definitions are gathered: they come in bursts.
const GATHER: Duration = Duration::from_millis(20);

/// The retry interval of discovery after an API group did not answer.
const UNANSWERED: Duration = Duration::from_secs(2);

/// How the following of one collection is ended, and whether it has.
#[derive(Clone)]
pub(super) struct Followed {
    /// Ends it.
    pub stop: CancellationToken,
    /// Cancelled once it has ended.
    pub ended: CancellationToken,
    /// Whether controllers wait for its first sync.
    pub indispensable: bool,
}

impl Starter {
    /// Notices definitions of kinds.
    pub(super) fn follow_definitions(&self) {
        let definitions = self.definitions.clone();
        let collection = Collection::new("apiextensions.k8s.io/v1", "customresourcedefinitions", "");
        let kind = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        self.follow(collection, kind, move |_: Seen<Outline>| definitions.notify_one());
    }

    /// Finds the kinds of templates and follows each, for ever.
    pub(super) async fn discover(self) {
        loop {
            self.ctx.supervisor.inject("discovery", &"kinds");
            let again = match discovery::template_kinds(&self.ctx.control).await {
                Ok(found) => {
                    let again = if found.unanswered.is_empty() { DISCOVER_EVERY } else { UNANSWERED };
                    self.leave_all_but(&found).await;
                    found.kinds.into_iter().for_each(|kind| self.follow_templates(kind));
                    if !self.discovered.swap(true, Ordering::AcqRel) {
                        self.cold.change(|cold| *cold -= 1);
                    }
                    self.look_at_what_nobody_serves().await;
                    again
                }
                Err(error) => {
                    tracing::warn!(%error, "find kinds");
                    UNANSWERED
                }
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = self.definitions.notified() => {}
                () = tokio::time::sleep(again) => {}
            }
            tokio::time::sleep(GATHER).await;
        }
    }

    fn follow_templates(&self, kind: TemplateKind) {
        let followed =
            Followed { stop: self.stop.child_token(), ended: CancellationToken::new(), indispensable: false };
        let mut known = self.known.lock().recovered();
        if known.contains_key(&kind) {
            return;
        }
        known.insert(kind.clone(), followed.clone());
        drop(known);
        let TemplateKind { api_version, kind, plural, namespaced } = kind;
        self.ctx.cache.learn(&api_version, &kind, Served { plural: plural.clone(), namespaced });
        let ctx = self.ctx.clone();
        let collection = Collection::new(&api_version, &plural, "");
        let names = (api_version.clone(), kind.clone());
        let secrets = names == ("v1".to_owned(), "Secret".to_owned());
        self.follow_until(followed, collection, (&api_version, &kind), move |seen| {
            if secrets {
                notice_secret(&ctx, &seen);
            }
            let touched = match seen {
                // It may have been a template until a client marked it.
                Seen::Is(object) if api::names::is_no_template(&place(&object).0, &object) => {
                    let (api_version, kind) = names.clone();
                    let (namespace, name) = place(&object);
                    let key = TemplateKey { api_version, kind, namespace, name };
                    ctx.cache.leave_out(&key).then_some(key).into_iter().collect()
                }
                Seen::Is(object) => ctx.cache.put(*object),
                Seen::Gone(namespace, name) => ctx.cache.remove(&names.0, &names.1, &namespace, &name),
                Seen::Complete | Seen::Refused => return,
            };
            for key in touched.iter().filter(|key| key.kind == "Namespace" && key.api_version == "v1") {
                ctx.queues.namespaces.add(key.name.clone(), Priority::User);
            }
            touched.iter().for_each(|key| ctx.queues.works.add(key.binding(), Priority::User));
            for key in touched.iter().filter(|key| binding_status::lags(&ctx, key)) {
                ctx.queues.statuses.add(key.binding(), Priority::Resync);
            }
            ctx.queues.look_at(touched, Priority::User);
        });
    }

    /// Stops the informers of kinds that are no longer served. A kind whose group did not answer stays as it is.
    async fn leave_all_but(&self, found: &Found) {
        let stays =
            |kind: &TemplateKind| found.kinds.contains(kind) || found.unanswered.contains(&kind.api_version);
        let vanished: Vec<(TemplateKind, Followed)> = {
            let mut known = self.known.lock().recovered();
            known.extract_if(.., |kind, _| !stays(kind)).collect()
        };
        for (kind, followed) in vanished {
            followed.stop.cancel();
            // No change of an object may arrive after the object was removed from the cache.
            followed.ended.cancelled().await;
            let left = self.ctx.cache.forget(&kind.api_version, &kind.kind);
            self.ctx.queues.look_at(left, Priority::Resync);
        }
    }

    /// When a kind is really gone its templates are gone, and their controllers must be notified. Its absence from
    /// discovery is not enough; the server is asked about it by name.
    async fn look_at_what_nobody_serves(&self) {
        let cache = &self.ctx.cache;
        let templates = cache.bound_to_unserved();
        let kind = |key: &TemplateKey| (key.api_version.clone(), key.kind.clone());
        let kinds: BTreeSet<(String, String)> = templates.iter().map(kind).collect();
        for (api_version, kind) in kinds {
            match discovery::is_gone(&self.ctx.control, &api_version, &kind).await {
                Ok(true) => cache.note_gone(&api_version, &kind),
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(%error, api_version, kind, "nobody says whether a kind is gone")
                }
            }
        }
        let gone = |key: &TemplateKey| cache.is_gone(&key.api_version, &key.kind);
        self.ctx.queues.look_at(templates.into_iter().filter(gone), Priority::Resync);
    }
}

/// Secrets hold the credentials of members, also in namespaces that are never propagated.
fn notice_secret(ctx: &Ctx, seen: &Seen) {
    let (namespace, name) = match seen {
        Seen::Is(object) => place(object),
        Seen::Gone(namespace, name) => (namespace.clone(), name.clone()),
        Seen::Complete | Seen::Refused => return,
    };
    clients::secret_changed(ctx, &namespace, &name);
}
