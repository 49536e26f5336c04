//! The address of a webhook: a URL, or a Service. No pods run on this server, so a Service is usable only if it is an
//! `ExternalName` or its Endpoints are maintained by another component.

use base64::Engine as _;
use http::Uri;
use serde_json::Value;
use store::{Range, Store};

use crate::storage::{stored, text};

/// Where a webhook is, as its configuration says, and the authority of its certificate in PEM.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Address {
    location: Location,
    pub(super) authority: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq)]
enum Location {
    Url(String),
    Service { namespace: String, name: String, port: u16, path: String },
}

/// Where to connect to, and what to say there.
pub(super) struct Destination {
    /// How errors name it.
    pub url: String,
    /// Hosts and ports; the first is taken.
    pub hosts: Vec<(String, u16)>,
    /// Whom the certificate has to name.
    pub name: String,
    /// The `Host` of the request.
    pub authority: String,
    pub path: String,
}

impl Address {
    /// Reads a `clientConfig`.
    pub fn read(client: &Value) -> Self {
        let bundle = text(client, "/caBundle");
        let authority = base64::engine::general_purpose::STANDARD.decode(bundle).unwrap_or_default();
        let service = &client["service"];
        let location = match client["url"].as_str() {
            Some(url) => Location::Url(url.to_owned()),
            None => Location::Service {
                namespace: text(service, "/namespace").to_owned(),
                name: text(service, "/name").to_owned(),
                port: service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
                path: text(service, "/path").to_owned(),
            },
        };
        Self { location, authority }
    }

    /// Where an address leads now; what is in the way is said in a sentence.
    pub(super) fn destination(&self, store: &Store) -> Result<Destination, String> {
        match &self.location {
            Location::Url(url) => by_url(url),
            Location::Service { namespace, name, port, path } => {
                let service = store.get("/services", &format!("{namespace}/{name}"));
                let service = service.ok_or_else(|| format!("service {name:?} not found"))?;
                let hosts = hosts(store, &stored::parse(&service.value), namespace, name, *port);
                if hosts.is_empty() {
                    return Err(format!(
                        "no endpoints available for service {name:?} (no pods run on this control plane: give it an \
                         EndpointSlice, make it an ExternalName, or name the webhook by clientConfig.url)"
                    ));
                }
                let host = format!("{name}.{namespace}.svc");
                let path = if path.starts_with('/') { path.clone() } else { format!("/{path}") };
                let authority = format!("{host}:{port}");
                Ok(Destination {
                    url: format!("https://{authority}{path}"),
                    hosts,
                    name: host,
                    authority,
                    path,
                })
            }
        }
    }
}

fn hosts(store: &Store, service: &Value, namespace: &str, name: &str, port: u16) -> Vec<(String, u16)> {
    if service["spec"]["type"] == "ExternalName" {
        return vec![(text(service, "/spec/externalName").to_owned(), port)];
    }
    let ports = service["spec"]["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(wanted) = ports.iter().find(|one| one["port"] == port) else { return Vec::new() };
    let named = |one: &&Value| text(one, "/name") == text(wanted, "/name");
    let prefix = format!("{namespace}/");
    let page = store.range("discovery.k8s.io/endpointslices", Range { prefix: &prefix, ..Range::default() });
    let slices = page.map(|page| page.entries).unwrap_or_default();
    let slices = slices.iter().map(|entry| stored::parse(&entry.value));
    let mut hosts = Vec::new();
    for slice in slices.filter(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == name) {
        let Some(port) = number(list(&slice["ports"]).iter().find(named)) else { continue };
        let ready = list(&slice["endpoints"]).iter().filter(|one| one["conditions"]["ready"] != false);
        hosts.extend(
            ready
                .flat_map(|one| list(&one["addresses"]))
                .filter_map(Value::as_str)
                .map(|host| (host.to_owned(), port)),
        );
    }
    if let Some(entry) = store.get("/endpoints", &format!("{namespace}/{name}")).filter(|_| hosts.is_empty())
    {
        for subset in list(&stored::parse(&entry.value)["subsets"]) {
            let Some(port) = number(list(&subset["ports"]).iter().find(named)) else { continue };
            hosts.extend(list(&subset["addresses"]).iter().map(|one| (text(one, "/ip").to_owned(), port)));
        }
    }
    hosts
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn number(port: Option<&Value>) -> Option<u16> {
    port?["port"].as_u64().and_then(|port| u16::try_from(port).ok())
}

fn by_url(url: &str) -> Result<Destination, String> {
    let uri: Uri = url.parse().map_err(|error| format!("the URL {url:?} is unusable: {error}"))?;
    let host = uri.host().ok_or_else(|| format!("the URL {url:?} names no host"))?;
    let bare = host.trim_matches(['[', ']']).to_owned();
    Ok(Destination {
        url: url.to_owned(),
        hosts: vec![(bare.clone(), uri.port_u16().unwrap_or(443))],
        name: bare,
        authority: uri.authority().map_or(host, |authority| authority.as_str()).to_owned(),
        path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
    })
}
