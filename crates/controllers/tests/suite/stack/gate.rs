//! A gate that every request of the controllers passes: it counts, can block and can refuse. The tests' own requests do
//! not pass it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use apiserver::InProcess;
use http::{Request, Response, StatusCode};
use kube::client::Body;
use tokio::sync::watch;

/// What becomes of requests that start like this: they are answered with a status, or not at all.
type Refusal = (String, Option<StatusCode>);

/// What controllers asked of one API server, and whether it answers them.
#[derive(Clone)]
pub struct Gate {
    asked: Arc<Mutex<Vec<String>>>,
    open: Arc<watch::Sender<bool>>,
    refused: Arc<Mutex<Vec<Refusal>>>,
}

impl Gate {
    pub(super) fn new() -> Self {
        Self { asked: Arc::default(), open: Arc::new(watch::Sender::new(true)), refused: Arc::default() }
    }

    /// Lets nothing through: requests hang.
    pub fn shut(&self) {
        self.open.send_replace(false);
    }

    /// Lets requests through again, also those that hang.
    pub fn open(&self) {
        self.open.send_replace(true);
        locked(&self.refused).clear();
    }

    /// Interpreters requests whose method and path start like this, or are this if it ends in `$`, with a status
    /// until the gate is opened.
    pub fn refuse(&self, start: &str, status: StatusCode) {
        locked(&self.refused).push((start.to_owned(), Some(status)));
    }

    /// Gives such requests no answer at all.
    pub fn ignore(&self, start: &str) {
        locked(&self.refused).push((start.to_owned(), None));
    }

    /// Forgets what was asked.
    pub fn forget(&self) {
        locked(&self.asked).clear();
    }

    /// Requests that went through, as method and path.
    pub fn asked(&self) -> Vec<String> {
        locked(&self.asked).clone()
    }

    /// Requests that change something.
    pub fn writes(&self) -> Vec<String> {
        self.asked().into_iter().filter(|asked| !asked.starts_with("GET ")).collect()
    }

    fn refusal(&self, asked: &str) -> Option<Option<StatusCode>> {
        let refused = locked(&self.refused);
        let means = |start: &str| match start.strip_suffix('$') {
            Some(whole) => asked == whole,
            None => asked.starts_with(start),
        };
        refused.iter().find(|(start, _)| means(start)).map(|(_, status)| *status)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no one panics while holding it")
}

/// An API server behind a gate.
#[derive(Clone)]
pub(super) struct Gated {
    pub(super) server: InProcess,
    pub(super) gate: Gate,
}

impl tower::Service<Request<Body>> for Gated {
    type Response = Response<apiserver::body::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { mut server, gate } = self.clone();
        Box::pin(async move {
            let _ = gate.open.subscribe().wait_for(|open| *open).await;
            let asked = format!("{} {}", request.method(), request.uri().path());
            let refusal = gate.refusal(&asked);
            locked(&gate.asked).push(asked);
            match refusal {
                Some(Some(status)) => Ok(answer(status)),
                Some(None) => std::future::pending().await,
                None => server.call(request).await,
            }
        })
    }
}

fn answer(code: StatusCode) -> Response<apiserver::body::Body> {
    let status = serde_json::json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "refused by the test",
        "reason": "InternalError", "code": code.as_u16(),
    });
    let mut response = Response::new(apiserver::body::Body::full(status.to_string()));
    *response.status_mut() = code;
    response
}
