//! What is answered over HTTP: admission reviews, health and metrics. Knows no sockets.

use bytes::Bytes;
use controllers::ctx::Ctx;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use plane::review::{NoReview, Reviewer};
use plane::webhooks::{MUTATE, VALIDATE};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// An object may have a megabyte and a half, and a review has two of them.
const REVIEW_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Everything that answers. Clones share it.
#[derive(Clone)]
pub struct Answers {
    /// What is running.
    pub ctx: Ctx,
    /// What judges.
    pub reviewer: Reviewer,
    /// Says that this replica is about to end.
    pub ending: CancellationToken,
}

impl Answers {
    /// Answers one request.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        match (request.method(), request.uri().path()) {
            (&Method::POST, MUTATE) => self.review(request, Reviewer::mutate).await,
            (&Method::POST, VALIDATE) => self.review(request, Reviewer::validate).await,
            (&Method::GET, "/healthz" | "/livez") => text(StatusCode::OK, "ok"),
            (&Method::GET, "/readyz") => match self.unready() {
                None => text(StatusCode::OK, "ok"),
                Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, why),
            },
            (&Method::GET, "/metrics") => text(StatusCode::OK, controllers::metrics::render(&self.ctx)),
            _ => text(StatusCode::NOT_FOUND, "not found"),
        }
    }

    /// Why nobody should be sent here.
    fn unready(&self) -> Option<&'static str> {
        match (self.ending.is_cancelled(), self.ctx.view.is_complete()) {
            (true, _) => Some("this replica is about to end"),
            (false, false) => Some("not everything has been listed yet"),
            (false, true) => None,
        }
    }

    async fn review(
        &self,
        request: Request<Incoming>,
        judge: impl Fn(&Reviewer, &Value) -> Result<Value, NoReview>,
    ) -> Response<Full<Bytes>> {
        let Ok(body) = Limited::new(request.into_body(), REVIEW_BYTES_MAX).collect().await else {
            return text(StatusCode::PAYLOAD_TOO_LARGE, "the review is too large or broke off");
        };
        let review: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
        match judge(&self.reviewer, &review) {
            Ok(answer) => {
                let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
                let json = header::HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                response
            }
            Err(error) => text(StatusCode::BAD_REQUEST, error.to_string()),
        }
    }
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    let plain = header::HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}
