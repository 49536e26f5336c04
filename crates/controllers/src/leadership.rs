//! Which of several replicas may write? The one that holds a Lease. It renews it in time or gives up its warrant before
//! anybody else can take the Lease, so that two never write at once. Times of other machines are not believed: a Lease
//! is free when nobody was seen to renew it for as long as it says.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::rest::{Collection, Error, Rest, Warrant};

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

/// Somebody who wants to lead.
pub struct Candidate {
    /// Where the Lease is; without a warrant, which follows from it.
    pub control: Rest,
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// Who we are, unlike anybody else.
    pub identity: String,
    /// For how long.
    pub terms: Terms,
    /// What is given to those who write.
    pub warrant: Warrant,
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

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Lease {
    metadata: api::ObjectMeta,
    spec: Record,
}

/// What was last seen of the Lease, and since when it is so.
struct Observed {
    record: Record,
    since: Instant,
}

impl Candidate {
    /// Tries to lead, and leads, until `stop` or until leading cannot be kept; afterwards the warrant is void.
    pub async fn run(&self, stop: &CancellationToken) {
        let mut observed: Option<Observed> = None;
        let mut leads_until: Option<Instant> = None;
        loop {
            let begun = Instant::now();
            let patience =
                leads_until.map_or(self.terms.renew, |until| until.saturating_duration_since(begun));
            let tried = tokio::time::timeout(patience, self.attempt(&mut observed)).await;
            match tried {
                Ok(Ok(true)) => {
                    let until = begun + self.terms.renew;
                    leads_until = Some(until);
                    self.warrant.extend(until);
                }
                // Somebody else has it.
                Ok(Ok(false)) if leads_until.is_some() => break,
                Ok(Ok(false)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "the lease could not be renewed"),
                Err(_) => tracing::debug!("the lease could not be renewed in time"),
            }
            if leads_until.is_some_and(|until| until <= Instant::now()) {
                break;
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = tokio::time::sleep(self.terms.retry) => {}
            }
        }
        self.warrant.revoke();
    }

    /// Gives the Lease back, so that nobody has to wait. Only for who has stopped to write.
    pub async fn resign(&self) -> Result<(), Error> {
        let Some(lease) = self.control.get::<Lease>(&self.path()).await? else { return Ok(()) };
        if lease.spec.holder_identity.as_deref() != Some(&self.identity) {
            return Ok(());
        }
        let spec = json!({ "holderIdentity": null, "leaseDurationSeconds": 1, "renewTime": stamp() });
        let patch =
            json!({ "metadata": { "resourceVersion": lease.metadata.resource_version }, "spec": spec });
        self.control.merge(&self.path(), &patch).await.map(drop)
    }

    fn collection(&self) -> Collection {
        Collection::new("coordination.k8s.io/v1", "leases", &self.namespace)
    }

    fn path(&self) -> String {
        self.collection().object(&self.name)
    }

    /// Takes or renews the Lease if that is allowed; true if it is ours now.
    async fn attempt(&self, observed: &mut Option<Observed>) -> Result<bool, Error> {
        let Some(lease) = self.control.get::<Lease>(&self.path()).await? else {
            let created = self.control.create(&self.collection(), &self.lease(&self.next(None), None)).await;
            return match created {
                Ok(_) => Ok(true),
                Err(Error::Conflict { .. }) => Ok(false),
                Err(error) => Err(error),
            };
        };
        let now = Instant::now();
        if observed.as_ref().is_none_or(|observed| observed.record != lease.spec) {
            *observed = Some(Observed { record: lease.spec.clone(), since: now });
        }
        let since = observed.as_ref().map_or(now, |observed| observed.since);
        if !self.is_free(&lease.spec, now - since) {
            return Ok(false);
        }
        let next = self.next(Some(&lease.spec));
        let version = Some(lease.metadata.resource_version.as_str());
        match self.control.replace(&self.path(), &self.lease(&next, version)).await {
            Ok(_) => Ok(true),
            // Somebody was faster; the next look shows who.
            Err(Error::Conflict { .. }) if lease.spec.holder_identity.as_deref() != Some(&self.identity) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether we may take the Lease, of which nothing new was seen for this long.
    fn is_free(&self, record: &Record, unchanged: Duration) -> bool {
        let holder = record.holder_identity.as_deref().unwrap_or_default();
        let lasts = record.lease_duration_seconds.map_or(self.terms.lease, Duration::from_secs);
        holder.is_empty() || holder == self.identity || unchanged >= lasts
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

fn stamp() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
