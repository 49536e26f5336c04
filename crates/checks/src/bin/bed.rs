//! Starts the test bed with Longshore on it, and plays scenarios or stays until ctrl-C:
//! `LONGSHORE_KUBERNETES=$(checks/kubernetes/build) cargo run -p checks --bin bed -- BINARY MEMBERS [FILE…] [--feature-gates=…]`

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use checks::bed::{Bed, Plane, Programs};

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
    let flags: Vec<&str> = options.iter().map(String::as_str).collect();
    let plane = Plane::start(bed, &binary, 1, &flags).await?;
    let status = match files.is_empty() {
        true => {
            let mut said = std::io::stdout();
            writeln!(said, "export KUBECONFIG={}", plane.bed.control.kubeconfig.display())?;
            for member in &plane.bed.members {
                writeln!(said, "{}: {}", member.name, member.kubeconfig.display())?;
            }
            tokio::signal::ctrl_c().await?;
            None
        }
        false => Some(plane.test(&files).args(&options).status()?),
    };
    let keep = std::env::var_os("LONGSHORE_BED_LOGS");
    if let Some(target) = keep {
        let copied = std::process::Command::new("cp").arg("-r").arg(plane.bed.directory()).arg(target).status()?;
        ensure!(copied.success(), "keep the logs");
    }
    plane.bed.shut_down().await;
    ensure!(status.is_none_or(|status| status.success()), "not everything went as expected");
    Ok(())
}
