//! `longshore version`: which version this program is, and which one the control plane.

use anyhow::Result;
use controllers::rest::Path;
use serde::Serialize;
use serde_json::Value;

use crate::connection::Connection;
use crate::output::{self, Format};

/// Arguments of `longshore version`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print only the version of this program, without a request to the control plane
    #[arg(long)]
    client: bool,
    /// Output format
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    connection: Connection,
}

/// What is printed.
#[derive(Serialize)]
struct Versions {
    client: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Server>,
}

#[derive(Serialize)]
struct Server {
    /// Where it is.
    url: String,
    /// The version of Kubernetes' API that it serves, and what serves it, as `/version` says.
    version: String,
}

/// Prints both versions; an error if a control plane is asked and does not answer.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let client = env!("CARGO_PKG_VERSION");
    if arguments.client {
        return print(arguments, &Versions { client, server: None });
    }
    let opened = arguments.connection.open().await;
    if opened.is_err() && arguments.output.is_none() {
        output::print(&format!("Client: {client}\n"))?;
    }
    let control = opened?;
    let version: Value = control.rest.fetch(&Path::fixed("/version")).await?;
    let version = version["gitVersion"].as_str().unwrap_or("unknown").to_owned();
    print(arguments, &Versions { client, server: Some(Server { url: control.server, version }) })
}

fn print(arguments: &Arguments, versions: &Versions) -> Result<()> {
    if let Some(format) = arguments.output {
        return format.print(versions);
    }
    let server = versions.server.as_ref();
    let server = server.map(|server| format!("Server: {} ({})\n", server.version, server.url));
    output::print(&format!("Client: {}\n{}", versions.client, server.unwrap_or_default()))
}
