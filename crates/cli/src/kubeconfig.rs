//! The file that lets kubectl in.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::certificates::Certificates;

/// A kubeconfig with a context per API server; the first is the current one.
pub fn kubeconfig(servers: &[(String, String)], certificates: &Certificates) -> String {
    let current = servers.first().map_or("", |(context, _)| context);
    let clusters: String =
        servers.iter().map(|(context, server)| cluster(context, server, certificates)).collect();
    let contexts: String = servers.iter().map(|(context, _)| self::context(context)).collect();
    let encode = |pem: &str| STANDARD.encode(pem);
    format!(
        "apiVersion: v1
kind: Config
current-context: {current}
clusters:
{clusters}users:
- name: longshore-admin
  user:
    client-certificate-data: {}
    client-key-data: {}
contexts:
{contexts}",
        encode(&certificates.administrator.certificate),
        encode(&certificates.administrator.key),
    )
}

fn cluster(name: &str, server: &str, certificates: &Certificates) -> String {
    let authority = STANDARD.encode(&certificates.authority);
    format!("- name: {name}\n  cluster:\n    server: {server}\n    certificate-authority-data: {authority}\n")
}

fn context(name: &str) -> String {
    format!("- name: {name}\n  context:\n    cluster: {name}\n    user: longshore-admin\n")
}
