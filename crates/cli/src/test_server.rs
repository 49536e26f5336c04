//! A control plane's API server in memory, for unit tests of commands.

use std::sync::Arc;

use apiserver::{ApiServer, Config};
use controllers::rest::Rest;

/// An empty server, and a client that may do everything there.
pub async fn in_memory() -> (ApiServer, Rest) {
    let config = Config {
        store: store::Store::in_memory(),
        now: Arc::new(jiff::Timestamp::now),
        random: Arc::new(rand::random::<u128>),
        admission: apiserver::admission::admit_all(),
        root_ca: String::new(),
    };
    let server = ApiServer::new(config).await.expect("an empty store opens");
    let trusted = server.trusting(apiserver::authn::Identity::internal("test"));
    let control = Rest::new(kube::Client::new(trusted, "default"));
    (server, control)
}
