//! The file that lets kubectl in.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::certificates::Certificates;

/// A kubeconfig with one context that is the current one.
pub fn kubeconfig(context: &str, server: &str, certificates: &Certificates) -> String {
    let encode = |pem: &str| STANDARD.encode(pem);
    format!(
        "apiVersion: v1
kind: Config
current-context: {context}
clusters:
- name: {context}
  cluster:
    server: {server}
    certificate-authority-data: {}
users:
- name: {context}-admin
  user:
    client-certificate-data: {}
    client-key-data: {}
contexts:
- name: {context}
  context:
    cluster: {context}
    user: {context}-admin
",
        encode(&certificates.authority),
        encode(&certificates.administrator.certificate),
        encode(&certificates.administrator.key),
    )
}
