//! `longshore controllers`: every controller and the admission webhooks on an existing API server, with leader
//! election. All replicas answer admission reviews; only the leader writes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use controllers::ctx::{Ctx, Members};
use controllers::gates::FeatureGates;
use controllers::leader_election::{LEASE, LeaderElector, Terms};
use controllers::rest::{Collection, LeaderFence, Rest};
use controllers::runtime::Supervisor;
use controllers::start::start;
use http::Method;
use plane::policy_impact::{Budget, PolicyImpact};
use plane::restart::{held_start, publish_held_start};
use plane::review::Reviewer;
use plane::webhooks::{Address, install_webhooks};
use serde_json::{Value, json};
use supervise::catch;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::connection::Connection;
use crate::feature_gates::SwitchFlags;
use crate::up::told_to_stop;
use crate::{Hint, output};

mod answers;
mod keys;
mod reviews;
mod serve;

use answers::{Answers, Health};
pub use keys::SECRET as CERTIFICATES;
use keys::{Kept, Keys};
use reviews::{Access, Reviews};
use serve::{Shown, client_authorities, serve};

/// The Service in front of the webhooks, as the chart makes it.
const SERVICE: &str = "longshore-webhook";
/// The resync interval of certificates and webhook configurations. While a configuration is missing, no write is
/// reviewed.
const UPKEEP: Duration = Duration::from_secs(30);
/// How long API servers may take to load a new CA bundle.
const BELIEVED: Duration = Duration::from_secs(2);
/// The timeout for releasing the lease.
const RESIGN_PATIENCE: Duration = Duration::from_secs(2);
/// How long an API server may take to serve kinds that were just defined.
const DEFINED_PATIENCE: Duration = Duration::from_secs(60);
/// How often is looked whether it does.
const DEFINED_LOOK: Duration = Duration::from_millis(200);

/// Arguments of `longshore controllers`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where the lease and the webhooks' certificates are kept
    #[arg(long, value_name = "NAMESPACE", default_value = "karmada-system")]
    system_namespace: String,
    /// Where health and metrics are served
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10357")]
    listen: SocketAddr,
    /// Where admission reviews are answered
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:9443")]
    webhook_listen: SocketAddr,
    /// Where the API server finds the webhooks, such as https://10.0.0.5:9443 [default: the Service longshore-webhook]
    #[arg(long, value_name = "URL", value_parser = url)]
    webhook_url: Option<http::Uri>,
    /// The authority, in PEM, whose client certificates the API server shows to the webhooks
    #[arg(long, value_name = "FILE")]
    webhook_client_ca_file: Option<PathBuf>,
    /// A file with the bearer token that the API server shows to the webhooks
    #[arg(long, value_name = "FILE")]
    webhook_token_file: Option<PathBuf>,
    #[command(flatten)]
    feature_gates: SwitchFlags,
    /// How many seconds others wait for a replica that leads and is silent
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(3..=3_600))]
    lease_seconds: u32,
    /// How many seconds reviews are answered after this replica was told to stop, until nobody is sent here any more
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(..=600))]
    drain_seconds: u32,
    /// How many templates one act may move, unless the object that it changes says otherwise
    #[arg(long, value_name = "N")]
    max_moved: Option<usize>,
    /// How many objects in members one act may delete, unless the object that it changes says otherwise
    #[arg(long, value_name = "N")]
    max_deleted: Option<usize>,
    /// Refuse policies that name clusters which do not exist, unless the policy says otherwise
    #[arg(long)]
    refuse_unknown_clusters: bool,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    pub log: crate::logging::LogFlags,
}

/// What an API server takes for the address of a webhook.
fn url(text: &str) -> Result<http::Uri, String> {
    let url: http::Uri = text.parse().map_err(|error| format!("{error}"))?;
    match url.scheme_str() == Some("https") && url.host().is_some() {
        true => Ok(url),
        false => Err("write https://HOST:PORT".to_owned()),
    }
}

/// Runs until a shutdown signal arrives; an error when this replica was leader and lost the lease.
pub fn run(arguments: &Arguments) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start the runtime")?;
    runtime.block_on(controllers(arguments))
}

async fn controllers(arguments: &Arguments) -> Result<()> {
    let client = arguments.connection.lasting().await?;
    // The lease has to be renewed however much else there is to ask for.
    let urgent = Rest::new(client.clone());
    let control = Rest::new(client).with_concurrency_limit();
    let feature_gates = arguments.feature_gates.feature_gates()?;
    let budget = Budget { moved: arguments.max_moved, deleted: arguments.max_deleted };
    prepare(&control, arguments, &feature_gates, budget).await?;
    let policy_impact = PolicyImpact::new(budget)
        .refusing_unknown_clusters(arguments.refuse_unknown_clusters)
        .with_controllers(own_user(&control).await);
    let fence = LeaderFence::default();
    let ctx = Ctx::new(
        control.clone().under(fence.clone()),
        Members::default(),
        feature_gates.clone(),
        Arc::new(jiff::Timestamp::now),
    );
    policy_impact.see(ctx.cache.clone());
    let (ending, stop) = (CancellationToken::new(), CancellationToken::new());
    let reviewer = reviewer(feature_gates, policy_impact);
    let supervisor = ctx.supervisor.clone();
    let reviews = Reviews::new(reviewer, access(arguments)?, supervisor.clone());
    let (upkeep, mut reviewed) = open_webhooks(&control, arguments, reviews, &stop).await?;
    let listener = listen(arguments.listen).await?;
    let health = listener.local_addr().context("read the port")?;
    let answers = Answers::Health(Box::new(Health { ctx: ctx.clone(), ending: ending.clone() }));
    let mut served = tokio::spawn(serve(listener, None, answers, stop.clone()));
    let running = start(ctx);
    output::print(&format!("controllers run; health and metrics on http://{health}\n"))?;
    let candidate = candidate(urgent, arguments, fence);
    let told = told_to_stop()?;
    let ended = tokio::select! {
        biased;
        () = told => Ok(()),
        why = candidate.run(&stop) => Err(anyhow!("keep the lease {LEASE}: {why}")),
        why = supervisor.failed() => Err(anyhow!("keep every task running: {why}")),
        _ = &mut served => Err(anyhow!("serve health and metrics: the server ended by itself")),
        _ = &mut reviewed => Err(anyhow!("answer admission reviews: the server ended by itself")),
        never = upkeep.run(&supervisor) => match never {},
    };
    if let Err(error) = &ended {
        tracing::error!(error = format!("{error:#}"), "this replica stops; another one may take over");
    }
    // Readiness fails from now on; requests are still answered until every load balancer has noticed (draining).
    ending.cancel();
    let drained = Instant::now() + Duration::from_secs(arguments.drain_seconds.into());
    let told_again = told_to_stop()?;
    // Reconciles in flight end before another replica becomes leader.
    running.shut_down().await;
    candidate.fence.revoke();
    // Releases the lease, so that the next leader need not wait; if that fails, the lease expires.
    let _ = tokio::time::timeout(RESIGN_PATIENCE, candidate.resign()).await;
    tokio::select! {
        biased;
        () = told_again => {}
        () = tokio::time::sleep_until(drained) => {}
    }
    stop.cancel();
    for server in [served, reviewed] {
        if !server.is_finished() {
            // A task that panicked has said so already.
            let _ = server.await;
        }
    }
    ended
}

/// What has to be there before anything can run: the kinds, a place for our own objects, a note about the gates.
async fn prepare(
    control: &Rest,
    arguments: &Arguments,
    feature_gates: &FeatureGates,
    budget: Budget,
) -> Result<()> {
    plane::install_kinds(control).await.map_err(|error| {
        let hint = "is it the kubeconfig of an API server, and may its user define kinds?";
        anyhow::Error::new(Hint(hint.to_owned())).context(error).context("install the kinds of policies")
    })?;
    tell_aggregated(control).await?;
    let begun = Instant::now();
    while !plane::are_kinds_served(control).await.context("look for the kinds of policies")? {
        if begun.elapsed() > DEFINED_PATIENCE {
            bail!("the API server does not serve the kinds of policies: see `kubectl describe crd`");
        }
        tokio::time::sleep(DEFINED_LOOK).await;
    }
    let marks = [(api::labels::SYSTEM, api::labels::TRUE)];
    let namespace = &arguments.system_namespace;
    plane::ensure_namespace(control, namespace, &marks)
        .await
        .with_context(|| format!("make namespace {namespace}"))?;
    let held = held_start(control, feature_gates, budget, jiff::Timestamp::now()).await;
    if let Some(held) = held.context("look what the feature gates do")?
        && !arguments.feature_gates.accepts(&held)
    {
        publish_held_start(control, Some(&held)).await.context("tell that the controllers wait")?;
        crate::control::tell(&held);
        bail!("the feature gates do more than a budget allows");
    }
    plane::publish_gates(control, feature_gates, budget).await.context("tell the feature gates")?;
    publish_held_start(control, None).await.context("tell that the controllers run")
}

/// Our user name at the API server; `None` where it does not say.
async fn own_user(control: &Rest) -> Option<String> {
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let reviews = Collection::new("authentication.k8s.io/v1", "selfsubjectreviews", "");
    let answer: Value =
        control.send(Method::POST, reviews.path(), "application/json", Some(&review)).await.ok()?;
    Some(answer["status"]["userInfo"]["username"].as_str()?.to_owned())
}

/// Says which definitions are not installed, and warns of those that an earlier version installed all the same.
async fn tell_aggregated(control: &Rest) -> Result<()> {
    let definitions = plane::wanted_definitions(control).await.context("list the APIServices")?;
    for definition in definitions.aggregated {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let path = Collection::new("apiextensions.k8s.io/v1", "customresourcedefinitions", "").object(&name);
        let found: Option<serde_json::Value> = control.get(&path).await.context("look for a definition")?;
        let warning = match found {
            Some(_) => {
                "; a definition of that name is there as well: do not delete it, all objects would go with it"
            }
            None => "",
        };
        output::tell(&format!("{name} is not installed: an APIService serves this kind{warning}"));
    }
    Ok(())
}

/// Which clients may ask for reviews. By default every client that reaches the port: a review changes nothing, and the
/// number of concurrent reviews is limited.
fn access(arguments: &Arguments) -> Result<Access> {
    let certificates = arguments.webhook_client_ca_file.is_some();
    let token = arguments.webhook_token_file.as_deref().map(Access::read_token).transpose()?;
    if !certificates && token.is_none() {
        tracing::warn!(
            hint = "set --webhook-client-ca-file or --webhook-token-file, or keep others away by a NetworkPolicy",
            "admission reviews are answered to everybody who reaches the port"
        );
    }
    Ok(Access { certificates, token })
}

fn reviewer(feature_gates: FeatureGates, policy_impact: PolicyImpact) -> Reviewer {
    let random = Arc::new(rand::random::<u128>);
    let now = Arc::new(jiff::Timestamp::now);
    let rules = plane::admission::rules(feature_gates.gates, random.clone(), now.clone(), policy_impact);
    Reviewer { rules, random, now }
}

fn candidate(control: Rest, arguments: &Arguments, fence: LeaderFence) -> LeaderElector {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    LeaderElector {
        control,
        namespace: arguments.system_namespace.clone(),
        name: LEASE.to_owned(),
        identity: format!("{}_{:032x}", host.trim(), rand::random::<u128>()),
        terms: Terms::of(Duration::from_secs(arguments.lease_seconds.into())),
        fence,
    }
}

/// Installs the webhook configurations, and begins to answer admission reviews.
async fn open_webhooks(
    control: &Rest,
    arguments: &Arguments,
    reviews: Reviews,
    stop: &CancellationToken,
) -> Result<(Upkeep, JoinHandle<()>)> {
    let listener = listen(arguments.webhook_listen).await?;
    let namespace = arguments.system_namespace.clone();
    let (address, names) = match &arguments.webhook_url {
        Some(url) => {
            let names = vec![url.host().unwrap_or_default().to_owned()];
            (Address::Url(url.to_string().trim_end_matches('/').to_owned()), names)
        }
        None => {
            let names = vec![format!("{SERVICE}.{namespace}.svc")];
            (Address::Service { namespace: namespace.clone(), name: SERVICE.to_owned() }, names)
        }
    };
    let keys = Keys { control: control.clone(), namespace, names };
    let kept = keys.current(None, jiff::Timestamp::now()).await;
    let kept = kept.context("prepare the webhooks' certificates")?;
    let shown = Shown::new(&kept)?;
    // The CA bundle is installed before the certificate is served; an API server that connects at once waits at the
    // open port.
    install_webhooks(control, &address, &kept.bundle).await.context("install the webhooks")?;
    let authorities = arguments.webhook_client_ca_file.as_deref().map(client_authorities).transpose()?;
    let acceptor = shown.acceptor(authorities)?;
    let reviewed = tokio::spawn(serve(listener, Some(acceptor), Answers::Reviews(reviews), stop.clone()));
    Ok((Upkeep { keys, kept, shown, address }, reviewed))
}

/// Keeps certificates and webhook configurations as they should be.
struct Upkeep {
    keys: Keys,
    kept: Kept,
    shown: Shown,
    address: Address,
}

impl Upkeep {
    /// Goes on for ever; a failure is tried again the next time, long before anything runs out, and told once.
    async fn run(mut self, supervisor: &Supervisor) -> Infallible {
        let mut told = None;
        loop {
            tokio::time::sleep(UPKEEP).await;
            let failure = match catch(self.look()).await {
                Ok(looked) => looked.err().map(|error| format!("{error:#}")),
                Err(panic) => {
                    supervisor.task_panicked("upkeep", &"webhooks", &panic);
                    None
                }
            };
            if let Some(error) = failure.as_ref().filter(|_| failure != told) {
                tracing::warn!(error, "look after the webhooks");
            }
            told = failure;
        }
    }

    async fn look(&mut self) -> Result<()> {
        let kept = self.keys.current(Some(&self.kept), jiff::Timestamp::now()).await?;
        install_webhooks(&self.keys.control, &self.address, &kept.bundle).await?;
        if kept != self.kept {
            // API servers must have loaded the CA bundle before the new certificate is served.
            tokio::time::sleep(BELIEVED).await;
            self.shown.change(&kept)?;
            self.kept = kept;
        }
        Ok(())
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))
}

#[cfg(test)]
mod tests {
    use controllers::rest::{Collection, Path};

    use super::*;

    /// The upkeep of an API server in memory.
    async fn upkeep() -> Upkeep {
        let (_, control) = crate::test_server::in_memory().await;
        let keys = Keys { control, namespace: "default".to_owned(), names: vec!["here".to_owned()] };
        let kept = keys.current(None, jiff::Timestamp::now()).await.expect("they can be made");
        let shown = Shown::new(&kept).expect("they can be shown");
        Upkeep { keys, kept, shown, address: Address::Url("https://here:9443".to_owned()) }
    }

    #[tokio::test]
    async fn a_configuration_that_was_deleted_is_made_again() {
        let mut upkeep = upkeep().await;
        let control = upkeep.keys.control.clone();
        upkeep.look().await.expect("the server answers");
        for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
            let path = Collection::new("admissionregistration.k8s.io/v1", kind, "").object("longshore");
            control.delete(&path, None).await.expect("the server answers");
            upkeep.look().await.expect("the server answers");
            let found: Option<serde_json::Value> = control.get(&path).await.expect("the server answers");
            assert!(found.is_some(), "{path}");
        }
    }

    #[tokio::test]
    async fn what_is_in_use_stays_believed_when_the_secret_is_lost() {
        let Upkeep { keys, kept, .. } = upkeep().await;
        let path = &Path::fixed("/api/v1/namespaces/default/secrets/longshore-webhook-certificates");
        let again = async || {
            keys.current(Some(&kept), jiff::Timestamp::now()).await.expect("the server answers").bundle
        };
        assert_eq!(again().await, kept.bundle);
        let garbage = serde_json::json!({ "data": { "tls.key": "Z2FyYmFnZQ==" } });
        keys.control.merge(path, &garbage).await.expect("the server answers");
        let damaged = again().await;
        assert!(damaged != kept.bundle && damaged.ends_with(&kept.bundle), "{damaged}");
        keys.control.delete(path, None).await.expect("the server answers");
        let deleted = again().await;
        assert!(deleted != damaged && deleted.ends_with(&kept.bundle), "{deleted}");
    }
}
