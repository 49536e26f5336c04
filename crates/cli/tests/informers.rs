//! Informers of client-go, kube-rs and the Python client on the real binary, while objects churn, the process is killed
//! and started again, and history goes after two seconds: in the end each has what is there, and has seen every change
//! that the log holds and that no list of its own covers. Seconds long, or as long as `LONGSHORE_INFORMERS_SECONDS` says.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use checks::churn::Churn;
use checks::dice::Dice;
use checks::followers::{self, Follower};
use checks::informers::{Informer, Log};
use checks::process::Longshore;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use store::{Options, Store};

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
const LABEL: &str = "churn";
const TABLE: &str = "/configmaps";
const HISTORY_SECONDS: u64 = 2;

fn start(directory: &Path, port: &str) -> Longshore {
    let directory = directory.to_str().expect("a readable path");
    let history = format!("--history-seconds={HISTORY_SECONDS}");
    let arguments = ["--data-dir", directory, "--port", port, &history, "--members=0"];
    Longshore::start(Path::new(BINARY), &arguments).expect("it starts on what the last one left")
}

async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a usable kubeconfig")).expect("a client")
}

fn duration() -> Duration {
    let seconds = std::env::var("LONGSHORE_INFORMERS_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(15))
}

/// The informers of other languages that are there.
fn others(kubeconfig: &Path) -> Vec<Informer> {
    let mut informers = Vec::new();
    match std::env::var_os("LONGSHORE_INFORMER") {
        Some(program) => {
            let mut command = Command::new(program);
            informers.push(Informer::start("client-go", command.arg(kubeconfig).arg(LABEL)));
        }
        None => checks::client_is_missing("LONGSHORE_INFORMER names no informer of client-go"),
    }
    let python = std::env::var_os("LONGSHORE_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let found = Command::new(&python).args(["-c", "import kubernetes"]).output();
    match found.is_ok_and(|output| output.status.success()) {
        true => {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/informer.py");
            let mut command = Command::new(&python);
            informers
                .push(Informer::start("Python", command.arg("-B").arg(script).arg(kubeconfig).arg(LABEL)));
        }
        false => checks::client_is_missing("python3 cannot import kubernetes"),
    }
    informers
}

/// What a witness that never had to list again saw is the log.
fn log_of(witness: &Follower) -> Log {
    witness.look(|seen| {
        assert!(seen.problems.is_empty(), "{:#?}", seen.problems);
        assert_eq!(seen.lists, 1, "the witness fell behind");
        seen.revisions.clone()
    })
}

/// The end of the log, as the store that the server left has it, is what the witness saw.
async fn check_store(directory: &Path, log: &Log) -> usize {
    let store = Store::open(&directory.join("store"), Options::default()).expect("the store opens");
    let (oldest, newest) = (store.compacted(), store.revision());
    let mut watch = store.watch(TABLE, "default/c-", oldest).expect("what is not compacted is there");
    let mut stored = Log::new();
    while watch.revision() < newest {
        let Ok(Ok(batch)) = tokio::time::timeout(Duration::from_secs(1), watch.next()).await else { break };
        stored.extend(
            batch.events.iter().map(|event| (event.revision, event.key["default/".len()..].to_owned())),
        );
    }
    let seen: Log = log.range(oldest + 1..).map(|(revision, name)| (*revision, name.clone())).collect();
    assert_eq!(stored, seen, "the store's own log after {oldest}");
    stored.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn informers_miss_nothing() {
    let mut dice = Dice::from_environment("LONGSHORE_FOLLOW_SEED");
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = start(directory.path(), "0");
    let port = server.address.rsplit(':').next().expect("an address has a port").to_owned();
    let client = client(&server.kubeconfig).await;
    let witness = followers::witness(&client, LABEL);
    while witness.look(|seen| seen.copy.is_none()) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut informers = others(&server.kubeconfig);
    let followers = followers::all(&client, LABEL, &mut dice);
    let churn = Churn::start(&client, LABEL, &mut dice);
    // client-go waits longer after each failure, up to half a minute: a long run leaves it time to watch.
    let pause = (duration().as_millis() as u64 / 10).clamp(2_000, 40_000);
    let (begun, mut restarts) = (Instant::now(), 0);
    while begun.elapsed() < duration() {
        tokio::time::sleep(Duration::from_millis(1_000 + dice.below(pause))).await;
        // Whoever stands still until history has gone is told to list again.
        let still = dice.below(informers.len() as u64 + 1) as usize;
        if let Some(informer) = informers.get_mut(still) {
            informer.tell("hold");
        }
        server = tokio::task::block_in_place(|| {
            server.kill();
            start(directory.path(), &port)
        });
        restarts += 1;
        if let Some(informer) = informers.get_mut(still) {
            tokio::time::sleep(Duration::from_secs(HISTORY_SECONDS * 2)).await;
            informer.tell("go");
        }
    }
    let there = churn.check(&followers).await;
    let log = log_of(&witness);
    let mut told = format!("{restarts} kills, {} changes", log.len());
    for informer in &mut informers {
        let summary = tokio::task::block_in_place(|| informer.check(&there, &log));
        told.push_str(&format!(
            "; {} saw {} of them and listed {} times",
            informer.name, summary.events, summary.lists
        ));
    }
    drop((followers, informers, witness));
    assert_eq!(server.interrupt(), Some(0), "it ends in peace when it is asked to");
    let kept = check_store(directory.path(), &log).await;
    checks::say(&format!("{told}; the store still had {kept}"));
}
