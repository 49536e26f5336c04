//! Informers of client-go, kube-rs and the Python client on the real binary, while objects churn, the process is killed
//! and restarted, and history is compacted after two seconds: in the end each cache equals the collection, and each has
//! seen every change in the write-ahead log that no list of its own covers. The files of the log are kept before the
//! store deletes them. Takes seconds, or as long as `LONGSHORE_INFORMERS_SECONDS` says.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use checks::churn::Churn;
use checks::followers;
use checks::informers::Informer;
use checks::log::{Log, SegmentCopier};
use checks::process::Longshore;
use checks::random::SeededRandom;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn informers_miss_nothing() {
    let mut random = SeededRandom::from_environment("LONGSHORE_FOLLOW_SEED");
    let directory = tempfile::tempdir().expect("a directory");
    let copier = SegmentCopier::start(&directory.path().join("store"), &directory.path().join("kept"));
    let copier = copier.expect("the log can be kept");
    let mut server = start(directory.path(), "0");
    let port = server.address.rsplit(':').next().expect("an address has a port").to_owned();
    let client = client(&server.kubeconfig).await;
    let mut informers = others(&server.kubeconfig);
    let followers = followers::all(&client, LABEL, &mut random);
    let churn = Churn::start(&client, LABEL, &mut random);
    // client-go waits longer after each failure, up to half a minute: a long run leaves it time to watch.
    let pause = (duration().as_millis() as u64 / 10).clamp(2_000, 40_000);
    let (begun, mut restarts) = (Instant::now(), 0);
    while begun.elapsed() < duration() {
        tokio::time::sleep(Duration::from_millis(1_000 + random.below(pause))).await;
        // An informer that is paused until history is compacted gets 410 Gone and has to relist.
        let still = random.below(informers.len() as u64 + 1) as usize;
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
    let read = copier.read(TABLE, "default/").expect("the log is whole");
    let log: Log = read.log.into_iter().filter(|(_, change)| change.name.starts_with("c-")).collect();
    let left = log.range(read.compacted + 1..).count();
    let mut told = format!(
        "{restarts} kills, {} changes in {} files of the log, of which the store still has {left}",
        log.len(),
        read.files
    );
    assert!(log.len() > left, "history went meanwhile");
    for follower in &followers {
        told.push_str(&format!(
            "; {} saw {} and listed {} times",
            follower.name,
            follower.check(&log),
            follower.with_state(|seen| seen.lists)
        ));
    }
    for informer in &mut informers {
        let summary = tokio::task::block_in_place(|| informer.check(&there, &log));
        told.push_str(&format!(
            "; {} saw {} and listed {} times",
            informer.name, summary.events, summary.lists
        ));
    }
    drop((followers, informers));
    assert_eq!(server.interrupt(), Some(0), "it ends in peace when it is asked to");
    checks::say(&told);
}
