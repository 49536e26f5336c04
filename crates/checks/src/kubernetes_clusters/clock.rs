//! The clock of the controllers on test clusters, which tests advance while they run. Kubernetes' own servers use the
//! clock of the machine.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../checks/clock/clock.c");
/// How far it jumps at once: less than the controllers' patience with a request that is under way.
const STEP: Duration = Duration::from_secs(4);
/// How long the controllers have for each jump.
const STEP_PAUSE: Duration = Duration::from_millis(50);

/// A clock that is ahead of the machine's.
pub struct Clock {
    library: PathBuf,
    path: PathBuf,
    file: std::fs::File,
    seconds: i64,
}

impl Clock {
    /// One that is not ahead yet. Takes a C compiler.
    pub fn new(directory: &Path) -> Result<Self> {
        let library = directory.join("clock.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]).arg(&library).arg(SOURCE);
        let built = compiler.output().context("start the C compiler")?;
        ensure!(built.status.success(), "compile {SOURCE}: {}", String::from_utf8_lossy(&built.stderr));
        let path = directory.join("clock");
        let file = std::fs::File::options().create(true).truncate(true).write(true).open(&path);
        let clock = Self { library, file: file.context("make a clock")?, path, seconds: 0 };
        clock.show()?;
        Ok(clock)
    }

    /// Lets a program go by this clock.
    pub fn rule(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("LONGSHORE_CLOCK", &self.path);
    }

    /// What time it is by this clock.
    pub fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        now.checked_add(SignedDuration::from_secs(self.seconds)).unwrap_or(now)
    }

    /// Lets time pass quickly.
    pub async fn pass(&mut self, time: Duration) -> Result<()> {
        let mut left = time.as_secs();
        while left > 0 {
            let stride = left.min(STEP.as_secs());
            left -= stride;
            self.seconds += i64::try_from(stride)?;
            self.show()?;
            tokio::time::sleep(STEP_PAUSE).await;
        }
        Ok(())
    }

    fn show(&self) -> Result<()> {
        self.file.write_all_at(&self.seconds.to_ne_bytes(), 0).context("put the clock forward")
    }
}
