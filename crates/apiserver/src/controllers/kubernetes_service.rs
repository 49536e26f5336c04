//! The Service `default/kubernetes`, by which clients in a cluster find its API server. It is recreated when it is
//! deleted. Endpoints are written only for an address that other machines can reach.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::engine::Engine;
use crate::registry::well_known::{KUBERNETES_NAMESPACE as NAMESPACE, KUBERNETES_SERVICE as NAME};
use crate::storage::stored;
use apimachinery::error::ApiError;

const SERVICE_PORT: u16 = 443;

impl Engine {
    /// Makes sure that the Service is there, once the server listens somewhere.
    pub(super) async fn ensure_kubernetes_service(&self) -> Result<(), ApiError> {
        let Some(address) = self.advertised.get() else { return Ok(()) };
        let services = self.resource("", "v1", "services")?;
        if self.store.get(&services.table, &services.key(Some(NAMESPACE), NAME)).is_none() {
            self.ensure(&services, NAMESPACE, service(address.port())).await?;
        }
        let ip = address.ip();
        // Kubernetes refuses endpoints that mean another machine to each reader.
        if ip.is_loopback() || ip.is_unspecified() {
            return Ok(());
        }
        let (endpoints, slice) = (endpoints(*address), endpoint_slice(*address));
        self.ensure_content("", "v1", "endpoints", &endpoints, &["subsets"]).await?;
        self.ensure_content("discovery.k8s.io", "v1", "endpointslices", &slice, &["endpoints", "ports"]).await
    }

    /// Creates an object, or gives one that is there these fields.
    async fn ensure_content(
        &self,
        group: &str,
        version: &str,
        plural: &str,
        wanted: &Value,
        fields: &[&str],
    ) -> Result<(), ApiError> {
        let resource = self.resource(group, version, plural)?;
        let Some(entry) = self.store.get(&resource.table, &resource.key(Some(NAMESPACE), NAME)) else {
            return self.ensure(&resource, NAMESPACE, wanted.clone()).await;
        };
        let old = stored::parse(&entry.value);
        if fields.iter().all(|field| old[field] == wanted[field]) {
            return Ok(());
        }
        let call = self.internal_call(&resource, NAMESPACE, NAME);
        let change =
            |object: &mut Value| fields.iter().for_each(|field| object[field] = wanted[field].clone());
        self.internal_change(&call, change).await
    }
}

fn service(port: u16) -> Value {
    json!({
        "metadata": { "name": NAME, "labels": { "component": "apiserver", "provider": "kubernetes" } },
        "spec": {
            "type": "ClusterIP", "sessionAffinity": "None",
            "ports": [{ "name": "https", "port": SERVICE_PORT, "protocol": "TCP", "targetPort": port }],
        },
    })
}

fn endpoints(address: SocketAddr) -> Value {
    json!({
        "metadata": { "name": NAME, "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" } },
        "subsets": [{
            "addresses": [{ "ip": address.ip().to_string() }],
            "ports": [{ "name": "https", "port": address.port(), "protocol": "TCP" }],
        }],
    })
}

fn endpoint_slice(address: SocketAddr) -> Value {
    let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
    json!({
        "metadata": { "name": NAME, "labels": { "kubernetes.io/service-name": NAME } },
        "addressType": family,
        "endpoints": [{ "addresses": [address.ip().to_string()], "conditions": { "ready": true } }],
        "ports": [{ "name": "https", "port": address.port(), "protocol": "TCP" }],
    })
}
