//! Reproducible randomness: a small pseudo-random generator, and the seed that a test prints.

/// A generator of numbers that look random and follow from a seed.
#[derive(Debug, Clone)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The seed that the environment variable names, or one of the clock, told on standard error with the command that
    /// repeats the run. `.cargo/config.toml` names one for every variable, so that two runs of cargo are alike.
    #[expect(clippy::print_stderr, reason = "the seed repeats a failure")]
    pub fn from_environment(variable: &str) -> Self {
        let given = std::env::var(variable).ok().and_then(|text| text.parse().ok());
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let clock = clock.map_or(1, |time| u64::from(time.subsec_nanos()) << 20 ^ time.as_secs());
        let seed = given.unwrap_or(clock);
        eprintln!("{variable}={seed} {} repeats this run as far as timing allows", command());
        Self::new(seed)
    }

    /// A number below this one, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % limit
    }

    /// Another generator that follows from this one.
    pub fn fork(&mut self) -> Self {
        Self::new(self.below(u64::MAX))
    }
}

/// The command of cargo that runs this test, as far as the process knows.
fn command() -> String {
    let package =
        std::env::var("CARGO_PKG_NAME").map_or_else(|_| String::new(), |name| format!(" -p {name}"));
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let test = program.rsplit_once('-').map_or(String::new(), |(name, _)| format!(" --test {name}"));
    let thread = std::thread::current();
    let name = thread.name().filter(|name| *name != "main").map_or(String::new(), |name| format!(" {name}"));
    format!("cargo test{package}{test}{name}")
}
