//! Connection exhaustion: connections opened to keep others out are closed in time whatever they send, and an
//! administrator gets in.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use apiserver::{ConnectionLimits, Limits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::client::TlsStream;

use crate::front::Listening;
use crate::tls;

const TOKENS: &str = "t-eve,eve,u-1\nt-bob,bob,u-2\n";
/// How a client of HTTP/2 begins: the preface and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// A PING frame.
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0longshor";
/// GET /apis with the token of eve, as headers without compression that end the stream.
fn authorized_request() -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in [
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/apis"),
        (":authority", "localhost"),
        ("authorization", "Bearer t-eve"),
    ] {
        block.extend([0, name.len() as u8]);
        block.extend(name.as_bytes());
        block.push(value.len() as u8);
        block.extend(value.as_bytes());
    }
    let mut frame = vec![0, 0, block.len() as u8, 1, 5, 0, 0, 0, 1];
    frame.extend(block);
    frame
}

async fn from(address: SocketAddr, last: u8) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    let own = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), 0);
    socket.bind(own).expect("an address of this machine");
    socket.connect(address).await.expect("the server listens")
}

/// Sends PINGs until the server ends the connection.
async fn ping_until_end(mut stream: TlsStream<TcpStream>) -> Duration {
    let begun = Instant::now();
    let mut answer = [0; 1024];
    while begun.elapsed() < Duration::from_secs(30) {
        if stream.write_all(PING).await.is_err() {
            return begun.elapsed();
        }
        match tokio::time::timeout(Duration::from_millis(50), stream.read(&mut answer)).await {
            Ok(Ok(0) | Err(_)) => return begun.elapsed(),
            Ok(Ok(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(_) => {}
        }
    }
    panic!("a connection that only sends PINGs is still open after thirty seconds");
}

#[tokio::test]
async fn a_ping_extends_neither_deadline() {
    let limits = ConnectionLimits {
        unauthenticated: Duration::from_millis(700),
        handshake: Duration::from_millis(300),
        idle: Duration::from_secs(2),
        ..ConnectionLimits::default()
    };
    let listening = Listening::limited(Limits::default(), TOKENS, limits).await;
    let mut unauthenticated = tls::connect_http2(listening.address, &listening.authority).await;
    unauthenticated.write_all(PREFACE).await.expect("taken");
    let mut known = tls::connect_http2(listening.address, &listening.authority).await;
    known.write_all(PREFACE).await.expect("taken");
    known.write_all(&authorized_request()).await.expect("taken");
    let (unauthenticated, known) = tokio::join!(ping_until_end(unauthenticated), ping_until_end(known));
    assert!(
        unauthenticated < Duration::from_secs(10),
        "unauthenticated clients are disconnected: {unauthenticated:?}"
    );
    assert!(known > Duration::from_millis(1_500), "who proved something may rest: {known:?}");
    assert!(known < Duration::from_secs(20), "but not for ever: {known:?}");
}

fn crowded(total: usize, per_address: usize) -> ConnectionLimits {
    let limits = ConnectionLimits {
        per_address,
        is_loopback_exempt: false,
        // Only connection limits are tested here: the timeouts are long enough that none expires.
        handshake: Duration::from_secs(60),
        unauthenticated: Duration::from_secs(60),
        ..ConnectionLimits::default()
    };
    limits.at_most(total)
}

async fn administrator_gets_in(listening: &Listening) {
    let root = listening.authority.client("root", &["system:masters"]);
    let answer = listening.get("/api/v1/namespaces", Some(&root), "");
    // Half as long as hostile connections are kept.
    let answer = tokio::time::timeout(Duration::from_secs(30), answer).await;
    assert_eq!(answer.expect("the administrator waits for no other connection"), 200);
}

async fn is_open(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    let read = tokio::time::timeout(Duration::from_millis(1), stream.read(&mut byte)).await;
    !matches!(read, Ok(Ok(0) | Err(_)))
}

#[tokio::test]
async fn an_administrator_gets_in_among_hostile_connections_of_all_kinds() {
    let listening = Listening::limited(Limits::default(), TOKENS, crowded(400, 1_000)).await;
    let (mut bare, mut shaken) = (Vec::new(), Vec::new());
    for number in 0..350 {
        bare.push(from(listening.address, 2 + (number % 5) as u8).await);
    }
    for number in 0..150_u8 {
        let stream = from(listening.address, 10 + number).await;
        let mut stream = tls::over_http2(stream, &listening.authority).await;
        stream.write_all(PREFACE).await.expect("taken");
        if number % 2 == 0 {
            stream.write_all(&authorized_request()).await.expect("taken");
        }
        stream.write_all(PING).await.expect("taken");
        shaken.push(stream);
    }
    administrator_gets_in(&listening).await;
    assert_eq!(listening.get("/apis", None, "t-bob").await, 200, "and so does another user");
}

#[tokio::test]
async fn an_address_has_no_more_than_its_share() {
    let listening = Listening::limited(Limits::default(), TOKENS, crowded(10_000, 20)).await;
    let mut other = from(listening.address, 3).await;
    let mut hostile = Vec::new();
    for _ in 0..60 {
        hostile.push(from(listening.address, 2).await);
    }
    administrator_gets_in(&listening).await;
    let begun = Instant::now();
    loop {
        let mut open = 0;
        for stream in &mut hostile {
            open += usize::from(is_open(stream).await);
        }
        if open == 20 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{open} of 60 are open");
    }
    assert!(is_open(&mut other).await, "other addresses are not concerned");
}
