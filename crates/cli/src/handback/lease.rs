//! Checks the leader election Lease before the handback. A Lease that was not released is watched for its whole
//! duration, because clocks of other machines are not trusted.

use std::time::Duration;

use anyhow::{Context as _, Result};
use controllers::leader_election::LEASE;
use controllers::rest::{Collection, Path, Rest};
use serde_json::Value;

use crate::Hint;
use crate::progress::with_progress;

/// How long a Lease lasts that does not say so, in seconds.
const DEFAULT_LEASE_SECONDS: u64 = 15;

/// Where the Lease of the controllers is.
pub fn path(namespace: &str) -> Path {
    Collection::new("coordination.k8s.io/v1", "leases", namespace).object(LEASE)
}

/// Fails while a replica of the controllers leads.
pub async fn check_no_leader(control: &Rest, namespace: &str) -> Result<()> {
    let Some(first) = held(control, namespace).await? else { return Ok(()) };
    let seconds = first["leaseDurationSeconds"].as_u64().unwrap_or(DEFAULT_LEASE_SECONDS);
    let wait = async {
        tokio::time::sleep(Duration::from_secs(seconds + 1)).await;
        held(control, namespace).await
    };
    let then = with_progress("waiting to see whether the controllers still renew their lease", wait).await?;
    match then.filter(|then| *then != first) {
        None => Ok(()),
        Some(then) => {
            let holder = then["holderIdentity"].as_str().unwrap_or_default();
            let hint = format!(
                "stop them first: kubectl -n {namespace} scale deployment longshore-controllers --replicas=0"
            );
            Err(anyhow::Error::new(Hint(hint))
                .context(format!("hand back: controllers still run ({holder} holds the lease {LEASE})")))
        }
    }
}

/// What the Lease says, if a replica holds it.
async fn held(control: &Rest, namespace: &str) -> Result<Option<Value>> {
    let lease: Option<Value> = control.get(&path(namespace)).await.context("read the lease")?;
    let spec = lease.map(|mut lease| lease["spec"].take());
    Ok(spec.filter(|spec| spec["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty())))
}
