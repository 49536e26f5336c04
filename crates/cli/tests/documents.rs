//! Documents that show a terminal, typed command by command with the real kubectl: each prints today what stands in the
//! document. `UPDATE_EXPECT=1` writes the documents anew.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use checks::console::{Document, Typed, is_same};
use checks::process::Longshore;
use checks::shell::Shell;

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
/// How long a command may take to print what it should.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);
/// Output that stays the same for so long is final.
const STABLE_OUTPUT_PERIOD: Duration = Duration::from_secs(3);
/// Commands that look for a pod are answered at once. Without an answer kubectl waits 20 seconds or a minute.
const POD_ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
const POD_COMMANDS: [&str; 3] = ["kubectl logs", "kubectl exec", "kubectl port-forward"];
/// What starts a control plane, in a terminal of its own.
const UP: &str = "longshore up";
/// Commands that only read, so that they can be typed again until everything has come to rest.
const READS: [&str; 14] = [
    " get ",
    " describe ",
    "kubectl auth",
    "kubectl diff",
    "kubectl exec",
    "kubectl logs",
    "kubectl port-forward",
    "kubectl wait",
    "longshore why",
    "longshore status",
    "longshore plan",
    "rollout status",
    "rollout history",
    "--dry-run",
];

/// Programs that change a control plane: the commands before them have to take effect first.
const CHANGES: [&str; 2] = ["kubectl ", "longshore "];

/// Reads the document and types what it says.
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
        if READS.iter().any(|part| command.contains(part)) {
            return self.read(typed);
        }
        if CHANGES.iter().any(|program| command.contains(program)) {
            self.rest();
        }
        let printed = self.shell.see(command);
        if is_same(&printed, &typed.printed) { typed.printed.clone() } else { printed }
    }

    fn start(&mut self, arguments: &str) {
        // The previous control plane is stopped before the next one starts.
        if let Some(server) = self.server.take() {
            assert_eq!(server.interrupt(), Some(0));
        }
        let home = self.shell.home();
        let arguments = arguments.replace('~', &home.display().to_string());
        let arguments: Vec<&str> = arguments.split_whitespace().chain(["--port=0"]).collect();
        let server = Longshore::start_at_home(Path::new(BINARY), &arguments, home);
        self.server = Some(server.expect("it starts"));
    }

    /// Waits until the control plane changes nothing by itself any more. Asks as its administrator,
    /// who sees everything, also in documents about other users.
    fn rest(&mut self) {
        let Some(server) = &self.server else { return };
        let kubeconfig = server.kubeconfig.display();
        let command = format!("longshore plan --restart --kubeconfig {kubeconfig} || echo restless");
        let deadline = Instant::now() + COMMAND_TIMEOUT;
        while self.shell.see(&command).contains("restless") {
            assert!(Instant::now() < deadline, "the control plane does not come to rest");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn read(&mut self, typed: &Typed) -> String {
        let deadline = Instant::now() + COMMAND_TIMEOUT;
        let mut last = (String::new(), Instant::now());
        loop {
            let printed = self.answer(&typed.command);
            if is_same(&printed, &typed.printed) {
                return typed.printed.clone();
            }
            if !is_same(&printed, &last.0) {
                last = (printed.clone(), Instant::now());
            }
            if Instant::now() > deadline || (self.updates && last.1.elapsed() > STABLE_OUTPUT_PERIOD) {
                return printed;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn answer(&mut self, command: &str) -> String {
        let begun = Instant::now();
        let printed = self.shell.see(command);
        let took = begun.elapsed();
        let looks_for_pods = POD_COMMANDS.iter().any(|part| command.contains(part));
        assert!(!looks_for_pods || took < POD_ANSWER_TIMEOUT, "$ {command}\n{printed}\ntook {took:?}");
        printed
    }
}

fn path(document: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(document)
}

/// Types every command of a document.
fn check(document: &str) {
    let Some(shell) = Shell::open() else { return };
    shell.add("longshore", Path::new(BINARY));
    let updates = std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1");
    let mut reader = Reader { shell, server: None, updates };
    let path = path(document);
    let mut document = Document::read(&std::fs::read_to_string(&path).expect("the document is there"));
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
        std::fs::write(path, document.text()).expect("the document can be written");
    }
}

#[test]
fn changing_policies_prints_what_the_document_says() {
    check("changing-policies.md");
}

#[test]
fn the_tenants_walk_prints_what_the_document_says() {
    check("walkthroughs/tenant.md");
}

#[test]
fn the_administrators_walk_prints_what_the_document_says() {
    check("walkthroughs/administrator.md");
}
