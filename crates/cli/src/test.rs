//! `longshore test`: plays scenario files and says what did not go as they expect.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow};
use clap::ValueEnum;
use scenario::{Live, Options, Scenario, ScenarioResult, Verdict, Way};

use crate::output;
use crate::test::report::{Case, CaseResult, Report, ReportFormat};

mod report;

/// Arguments of `longshore test`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Scenario files or directories
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    files: Vec<PathBuf>,
    /// Ways to play each scenario: plain, with controller restarts, with delayed watches, with failing writes [default:
    /// all]
    #[arg(long, value_name = "WAY", value_delimiter = ',')]
    ways: Vec<WayName>,
    /// Seed of the random choices; a failure prints its seed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Number of scenarios to play in parallel [default: one per processor]
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// Play the scenarios on this live control plane instead of a simulated one
    #[arg(long, value_name = "KUBECONFIG", requires = "member", conflicts_with_all = ["ways", "seed", "jobs"])]
    control: Option<PathBuf>,
    /// Member of that control plane; repeatable
    #[arg(long, value_name = "NAME=KUBECONFIG", requires = "control", value_parser = member)]
    member: Vec<(String, PathBuf)>,
    /// Feature gates of that control plane that differ from their defaults: A=true,B=false
    #[arg(long, value_name = "GATES", requires = "control", value_parser = gate, value_delimiter = ',')]
    feature_gates: Vec<(String, bool)>,
    /// List every scenario, not only those that fail
    #[arg(long, short)]
    verbose: bool,
    /// Format of a report for programs
    #[arg(long, short, value_name = "FORMAT", conflicts_with = "verbose")]
    output: Option<ReportFormat>,
    /// Print the JSON schema of scenario files, for editors
    #[arg(long, exclusive = true)]
    schema: bool,
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

/// Plays them; an error if one of them failed. A file that cannot be read fails and does not stop the others.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.schema {
        return output::print(scenario::SCHEMA);
    }
    let begun = Instant::now();
    let report = Mutex::new(Report::default());
    let mut scenarios = Vec::new();
    for path in scenario::find(&arguments.files)? {
        match Scenario::read(&path) {
            Ok(scenario) => scenarios.push(scenario),
            Err(error) => {
                let case = Case::unreadable(&path, &error);
                if arguments.output.is_none() {
                    print(&case.text);
                }
                report.lock().expect("no one panics while holding it").add(case);
            }
        }
    }
    let tell = |outcome: &ScenarioResult<'_>| {
        let case = Case::of(outcome, described(outcome));
        if arguments.output.is_none() && (arguments.verbose || case.result != CaseResult::Passed) {
            print(&case.text);
        }
        report.lock().expect("no one panics while holding it").add(case);
    };
    play(arguments, &scenarios, tell)?;
    let report = report.into_inner().expect("no one panics while holding it");
    match arguments.output {
        Some(format) => output::print(&report.printed(format, begun.elapsed())?)?,
        None => print(&report.summary(begun.elapsed())),
    }
    match report.failed() {
        0 => Ok(()),
        failed => Err(anyhow!("test: {failed} scenarios failed")),
    }
}

fn play(
    arguments: &Arguments,
    scenarios: &[Scenario],
    tell: impl Fn(&ScenarioResult<'_>) + Sync,
) -> Result<()> {
    let Some(control) = &arguments.control else {
        scenario::run(scenarios, &options(arguments), tell);
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let gates: BTreeMap<String, bool> = arguments.feature_gates.iter().cloned().collect();
    runtime.context("start the runtime")?.block_on(async {
        let live = Live::connect(control, &arguments.member).await?;
        scenario::run_live(scenarios, &live, &gates, tell).await;
        Ok::<(), scenario::PlayError>(())
    })?;
    Ok(())
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
fn described(outcome: &ScenarioResult<'_>) -> String {
    let ScenarioResult { scenario, way, seed, verdict, took } = outcome;
    let path = scenario.path.display();
    let how = if seed.is_some() { way.name() } else { "live" };
    let head = |mark: &str| format!("{mark} {path} ({how}, {} ms)\n", took.as_millis());
    // An end can only be compared with the plain one.
    let ways = match verdict {
        Verdict::Differs(_) => format!("plain,{way}"),
        _ => way.to_string(),
    };
    let again =
        seed.map(|seed| format!("        to repeat: longshore test {path} --ways {ways} --seed {seed}\n"));
    let again = again.unwrap_or_default();
    match verdict {
        Verdict::Passed => head("ok     "),
        Verdict::Skipped(reason) => format!("skipped {path}: {reason}\n"),
        Verdict::Differs(lines) => {
            let lines: String = lines.iter().map(|line| format!("        {line}\n")).collect();
            format!(
                "{}        every step passed, but the final state differs from that of the plain \
                 way:\n{lines}{again}",
                head("FAILED ")
            )
        }
        Verdict::Failed(failure) => {
            let problems: String = failure.problems.iter().map(|line| format!("        {line}\n")).collect();
            let whys = failure.whys.iter().flat_map(|why| why.lines());
            let whys: String = whys.map(|line| format!("        why: {line}\n")).collect();
            let line =
                scenario.line_of(failure.step).map(|line| format!("line {line}: ")).unwrap_or_default();
            let step = format!(
                "        {}\n        {}step {}: {}\n",
                scenario.title, line, failure.step, failure.title
            );
            format!("{}{step}{problems}{whys}{again}", head("FAILED "))
        }
    }
}

fn print(text: &str) {
    // A reader that went away has heard enough.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
