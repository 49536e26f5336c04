//! The client of one member, with timeouts and a circuit breaker: every request is timed, and its result decides
//! whether the next one is sent. Sends nothing by itself.

use std::sync::Arc;

use crate::ctx::Ctx;
use crate::members::Member;
use crate::rest::{Error, Rest};
use crate::runtime::Priority;

/// The way to one member.
pub struct MemberClient<'a> {
    ctx: &'a Ctx,
    cluster: &'a str,
    /// Where requests go; each is passed to [`MemberClient::call`].
    pub rest: Rest,
    /// What is remembered of the member.
    pub member: Arc<Member>,
}

impl<'a> MemberClient<'a> {
    /// The way to a member; none while there is no client for it.
    pub fn of(ctx: &'a Ctx, cluster: &'a str) -> Option<Self> {
        let rest = ctx.members.get(cluster)?;
        Some(Self { ctx, cluster, rest, member: ctx.members.member(cluster) })
    }

    /// Waits for an answer, but not for ever.
    pub async fn call<T>(&self, request: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let timeout = self.ctx.members.settings().request_timeout;
        let answer = tokio::time::timeout(timeout, request)
            .await
            .unwrap_or_else(|_| Err(Error::TimedOut { action: format!("ask {}", self.cluster) }));
        let outage = answer.as_ref().is_err_and(Error::is_outage);
        if self.member.answered(!outage) {
            match outage {
                true => tracing::warn!(
                    cluster = self.cluster,
                    "a member does not answer and is left alone for a while"
                ),
                false => tracing::info!(cluster = self.cluster, "a member answers again"),
            }
            self.ctx.queues.cluster_status.add(self.cluster.to_owned(), Priority::User);
        }
        answer
    }
}
