//! `longshore controllers`: every controller and the admission webhooks on somebody else's API server. Several replicas
//! may run: all of them answer reviews, one of them writes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use controllers::ctx::{Ctx, Members};
use controllers::gates::{self, Switches};
use controllers::leadership::{Candidate, Terms};
use controllers::rest::{Rest, Warrant};
use controllers::start::start;
use plane::outlook::{Budget, Outlook};
use plane::review::Reviewer;
use plane::webhooks::{Address, install_webhooks};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::connection::Connection;
use crate::up::told_to_stop;
use crate::{Hint, output};

mod answers;
mod keys;
mod serve;

use answers::Answers;
use keys::{Kept, Keys};
use serve::{Shown, serve};

/// The Service in front of the webhooks, as the chart makes it.
const SERVICE: &str = "longshore-webhook";
/// The Lease that one replica holds.
const LEASE: &str = "longshore-controllers";
/// How often certificates and webhook configurations are looked at.
const UPKEEP: Duration = Duration::from_secs(600);
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
    /// Switches by Karmada's names: StaticPolicy=true,Failover=false
    #[arg(long, value_name = "GATES", default_value = "", value_parser = gates::parse, hide_default_value = true)]
    feature_gates: Switches,
    /// How many seconds others wait for a replica that leads and is silent
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(3..=3_600))]
    lease_seconds: u32,
    /// How many templates one change of a policy may move, unless the policy says otherwise
    #[arg(long, value_name = "N")]
    max_moved: Option<usize>,
    /// How many objects in members one change of a policy may delete, unless the policy says otherwise
    #[arg(long, value_name = "N")]
    max_deleted: Option<usize>,
    #[command(flatten)]
    connection: Connection,
}

/// What an API server takes for the address of a webhook.
fn url(text: &str) -> Result<http::Uri, String> {
    let url: http::Uri = text.parse().map_err(|error| format!("{error}"))?;
    match url.scheme_str() == Some("https") && url.host().is_some() {
        true => Ok(url),
        false => Err("write https://HOST:PORT".to_owned()),
    }
}

/// Runs until it is told to stop; an error when it led and can no longer.
pub fn run(arguments: &Arguments) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start the runtime")?;
    runtime.block_on(controllers(arguments))
}

async fn controllers(arguments: &Arguments) -> Result<()> {
    let client = arguments.connection.lasting().await?;
    // The lease has to be renewed however much else there is to ask for.
    let urgent = Rest::new(client.clone());
    let control = Rest::new(client).with_regard();
    prepare(&control, arguments).await?;
    let outlook = Outlook::new(Budget { moved: arguments.max_moved, deleted: arguments.max_deleted });
    let warrant = Warrant::default();
    let ctx = Ctx::new(
        control.clone().under(warrant.clone()),
        Members::default(),
        arguments.feature_gates,
        Arc::new(jiff::Timestamp::now),
    );
    outlook.see(ctx.view.clone());
    let answers = Answers { ctx: ctx.clone(), reviewer: reviewer(arguments.feature_gates, outlook) };
    let stop = CancellationToken::new();
    let upkeep = open_webhooks(&control, arguments, &answers, &stop).await?;
    let listener = listen(arguments.listen).await?;
    let health = listener.local_addr().context("read the port")?;
    let served = tokio::spawn(serve(listener, None, answers, stop.clone()));
    let running = start(ctx);
    output::print(&format!("controllers run; health and metrics on http://{health}\n"))?;
    let candidate = candidate(urgent, arguments, warrant);
    let told = told_to_stop()?;
    let ended = tokio::select! {
        biased;
        () = told => Ok(()),
        () = candidate.run(&stop) => Err(anyhow!("keep the lease {LEASE}: another replica may lead now")),
        error = upkeep.run() => Err(error),
    };
    // What is under way may end before somebody else begins.
    running.shut_down().await;
    candidate.warrant.revoke();
    // Whoever waits for the lease need not wait any longer; if that fails, it runs out.
    let _ = candidate.resign().await;
    stop.cancel();
    // A task that panicked has said so already.
    let _ = served.await;
    ended
}

/// What has to be there before anything can run: the kinds, a place for our own objects, a note about the gates.
async fn prepare(control: &Rest, arguments: &Arguments) -> Result<()> {
    plane::install_kinds(control).await.map_err(|error| {
        let hint = "is it the kubeconfig of an API server, and may its user define kinds?";
        anyhow::Error::new(Hint(hint.to_owned())).context(error).context("install the kinds of policies")
    })?;
    let begun = tokio::time::Instant::now();
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
    plane::publish_gates(control, arguments.feature_gates).await.context("tell the feature gates")
}

fn reviewer(switches: Switches, outlook: Outlook) -> Reviewer {
    let random = Arc::new(rand::random::<u128>);
    let now = Arc::new(jiff::Timestamp::now);
    let rules = plane::admission::rules(switches.gates, random.clone(), now.clone(), outlook);
    Reviewer { rules, random, now }
}

fn candidate(control: Rest, arguments: &Arguments, warrant: Warrant) -> Candidate {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Candidate {
        control,
        namespace: arguments.system_namespace.clone(),
        name: LEASE.to_owned(),
        identity: format!("{}_{:032x}", host.trim(), rand::random::<u128>()),
        terms: Terms::of(Duration::from_secs(arguments.lease_seconds.into())),
        warrant,
    }
}

/// Begins to answer reviews, and tells the API server to ask.
async fn open_webhooks(
    control: &Rest,
    arguments: &Arguments,
    answers: &Answers,
    stop: &CancellationToken,
) -> Result<Upkeep> {
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
    let kept = keys.current(jiff::Timestamp::now()).await.context("prepare the webhooks' certificates")?;
    let shown = Shown::new(&kept)?;
    // It ends with the process; the API server asks another replica then.
    drop(tokio::spawn(serve(listener, Some(shown.acceptor()?), answers.clone(), stop.clone())));
    install_webhooks(control, &address, &kept.bundle).await.context("install the webhooks")?;
    Ok(Upkeep { keys, kept, shown, address })
}

/// Keeps certificates and webhook configurations as they should be.
struct Upkeep {
    keys: Keys,
    kept: Kept,
    shown: Shown,
    address: Address,
}

impl Upkeep {
    /// Goes on for ever; a failure is tried again the next time, long before anything runs out.
    async fn run(mut self) -> anyhow::Error {
        loop {
            tokio::time::sleep(UPKEEP).await;
            if let Err(error) = self.look().await {
                tracing::warn!(error = format!("{error:#}"), "look after the webhooks");
            }
        }
    }

    async fn look(&mut self) -> Result<()> {
        let kept = self.keys.current(jiff::Timestamp::now()).await?;
        if kept != self.kept {
            self.shown.change(&kept)?;
            self.kept = kept;
        }
        install_webhooks(&self.keys.control, &self.address, &self.kept.bundle).await?;
        Ok(())
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))
}
