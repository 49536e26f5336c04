//! Per-member tasks: workers that write to the member and watches on the kinds that it received. They start when its
//! Cluster or its first Work is seen, and end with the Cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use supervise::Recovered as _;
use tokio_util::sync::CancellationToken;

use super::Starter;
use super::watches::MEMBER_OBJECTS;
use crate::cache::Served;
use crate::reflector::{PartialObjectMetadata, Report, reflect};
use crate::rest::Rest;
use crate::runtime::Priority;
use crate::work_status::{MANAGED, MemberKind, MemberObjects};

/// The interval at which the watch of a kind that is not served checks whether it is served now.
const NOT_SERVED_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// What runs for one member.
pub(super) struct Running {
    stop: CancellationToken,
    watched: BTreeSet<(String, String)>,
}

impl Starter {
    /// Starts what a member needs, if that does not run already, and watches these kinds in it.
    pub(super) fn start_member(&self, cluster: &str, kinds: Vec<(String, String)>) {
        let mut members = self.members.lock().recovered();
        let running = members.entry(cluster.to_owned()).or_insert_with(|| {
            let stop = self.stop.child_token();
            self.spawn("start-member", self.clone().execute(cluster.to_owned(), stop.clone()));
            Running { stop, watched: BTreeSet::new() }
        });
        for (api_version, kind) in kinds {
            if running.watched.insert((api_version.clone(), kind.clone())) {
                let kind = MemberKind { cluster: cluster.to_owned(), api_version, kind };
                let (starter, stop) = (self.clone(), running.stop.clone());
                self.keep("watch-member", stop.clone(), move || {
                    starter.clone().watch_member_kind(kind.clone(), stop.clone())
                });
            }
        }
    }

    /// Ends what runs for a member that has gone, and forgets it.
    pub(super) fn stop_member(&self, cluster: &str) {
        let running = self.members.lock().recovered().remove(cluster);
        if let Some(running) = running {
            running.stop.cancel();
        }
        self.ctx.queues.execution.remove(cluster);
        self.ctx.members.forget(cluster);
        self.ctx.queues.clients.add(cluster.to_owned(), Priority::Resync);
    }

    /// The workers of one member. Each member has its own, so that a slow one does not delay the others.
    async fn execute(self, cluster: String, stop: CancellationToken) {
        // No replica connects to members before it leads: until then each reconcile of a Work would be in vain.
        if !self.synced(&stop).await || !self.leads(&stop).await {
            return;
        }
        let workers = self.start_execution(&cluster, &stop);
        self.tasks.lock().recovered().extend(workers);
    }

    async fn watch_member_kind(self, kind: MemberKind, stop: CancellationToken) {
        if !self.synced(&stop).await {
            return;
        }
        loop {
            let ready = async {
                let served = self.served(&kind).await;
                (self.ctx.members.reachable(&kind.cluster).await, served)
            };
            let ((rest, replaced), served) = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                ready = ready => ready,
            };
            // A new client means a new connection, perhaps to another server; the code that replaced it enqueues
            // everything again.
            tokio::select! {
                biased;
                () = replaced.cancelled() => {}
                () = self.reflect_member_kind(&kind, rest, &served, stop.clone()) => return,
            }
        }
    }

    async fn reflect_member_kind(
        &self,
        kind: &MemberKind,
        rest: Rest,
        served: &Served,
        stop: CancellationToken,
    ) {
        let mut objects = MemberObjects::new(kind.clone());
        let sink = |report: Report<PartialObjectMetadata>| {
            if let Some(change) = objects.change(&self.ctx, report) {
                MEMBER_OBJECTS.iter().for_each(|wake| wake.fire(self, &change));
            }
        };
        let collection = kind.collection(served);
        reflect(rest, collection, kind.types(), MANAGED, stop, &self.ctx.supervisor, sink).await;
    }

    async fn served(&self, kind: &MemberKind) -> Served {
        loop {
            if let Some(served) = self.ctx.cache.served().get(&kind.api_version, &kind.kind) {
                return served;
            }
            tokio::time::sleep(NOT_SERVED_RETRY_INTERVAL).await;
        }
    }
}
