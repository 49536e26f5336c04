//! Writes the data files of `apiserver` from Kubernetes' published OpenAPI, discovery and protobuf
//! documents. Takes facts only: names, types, keys and defaults, never a sentence.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::DeflateEncoder;

mod definitions;
mod discovery;
mod messages;
mod proto;
mod structs;

const USAGE: &str =
    "usage: generate-kinds --openapi KUBERNETES_API_DIR --protos MODULE_DIR [--protos MODULE_DIR]...";

/// Group versions to serve, the preferred version of a group first, in the order of discovery.
const SERVED: &[(&str, &str)] = &[
    ("", "v1"),
    ("apiregistration.k8s.io", "v1"),
    ("apps", "v1"),
    ("events.k8s.io", "v1"),
    ("authentication.k8s.io", "v1"),
    ("authorization.k8s.io", "v1"),
    ("autoscaling", "v2"),
    ("autoscaling", "v1"),
    ("batch", "v1"),
    ("certificates.k8s.io", "v1"),
    ("networking.k8s.io", "v1"),
    ("policy", "v1"),
    ("rbac.authorization.k8s.io", "v1"),
    ("storage.k8s.io", "v1"),
    ("admissionregistration.k8s.io", "v1"),
    ("apiextensions.k8s.io", "v1"),
    ("scheduling.k8s.io", "v1"),
    ("coordination.k8s.io", "v1"),
    ("node.k8s.io", "v1"),
    ("discovery.k8s.io", "v1"),
];

fn main() -> Result<()> {
    let arguments = Arguments::read(std::env::args().skip(1))?;
    let definitions = definitions::read(&arguments.openapi.join("openapi-spec/v3"), SERVED)?;
    let kinds = discovery::read(&arguments.openapi.join("discovery"), SERVED, &definitions)?;
    let lines = std::iter::once(serde_json::to_string(&kinds)?).chain(definitions.lines());
    write_data("kinds.bin", lines)?;
    write_data("messages.bin", messages::lines(&arguments.protos, SERVED, &definitions)?.into_iter())
}

struct Arguments {
    openapi: PathBuf,
    protos: Vec<PathBuf>,
}

impl Arguments {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut openapi = None;
        let mut protos = Vec::new();
        while let Some(word) = words.next() {
            let value = words.next().map(PathBuf::from).context(USAGE)?;
            match word.as_str() {
                "--openapi" => openapi = Some(value),
                "--protos" => protos.push(value),
                _ => bail!(USAGE),
            }
        }
        Ok(Self { openapi: openapi.context(USAGE)?, protos })
    }
}

fn write_data(name: &str, lines: impl Iterator<Item = String>) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schema/data").join(name);
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    for line in lines {
        writeln!(encoder, "{line}")?;
    }
    fs::write(&path, encoder.finish()?).with_context(|| format!("write {}", path.display()))
}

/// The part of a file name that stands for a group version, as Kubernetes' own documents use it.
fn file_stem(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api__{version}") } else { format!("apis__{group}__{version}") }
}

fn read_json(path: &Path) -> Result<serde_json::Value> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("parse {}", path.display()))
}
