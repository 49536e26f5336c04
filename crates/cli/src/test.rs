//! `longshore test`: plays scenario files and says what did not go as they expect.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow};
use clap::ValueEnum;
use scenario::{Live, Options, Outcome, Scenario, Verdict, Way};

/// Arguments of `longshore test`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Scenario files, or directories of them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// How to play them: plain, with restarts, with delayed watches, with failing writes [default: all]
    #[arg(long, value_name = "WAY", value_delimiter = ',')]
    ways: Vec<WayName>,
    /// What random choices follow from; the one that failed is printed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How many to play at once [default: one per processor]
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// Play them on this control plane instead of a simulated one
    #[arg(long, value_name = "KUBECONFIG", requires = "member", conflicts_with_all = ["ways", "seed", "jobs"])]
    control: Option<PathBuf>,
    /// A member of that control plane; repeat it for each
    #[arg(long, value_name = "NAME=KUBECONFIG", requires = "control", value_parser = member)]
    member: Vec<(String, PathBuf)>,
    /// The gates of that control plane that differ from their default, as A=true,B=false
    #[arg(long, value_name = "GATES", requires = "control", value_parser = gate, value_delimiter = ',')]
    feature_gates: Vec<(String, bool)>,
    /// Name every scenario, not only those that fail
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum WayName {
    Plain,
    Restarts,
    Delays,
    Failures,
}

impl From<WayName> for Way {
    fn from(name: WayName) -> Self {
        match name {
            WayName::Plain => Way::Plain,
            WayName::Restarts => Way::Restarts,
            WayName::Delays => Way::Delays,
            WayName::Failures => Way::Failures,
        }
    }
}

fn member(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("write NAME=KUBECONFIG, such as member1=member1.yaml")?;
    Ok((name.to_owned(), path.into()))
}

fn gate(text: &str) -> Result<(String, bool), String> {
    let (name, value) = text.split_once('=').ok_or("write Name=true or Name=false")?;
    Ok((name.to_owned(), value.parse().map_err(|_| "write Name=true or Name=false")?))
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

/// Plays them; an error if one of them failed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let paths = scenario::find(&arguments.files)?;
    let scenarios: Vec<Scenario> = paths.iter().map(|path| Scenario::read(path)).collect::<Result<_, _>>()?;
    let begun = Instant::now();
    let tally = Mutex::new(Tally::default());
    let tell = |outcome: &Outcome<'_>| {
        let mut tally = tally.lock().expect("no one panics while holding it");
        match &outcome.verdict {
            Verdict::Passed => tally.passed += 1,
            Verdict::Skipped(_) => tally.skipped += 1,
            Verdict::Failed(_) | Verdict::Differs(_) => tally.failed += 1,
        }
        if arguments.verbose || !matches!(outcome.verdict, Verdict::Passed) {
            print(&described(outcome));
        }
    };
    match &arguments.control {
        None => scenario::run(&scenarios, &options(arguments), tell),
        Some(control) => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            let gates: BTreeMap<String, bool> = arguments.feature_gates.iter().cloned().collect();
            runtime.context("start the runtime")?.block_on(async {
                let live = Live::connect(control, &arguments.member).await?;
                scenario::run_live(&scenarios, &live, &gates, tell).await;
                Ok::<(), scenario::Trouble>(())
            })?;
        }
    }
    let Tally { passed, failed, skipped } = tally.into_inner().expect("no one panics while holding it");
    let skipped = if skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
    print(&format!(
        "{} scenario{}: {passed} passed, {failed} failed{skipped} in {:.1} s\n",
        scenarios.len(),
        if scenarios.len() == 1 { "" } else { "s" },
        begun.elapsed().as_secs_f64()
    ));
    match failed {
        0 => Ok(()),
        failed => Err(anyhow!("{failed} of them did not go as expected")),
    }
}

fn options(arguments: &Arguments) -> Options {
    let ways = match arguments.ways.as_slice() {
        [] => Way::ALL.to_vec(),
        some => some.iter().copied().map(Way::from).collect(),
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Options {
        ways,
        seed: arguments.seed.unwrap_or_else(rand::random),
        jobs: arguments.jobs.unwrap_or(processors),
    }
}

/// What is said about one scenario.
fn described(outcome: &Outcome<'_>) -> String {
    let Outcome { scenario, way, seed, verdict, took } = outcome;
    let path = scenario.path.display();
    let how = if seed.is_some() { way.name() } else { "live" };
    let head = |mark: &str| format!("{mark} {path} ({how}, {} ms)\n", took.as_millis());
    // An end can only be compared with the plain one.
    let ways = match verdict {
        Verdict::Differs(_) => format!("plain,{way}"),
        _ => way.to_string(),
    };
    let again =
        seed.map(|seed| format!("        again: longshore test {path} --ways {ways} --seed {seed}\n"));
    let again = again.unwrap_or_default();
    match verdict {
        Verdict::Passed => head("ok     "),
        Verdict::Skipped(reason) => format!("skipped {path}: {reason}\n"),
        Verdict::Differs(lines) => {
            let lines: String = lines.iter().map(|line| format!("        {line}\n")).collect();
            format!(
                "{}        every step passed, but it did not end as in the plain way:\n{lines}{again}",
                head("FAILED ")
            )
        }
        Verdict::Failed(failure) => {
            let problems: String = failure.problems.iter().map(|line| format!("        {line}\n")).collect();
            let whys = failure.whys.iter().flat_map(|why| why.lines());
            let whys: String = whys.map(|line| format!("        why: {line}\n")).collect();
            let step =
                format!("        {}\n        step {}: {}\n", scenario.title, failure.step, failure.title);
            format!("{}{step}{problems}{whys}{again}", head("FAILED "))
        }
    }
}

fn print(text: &str) {
    // A reader that went away has heard enough.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
