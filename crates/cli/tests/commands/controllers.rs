//! `longshore controllers` as a process, on an API server that has no controllers of ours: a local member is one.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use bytes::Bytes;
use checks::client::ApiClient;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio_rustls::TlsConnector;

use crate::terminal::{BINARY, Terminal};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/longshore-controllers";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/longshore";
/// The lease is lost when it is not renewed within two thirds of this.
const LEASE_SECONDS: u32 = 9;
/// How many reviews are under way at any time. Together they take longer than a renewal may, if they are computed on the
/// threads that renew.
const CLIENTS: usize = 32;
/// How many numbers a review has to be read through.
const NUMBERS: usize = 3_000_000;

/// A running `longshore controllers`.
struct Controllers {
    child: Child,
    webhooks: u16,
}

impl Controllers {
    fn start(terminal: &Terminal) -> Self {
        let (webhooks, health) = (free_port(), free_port());
        let mut child = Command::new(BINARY)
            .arg("controllers")
            .arg("--kubeconfig")
            .arg(&terminal.server.kubeconfig)
            .arg("--context=member1")
            .arg(format!("--webhook-url=https://127.0.0.1:{webhooks}"))
            .arg(format!("--webhook-listen=127.0.0.1:{webhooks}"))
            .arg(format!("--listen=127.0.0.1:{health}"))
            .arg(format!("--lease-seconds={LEASE_SECONDS}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let stdout = child.stdout.take().expect("stdout is piped");
        let line = BufReader::new(stdout).lines().next().and_then(Result::ok).unwrap_or_default();
        assert!(line.starts_with("controllers run"), "{line}");
        Self { child, webhooks }
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("it can be asked").is_none()
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("it has an address").port()
}

/// The holder of the lease, and how often the lease changed hands.
async fn holder(api_client: &ApiClient) -> (String, Value) {
    let (_, lease) = api_client.request(Method::GET, LEASE, "").await;
    let spec = &lease["spec"];
    (spec["holderIdentity"].as_str().unwrap_or_default().to_owned(), spec["leaseTransitions"].clone())
}

/// Posts a review to the webhook, whose authority the API server was told; none where it hangs up.
async fn post(port: u16, tls: Arc<ClientConfig>, body: Bytes) -> Option<StatusCode> {
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    let stream = TlsConnector::from(tls).connect(name, stream).await.ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    let request =
        Request::post("/mutate").header("host", "webhook").body(Full::new(body)).expect("a request");
    let answer = sender.send_request(request).await.ok()?;
    let status = answer.status();
    answer.into_body().collect().await.ok()?;
    Some(status)
}

async fn believed(api_client: &ApiClient) -> Arc<ClientConfig> {
    let (_, webhooks) = api_client.request(Method::GET, WEBHOOKS, "").await;
    let bundle = webhooks["webhooks"][0]["clientConfig"]["caBundle"].as_str().expect("an authority");
    let bundle = base64::engine::general_purpose::STANDARD.decode(bundle).expect("base64");
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bundle) {
        roots.add(certificate.expect("PEM")).expect("a certificate");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Arc::new(builder.expect("TLS").with_root_certificates(roots).with_no_client_auth())
}

/// A review that takes long to read.
fn review() -> Bytes {
    let numbers = vec!["0"; NUMBERS].join(",");
    let policy = r#""apiVersion":"policy.karmada.io/v1alpha1","kind":"PropagationPolicy""#;
    Bytes::from(format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","operation":"CREATE",
        "kind":{{"group":"policy.karmada.io","version":"v1alpha1","kind":"PropagationPolicy"}},
        "object":{{{policy},"metadata":{{"name":"p","namespace":"default"}},"padding":[{numbers}]}}}}}}"#
    ))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reviews_that_take_long_do_not_cost_the_lease() {
    let terminal = tokio::task::spawn_blocking(|| Terminal::open(1, &[])).await.expect("it opens");
    let api_client = ApiClient::of_context(&terminal.server.kubeconfig, "member1");
    let mut controllers = Controllers::start(&terminal);
    let deadline = Instant::now() + Duration::from_secs(60);
    while holder(&api_client).await.0.is_empty() {
        assert!(Instant::now() < deadline, "no replica leads");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let before = holder(&api_client).await;
    let (tls, body, answered) = (believed(&api_client).await, review(), Arc::new(AtomicUsize::new(0)));
    let until = Instant::now() + Duration::from_secs(2 * u64::from(LEASE_SECONDS));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (tls, body, answered, port) =
                (tls.clone(), body.clone(), answered.clone(), controllers.webhooks);
            tokio::spawn(async move {
                while Instant::now() < until {
                    // One that waits for too long is refused, and asks again.
                    let status = post(port, tls.clone(), body.clone()).await;
                    answered.fetch_add(usize::from(status == Some(StatusCode::OK)), Ordering::Relaxed);
                }
            })
        })
        .collect();
    for client in clients {
        client.await.expect("it is answered");
    }
    assert!(controllers.is_running(), "it has lost its lease and ended");
    assert_eq!(holder(&api_client).await, before);
    assert!(answered.load(Ordering::Relaxed) > 0, "no review was computed");
}
