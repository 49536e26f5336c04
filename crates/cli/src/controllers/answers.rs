//! The HTTP handlers by port: health probes and metrics without TLS, admission reviews over TLS. Knows no sockets.

use bytes::Bytes;
use controllers::ctx::Ctx;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;

use super::reviews::Reviews;

/// What one port answers. Clones share it.
#[derive(Clone)]
pub enum Answers {
    /// Health and metrics.
    Health(Box<Health>),
    /// Admission reviews.
    Reviews(Reviews),
}

/// The client, as far as TLS identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// It showed a certificate of the authority that clients are to be known by.
    pub is_certified: bool,
}

impl Answers {
    /// Answers one request.
    pub async fn answer(&self, client: Client, request: Request<Incoming>) -> Response<Full<Bytes>> {
        match self {
            Answers::Health(health) => health.answer(request.method(), request.uri().path()),
            Answers::Reviews(reviews) => reviews.answer(client, request).await,
        }
    }
}

/// Health and metrics. Clones share it.
#[derive(Clone)]
pub struct Health {
    /// What is running.
    pub ctx: Ctx,
    /// Says that this replica is shutting down.
    pub ending: CancellationToken,
}

impl Health {
    fn answer(&self, method: &http::Method, path: &str) -> Response<Full<Bytes>> {
        match (method, path) {
            (&http::Method::GET, "/healthz" | "/livez") => probe(self.ctx.supervisor.failure()),
            (&http::Method::GET, "/readyz") => probe(self.unready()),
            (&http::Method::GET, "/metrics") => text(StatusCode::OK, controllers::scrape::render(&self.ctx)),
            _ => text(StatusCode::NOT_FOUND, "not found"),
        }
    }

    /// Why this replica is not ready to receive requests.
    fn unready(&self) -> Option<String> {
        let ended = self.ctx.supervisor.failure();
        ended.or_else(|| match (self.ending.is_cancelled(), self.ctx.cache.is_synced()) {
            (true, _) => Some("this replica is shutting down".to_owned()),
            (false, false) => Some("the informers have not synced yet".to_owned()),
            (false, true) => None,
        })
    }
}

/// The answer to a probe; a problem makes it fail.
fn probe(problem: Option<String>) -> Response<Full<Bytes>> {
    match problem {
        None => text(StatusCode::OK, "ok"),
        Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, why),
    }
}

/// An answer in plain text.
pub fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    let plain = header::HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}
