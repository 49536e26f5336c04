//! docs/changing-policies.md, typed command by command: it prints today what stands in the document.
//! `UPDATE_EXPECT=1` writes the document anew.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use checks::console::{Document, Typed, is_same};
use checks::process::Longshore;
use checks::shell::Shell;

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
/// How long a command may take to print what it should.
const PATIENCE: Duration = Duration::from_secs(60);
/// Who prints the same for so long prints what is to be printed.
const CALM: Duration = Duration::from_secs(3);
/// What starts a control plane, in a terminal of its own.
const UP: &str = "longshore up";
/// Commands that only look, so that they can be typed again until everything has come to rest.
const LOOKS: [&str; 9] = [
    " get ",
    " describe ",
    "longshore why",
    "longshore status",
    "longshore plan",
    "rollout status",
    "rollout history",
    "kubectl diff",
    "--dry-run",
];

/// Programs that do something to a control plane, which depends on what came before being done.
const CHANGES: [&str; 2] = ["kubectl ", "longshore "];

/// Somebody who reads the document and types what it says.
struct Reader {
    shell: Shell,
    server: Option<Longshore>,
    updates: bool,
}

impl Reader {
    /// Types a command and gives what should stand in the document.
    fn follow(&mut self, typed: &Typed) -> String {
        let command = typed.command.as_str();
        if let Some(arguments) = command.strip_prefix(UP) {
            self.start(arguments);
            return typed.printed.clone();
        }
        if LOOKS.iter().any(|part| command.contains(part)) {
            return self.look(typed);
        }
        if CHANGES.iter().any(|program| command.contains(program)) {
            self.rest();
        }
        let printed = self.shell.see(command);
        if is_same(&printed, &typed.printed) { typed.printed.clone() } else { printed }
    }

    fn start(&mut self, arguments: &str) {
        // The one before is told to end before the next one comes.
        if let Some(server) = self.server.take() {
            assert_eq!(server.interrupt(), Some(0));
        }
        let home = self.shell.home();
        let arguments = arguments.replace('~', &home.display().to_string());
        let arguments: Vec<&str> = arguments.split_whitespace().chain(["--port=0"]).collect();
        let server = Longshore::start_at_home(Path::new(BINARY), &arguments, home);
        self.server = Some(server.expect("it starts"));
    }

    /// What is there does not change by itself any more.
    fn rest(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while self.shell.see("longshore plan --restart || echo restless").contains("restless") {
            assert!(Instant::now() < deadline, "the control plane does not come to rest");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn look(&mut self, typed: &Typed) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut last = (String::new(), Instant::now());
        loop {
            let printed = self.shell.see(&typed.command);
            if is_same(&printed, &typed.printed) {
                return typed.printed.clone();
            }
            if !is_same(&printed, &last.0) {
                last = (printed.clone(), Instant::now());
            }
            if Instant::now() > deadline || (self.updates && last.1.elapsed() > CALM) {
                return printed;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/changing-policies.md")
}

#[test]
fn every_command_prints_what_the_document_says() {
    let Some(shell) = Shell::open() else { return };
    shell.add("longshore", Path::new(BINARY));
    let updates = std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1");
    let mut reader = Reader { shell, server: None, updates };
    let mut document = Document::read(&std::fs::read_to_string(path()).expect("the document is there"));
    for typed in document.typed() {
        let printed = reader.follow(typed);
        if !updates {
            let Typed { command, printed: expected } = typed;
            assert!(
                printed == *expected,
                "$ {command}\n{printed}\nbut the document says\n{expected}\nUPDATE_EXPECT=1 writes it anew"
            );
        }
        typed.printed = printed;
    }
    if updates {
        std::fs::write(path(), document.text()).expect("the document can be written");
    }
}
