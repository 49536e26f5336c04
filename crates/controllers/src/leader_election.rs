//! Leader election with a Lease: only the replica that holds it writes. The leader renews the Lease in time or gives up
//! its fence before another replica can take the Lease, so that two never write at once. Clocks of other machines are
//! not trusted: a Lease expires when no renewal was observed for its duration, whatever else is done to it; only its
//! holder can release it earlier. If there is no Lease and this replica has never seen one, it assumes that no replica
//! leads.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::rest::{Collection, Error, LeaderFence, Path, Rest};

/// The Lease of the controllers, by which metrics name it, too.
pub const LEASE: &str = "longshore-controllers";
/// How long a Lease lasts after it was given back, as client-go writes it.
const RESIGNED_SECONDS: u64 = 1;

/// How long a Lease lasts and how it is kept. `lease` has to be longer than `renew` by as long as a write may still be
/// on its way, and `renew` longer than `retry`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How long others wait for a renewal before they take the Lease.
    pub lease: Duration,
    /// How long the holder writes without a renewal.
    pub renew: Duration,
    /// How often to try.
    pub retry: Duration,
}

impl Terms {
    /// Terms for a Lease of this length, in the usual proportions.
    pub fn of(lease: Duration) -> Self {
        Self { lease, renew: lease * 2 / 3, retry: lease * 2 / 15 }
    }
}

/// A replica that takes part in the leader election.
pub struct LeaderElector {
    /// The client for the Lease; without a fence, since the fence follows from the Lease.
    pub control: Rest,
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The identity of this replica, unique among all replicas.
    pub identity: String,
    /// For how long.
    pub terms: Terms,
    /// The fence that all writers share.
    pub fence: LeaderFence,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Record {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<u64>,
    acquire_time: Option<String>,
    renew_time: Option<String>,
    lease_transitions: Option<u64>,
}

impl Record {
    fn holder(&self) -> Option<&str> {
        self.holder_identity.as_deref().filter(|holder| !holder.is_empty())
    }

    /// Whether its holder released it. Without the second mark another client removed the holder's name, and the holder
    /// may not know of it.
    fn is_resigned(&self) -> bool {
        self.holder().is_none() && self.lease_duration_seconds == Some(RESIGNED_SECONDS)
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Lease {
    metadata: api::ObjectMeta,
    spec: Record,
}

/// Why a replica no longer takes part in the election.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The process is shutting down.
    #[error("the process is shutting down")]
    Shutdown,
    /// It led, and the Lease is no longer its own.
    #[error("another replica took it")]
    Taken,
    /// It led, and the Lease was not renewed in time; the last failure.
    #[error("it was not renewed in time: {0}")]
    Late(String),
}

/// What was last seen of the Lease, and when others may take it.
struct Observed {
    record: Record,
    free_at: Instant,
}

impl LeaderElector {
    /// Tries to lead, and leads, until `stop` or until the Lease is lost; afterwards the fence is revoked.
    pub async fn run(&self, stop: &CancellationToken) -> Ended {
        let ended = self.lead(stop).await;
        self.fence.revoke();
        if ended != Ended::Shutdown {
            let lease = format!("{}/{}", self.namespace, self.name);
            tracing::error!(lease, why = %ended, "the lease is lost; nothing is written any more");
        }
        ended
    }

    async fn lead(&self, stop: &CancellationToken) -> Ended {
        let mut observed: Option<Observed> = None;
        let mut leads_until: Option<Instant> = None;
        let mut failure: Option<String> = None;
        loop {
            let begun = Instant::now();
            if leads_until.is_some_and(|until| until <= begun) {
                return Ended::Late(failure.unwrap_or_default());
            }
            // A connection that died costs one try and not the lead.
            let timeout = (self.terms.renew / 3).min(self.left(leads_until));
            let tried = tokio::time::timeout(timeout, self.attempt(&mut observed)).await;
            let late = || Error::TimedOut { action: format!("take or renew {}", self.path()) };
            let tried = tried.unwrap_or_else(|_| Err(late()));
            match &tried {
                Ok(true) => {
                    let until = begun + self.terms.renew;
                    if leads_until.is_none() {
                        let lease = format!("{}/{}", self.namespace, self.name);
                        tracing::info!(lease, identity = self.identity, "this replica leads");
                    }
                    leads_until = Some(until);
                    self.fence.extend(until);
                }
                Ok(false) if leads_until.is_some() => return Ended::Taken,
                Ok(false) | Err(_) => {}
            }
            failure = self.log_failure(tried.err(), failure);
            let pause = self.terms.retry.min(self.left(leads_until));
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ended::Shutdown,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// The time left to renew. A replica that does not lead has as much as a new leader.
    fn left(&self, leads_until: Option<Instant>) -> Duration {
        leads_until.map_or(self.terms.renew, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Logs what keeps this replica from leading, once per cause: such a replica is healthy otherwise, and the cause
    /// would go unnoticed.
    fn log_failure(&self, error: Option<Error>, logged: Option<String>) -> Option<String> {
        let error = error?;
        let failure = error.to_string();
        if logged.as_ref() != Some(&failure) {
            let lease = format!("{}/{}", self.namespace, self.name);
            tracing::warn!(lease, error = failure, hint = hint(&error), "the lease cannot be had");
        }
        Some(failure)
    }

    /// Releases the Lease, so that the next leader does not have to wait. Call it only after all writes have stopped.
    pub async fn resign(&self) -> Result<(), Error> {
        let Some(lease) = self.control.get::<Lease>(&self.path()).await? else { return Ok(()) };
        if lease.spec.holder_identity.as_deref() != Some(&self.identity) {
            return Ok(());
        }
        let spec =
            json!({ "holderIdentity": null, "leaseDurationSeconds": RESIGNED_SECONDS, "renewTime": stamp() });
        let patch =
            json!({ "metadata": { "resourceVersion": lease.metadata.resource_version }, "spec": spec });
        self.control.merge(&self.path(), &patch).await.map(drop)
    }

    fn collection(&self) -> Collection {
        Collection::new("coordination.k8s.io/v1", "leases", &self.namespace)
    }

    fn path(&self) -> Path {
        self.collection().object(&self.name)
    }

    /// Takes or renews the Lease if that is allowed; true if it is ours now.
    async fn attempt(&self, observed: &mut Option<Observed>) -> Result<bool, Error> {
        let found = self.control.get::<Lease>(&self.path()).await?;
        if let Some(lease) = &found {
            self.observe(observed, &lease.spec);
        }
        let free_at = observed.as_ref().map(|observed| observed.free_at);
        if !self.is_free(found.as_ref(), free_at) {
            return Ok(false);
        }
        let Some(lease) = found else { return self.create().await };
        let next = self.next(Some(&lease.spec));
        let version = Some(lease.metadata.resource_version.as_str());
        match self.control.replace(&self.path(), &self.lease(&next, version)).await {
            Ok(_) => Ok(true),
            // Another replica was faster; the next read shows which.
            Err(Error::Conflict { .. }) if lease.spec.holder_identity.as_deref() != Some(&self.identity) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn create(&self) -> Result<bool, Error> {
        match self.control.create(&self.collection(), &self.lease(&self.next(None), None)).await {
            Ok(_) => Ok(true),
            // Another replica was faster; the next read shows which.
            Err(Error::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Notes the current state of the Lease. Only a release by its holder makes it free before it expires: the holder
    /// may still be writing, whatever another client did to the Lease.
    fn observe(&self, observed: &mut Option<Observed>, record: &Record) {
        if observed.as_ref().is_some_and(|observed| observed.record == *record) {
            return;
        }
        let now = Instant::now();
        let lasts = record.lease_duration_seconds.map_or(self.terms.lease, Duration::from_secs);
        let free_at = match record.is_resigned() {
            true => now,
            false => observed.as_ref().map_or(now, |before| before.free_at).max(now + lasts),
        };
        *observed = Some(Observed { record: record.clone(), free_at });
    }

    /// Whether we may take the Lease as it was found, which others may from `free_at` on.
    fn is_free(&self, found: Option<&Lease>, free_at: Option<Instant>) -> bool {
        let is_ours = match found.and_then(|lease| lease.spec.holder()) {
            Some(holder) => holder == self.identity,
            // A client emptied or deleted it while we lead: no other replica may take it before our time is over.
            None => self.fence.is_held(),
        };
        is_ours || free_at.is_none_or(|free_at| free_at <= Instant::now())
    }

    fn next(&self, before: Option<&Record>) -> Record {
        let now = stamp();
        let ours = before.filter(|before| before.holder_identity.as_deref() == Some(&self.identity));
        let acquired = ours.and_then(|before| before.acquire_time.clone());
        let transitions = before.and_then(|before| before.lease_transitions).unwrap_or_default();
        let seconds = self.terms.lease.as_secs_f64().ceil() as u64;
        Record {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(seconds),
            acquire_time: Some(acquired.unwrap_or_else(|| now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(transitions + u64::from(before.is_some() && ours.is_none())),
        }
    }

    fn lease(&self, record: &Record, version: Option<&str>) -> Value {
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": self.name, "namespace": self.namespace },
            "spec": record,
        });
        if let Some(version) = version {
            lease["metadata"]["resourceVersion"] = version.into();
        }
        lease
    }
}

/// What to do about a failure.
fn hint(error: &Error) -> &'static str {
    match error {
        Error::Refused { code: 401 | 403, .. } => {
            "may this user get, create and update leases there? see the Role in deploy/manifests/controllers.yaml"
        }
        Error::NotFound { .. } => "is there the namespace that --system-namespace names?",
        Error::Conflict { .. } => "who else writes this lease?",
        Error::Refused { .. } | Error::Unreachable { .. } | Error::TimedOut { .. } | Error::Fenced { .. } => {
            "is the API server well, and can it be reached from here?"
        }
    }
}

fn stamp() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
