//! Kubeconfig files: the one that `up` writes, and `longshore kubeconfig`, which prints one context of it, or a context
//! for another user.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::Kubeconfig;
use serde_json::Value;

use crate::certificates::{Certificates, Pair};
use crate::{Hint, data_directory, output};

mod user;

/// The context of the control plane.
pub const CONTROL: &str = "longshore";
/// The user that `up` makes.
const ADMINISTRATOR: &str = "longshore-admin";

/// Arguments of `longshore kubeconfig`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Context to print: a local member such as member1 [default: the control plane]
    #[arg(value_name = "NAME", conflicts_with_all = ["user", "serviceaccount"])]
    name: Option<String>,
    /// Data directory of `longshore up` [default: longshore in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "DIR", env = "LONGSHORE_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Server URL to print, for clients on other machines, such as https://longshore.example:6500 [default: the local
    /// one]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    user: user::UserFlags,
}

/// API servers by the names of their contexts, and what their clients have to show.
struct Contexts {
    /// The first is the current one.
    servers: Vec<(String, String)>,
    /// Base64 of PEM, as the file has it.
    authority: String,
    /// The user name of the context.
    user: String,
    credential: Credential,
    /// The namespace of every context; empty for none.
    namespace: String,
}

/// The credential of a client.
enum Credential {
    /// Base64 of PEM, as the file has it.
    Certificate { certificate: String, key: String },
    /// A bearer token.
    Token(String),
}

impl Credential {
    fn pair(pair: &Pair) -> Self {
        Self::Certificate { certificate: STANDARD.encode(&pair.certificate), key: STANDARD.encode(&pair.key) }
    }
}

/// A kubeconfig with a context per API server; the first is the current one.
pub fn kubeconfig(servers: &[(String, String)], certificates: &Certificates) -> String {
    let contexts = Contexts {
        servers: servers.to_vec(),
        authority: STANDARD.encode(&certificates.authority),
        user: ADMINISTRATOR.to_owned(),
        credential: Credential::pair(&certificates.administrator),
        namespace: String::new(),
    };
    contexts.text()
}

/// Prints one context as a kubeconfig that needs no other file.
pub fn run(arguments: &Arguments) -> Result<()> {
    let data_dir = data_directory::data_dir(arguments.data_dir.as_deref())?;
    let file = data_dir.join("kubeconfig");
    let mut contexts = read(&file)?;
    let name = arguments.name.as_deref().unwrap_or(CONTROL);
    let known: Vec<String> = contexts.servers.iter().map(|(name, _)| name.clone()).collect();
    contexts.servers.retain(|(context, _)| context == name);
    if let Some(server) = &arguments.server {
        contexts.servers.iter_mut().for_each(|(_, known)| known.clone_from(server));
    }
    if contexts.servers.is_empty() {
        let hint = Hint(format!("there are {}", known.join(", ")));
        return Err(anyhow::Error::new(hint).context(format!("find context {name:?} in {}", file.display())));
    }
    if let Some(made) = arguments.user.made(&data_dir)? {
        contexts.user = made.user;
        contexts.credential = made.credential;
        contexts.namespace = made.namespace;
    }
    std::io::stdout().write_all(contexts.text().as_bytes()).context("print")
}

/// Where a context listened when the file was written, if that can be told.
pub fn last_address(file: &Path, name: &str) -> Option<SocketAddr> {
    let contexts = read(file).ok()?;
    let (_, server) = contexts.servers.iter().find(|(context, _)| context == name)?;
    server.strip_prefix("https://")?.parse().ok()
}

fn read(file: &Path) -> Result<Contexts> {
    let hint = || Hint("start `longshore up` first, or pass its data directory with --data-dir".to_owned());
    let text = std::fs::read_to_string(file).map_err(|error| {
        anyhow::Error::new(hint()).context(error).context(format!("read {}", file.display()))
    })?;
    let config = Kubeconfig::from_yaml(&text).with_context(|| format!("read {}", file.display()))?;
    // As a plain JSON value, because the typed kubeconfig redacts its secrets.
    let config = serde_json::to_value(config).with_context(|| format!("read {}", file.display()))?;
    contexts(&config).ok_or_else(|| {
        let hint = Hint("restart `longshore up`, which writes it again".to_owned());
        anyhow::Error::new(hint)
            .context(format!("read {}: it is not the kubeconfig that `longshore up` wrote", file.display()))
    })
}

fn contexts(config: &Value) -> Option<Contexts> {
    let list = |key: &str| config[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let server = |context: &Value| {
        let cluster = list("clusters").iter().find(|one| one["name"] == context["context"]["cluster"])?;
        Some((context["name"].as_str()?.to_owned(), cluster["cluster"]["server"].as_str()?.to_owned()))
    };
    let user = &list("users").first()?["user"];
    let authority = &list("clusters").first()?["cluster"]["certificate-authority-data"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some(Contexts {
        servers: list("contexts").iter().filter_map(server).collect(),
        authority: text(authority)?,
        user: ADMINISTRATOR.to_owned(),
        credential: Credential::Certificate {
            certificate: text(&user["client-certificate-data"])?,
            key: text(&user["client-key-data"])?,
        },
        namespace: String::new(),
    })
}

impl Contexts {
    fn text(&self) -> String {
        let current = self.servers.first().map_or("", |(context, _)| context);
        let cluster = |(name, server): &(String, String)| {
            let authority = &self.authority;
            format!(
                "- name: {name}\n  cluster:\n    server: {server}\n    certificate-authority-data: {authority}\n"
            )
        };
        let user = quoted(&self.user);
        let namespace = match self.namespace.as_str() {
            "" => String::new(),
            namespace => format!("    namespace: {}\n", quoted(namespace)),
        };
        let context = |(name, _): &(String, String)| {
            format!("- name: {name}\n  context:\n    cluster: {name}\n    user: {user}\n{namespace}")
        };
        let clusters: String = self.servers.iter().map(cluster).collect();
        let contexts: String = self.servers.iter().map(context).collect();
        let credential = match &self.credential {
            Credential::Certificate { certificate, key } => {
                format!("client-certificate-data: {certificate}\n    client-key-data: {key}")
            }
            Credential::Token(token) => format!("token: {token}"),
        };
        format!(
            "apiVersion: v1
kind: Config
current-context: {current}
clusters:
{clusters}users:
- name: {user}
  user:
    {credential}
contexts:
{contexts}"
        )
    }
}

/// A name as YAML takes it.
fn quoted(name: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-._@".contains(character);
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic());
    match begins && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => Value::from(name).to_string(),
    }
}
