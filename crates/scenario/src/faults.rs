//! Fault injection between controllers and API servers in a simulation: records writes, and drops, delays and cuts
//! connections as the way of playing says, all from one seed.

use std::collections::BTreeSet;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use apiserver::InProcess;
use apiserver::body::Body as Answer;
use controllers::runtime::Watched;
use futures::StreamExt as _;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::random::SeededRandom;
use crate::way::Way;

/// Of this many writes one fails, in the way of failures.
const FAILURES_ONE_IN: u64 = 5;
/// How late a watch may be, in the way of delays.
const DELAY_MAX_MILLISECONDS: u64 = 400;

/// What happens between controllers and API servers. Clones share it.
#[derive(Clone)]
pub struct Faults(Arc<Inner>);

struct Inner {
    way: Way,
    random: SeededRandom,
    /// Clusters that cannot be reached.
    cut: Watched<BTreeSet<String>>,
    /// Events that were sent and have not arrived.
    under_way: AtomicUsize,
    /// Places and paths that were written.
    written: Mutex<Vec<(String, String)>>,
}

impl Faults {
    /// Those of a way of playing.
    pub fn new(way: Way, seed: u64) -> Self {
        Self(Arc::new(Inner {
            way,
            random: SeededRandom::new(seed),
            cut: Watched::default(),
            under_way: AtomicUsize::new(0),
            written: Mutex::default(),
        }))
    }

    /// Cuts a place off, or ends that.
    pub fn reach(&self, place: &str, reachable: bool) {
        self.0.cut.change(|cut| {
            match reachable {
                true => cut.remove(place),
                false => cut.insert(place.to_owned()),
            };
        });
    }

    /// Whether something is still on its way to a watcher.
    pub fn is_under_way(&self) -> bool {
        self.0.under_way.load(Ordering::Relaxed) > 0
    }

    /// Whether something was written at this path of a place since the record had this length.
    pub fn wrote(&self, since: usize, place: &str, path: &str) -> bool {
        let written = self.0.written.lock().expect("no one panics while holding it");
        written.iter().skip(since).any(|(at, what)| at == place && what == path)
    }

    /// The length of the record.
    pub fn recorded(&self) -> usize {
        self.0.written.lock().expect("no one panics while holding it").len()
    }

    /// The record.
    #[cfg(test)]
    pub fn record_so_far(&self) -> Vec<(String, String)> {
        self.0.written.lock().expect("no one panics while holding it").clone()
    }

    /// A number below this one.
    pub fn below(&self, end: u64) -> u64 {
        self.0.random.below(end)
    }

    /// The connection of controllers to an API server.
    pub fn before(&self, place: &str, server: InProcess) -> FaultyConnection {
        FaultyConnection { place: place.into(), server, faults: self.clone() }
    }

    fn is_cut(&self, place: &str) -> bool {
        self.0.cut.read(|cut| cut.contains(place))
    }

    fn record(&self, place: &str, path: &str) {
        let mut written = self.0.written.lock().expect("no one panics while holding it");
        written.push((place.to_owned(), path.to_owned()));
    }

    /// Whether this write fails, and if so whether it happens all the same.
    fn failure(&self) -> Option<bool> {
        let fails = self.0.way == Way::Failures && self.below(FAILURES_ONE_IN) == 0;
        fails.then(|| self.below(2) == 0)
    }
}

/// The connection of controllers to an API server.
#[derive(Clone)]
pub struct FaultyConnection {
    place: Arc<str>,
    server: InProcess,
    faults: Faults,
}

impl tower::Service<Request<Body>> for FaultyConnection {
    type Response = Response<Answer>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().pass(request))
    }
}

impl FaultyConnection {
    async fn pass(mut self, request: Request<Body>) -> Result<Response<Answer>, io::Error> {
        if self.faults.is_cut(&self.place) {
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
        }
        if request.method() == Method::GET {
            let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let answer = self.answer(request).await;
            return Ok(if watches { self.carried(answer) } else { answer });
        }
        let failure = self.faults.failure();
        if failure == Some(false) {
            return Ok(unavailable());
        }
        self.faults.record(&self.place, request.uri().path());
        let answer = self.answer(request).await;
        Ok(if failure.is_some() { unavailable() } else { answer })
    }

    async fn answer(&mut self, request: Request<Body>) -> Response<Answer> {
        use tower::Service as _;
        self.server.call(request).await.unwrap_or_else(|never| match never {})
    }

    /// A watch whose events may come late, though never in another order, and that ends when it is cut.
    fn carried(self, answer: Response<Answer>) -> Response<Answer> {
        let (head, body) = answer.into_parts();
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let Self { place, faults, .. } = self;
        tokio::spawn(async move {
            let mut frames = body.into_data_stream();
            let mut arrival = Instant::now();
            loop {
                let next = tokio::select! {
                    biased;
                    () = faults.0.cut.until(|cut| cut.contains(&*place).then_some(())) => return,
                    next = frames.next() => next,
                };
                let Some(Ok(bytes)) = next else { return };
                arrival = arrival.max(Instant::now() + faults.delay());
                if sender.send((arrival, bytes, UnderWay::new(&faults))).is_err() {
                    return;
                }
            }
        });
        let late = futures::stream::poll_fn(move |context| receiver.poll_recv(context));
        let late = late.then(async |(arrival, bytes, _under_way)| {
            tokio::time::sleep_until(arrival).await;
            bytes
        });
        Response::from_parts(head, Answer::stream(late))
    }
}

/// Counts an event as in flight until it has arrived or its receiver is gone.
struct UnderWay(Faults);

impl UnderWay {
    fn new(faults: &Faults) -> Self {
        faults.0.under_way.fetch_add(1, Ordering::Relaxed);
        Self(faults.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Faults {
    fn delay(&self) -> Duration {
        match self.0.way {
            Way::Delays => Duration::from_millis(self.below(DELAY_MAX_MILLISECONDS)),
            Way::Plain | Way::Restarts | Way::Failures => Duration::ZERO,
        }
    }
}

fn unavailable() -> Response<Answer> {
    let status = br#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the scenario dropped the request","reason":"ServiceUnavailable","code":503}"#;
    let mut answer = Response::new(Answer::full(&status[..]));
    *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    answer
}
