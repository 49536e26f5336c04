//! The pipeline benchmark on real Kubernetes: the cost of Deployments for three members, in write requests from the
//! audit logs of the API servers, and in CPU time of the controllers.
//! `cargo bench -p cli --bench bed [-- 300]` prints one line per measurement. Skipped where Kubernetes is not built.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use checks::drive::Drive;
use checks::kubernetes_clusters::{KubernetesClusters, Plane, Programs};
use checks::process::processor_seconds;

mod writes;

use writes::Writes;

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
const ALL: [&str; 3] = ["member1", "member2", "member3"];
const CHANGES: usize = 50;
/// How long no component may write before the system counts as idle: status updates are debounced for some seconds.
const IDLE_PERIOD: Duration = Duration::from_secs(8);
/// Karmada v1.18.2, tuned (QPS 2000, 20 workers), on 2 cores with three members: its controllers and its scheduler.
const KARMADA_CPU_SECONDS_PER_TEMPLATE: f64 = 0.3;

#[tokio::main]
async fn main() {
    let Some(programs) = Programs::find() else { return };
    let count = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(300);
    let bed = KubernetesClusters::start(&programs, ALL.len()).await.expect("the bed starts");
    let plane = Plane::start(bed, Path::new(BINARY), 1, &[]).await.expect("Longshore starts on it");
    let drive = Drive {
        control: plane.bed.control.api_client(),
        members: plane.bed.members.iter().map(checks::kubernetes_clusters::Cluster::api_client).collect(),
    };
    let mut stage = Stage { plane, drive };
    story(&mut stage, count).await;
    stage.plane.bed.shut_down().await;
}

/// Longshore on a bed, and who acts on it.
struct Stage {
    plane: Plane,
    drive: Drive,
}

impl Stage {
    fn processor_seconds(&self) -> f64 {
        self.plane.replicas.iter().filter_map(|replica| replica.pid()).map(processor_seconds).sum()
    }

    /// Waits until no component writes any more, apart from periodic writes such as lease renewals.
    async fn rest(&self) {
        let (mut last, mut since) = (self.writes(), Instant::now());
        while since.elapsed() < IDLE_PERIOD {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = self.writes();
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
    }

    fn writes(&self) -> Vec<Writes> {
        let members = self.plane.bed.members.iter().map(|member| Writes::in_member(&member.audit()));
        std::iter::once(Writes::in_control(&self.plane.bed.control.audit())).chain(members).collect()
    }
}

fn say(line: &str) {
    // A closed stdout cannot be reported anywhere.
    let _ = writeln!(std::io::stdout(), "{line}");
}

async fn story(stage: &mut Stage, count: usize) {
    say(&format!("{count} Deployments, 3 members, real Kubernetes"));
    stage.drive.policy("everything", None, &ALL, 0).await;
    stage.rest().await;
    let cost = part(stage, "create, until every member has all", count, async |stage| {
        stage.drive.create(count).await;
        stage.drive.until_counts([count; 3]).await;
    })
    .await;
    say(&format!("  member objects per s                  {:10.1}", 3.0 * count as f64 / cost.seconds));
    let each = cost.processor / count as f64;
    let ratio = KARMADA_CPU_SECONDS_PER_TEMPLATE / each;
    say(&format!(
        "  processor time per template, ms       {:10.2}   Karmada's is {ratio:.0} times that",
        each * 1e3
    ));
    let mut times = Vec::new();
    part(stage, &format!("change one image, {CHANGES} times"), CHANGES, async |stage| {
        times = stage.drive.change_images(count, CHANGES).await;
    })
    .await;
    times.sort();
    say(&format!(
        "  p50 until all members show it, ms     {:10.1}",
        times[times.len() / 2].as_secs_f64() * 1e3
    ));
    part(stage, "retarget from three members to two", count, async |stage| {
        stage.drive.retarget("everything", &ALL[..2]).await;
        stage.drive.until_counts([count, count, 0]).await;
    })
    .await;
    part(stage, "preempt one", 1, async |stage| {
        stage.drive.policy("one", Some(0), &ALL[..1], 10).await;
        stage.drive.until_counts([count, count - 1, 0]).await;
    })
    .await;
    part(stage, "restart, nothing changed", count, async |stage| {
        stage.plane.restart().await.expect("they start again");
    })
    .await;
    part(stage, "delete all", count, async |stage| {
        stage.drive.delete(count).await;
        stage.drive.until_counts([0; 3]).await;
    })
    .await;
}

/// What a part took.
struct Cost {
    seconds: f64,
    processor: f64,
}

/// Runs a part and returns what it cost.
async fn part(stage: &mut Stage, name: &str, count: usize, run: impl AsyncFnOnce(&mut Stage)) -> Cost {
    let (begun, pid) = (Instant::now(), stage.plane.replicas[0].pid());
    let (writes, processor) = (stage.writes(), stage.processor_seconds());
    run(stage).await;
    let seconds = begun.elapsed().as_secs_f64();
    stage.rest().await;
    // A process that was started meanwhile began at nothing.
    let before = if stage.plane.replicas[0].pid() == pid { processor } else { 0.0 };
    let processor = stage.processor_seconds() - before;
    say(&format!("{name}\n  time, s                               {seconds:10.2}"));
    say(&format!("  processor time of the controllers, s  {processor:10.2}"));
    for (after, (before, place)) in stage.writes().iter().zip(writes.iter().zip(SERVER_NAMES)) {
        for line in after.since(before).told(count) {
            say(&format!("  {place}: {line}"));
        }
    }
    Cost { seconds, processor }
}

const SERVER_NAMES: [&str; 4] = ["control plane", "member1", "member2", "member3"];
