//! How a command finds the control plane: kubectl's flags and kubeconfig files, and if neither a flag nor `KUBECONFIG`
//! nor ~/.kube/config names a cluster, the control plane that `longshore up` runs on this machine. Knows no command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use controllers::gates::FeatureGates;
use controllers::rest::Rest;
use controllers::snapshot::list_snapshot;
use decide::Snapshot;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::kubeconfig_problem::kubeconfig_problem;
use crate::progress::with_progress;
use crate::{Hint, data_directory, output};

/// kubectl's flags that choose the server.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    /// Kubeconfig file [default: the files in KUBECONFIG, ~/.kube/config, or the file that `longshore up` wrote]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Namespace of the request [default: the namespace of the context, or default]
    #[arg(long, short, value_name = "NAMESPACE")]
    namespace: Option<String>,
}

/// A control plane that answers.
pub struct Control {
    /// Where requests go.
    pub rest: Rest,
    /// The namespace that is meant where none is named.
    pub namespace: String,
    /// The context in use.
    pub context: String,
    /// The URL of the server that the context names.
    pub server: String,
    /// Everything the kubeconfig names, for members that have contexts there.
    pub kubeconfig: Kubeconfig,
}

impl Connection {
    /// True when a flag says where to go.
    pub fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// Connects, and fails if no server answers.
    pub async fn open(&self) -> Result<Control> {
        let kubeconfig = self.files()?;
        let context = self.chosen(&kubeconfig)?;
        let rest = client(&kubeconfig, &context).await?;
        let version = controllers::rest::Path::fixed("/version");
        let asked = rest.fetch::<serde_json::Value>(&version);
        with_progress("reaching the control plane", asked).await.map_err(|error| {
            let hint =
                "check that it runs: start `longshore up`, or choose another control plane with --context or \
                 --kubeconfig";
            anyhow::Error::new(Hint(hint.to_owned()))
                .context(error)
                .context(format!("reach the control plane of context {context:?}"))
        })?;
        let of_context = kubeconfig.contexts.iter().find(|named| named.name == context);
        let of_context = of_context.and_then(|named| named.context.as_ref()?.namespace.clone());
        let namespace = self.namespace.clone().or(of_context).filter(|name| !name.is_empty());
        let namespace = namespace.unwrap_or_else(|| "default".to_owned());
        let server = server(&kubeconfig, &context).unwrap_or_default();
        Ok(Control { rest, namespace, context, server, kubeconfig })
    }

    /// The same for a command that writes: it prints on stderr which server it writes to.
    pub async fn open_to_write(&self) -> Result<Control> {
        let control = self.open().await?;
        output::print_message(&format!("server: {} (context {})", control.server, control.context));
        Ok(control)
    }

    /// The connection flags in an incomplete command line, for shell completion.
    pub fn of_words(words: &[String]) -> Self {
        let value = |flags: &[&str]| {
            let place = words.iter().rposition(|word| flags.contains(&word.as_str()))?;
            // The last word is not finished.
            words.get(place + 1).filter(|_| place + 2 < words.len()).cloned()
        };
        Self {
            kubeconfig: value(&["--kubeconfig"]).map(PathBuf::from),
            context: value(&["--context"]),
            namespace: value(&["-n", "--namespace"]),
        }
    }

    /// The names of all contexts.
    pub fn contexts(&self) -> Result<Vec<String>> {
        Ok(self.files()?.contexts.into_iter().map(|named| named.name).collect())
    }

    /// A client for long-running processes: in a pod without a kubeconfig it uses the pod's service account.
    pub async fn lasting(&self) -> Result<kube::Client> {
        let in_a_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
        let mut config = match self.kubeconfig.is_none() && self.context.is_none() && in_a_pod {
            true => kube::Config::incluster().context("use the pod's service account")?,
            false => {
                let kubeconfig = self.files()?;
                let context = self.chosen(&kubeconfig)?;
                config(&kubeconfig, &context).await?
            }
        };
        // How often to try is decided elsewhere.
        config.default_retry = false;
        kube::Client::try_from(config).context("use the kubeconfig")
    }

    fn files(&self) -> Result<Kubeconfig> {
        if let Some(file) = &self.kubeconfig {
            return read(file);
        }
        if let Some(value) = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()) {
            return named(&std::env::split_paths(&value).collect::<Vec<_>>());
        }
        let merged = merged(&home().into_iter().collect::<Vec<_>>())?;
        if !merged.contexts.is_empty() {
            return Ok(merged);
        }
        let hint = "start `longshore up`, or pass a kubeconfig with --kubeconfig or KUBECONFIG";
        let not_found = || {
            anyhow::Error::new(Hint(hint.to_owned())).context("find a control plane: no kubeconfig names one")
        };
        let named = std::env::var_os("LONGSHORE_DATA_DIR").map(PathBuf::from);
        let file = data_directory::data_dir(named.as_deref()).map_err(|_| not_found())?.join("kubeconfig");
        if file.exists() { read(&file) } else { Err(not_found()) }
    }

    /// The connection that one context of one file describes.
    pub fn to(kubeconfig: &Path, context: &str) -> Self {
        let (kubeconfig, context) = (Some(kubeconfig.to_owned()), Some(context.to_owned()));
        Self { kubeconfig, context, namespace: None }
    }

    fn chosen(&self, kubeconfig: &Kubeconfig) -> Result<String> {
        let known: Vec<&str> = kubeconfig.contexts.iter().map(|named| named.name.as_str()).collect();
        let current = kubeconfig.current_context.clone().filter(|name| !name.is_empty());
        let Some(wanted) = self.context.clone().or(current) else {
            let hint = Hint(format!("choose one with --context; the kubeconfig has {}", known.join(", ")));
            return Err(anyhow::Error::new(hint).context("find a context: the kubeconfig has no current one"));
        };
        if known.contains(&wanted.as_str()) {
            return Ok(wanted);
        }
        let hint = Hint(format!("there are {}", known.join(", ")));
        Err(anyhow::Error::new(hint).context(format!("find context {wanted:?} in the kubeconfig")))
    }
}

impl Control {
    /// The feature gates it runs with; their defaults where the control plane does not publish them, as in Karmada.
    pub async fn feature_gates(&self) -> Result<FeatureGates> {
        plane::published_gates(&self.rest).await.context("ask for the feature gates")
    }

    /// Everything that decisions depend on, as it is now.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        let gates = self.feature_gates().await?.gates;
        let read = list_snapshot(&self.rest, gates, jiff::Timestamp::now());
        let read = with_progress("reading the control plane", read).await;
        let read = read.map_err(|error| {
            let hint = "check that the context is that of a control plane and that you may list objects \
                        there: `kubectl auth can-i list propagationpolicies -A`";
            let causes = format!("{:#}", anyhow::Error::new(error));
            anyhow::Error::new(Hint(hint.to_owned())).context(causes).context("read the control plane")
        });
        Ok(read?.snapshot)
    }

    /// A member that has a context of its own in the kubeconfig.
    pub async fn member_of_kubeconfig(&self, endpoint: &str) -> Option<Rest> {
        let servers: BTreeMap<&str, &str> = self
            .kubeconfig
            .clusters
            .iter()
            .filter_map(|named| Some((named.name.as_str(), named.cluster.as_ref()?.server.as_deref()?)))
            .collect();
        let leads_there = |cluster: &str| {
            servers
                .get(cluster)
                .is_some_and(|server| server.trim_end_matches('/') == endpoint.trim_end_matches('/'))
        };
        let context = self
            .kubeconfig
            .contexts
            .iter()
            .find(|named| named.context.as_ref().is_some_and(|context| leads_there(&context.cluster)))?;
        client(&self.kubeconfig, &context.name).await.ok()
    }
}

async fn config(kubeconfig: &Kubeconfig, context: &str) -> Result<kube::Config> {
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
    let read = kube::Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await;
    read.map_err(|error| anyhow!(kubeconfig_problem(&error)))
        .with_context(|| format!("use context {context:?}"))
}

async fn client(kubeconfig: &Kubeconfig, context: &str) -> Result<Rest> {
    let wrong = || format!("use context {context:?}");
    let mut config = config(kubeconfig, context).await?;
    // A user waits at the terminal: fail early instead of retrying.
    config.default_retry = false;
    config.connect_timeout = Some(std::time::Duration::from_secs(5));
    Ok(Rest::new(kube::Client::try_from(config).with_context(wrong)?))
}

/// The URL of the server that a context names.
fn server(kubeconfig: &Kubeconfig, context: &str) -> Option<String> {
    let context = kubeconfig.contexts.iter().find(|named| named.name == context)?.context.as_ref()?;
    let cluster = kubeconfig.clusters.iter().find(|named| named.name == context.cluster)?;
    cluster.cluster.as_ref()?.server.clone()
}

fn read(file: &Path) -> Result<Kubeconfig> {
    let doing = || format!("read the kubeconfig {}", file.display());
    if !file.exists() {
        let hint =
            Hint("check the path; `longshore kubeconfig` prints the kubeconfig of `longshore up`".to_owned());
        return Err(anyhow::Error::new(hint).context("there is no such file").context(doing()));
    }
    Kubeconfig::read_from(file).map_err(|error| anyhow!(kubeconfig_problem(&error))).with_context(doing)
}

/// The files that `KUBECONFIG` names. It names a control plane, so no other one is taken in its place.
fn named(files: &[PathBuf]) -> Result<Kubeconfig> {
    let merged = merged(files)?;
    if !merged.contexts.is_empty() {
        return Ok(merged);
    }
    let files: Vec<&PathBuf> = files.iter().filter(|file| !file.as_os_str().is_empty()).collect();
    let described = |file: &&PathBuf| match file.exists() {
        true => format!("{} has no context", file.display()),
        false => format!("{} does not exist", file.display()),
    };
    let files: Vec<String> = files.iter().map(described).collect();
    let hint = "correct KUBECONFIG, or `unset KUBECONFIG` to use ~/.kube/config or else `longshore up`";
    let context = format!("find a control plane in the files that KUBECONFIG names: {}", files.join(", "));
    Err(anyhow::Error::new(Hint(hint.to_owned())).context(context))
}

/// Several files as one; as with kubectl the first to say something wins, and a file that is not there says
/// nothing.
fn merged(files: &[PathBuf]) -> Result<Kubeconfig> {
    let there = files.iter().filter(|file| !file.as_os_str().is_empty() && file.exists());
    let mut merged = Kubeconfig::default();
    for file in there {
        let next = read(file)?;
        // An empty name is no choice.
        merged.current_context = merged.current_context.filter(|name| !name.is_empty());
        let all = merged.merge(next).map_err(|error| anyhow!(kubeconfig_problem(&error)));
        merged = all.with_context(|| format!("read the kubeconfig {}", file.display()))?;
    }
    Ok(merged)
}

fn home() -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os("HOME")?).join(".kube").join("config"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(name: &str, current: &str, namespace: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {current:?}\n\
             clusters: [{{ name: {name}, cluster: {{ server: 'https://{name}' }} }}]\n\
             users: [{{ name: {name}, user: {{ token: t }} }}]\n\
             contexts: [{{ name: {name}, context: {{ cluster: {name}, user: {name}, namespace: {namespace:?} }} }}]\n"
        )
    }

    #[test]
    fn files_are_read_as_kubectl_reads_them() {
        let folder = tempfile::tempdir().expect("there is room for a temporary directory");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("one"), config("one", "", "x")).expect("the directory takes files");
        std::fs::write(path("two"), config("two", "two", "")).expect("the directory takes files");
        let both =
            merged(&[path("missing"), path("one"), PathBuf::new(), path("two")]).expect("both are read");
        let names: Vec<&str> = both.contexts.iter().map(|context| context.name.as_str()).collect();
        assert_eq!((names, both.current_context.as_deref()), (vec!["one", "two"], Some("two")));
    }

    #[test]
    fn a_context_has_to_be_one_that_exists() {
        let known = Kubeconfig::from_yaml(&config("one", "", "")).expect("a kubeconfig");
        let check = |named: Option<&str>, expected: Result<&str, &str>| {
            let connection = Connection { context: named.map(str::to_owned), ..Connection::default() };
            let found = connection.chosen(&known).map_err(|error| error.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        };
        check(Some("one"), Ok("one"));
        check(None, Err("find a context: the kubeconfig has no current one"));
        check(Some("two"), Err("find context \"two\" in the kubeconfig"));
    }
}
