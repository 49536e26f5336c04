//! What it costs to send Deployments to three members: the real binary, on disk, driven over TLS from another
//! process on the same machine. `cargo bench -p cli --bench pipeline [-- 1000 10000]` prints one line per
//! measurement, with Karmada's number for scale where there is one.

use std::io::Write as _;
use std::time::{Duration, Instant};

mod stage;

use stage::{ALL, Stage};

/// Karmada v1.18.2, tuned (QPS 2000, 20 workers), on 2 cores with three members.
mod karmada {
    pub const OBJECTS_PER_SECOND: f64 = 9.6;
    pub const CPU_SECONDS_PER_TEMPLATE: f64 = 0.3;
    pub const CHANGE_MILLISECONDS: f64 = 416.0;
    /// 53 s for 500.
    pub const RETARGET_PER_TEMPLATE: f64 = 53.0 / 500.0;
    /// 1.6 to 2.3 GB.
    pub const MEGABYTES: f64 = 1_600.0;
}

const CHANGES: usize = 300;

fn main() {
    let counts: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let counts = if counts.is_empty() { vec![1_000, 10_000] } else { counts };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for count in counts {
        runtime.block_on(story(count));
    }
}

fn report(what: &str, figure: f64, unit: &str, karmada: Option<f64>) {
    let ratio = karmada.map_or(String::new(), |ratio| format!("   {ratio:.0} times Karmada"));
    // A closed stdout cannot be reported anywhere.
    let _ = writeln!(std::io::stdout(), "  {what:<44} {figure:>10.2} {unit:<10}{ratio}");
}

/// Time, processor time and memory of one part of the story.
struct Cost {
    seconds: f64,
    processor: f64,
}

/// Runs a part and returns what it cost.
async fn part(stage: &mut Stage, name: &str, run: impl AsyncFnOnce(&mut Stage)) -> Cost {
    let _ = writeln!(std::io::stdout(), "{name}");
    stage.server.forget_peak();
    let (begun, before) = (Instant::now(), stage.server.processor_seconds());
    run(stage).await;
    let seconds = begun.elapsed().as_secs_f64();
    report("time", seconds, "s", None);
    stage.steady(Duration::from_millis(500)).await;
    let processor = stage.server.processor_seconds() - before;
    report("processor time until steady", processor, "s", None);
    report("peak memory", stage.server.peak_bytes() as f64 / 1e6, "MB", None);
    Cost { seconds, processor }
}

async fn story(count: usize) {
    let number = count as f64;
    let _ = writeln!(std::io::stdout(), "\n{count} Deployments, 3 members");
    let mut stage = Stage::start().await;
    stage.drive.policy("everything", None, &ALL, 0).await;
    let cost = part(&mut stage, "create, until every member has all", async |stage| {
        stage.drive.create(count).await;
        stage.drive.until_counts([count; 3]).await;
    })
    .await;
    let rate = 3.0 * number / cost.seconds;
    report("member objects", rate, "per s", Some(rate / karmada::OBJECTS_PER_SECOND));
    let each = cost.processor / number;
    report("processor time per template", each * 1e3, "ms", None);
    report("  Karmada's through ours", karmada::CPU_SECONDS_PER_TEMPLATE / each, "times", None);
    stage.steady(Duration::from_secs(12)).await;
    let resident = stage.server.resident_bytes() as f64 / 1e6;
    report("memory afterwards", resident, "MB", None);
    report("  Karmada's through ours", karmada::MEGABYTES / resident, "times", None);
    changes(&mut stage, count).await;
    let cost = part(&mut stage, "retarget from three members to two", async |stage| {
        stage.drive.retarget("everything", &ALL[..2]).await;
        stage.drive.until_counts([count, count, 0]).await;
    })
    .await;
    report(
        "  Karmada's through ours",
        karmada::RETARGET_PER_TEMPLATE / (cost.seconds / number),
        "times",
        None,
    );
    part(&mut stage, "preempt one", async |stage| {
        stage.drive.policy("one", Some(0), &ALL[..1], 10).await;
        stage.drive.until_counts([count, count - 1, 0]).await;
    })
    .await;
    restart(&mut stage).await;
    let cost = part(&mut stage, "delete all", async |stage| {
        stage.drive.delete(count).await;
        stage.drive.until_counts([0; 3]).await;
    })
    .await;
    report("member objects", 2.0 * number / cost.seconds, "per s", None);
}

async fn changes(stage: &mut Stage, count: usize) {
    let mut times = Vec::new();
    part(stage, &format!("change one image, {CHANGES} times"), async |stage| {
        times = stage.drive.change_images(count, CHANGES).await;
    })
    .await;
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    report("p50 until all members show it", at(0.5), "ms", None);
    report("  Karmada's through ours", karmada::CHANGE_MILLISECONDS / at(0.5), "times", None);
    report("p99", at(0.99), "ms", None);
}

/// Ends it and starts it again: how long until nothing is left to do, and how much was written.
async fn restart(stage: &mut Stage) {
    let _ = writeln!(std::io::stdout(), "restart, nothing changed");
    stage.steady(Duration::from_secs(12)).await;
    let before = stage.revisions().await;
    let begun = Instant::now();
    stage.restart();
    report("until it says that it is up", stage.server.started_in.as_secs_f64() * 1e3, "ms", None);
    stage.steady(Duration::from_millis(500)).await;
    report("until steady", begun.elapsed().as_secs_f64() - 0.5, "s", None);
    let after = stage.revisions().await;
    let writes: u64 = after.iter().zip(&before).map(|(after, before)| after - before).sum();
    report("writes", writes as f64, "", None);
    report("processor time", stage.server.processor_seconds(), "s", None);
    report("peak memory", stage.server.peak_bytes() as f64 / 1e6, "MB", None);
}
