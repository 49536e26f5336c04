//! Token rotation for members: when half of a token's lifetime is over, the member is asked for a new one with the
//! token that is still valid. Credentials without an expiry, such as Karmada's, are left alone.

use std::time::Duration;

use api::Cluster;
use decide::credentials::{TokenLife, TokenRenewal, token_renewal, token_seconds};
use http::Method;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::ctx::Ctx;
use crate::events::{EventType, Regarding};
use crate::member_client::MemberClient;
use crate::rest::{Collection, Error, Path};
use crate::runtime::Action;

/// The annotation of a member's Secret on the control plane: when its token was made.
pub const TOKEN_ISSUED: &str = "longshore.io/token-issued";
/// When its token ends.
pub const TOKEN_EXPIRES: &str = "longshore.io/token-expires";
/// The ServiceAccount in the member whose token it is, as `namespace/name`.
pub const TOKEN_ACCOUNT: &str = "longshore.io/token-account";
/// The Secret beside that account which the token is bound to: without it, the token is void.
pub const TOKEN_BOUND_TO: &str = "longshore.io/token-bound-to";
/// The Secret that a token was bound to with which the controllers have reached the member.
pub const TOKEN_USED: &str = "longshore.io/token-used";

/// The reporting component of events.
const COMPONENT: &str = "cluster-controller";
/// How long until the member is asked again after it refused a token or did not answer.
const RENEWAL_RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// The same for a token that was never used: `join --rotate` may wait for that.
const FIRST_USE_RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// A token that is bound to a Secret in the member and ends, as the Secret on the control plane describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BoundToken {
    namespace: String,
    account: String,
    bound_to: String,
    life: TokenLife,
}

impl BoundToken {
    fn of(secret: &Value) -> Option<Self> {
        let annotation = |key: &str| secret["metadata"]["annotations"][key].as_str();
        let time = |key: &str| annotation(key)?.parse::<Timestamp>().ok();
        let (namespace, account) = annotation(TOKEN_ACCOUNT)?.split_once('/')?;
        let bound_to = annotation(TOKEN_BOUND_TO)?;
        let is_used = annotation(TOKEN_USED) == Some(bound_to);
        let life = TokenLife { issued: time(TOKEN_ISSUED)?, expires: time(TOKEN_EXPIRES)?, is_used };
        Some(Self {
            namespace: namespace.to_owned(),
            account: account.to_owned(),
            bound_to: bound_to.to_owned(),
            life,
        })
    }
}

/// Replaces the tokens of a member that are due.
pub async fn reconcile(ctx: &Ctx, name: &str) -> Result<Action, Error> {
    let Some(cluster) = ctx.cache.cluster(name) else { return Ok(Action::AwaitChange) };
    if ctx.members.is_given(name) {
        return Ok(Action::AwaitChange);
    }
    let spec = &cluster.spec;
    let mut next: Option<Duration> = None;
    for reference in [&spec.secret_ref, &spec.impersonator_secret_ref].into_iter().flatten() {
        let path = Collection::new("v1", "secrets", &reference.namespace).object(&reference.name);
        let Some(secret) = ctx.control.get::<Value>(&path).await? else { continue };
        let Some(token) = BoundToken::of(&secret) else { continue };
        let wait = match token_renewal(&token.life, (ctx.now)()) {
            TokenRenewal::After(wait) => wait,
            TokenRenewal::Due => replace(ctx, &cluster, &path, &token).await?,
        };
        next = Some(next.map_or(wait, |next| next.min(wait)));
    }
    Ok(next.map_or(Action::AwaitChange, Action::RequeueAfter))
}

/// Asks the member for another token and keeps it; answers when to look again.
async fn replace(ctx: &Ctx, cluster: &Cluster, path: &Path, token: &BoundToken) -> Result<Duration, Error> {
    let name = &cluster.metadata.name;
    let retry = if token.life.is_used { RENEWAL_RETRY_INTERVAL } else { FIRST_USE_RETRY_INTERVAL };
    let made = match MemberClient::of(ctx, name) {
        None => return Ok(retry),
        Some(reach) => request_token(&reach, token).await,
    };
    let now = (ctx.now)();
    let (text, expires) = match made {
        Ok(made) => made,
        Err(error) => {
            let message = format!(
                "The credentials of cluster {name} end at {} and cannot be renewed: {error}. If they end, give it new \
                 ones with `longshore join {name} --rotate`.",
                token.life.expires
            );
            tracing::warn!(cluster = name, %error, "renew the member's credentials");
            ctx.record_event(
                [Regarding::from(cluster)],
                COMPONENT,
                EventType::Warning,
                "RenewCredentialsFailed",
                &message,
            );
            return Ok(retry);
        }
    };
    let patch = json!({
        "metadata": { "annotations": {
            TOKEN_ISSUED: seconds(now), TOKEN_EXPIRES: seconds(expires), TOKEN_USED: token.bound_to,
        } },
        "data": { "token": ByteString(text.into_bytes()) },
    });
    ctx.control.merge(path, &patch).await?;
    let message =
        format!("The credentials of cluster {name} are renewed and hold until {}.", seconds(expires));
    ctx.record_event(
        [Regarding::from(cluster)],
        COMPONENT,
        EventType::Normal,
        "RenewCredentialsSucceed",
        &message,
    );
    let life = TokenLife { issued: now, expires, is_used: true };
    Ok(match token_renewal(&life, now) {
        TokenRenewal::After(wait) => wait,
        TokenRenewal::Due => RENEWAL_RETRY_INTERVAL,
    })
}

async fn request_token(reach: &MemberClient<'_>, token: &BoundToken) -> Result<(String, Timestamp), Error> {
    let accounts = Collection::new("v1", "serviceaccounts", &token.namespace);
    let path = accounts.object(&token.account).below("token");
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {
            "expirationSeconds": token_seconds(&token.life),
            "boundObjectRef": { "apiVersion": "v1", "kind": "Secret", "name": token.bound_to },
        },
    });
    let asked = reach.rest.send::<Value>(Method::POST, &path, "application/json", Some(&request));
    read_token(&path, &reach.call(asked).await?)
}

/// The token in the answer to a TokenRequest, and when it ends.
pub fn read_token(path: &Path, answer: &Value) -> Result<(String, Timestamp), Error> {
    let status = &answer["status"];
    let expires = status["expirationTimestamp"].as_str().and_then(|time| time.parse().ok());
    match (status["token"].as_str().filter(|text| !text.is_empty()), expires) {
        (Some(text), Some(expires)) => Ok((text.to_owned(), expires)),
        _ => Err(Error::Refused {
            action: format!("post {path}"),
            code: 200,
            message: "the answer has no token".to_owned(),
        }),
    }
}

/// A time as annotations have it: whole seconds, UTC.
pub fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
