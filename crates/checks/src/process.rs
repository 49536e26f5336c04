//! The real binary as a child process, on a port of its own, killed when it is dropped.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Lines, Read as _, Seek as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A running `longshore up`.
pub struct Longshore {
    child: Child,
    /// Kept open: a process that prints into a closed pipe may die of it.
    stdout: Lines<BufReader<ChildStdout>>,
    /// `127.0.0.1:PORT`
    pub address: String,
    /// The file that lets clients in.
    pub kubeconfig: PathBuf,
    /// How long it took until it said that it is up.
    pub started_in: Duration,
    said: Vec<String>,
    stderr: File,
}

/// The last line of the welcome.
const GREETING_END: &str = "Ctrl-C";

/// What a start that failed left behind.
#[derive(Debug)]
pub struct Failed {
    /// The exit code, if it was not a signal.
    pub code: Option<i32>,
    /// Everything on standard error.
    pub stderr: String,
}

impl Longshore {
    /// Starts the binary with these arguments behind `up` and waits until it says that it is up.
    pub fn start(binary: &Path, arguments: &[&str]) -> Result<Self, Failed> {
        Self::start_in(binary, arguments, &std::env::temp_dir())
    }

    /// The same with a directory of its own for temporary files.
    pub fn start_in(binary: &Path, arguments: &[&str], temporary: &Path) -> Result<Self, Failed> {
        Self::start_as(Command::new(binary).env("TMPDIR", temporary), arguments)
    }

    /// The same as a user whose home this is and who has said nothing about where data should go.
    pub fn start_at_home(binary: &Path, arguments: &[&str], home: &Path) -> Result<Self, Failed> {
        let mut command = Command::new(binary);
        command.env("HOME", home).env_remove("XDG_DATA_HOME").env_remove("LONGSHORE_DATA_DIR");
        Self::start_as(&mut command, arguments)
    }

    /// The same, logging everything there is to log.
    pub fn start_loud(binary: &Path, arguments: &[&str]) -> Result<Self, Failed> {
        Self::start_as(Command::new(binary).env("LONGSHORE_LOG", "trace"), arguments)
    }

    fn start_as(command: &mut Command, arguments: &[&str]) -> Result<Self, Failed> {
        let begun = Instant::now();
        let stderr = tempfile::tempfile().expect("there is room for a temporary file");
        let mut child = command
            .arg("up")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr.try_clone().expect("a file can be shared"))
            .spawn()
            .expect("the binary under test exists and runs");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let first = lines.next().and_then(Result::ok).unwrap_or_default();
        let Some(address) = first.split("https://").nth(1).and_then(|rest| rest.split(' ').next()) else {
            return Err(failure(child, stderr));
        };
        let started_in = begun.elapsed();
        let address = address.to_owned();
        let mut said = vec![first];
        while !said.last().is_some_and(|line| line.contains(GREETING_END)) {
            said.push(lines.next().and_then(Result::ok).expect("`up` prints how to end it"));
        }
        let kubeconfig = said.iter().find_map(|line| line.trim().strip_prefix("export KUBECONFIG="));
        let kubeconfig = PathBuf::from(kubeconfig.expect("`up` prints where the kubeconfig is"));
        Ok(Self { child, stdout: lines, address, kubeconfig, started_in, said, stderr })
    }

    /// What it printed when it was up, line by line.
    pub fn said(&self) -> &[String] {
        &self.said
    }

    /// What it logged so far.
    pub fn logged(&self) -> String {
        let mut bytes = vec![0; self.stderr.metadata().map_or(0, |file| file.len()) as usize];
        self.stderr.read_exact_at(&mut bytes, 0).expect("what was written can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory in bytes.
    pub fn resident_bytes(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most resident memory since it was started, or since [`Self::forget_peak`].
    pub fn peak_bytes(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// Resets the peak of memory.
    pub fn forget_peak(&self) {
        // Where the kernel does not do that, the peak is that of the whole run.
        let _ = std::fs::write(format!("/proc/{}/clear_refs", self.pid()), "5");
    }

    /// Seconds of processor time, its own and the kernel's for it.
    pub fn processor_seconds(&self) -> f64 {
        processor_seconds(self.pid())
    }

    fn memory(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kilobytes =
            line.and_then(|rest| rest.split_whitespace().next()).and_then(|digits| digits.parse().ok());
        kilobytes.unwrap_or(0_u64) * 1_024
    }

    /// Ends it as a power cut would: no signal handler runs.
    pub fn kill(mut self) {
        self.kill_now();
    }

    /// Ends it as ctrl-C does and answers with its exit code.
    pub fn interrupt(mut self) -> Option<i32> {
        self.signal("-INT")
    }

    /// Ends it as a service manager does and answers with its exit code.
    pub fn terminate(mut self) -> Option<i32> {
        self.signal("-TERM")
    }

    /// Ends it as a service manager does and answers with what it still printed.
    pub fn farewell(mut self) -> String {
        self.signal("-TERM");
        self.stdout.by_ref().map_while(Result::ok).collect::<Vec<_>>().join("\n")
    }

    /// The same for one that is replaced afterwards.
    pub fn stop(&mut self) -> Option<i32> {
        self.signal("-TERM")
    }

    fn signal(&mut self, name: &str) -> Option<i32> {
        let pid = self.pid().to_string();
        let sent = Command::new("kill").args([name, &pid]).status();
        sent.expect("kill is on every machine");
        self.child.wait().expect("the child can be waited for").code()
    }

    fn kill_now(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Longshore {
    fn drop(&mut self) {
        self.kill_now();
    }
}

/// Seconds of processor time that a process used, its own and the kernel's for it.
pub fn processor_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in brackets may hold anything; the times are the 12th and 13th word behind it.
    let words = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
    let ticks: u64 = words.filter_map(|word| word.parse::<u64>().ok()).sum();
    // Linux counts hundredths for programs, whatever the kernel's own tick is.
    ticks as f64 / 100.0
}

fn failure(mut child: Child, mut file: File) -> Failed {
    let code = child.wait().expect("the child can be waited for").code();
    let mut stderr = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut stderr)).expect("what was written can be read");
    Failed { code, stderr }
}
