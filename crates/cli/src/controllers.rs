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
use crate::up::stop_signal;
use crate::{Hint, output};

mod answers;
mod keys;
mod reviews;
mod serve;

use answers::{Answers, Health};
pub use keys::SECRET as CERTIFICATES;
use keys::{Kept, Keys};
use reviews::{Access, Reviews};
use serve::{ServingCertificate, client_authorities, serve};

/// The Service in front of the webhooks, as the chart makes it.
const SERVICE: &str = "longshore-webhook";
/// The resync interval of certificates and webhook configurations. While a configuration is missing, no write is
/// reviewed.
const WEBHOOK_RESYNC_INTERVAL: Duration = Duration::from_secs(30);
/// How long API servers may take to load a new CA bundle.
const CA_BUNDLE_LOAD_TIME: Duration = Duration::from_secs(2);
/// The timeout for releasing the lease.
const LEASE_RELEASE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long an API server may take to serve kinds that were just defined.
const KINDS_SERVED_TIMEOUT: Duration = Duration::from_secs(60);
/// The poll interval for that.
const KINDS_SERVED_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Arguments of `longshore controllers`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Namespace of the leader election Lease and of the Secret with the webhooks' certificates
    #[arg(long, value_name = "NAMESPACE", default_value = "karmada-system")]
    system_namespace: String,
    /// Address that serves health checks and metrics over HTTP
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10357")]
    listen: SocketAddr,
    /// Address that serves the admission webhooks over TLS
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:9443")]
    webhook_listen: SocketAddr,
    /// URL at which the API server calls the webhooks, such as https://10.0.0.5:9443 [default: the Service
    /// longshore-webhook]
    #[arg(long, value_name = "URL", value_parser = url)]
    webhook_url: Option<http::Uri>,
    /// File with the CA certificates, in PEM, that sign the API server's client certificate; the webhooks then require
    /// one
    #[arg(long, value_name = "FILE")]
    webhook_client_ca_file: Option<PathBuf>,
    /// File with the bearer token that the API server sends to the webhooks; the webhooks then require it
    #[arg(long, value_name = "FILE")]
    webhook_token_file: Option<PathBuf>,
    /// Answer reviews to every client that reaches the webhooks: only where a NetworkPolicy or a firewall lets nothing but
    /// the API server reach them
    #[arg(long, conflicts_with_all = ["webhook_client_ca_file", "webhook_token_file"])]
    webhook_unauthenticated: bool,
    #[command(flatten)]
    feature_gates: SwitchFlags,
    /// Lease duration in seconds: how long other replicas wait for a leader that stopped renewing its Lease
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(3..=3_600))]
    lease_seconds: u32,
    /// How many seconds this replica still serves webhooks after a stop signal, until the Service sends it no more
    /// requests
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(..=600))]
    drain_seconds: u32,
    #[command(flatten)]
    change_budget: crate::change_budget::ChangeBudgetFlags,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    pub log: crate::logging::LogFlags,
}

/// What an API server takes for the address of a webhook.
fn url(text: &str) -> Result<http::Uri, String> {
    let url: http::Uri = text.parse().map_err(|_| "write https://HOST:PORT".to_owned())?;
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
    let budget = arguments.change_budget.budget();
    prepare(&control, arguments, &feature_gates, budget).await?;
    let policy_impact = arguments.change_budget.policy_impact().with_controllers(own_user(&control).await);
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
    let (resync, mut reviewed) = open_webhooks(&control, arguments, reviews, &stop).await?;
    let listener = listen(arguments.listen).await?;
    let health = listener.local_addr().context("read the port")?;
    let answers = Answers::Health(Box::new(Health { ctx: ctx.clone(), ending: ending.clone() }));
    let mut served = tokio::spawn(serve(listener, None, answers, stop.clone()));
    let running = start(ctx);
    output::print(&format!("controllers run; health and metrics on http://{health}\n"))?;
    let candidate = leader_elector(urgent, arguments, fence);
    let stopped = stop_signal()?;
    let ended = tokio::select! {
        biased;
        () = stopped => Ok(()),
        why = candidate.run(&stop) => Err(anyhow!("keep the lease {LEASE}: {why}")),
        why = supervisor.failed() => Err(anyhow!("keep every task running: {why}")),
        _ = &mut served => Err(anyhow!("serve health and metrics: the server ended by itself")),
        _ = &mut reviewed => Err(anyhow!("answer admission reviews: the server ended by itself")),
        never = resync.run(&supervisor) => match never {},
    };
    if let Err(error) = &ended {
        tracing::error!(
            error = format!("{error:#}"),
            "this replica stops; another replica may become the leader"
        );
    }
    // Readiness fails from now on; requests are still answered until every load balancer has noticed (draining).
    ending.cancel();
    let drained = Instant::now() + Duration::from_secs(arguments.drain_seconds.into());
    let stopped_again = stop_signal()?;
    // Reconciles in flight end before another replica becomes leader.
    running.shut_down().await;
    candidate.fence.revoke();
    // Releases the lease, so that the next leader need not wait; if that fails, the lease expires.
    let _ = tokio::time::timeout(LEASE_RELEASE_TIMEOUT, candidate.resign()).await;
    tokio::select! {
        biased;
        () = stopped_again => {}
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
        let hint = "check that the kubeconfig is that of an API server and that its user may create \
                    CustomResourceDefinitions";
        anyhow::Error::new(Hint(hint.to_owned())).context(error).context("install the kinds of policies")
    })?;
    tell_aggregated(control).await?;
    let begun = Instant::now();
    while !plane::are_kinds_served(control).await.context("discover the kinds of policies")? {
        if begun.elapsed() > KINDS_SERVED_TIMEOUT {
            bail!("the API server does not serve the kinds of policies; `kubectl describe crd` shows why");
        }
        tokio::time::sleep(KINDS_SERVED_POLL_INTERVAL).await;
    }
    let marks = [(api::labels::SYSTEM, api::labels::TRUE)];
    let namespace = &arguments.system_namespace;
    plane::ensure_namespace(control, namespace, &marks)
        .await
        .with_context(|| format!("make namespace {namespace}"))?;
    let held = held_start(control, feature_gates, budget, jiff::Timestamp::now()).await;
    if let Some(held) = held.context("plan the change of the feature gates")?
        && !arguments.feature_gates.accepts(&held)
    {
        publish_held_start(control, Some(&held)).await.context("publish that the controllers wait")?;
        crate::control::print_held_start(&held);
        bail!("the change of the feature gates exceeds its budget");
    }
    plane::publish_gates(control, feature_gates, budget).await.context("publish the feature gates")?;
    publish_held_start(control, None).await.context("publish that the controllers run")
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
        let found: Option<serde_json::Value> =
            control.get(&path).await.context("read a CustomResourceDefinition")?;
        let warning = match found {
            Some(_) => {
                "; a CustomResourceDefinition of that name exists, too: do not delete it, because that \
                 deletes all of its objects"
            }
            None => "",
        };
        output::print_message(&format!("{name} is not installed: an APIService serves this kind{warning}"));
    }
    Ok(())
}

/// Which clients may ask for reviews. Answers name policies of other tenants, so on the network the API server has to
/// authenticate, unless the user says that nothing else reaches the port.
fn access(arguments: &Arguments) -> Result<Access> {
    let certificates = arguments.webhook_client_ca_file.is_some();
    let token = arguments.webhook_token_file.as_deref().map(Access::read_token).transpose()?;
    let is_guarded = certificates || token.is_some() || arguments.webhook_listen.ip().is_loopback();
    if !is_guarded && !arguments.webhook_unauthenticated {
        let hint = "set --webhook-client-ca-file or --webhook-token-file; or --webhook-unauthenticated, where nothing but \
                    the API server reaches that port (docs/operate.md)";
        return Err(anyhow::Error::new(crate::Hint(hint.to_owned())).context(format!(
            "answer admission reviews on {}: every client that reaches it would learn of other tenants' policies",
            arguments.webhook_listen
        )));
    }
    Ok(Access { certificates, token })
}

fn reviewer(feature_gates: FeatureGates, policy_impact: PolicyImpact) -> Reviewer {
    let random = Arc::new(rand::random::<u128>);
    let now = Arc::new(jiff::Timestamp::now);
    let rules = plane::admission::rules(feature_gates.gates, random.clone(), now.clone(), policy_impact);
    Reviewer { rules, random, now }
}

fn leader_elector(control: Rest, arguments: &Arguments, fence: LeaderFence) -> LeaderElector {
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
) -> Result<(WebhookResync, JoinHandle<()>)> {
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
    let shown = ServingCertificate::new(&kept)?;
    // The CA bundle is installed before the certificate is served; an API server that connects at once waits at the
    // open port.
    install_webhooks(control, &address, &kept.bundle).await.context("install the webhooks")?;
    let authorities = arguments.webhook_client_ca_file.as_deref().map(client_authorities).transpose()?;
    let acceptor = shown.acceptor(authorities)?;
    let reviewed = tokio::spawn(serve(listener, Some(acceptor), Answers::Reviews(reviews), stop.clone()));
    Ok((WebhookResync { keys, kept, shown, address }, reviewed))
}

/// Keeps certificates and webhook configurations as they should be.
struct WebhookResync {
    keys: Keys,
    kept: Kept,
    shown: ServingCertificate,
    address: Address,
}

impl WebhookResync {
    /// Goes on for ever; a failure is retried at the next resync, long before a certificate expires, and logged once.
    async fn run(mut self, supervisor: &Supervisor) -> Infallible {
        let mut logged = None;
        loop {
            tokio::time::sleep(WEBHOOK_RESYNC_INTERVAL).await;
            let failure = match catch(self.resync()).await {
                Ok(looked) => looked.err().map(|error| format!("{error:#}")),
                Err(panic) => {
                    supervisor.task_panicked("resync", &"webhooks", &panic);
                    None
                }
            };
            if let Some(error) = failure.as_ref().filter(|_| failure != logged) {
                tracing::warn!(error, "keep the webhook certificates and configurations up to date");
            }
            logged = failure;
        }
    }

    async fn resync(&mut self) -> Result<()> {
        let kept = self.keys.current(Some(&self.kept), jiff::Timestamp::now()).await?;
        install_webhooks(&self.keys.control, &self.address, &kept.bundle).await?;
        if kept != self.kept {
            // API servers must have loaded the CA bundle before the new certificate is served.
            tokio::time::sleep(CA_BUNDLE_LOAD_TIME).await;
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

    /// The resync of an API server in memory.
    async fn resync() -> WebhookResync {
        let (_, control) = crate::test_server::in_memory().await;
        let keys = Keys { control, namespace: "default".to_owned(), names: vec!["here".to_owned()] };
        let kept = keys.current(None, jiff::Timestamp::now()).await.expect("they can be made");
        let shown = ServingCertificate::new(&kept).expect("they can be shown");
        WebhookResync { keys, kept, shown, address: Address::Url("https://here:9443".to_owned()) }
    }

    #[test]
    fn reviews_on_the_network_need_credentials_or_consent() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            arguments: Arguments,
        }
        let check = |flags: &[&str], expected: bool| {
            let line = ["longshore"].iter().chain(flags);
            let line = <Line as clap::Parser>::try_parse_from(line).expect("known flags");
            assert_eq!(access(&line.arguments).is_ok(), expected, "{flags:?}");
        };
        check(&[], false);
        check(&["--webhook-listen=10.0.0.5:9443"], false);
        check(&["--webhook-listen=127.0.0.1:9443"], true);
        check(&["--webhook-unauthenticated"], true);
        check(&["--webhook-client-ca-file=ca.crt"], true);
    }

    #[tokio::test]
    async fn a_configuration_that_was_deleted_is_made_again() {
        let mut resync = resync().await;
        let control = resync.keys.control.clone();
        resync.resync().await.expect("the server answers");
        for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
            let path = Collection::new("admissionregistration.k8s.io/v1", kind, "").object("longshore");
            control.delete(&path, None).await.expect("the server answers");
            resync.resync().await.expect("the server answers");
            let found: Option<serde_json::Value> = control.get(&path).await.expect("the server answers");
            assert!(found.is_some(), "{path}");
        }
    }

    #[tokio::test]
    async fn what_is_in_use_stays_believed_when_the_secret_is_lost() {
        let WebhookResync { keys, kept, .. } = resync().await;
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
