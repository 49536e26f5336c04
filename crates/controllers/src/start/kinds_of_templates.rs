//! Which kinds are followed as templates: all that discovery finds, looked up again when a definition changes and
//! every so often besides. A kind that is served no more is let go.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Starter, place};
use crate::discovery::{self, TemplateKind};
use crate::rest::Collection;
use crate::runtime::{Priority, Seen};
use crate::view::Served;

/// How often kinds are looked for when no definition changes: aggregated ones come without.
const DISCOVER_EVERY: Duration = Duration::from_secs(30);
/// How long changes of definitions are gathered: they come in bursts.
const GATHER: Duration = Duration::from_millis(20);

impl Starter {
    /// Notices definitions of kinds.
    pub(super) fn follow_definitions(&self) {
        let definitions = self.definitions.clone();
        let collection = Collection::new("apiextensions.k8s.io/v1", "customresourcedefinitions", "");
        let kind = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        self.follow(collection, kind, move |_| definitions.notify_one());
    }

    /// Finds the kinds of templates and follows each, for ever.
    pub(super) async fn discover(self) {
        let mut first = true;
        loop {
            match discovery::template_kinds(&self.ctx.control).await {
                Ok(kinds) => {
                    self.leave_all_but(&kinds);
                    kinds.into_iter().for_each(|kind| self.follow_templates(kind));
                    if std::mem::take(&mut first) {
                        self.cold.send_modify(|cold| *cold -= 1);
                    }
                }
                Err(error) => tracing::warn!(%error, "find kinds"),
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = self.definitions.notified() => {}
                () = tokio::time::sleep(DISCOVER_EVERY) => {}
            }
            tokio::time::sleep(GATHER).await;
        }
    }

    fn follow_templates(&self, kind: TemplateKind) {
        let stop = self.stop.child_token();
        let mut known = self.known.lock().expect("no one panics while holding it");
        if known.contains_key(&kind) {
            return;
        }
        known.insert(kind.clone(), stop.clone());
        drop(known);
        let TemplateKind { api_version, kind, plural, namespaced } = kind;
        self.ctx.view.learn(&api_version, &kind, Served { plural: plural.clone(), namespaced });
        let ctx = self.ctx.clone();
        let collection = Collection::new(&api_version, &plural, "");
        let names = (api_version.clone(), kind.clone());
        self.follow_until(stop, collection, (&api_version, &kind), move |seen| {
            let touched = match seen {
                Seen::Is(object) if discovery::is_skipped_namespace(&place(&object).0) => return,
                Seen::Is(object) => ctx.view.put(*object),
                Seen::Gone(namespace, name) => ctx.view.remove(&names.0, &names.1, &namespace, &name),
                Seen::Complete => return,
            };
            for key in touched.iter().filter(|key| key.kind == "Namespace" && key.api_version == "v1") {
                ctx.queues.namespaces.add(key.name.clone(), Priority::User);
            }
            touched.iter().for_each(|key| ctx.queues.works.add(key.binding(), Priority::User));
            ctx.queues.look_at(touched, Priority::User);
        });
    }

    fn leave_all_but(&self, kinds: &[TemplateKind]) {
        let mut known = self.known.lock().expect("no one panics while holding it");
        let vanished: Vec<TemplateKind> =
            known.keys().filter(|kind| !kinds.contains(kind)).cloned().collect();
        for kind in vanished {
            known.remove(&kind).as_ref().map(CancellationToken::cancel);
            let left = self.ctx.view.forget(&kind.api_version, &kind.kind);
            self.ctx.queues.look_at(left, Priority::Resync);
        }
    }
}
