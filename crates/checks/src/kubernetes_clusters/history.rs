//! How often objects were really changed, by their version in etcd: a request that changes nothing is in the audit log,
//! but makes no version.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

use super::cluster::Cluster;

impl Cluster {
    /// How many versions each object of a collection has had since it was made, by name. A collection is named as the
    /// store does it: `configmaps/default`.
    pub async fn versions(&self, collection: &str) -> Result<BTreeMap<String, u64>> {
        let prefix = format!("/registry/{collection}/");
        // The first key after all that begin like this: a slash is followed by a zero.
        let end = format!("/registry/{collection}0");
        let request = json!({
            "key": STANDARD.encode(&prefix), "range_end": STANDARD.encode(end), "keys_only": true,
        });
        let answer = ask(self.store_port(), request).await.context("ask etcd")?;
        let mut versions = BTreeMap::new();
        for pair in answer["kvs"].as_array().into_iter().flatten() {
            let key = STANDARD.decode(pair["key"].as_str().unwrap_or_default())?;
            let name = String::from_utf8(key)?.trim_start_matches(&prefix).to_owned();
            // Numbers of 64 bits are texts in this kind of JSON.
            versions.insert(name, pair["version"].as_str().unwrap_or_default().parse()?);
        }
        Ok(versions)
    }
}

async fn ask(port: u16, request: Value) -> Result<Value> {
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::post("/v3/kv/range")
        .header("host", "localhost")
        .body(Full::new(Bytes::from(request.to_string())))?;
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    Ok(serde_json::from_slice(&body)?)
}
