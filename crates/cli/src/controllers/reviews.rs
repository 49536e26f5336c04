//! Admission reviews: authentication of the API server, the concurrency limit, and the threads that compute them. They
//! run apart from the threads that renew the lease, so no review, however large, delays leader election.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use controllers::runtime::Supervisor;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use plane::review::{NoReview, Reviewer};
use plane::webhooks::{MUTATE, VALIDATE};
use serde_json::Value;
use supervise::Panic;
use tokio::sync::Semaphore;

use super::answers::{Client, text};

/// An object may have a megabyte and a half, and a review has two of them.
const REVIEW_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How many reviews may be under way, most of them waiting; further ones are refused at once.
const REVIEWS_MAX: usize = 64;
/// How long a review may take to arrive and to wait for its turn: API servers wait ten seconds for the answer.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(9);
/// A token that is shorter can be guessed.
const TOKEN_BYTES_MIN: usize = 16;

/// Authentication of clients; without any setting, every client that reaches the port gets an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Whether a certificate of the configured authority gets in.
    pub certificates: bool,
    /// The token that gets in.
    pub token: Option<String>,
}

impl Access {
    /// Reads the token that the API server was given.
    pub fn read_token(file: &Path) -> Result<String> {
        let token = std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        let token = token.trim().to_owned();
        if token.len() < TOKEN_BYTES_MIN {
            bail!(
                "{} has fewer than {TOKEN_BYTES_MIN} bytes; create a token with `openssl rand -hex 32`",
                file.display()
            );
        }
        Ok(token)
    }

    /// Whether this client may ask.
    pub fn admits(&self, client: Client, headers: &HeaderMap) -> bool {
        let Self { certificates, token } = self;
        let shown = headers.get(header::AUTHORIZATION).map(header::HeaderValue::as_bytes).unwrap_or_default();
        let shown = shown.strip_prefix(b"Bearer ").unwrap_or_default();
        let by_token = token.as_ref().is_some_and(|token| is_same(token.as_bytes(), shown));
        (!certificates && token.is_none()) || (*certificates && client.is_certified) || by_token
    }
}

/// Compares in a time that does not tell where the first difference is.
fn is_same(expected: &[u8], shown: &[u8]) -> bool {
    let different = expected.iter().zip(shown).fold(0, |sum, (one, other)| sum | (one ^ other));
    expected.len() == shown.len() && different == 0
}

/// Answers reviews. Clones share everything.
#[derive(Clone)]
pub struct Reviews {
    reviewer: Reviewer,
    access: Access,
    supervisor: Supervisor,
    /// Reviews that may be under way.
    admitted: Arc<Semaphore>,
    /// Reviews that may be computed at once.
    computing: Arc<Semaphore>,
}

impl Reviews {
    /// Answers authenticated clients, with these rules.
    pub fn new(reviewer: Reviewer, access: Access, supervisor: Supervisor) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        // One processor is left to everything else.
        let computing = Arc::new(Semaphore::new(threads.saturating_sub(1).max(1)));
        Self { reviewer, access, supervisor, admitted: Arc::new(Semaphore::new(REVIEWS_MAX)), computing }
    }

    /// Answers one request.
    pub async fn answer(&self, client: Client, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let judge = match (request.method(), request.uri().path()) {
            (&Method::POST, MUTATE) => Reviewer::mutate,
            (&Method::POST, VALIDATE) => Reviewer::validate,
            _ => return text(StatusCode::NOT_FOUND, "not found"),
        };
        if !self.access.admits(client, request.headers()) {
            return text(
                StatusCode::UNAUTHORIZED,
                "only the API server may call the webhooks; see docs/operate.md",
            );
        }
        let Ok(_admitted) = self.admitted.clone().try_acquire_owned() else {
            return text(StatusCode::TOO_MANY_REQUESTS, "too many reviews are in progress");
        };
        let reviewed = tokio::time::timeout(REVIEW_TIMEOUT, self.review(request.into_body(), judge)).await;
        reviewed.unwrap_or_else(|_| text(StatusCode::SERVICE_UNAVAILABLE, "the review took too long"))
    }

    async fn review(
        &self,
        body: Incoming,
        judge: fn(&Reviewer, &Value) -> Result<Value, NoReview>,
    ) -> Response<Full<Bytes>> {
        let Ok(body) = Limited::new(body, REVIEW_BYTES_MAX).collect().await else {
            return text(StatusCode::PAYLOAD_TOO_LARGE, "the review is too large or incomplete");
        };
        self.compute(body.to_bytes(), judge).await
    }

    /// Reads and judges a review on a thread of its own. The permit goes with it: a client that hangs up ends the wait
    /// and not the work.
    async fn compute(
        &self,
        body: Bytes,
        judge: fn(&Reviewer, &Value) -> Result<Value, NoReview>,
    ) -> Response<Full<Bytes>> {
        let Ok(permit) = self.computing.clone().acquire_owned().await else {
            return text(StatusCode::SERVICE_UNAVAILABLE, "this replica is shutting down");
        };
        let reviewer = self.reviewer.clone();
        let judged = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let review: Value = serde_json::from_slice(&body).unwrap_or_default();
            judge(&reviewer, &review).map(|answer| answer.to_string())
        });
        match judged.await {
            Ok(Ok(answer)) => {
                let mut response = Response::new(Full::new(Bytes::from(answer)));
                let json = header::HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                response
            }
            Ok(Err(error)) => text(StatusCode::BAD_REQUEST, error.to_string()),
            Err(error) => {
                if let Ok(payload) = error.try_into_panic() {
                    self.supervisor.task_panicked("review", &"an admission review", &Panic::of(&*payload));
                }
                text(StatusCode::INTERNAL_SERVER_ERROR, "the review could not be computed; see the log")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use controllers::gates::FeatureGates;
    use plane::policy_impact::PolicyImpact;

    use super::*;

    fn headers(authorization: &str) -> HeaderMap {
        let value = authorization.parse().expect("a header");
        [(header::AUTHORIZATION, value)].into_iter().collect()
    }

    #[test]
    fn only_who_is_known_gets_in() {
        let token = || Some("0123456789abcdef".to_owned());
        let stranger = Client { is_certified: false };
        let certified = Client { is_certified: true };
        let check = |access: Access, client: Client, authorization: &str, expected: bool| {
            assert_eq!(
                access.admits(client, &headers(authorization)),
                expected,
                "{access:?} {authorization}"
            );
        };
        check(Access::default(), stranger, "", true);
        let by_token = || Access { certificates: false, token: token() };
        check(by_token(), stranger, "Bearer 0123456789abcdef", true);
        check(by_token(), stranger, "Bearer 0123456789abcdeX", false);
        check(by_token(), stranger, "Bearer 0123456789abcdef0", false);
        check(by_token(), stranger, "Bearer ", false);
        check(by_token(), stranger, "", false);
        check(by_token(), certified, "", false);
        let by_certificate = || Access { certificates: true, token: None };
        check(by_certificate(), certified, "", true);
        check(by_certificate(), stranger, "Bearer 0123456789abcdef", false);
        let by_either = || Access { certificates: true, token: token() };
        check(by_either(), certified, "", true);
        check(by_either(), stranger, "Bearer 0123456789abcdef", true);
        check(by_either(), stranger, "", false);
    }

    fn reviews(wait: impl Fn() + Send + Sync + 'static) -> Reviews {
        let mut reviewer = super::super::reviewer(FeatureGates::default(), PolicyImpact::default());
        let rules = reviewer.rules.clone();
        reviewer.rules = Arc::new(move |attributes, object| {
            wait();
            rules(attributes, object)
        });
        Reviews::new(reviewer, Access::default(), Supervisor::default())
    }

    fn body() -> Bytes {
        let review = serde_json::json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": { "uid": "u", "operation": "CREATE", "object": {} },
        });
        Bytes::from(review.to_string())
    }

    /// On one thread: whatever blocks it stops the clock by which a lease is renewed.
    #[tokio::test]
    async fn a_review_that_takes_long_does_not_stop_the_lease_being_renewed() {
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = std::sync::Mutex::new(held);
        // Not for ever, so that a review on the thread of the test makes it fail instead of hang.
        let long = Duration::from_secs(10);
        let reviews = reviews(move || _ = held.lock().expect("nobody panics").recv_timeout(long));
        let begun: Vec<_> = (0..8)
            .map(|_| {
                let reviews = reviews.clone();
                tokio::spawn(async move { reviews.compute(body(), Reviewer::validate).await.status() })
            })
            .collect();
        let renewed = AtomicU32::new(0);
        for _ in 0..5 {
            // A renewal is a request and a pause.
            tokio::time::timeout(Duration::from_secs(20), tokio::time::sleep(Duration::from_millis(10)))
                .await
                .expect("it is renewed in time");
            renewed.fetch_add(1, Ordering::Relaxed);
        }
        assert_eq!(renewed.load(Ordering::Relaxed), 5);
        assert!(begun.iter().all(|review| !review.is_finished()), "all of them still take long");
        drop(release);
        for review in begun {
            assert_eq!(review.await.expect("it ends"), StatusCode::OK);
        }
    }

    #[tokio::test]
    async fn a_review_that_panics_is_an_error_and_stops_no_other() {
        let passed = AtomicU32::new(0);
        let reviews = reviews(move || assert!(passed.fetch_add(1, Ordering::Relaxed) > 0, "injected"));
        let code = async || reviews.compute(body(), Reviewer::validate).await.status().as_u16();
        assert_eq!((code().await, code().await), (500, 200));
    }
}
