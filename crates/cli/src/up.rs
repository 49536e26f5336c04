//! `longshore up`: a control plane on this machine, ready when it says so.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use apiserver::{ApiServer, Config, Frontend, Security};
use controllers::gates::FeatureGates;
use plane::policy_impact::PolicyImpact;
use store::{Options, Store};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::certificates::Certificates;
use crate::encryption_key::EncryptionKey;
use crate::feature_gates::SwitchFlags;
use crate::greeting::{Greeting, say_goodbye};
use crate::kubeconfig::{CONTROL, kubeconfig};
use crate::locals::{Local, Setting};
use crate::{Hint, control, data_directory};

/// However long history is kept, it is no more than this.
const HISTORY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Arguments of `longshore up`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Data directory [default: longshore in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "DIR", env = "LONGSHORE_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Keep objects in memory only, and the kubeconfig in a temporary directory
    #[arg(long, conflicts_with = "data_dir")]
    ephemeral: bool,
    /// Address to listen on; 0.0.0.0 means all addresses of this machine
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind_address: IpAddr,
    /// Port to listen on; 0 picks a free one
    #[arg(long, default_value_t = 6500)]
    port: u16,
    /// Further DNS names and IP addresses for the server's certificate
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tls_san: Vec<String>,
    /// Number of local clusters to start and join, named member1, member2 and so on
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=20))]
    members: u8,
    #[command(flatten)]
    feature_gates: SwitchFlags,
    /// How many seconds of history to keep, within which an interrupted watch can resume
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    history_seconds: u32,
    #[command(flatten)]
    change_budget: crate::change_budget::ChangeBudgetFlags,
    #[command(flatten)]
    security: crate::security::SecurityFlags,
    #[command(flatten)]
    limits: crate::limits::LimitFlags,
    #[command(flatten)]
    pub log: crate::logging::LogFlags,
}

/// Runs the control plane until a shutdown signal arrives.
pub fn run(arguments: &Arguments) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start the runtime")?;
    runtime.block_on(up(arguments))
}

async fn up(arguments: &Arguments) -> Result<()> {
    let data_dir = data_dir(arguments)?;
    data_directory::private_directory(&data_dir)?;
    let listener = listen(arguments.bind_address, arguments.port).await?;
    let bound = listener.local_addr().context("read the port")?;
    let address = local(bound);
    let encryption_key = EncryptionKey::load(arguments.security.encryption_key_file.as_deref(), &data_dir)?;
    let (store, certificates) = open(arguments, &data_dir, &encryption_key)?;
    let feature_gates = arguments.feature_gates.feature_gates()?;
    let policy_impact = arguments.change_budget.policy_impact();
    let kept_in = (!arguments.ephemeral).then_some(data_dir.as_path());
    let security = arguments.security.security(kept_in, arguments.limits.storage())?;
    let server =
        start_server(store.clone(), &certificates, &feature_gates, policy_impact.clone(), security).await?;
    server.advertise(bound);
    let history = Duration::from_secs(arguments.history_seconds.into());
    let chores = server.start_controllers_with_history(history, HISTORY_BYTES_MAX);
    let frontend = Frontend::new(certificates.credentials()?)?.with_limits(arguments.limits.connections());
    let stop = CancellationToken::new();
    let file = data_dir.join("kubeconfig");
    let is_again = file.exists();
    let setting = Setting {
        data_dir: kept_in,
        kubeconfig: &file,
        certificates: &certificates,
        encryption_key: &encryption_key,
        stop: stop.clone(),
        connections: crate::limits::member_connections(arguments.members.into()),
    };
    let locals = start_locals(arguments.members, &setting).await?;
    locals.iter().for_each(|local| server.add_liveness(local.liveness()));
    let controllers = control::run(&server, &locals, &arguments.feature_gates, &policy_impact).await?;
    data_directory::private_file(&file, &kubeconfig(&contexts(address, &locals), &certificates))?;
    // Signals are listened for before the greeting: a script that reads it may send one at once.
    let stopped = stop_signal()?;
    greet(arguments, &file, address, &locals, is_again)?;
    frontend.serve(listener, server, stopped).await;
    if let Some(controllers) = controllers {
        controllers.shut_down().await;
    }
    stop.cancel();
    for local in locals {
        local.shut_down().await?;
    }
    for chore in chores {
        // A chore that panicked has said so; everything it was about is in the store.
        let _ = chore.await;
    }
    store.close().await.context("close the store")?;
    if arguments.ephemeral {
        std::fs::remove_dir_all(&data_dir).with_context(|| format!("remove {}", data_dir.display()))?;
    }
    say_goodbye((!arguments.ephemeral).then_some(data_dir.as_path()));
    Ok(())
}

/// Says what is up and what to type next.
fn greet(
    arguments: &Arguments,
    kubeconfig: &Path,
    address: SocketAddr,
    locals: &[Local],
    is_again: bool,
) -> Result<()> {
    let members = locals.iter().map(|local| (local.name.clone(), local.zone())).collect();
    let greeting = Greeting {
        address,
        is_open: !arguments.bind_address.is_loopback(),
        kubeconfig,
        is_kept: !arguments.ephemeral,
        is_again,
        members,
        gates: arguments.feature_gates.feature_gates()?.changed(),
    };
    greeting.print()
}

async fn start_locals(members: u8, setting: &Setting<'_>) -> Result<Vec<Local>> {
    let numbers = 1..=usize::from(members);
    futures::future::try_join_all(numbers.map(|number| Local::start(number, setting))).await
}

/// The API servers by the names of their contexts; the control plane first.
fn contexts(address: SocketAddr, locals: &[Local]) -> Vec<(String, String)> {
    let control = std::iter::once((CONTROL.to_owned(), format!("https://{address}")));
    let members = locals.iter().map(|local| (local.name.clone(), format!("https://{}", local.address)));
    control.chain(members).collect()
}

fn data_dir(arguments: &Arguments) -> Result<PathBuf> {
    match arguments.ephemeral {
        true => Ok(std::env::temp_dir().join(format!("longshore-{}", std::process::id()))),
        false => data_directory::data_dir(arguments.data_dir.as_deref()),
    }
}

async fn listen(ip: IpAddr, port: u16) -> Result<TcpListener> {
    let address = SocketAddr::from((ip, port));
    TcpListener::bind(address).await.map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                "another process uses the port, maybe another `longshore up`; choose a port with --port, or \
                 0 for any free one"
            }
            _ => "choose another port with --port, or 0 for any free one",
        };
        anyhow::Error::new(Hint(hint.to_owned())).context(error).context(format!("listen on {address}"))
    })
}

fn open(
    arguments: &Arguments,
    data_dir: &Path,
    encryption_key: &EncryptionKey,
) -> Result<(Store, Certificates)> {
    let names = names(arguments);
    if arguments.ephemeral {
        return Ok((Store::in_memory(), Certificates::ephemeral(&names)?));
    }
    let directory = data_dir.join("store");
    data_directory::private_directory(&directory)?;
    let store = Store::open_encrypted(&directory, Options::default(), encryption_key.encryption())
        .map_err(|error| {
            let hint = match &error {
                store::OpenError::Locked { .. } => {
                    "stop the other `longshore up`, or choose another directory with --data-dir"
                }
                _ => {
                    "nothing was changed; restore the directory with `longshore restore`, or start with \
                      another --data-dir"
                }
            };
            let hint = encryption_key.hint(&error).unwrap_or_else(|| Hint(hint.to_owned()));
            anyhow::Error::new(hint).context(error)
        })
        .with_context(|| format!("open the store in {}", directory.display()))?;
    encryption_key.keep()?;
    Ok((store, Certificates::load_or_make(data_dir, &names)?))
}

/// What its certificate has to say beside how it is called on this machine.
fn names(arguments: &Arguments) -> Vec<String> {
    let bound = arguments.bind_address;
    let own = (!bound.is_unspecified() && !bound.is_loopback()).then(|| bound.to_string());
    own.into_iter().chain(arguments.tls_san.iter().cloned()).collect()
}

/// How clients on this machine reach what listens on an address.
fn local(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, address.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, address.port()).into(),
        _ => address,
    }
}

async fn start_server(
    store: Store,
    certificates: &Certificates,
    feature_gates: &FeatureGates,
    policy_impact: PolicyImpact,
    security: Security,
) -> Result<ApiServer> {
    let computing = policy_impact.clone();
    let config = Config {
        store,
        now: Arc::new(jiff::Timestamp::now),
        random: Arc::new(rand::random),
        admission: plane::admission::rules(
            feature_gates.gates.clone(),
            Arc::new(rand::random),
            Arc::new(jiff::Timestamp::now),
            policy_impact,
        ),
        root_ca: certificates.authority.clone(),
    };
    let extension =
        plane::extension::extension(computing, feature_gates.changed(), Arc::new(jiff::Timestamp::now));
    ApiServer::extended(config, security, Some(extension)).await.context("prepare the API server")
}

/// Resolves at ctrl-C or when the process is asked to end.
pub fn stop_signal() -> Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    Ok(async move {
        tokio::select! {
            biased;
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
