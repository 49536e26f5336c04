//! Starts the test bed with Longshore on it, and plays scenarios or stays until ctrl-C:
//! `LONGSHORE_KUBERNETES=$(checks/kubernetes/build) cargo run -p checks --bin bed -- BINARY MEMBERS [FILE…] [--part=1/2]`

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use checks::bed::{Bed, Pass, Plane, Programs, passes};

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<()> {
    let (options, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let mut words = words.into_iter();
    let binary = PathBuf::from(words.next().context("name the binary of longshore")?);
    let members: usize = words.next().context("say how many members")?.parse()?;
    let files: Vec<PathBuf> = words.map(PathBuf::from).collect();
    let programs = Programs::find().context("build Kubernetes with checks/kubernetes/build first")?;
    let bed = Bed::start(&programs, members).await?;
    let mut plane = Plane::start(bed, &binary, 1, &[]).await?;
    let failed = match files.is_empty() {
        true => stay(&plane).await?,
        false => play(&mut plane, &files, &options).await?,
    };
    if let Some(target) = std::env::var_os("LONGSHORE_BED_LOGS") {
        let mut copy = std::process::Command::new("cp");
        ensure!(copy.arg("-r").arg(plane.bed.directory()).arg(target).status()?.success(), "keep the logs");
    }
    plane.bed.shut_down().await;
    ensure!(failed == 0, "{failed} passes did not go as expected");
    Ok(())
}

async fn stay(plane: &Plane) -> Result<usize> {
    let mut said = std::io::stdout();
    writeln!(said, "export KUBECONFIG={}", plane.bed.control.kubeconfig.display())?;
    for member in &plane.bed.members {
        writeln!(said, "{}: {}", member.name, member.kubeconfig.display())?;
    }
    tokio::signal::ctrl_c().await?;
    Ok(0)
}

/// Plays everything that can be played here, pass after pass; answers with how many of them failed.
async fn play(plane: &mut Plane, files: &[PathBuf], options: &[String]) -> Result<usize> {
    let part = options.iter().find_map(|option| option.strip_prefix("--part=")?.split_once('/'));
    let (part, parts): (usize, usize) = match part {
        Some((part, parts)) => (part.parse()?, parts.parse()?),
        None => (1, 1),
    };
    let (passes, left_out) = passes(files, plane.bed.members.len())?;
    let mut said = std::io::stdout();
    for path in left_out {
        writeln!(said, "left out {}: it needs other members", path.display())?;
    }
    let mut failed = 0;
    for Pass { gates, members, files } in passes {
        let chosen = files.into_iter().enumerate().filter(|(number, _)| number % parts == part - 1);
        let files: Vec<PathBuf> = chosen.map(|(_, path)| path).collect();
        if files.is_empty() {
            continue;
        }
        writeln!(said, "pass with {members} members and gates {gates:?}")?;
        let flag = format!("--feature-gates={gates}");
        plane.join_first(members).await?;
        // A machine that is busy with four clusters may be late.
        plane.run_replicas(1, &[&flag, "--lease-seconds=120"]).await?;
        let mut test = plane.test(&files);
        let mut test = test.arg("--verbose").args((!gates.is_empty()).then_some(flag)).spawn()?;
        // Whoever is interrupted takes the servers along.
        let ended = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => None,
            ended = tokio::task::spawn_blocking(move || test.wait()) => Some(ended??),
        };
        let Some(status) = ended else { return Ok(failed + 1) };
        failed += usize::from(!status.success());
    }
    Ok(failed)
}
