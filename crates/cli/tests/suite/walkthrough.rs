//! A new user's first minutes, typed exactly as README.md and `longshore up` print them, with the real kubectl.

use std::path::Path;
use std::time::{Duration, Instant};

use checks::process::Longshore;
use checks::shell::{Shell, commands_of_document, commands_of_output};

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// A part of a command, and what has to hold after that command.
type Step = (&'static str, fn(&mut Shell, &str, String));

/// The story: both texts tell it, in these steps.
const STORY: [Step; 12] = [
    ("export KUBECONFIG=", |shell, _, _| {
        let file = shell.run("ls $KUBECONFIG");
        assert!(file.trim().ends_with("/.local/share/longshore/kubeconfig"), "{file}");
    }),
    ("create deployment nginx", |_, _, printed| assert_eq!(printed, "deployment.apps/nginx created\n")),
    ("get clusters", |shell, command, _| {
        until(shell, command, |table| table.lines().filter(|row| row.contains(" True ")).count() == 3);
    }),
    ("apply -f ", |_, _, printed| {
        assert_eq!(printed, "propagationpolicy.policy.karmada.io/nginx created\n");
    }),
    ("--context member1 get pods", |shell, command, _| until(shell, command, |table| running(table) == 2)),
    ("--context member2 get pods", |shell, command, _| until(shell, command, |table| running(table) == 2)),
    ("clusterNames", |shell, _, printed| {
        assert_eq!(printed, "propagationpolicy.policy.karmada.io/nginx patched\n");
        pods(shell, "member3", 2);
        pods(shell, "member1", 0);
        pods(shell, "member2", 2);
    }),
    ("\"dispatching\":true", |shell, _, _| {
        until(shell, &of_work("spec.suspendDispatching"), |held| held == "true");
    }),
    ("scale deployment nginx --replicas=3", |shell, _, _| {
        until(shell, &of_work("spec.workload.manifests[0].spec.replicas"), |wanted| wanted == "3");
        pods(shell, "member2", 2);
        pods(shell, "member3", 2);
    }),
    ("\"suspension\":null", |shell, _, _| {
        pods(shell, "member2", 3);
        pods(shell, "member3", 3);
    }),
    ("delete deployment nginx", |shell, _, printed| {
        assert!(printed.contains("\"nginx\" deleted"), "{printed}");
        pods(shell, "member2", 0);
        pods(shell, "member3", 0);
        until(shell, "kubectl get works -A -o name", |works| !works.contains("nginx"));
    }),
    ("delete propagationpolicy nginx", |shell, _, _| {
        until(shell, "kubectl get propagationpolicies -o name", str::is_empty);
    }),
];

/// Prints a field of the Work that brings nginx to member2.
fn of_work(field: &str) -> String {
    let nginx = "?(@.spec.workload.manifests[0].metadata.name==\"nginx\")";
    format!("kubectl get works -n karmada-es-member2 -o jsonpath='{{.items[{nginx}].{field}}}'")
}

fn running(table: &str) -> usize {
    table.lines().filter(|row| row.starts_with("nginx-") && row.contains(" Running ")).count()
}

fn pods(shell: &mut Shell, member: &str, count: usize) {
    until(shell, &format!("kubectl --context {member} get pods"), |table| running(table) == count);
}

/// Types a command until it prints what is wanted.
fn until(shell: &mut Shell, command: &str, wanted: impl Fn(&str) -> bool) {
    let deadline = Instant::now() + STEP_TIMEOUT;
    loop {
        let printed = shell.run(command);
        if wanted(&printed) {
            return;
        }
        assert!(Instant::now() < deadline, "$ {command}\n{printed}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Plays the story on a fresh `longshore up`, with the commands from a document or from its output.
fn play(commands: impl FnOnce(&Longshore) -> Vec<String>) {
    let Some(mut shell) = Shell::open() else { return };
    let server = Longshore::start_at_home(Path::new(BINARY), &["--port=0"], shell.home());
    let server = server.expect("it starts in an empty home");
    let commands = commands(&server);
    assert_eq!(commands.len(), STORY.len(), "{commands:#?}");
    for (command, (part, check)) in commands.iter().zip(STORY) {
        assert!(command.contains(part), "{part} in {command}");
        let printed = shell.run(command);
        check(&mut shell, command, printed);
    }
}

#[test]
fn readme_leads_a_newcomer() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).expect("README.md is there");
    play(|_| commands_of_document(&readme));
}

#[test]
fn up_leads_a_newcomer() {
    play(|server| commands_of_output(server.said()));
}
