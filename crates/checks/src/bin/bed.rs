//! Starts the test clusters with Longshore on them and runs until ctrl-C, or plays scenarios, on several sets at once:
//! `LONGSHORE_KUBERNETES=$(checks/kubernetes/build) cargo run -p checks --bin bed -- BINARY [FILE…] [--beds=2]`

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use checks::kubernetes_clusters::{KubernetesClusters, Plane, Programs, play};
use scenario::{Scenario, ScenarioResult, Verdict};

/// How many members a bed has on which nothing is played.
const MEMBERS: usize = 3;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // An interrupt (ctrl-C) ends the servers as well.
    runtime.block_on(async {
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Ok(()),
            ended = run() => ended,
        }
    })
}

async fn run() -> Result<()> {
    let (options, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let mut words = words.into_iter().map(PathBuf::from);
    let binary = words.next().context("name the binary of longshore")?;
    let files: Vec<PathBuf> = words.collect();
    let programs = Programs::find().context("build Kubernetes with checks/kubernetes/build first")?;
    if files.is_empty() {
        let bed = KubernetesClusters::start(&programs, MEMBERS).await?;
        return stay(&Plane::start(bed, &binary, 1, &[]).await?).await;
    }
    let beds = options.iter().find_map(|option| option.strip_prefix("--beds="));
    let beds: usize = beds.map_or(Ok(1), str::parse)?;
    let files = scenario::find(&files)?;
    let scenarios: Vec<Scenario> = files.iter().map(|path| Scenario::read(path)).collect::<Result<_, _>>()?;
    let begun = Instant::now();
    // Passed, failed and skipped.
    let counts = Mutex::new([0_usize; 3]);
    let tell = |outcome: &ScenarioResult<'_>| {
        counts.lock().expect("no one panics while holding it")[place(&outcome.verdict)] += 1;
        // A reader that went away has heard enough.
        let _ = writeln!(std::io::stdout(), "{}", line(outcome));
    };
    play(&programs, &binary, beds, &scenarios, tell).await?;
    let [passed, failed, skipped] = counts.into_inner().expect("no one panics while holding it");
    let seconds = begun.elapsed().as_secs();
    writeln!(std::io::stdout(), "{passed} passed, {failed} failed, {skipped} skipped in {seconds} s")?;
    ensure!(failed == 0, "{failed} scenarios failed");
    Ok(())
}

async fn stay(plane: &Plane) -> Result<()> {
    let mut said = std::io::stdout();
    writeln!(said, "export KUBECONFIG={}", plane.bed.control.kubeconfig.display())?;
    for member in &plane.bed.members {
        writeln!(said, "{}: {}", member.name, member.kubeconfig.display())?;
    }
    std::future::pending().await
}

fn place(verdict: &Verdict) -> usize {
    match verdict {
        Verdict::Passed => 0,
        Verdict::Failed(_) | Verdict::Differs(_) => 1,
        Verdict::Skipped(_) => 2,
    }
}

fn line(outcome: &ScenarioResult<'_>) -> String {
    let (path, took) = (outcome.scenario.path.display(), outcome.took.as_millis());
    match &outcome.verdict {
        Verdict::Passed => format!("ok      {path} ({took} ms)"),
        Verdict::Skipped(reason) => format!("skipped {path}: {reason}"),
        Verdict::Differs(lines) => format!("FAILED  {path}\n        {}", lines.join("\n        ")),
        Verdict::Failed(failure) => {
            let problems = failure.problems.join("\n        ");
            format!(
                "FAILED  {path} ({took} ms)\n        step {}: {}\n        {problems}",
                failure.step, failure.title
            )
        }
    }
}
