//! Shell completion, manual pages, and the program as a kubectl plugin.

use std::io::Write as _;
use std::process::Command;

use crate::terminal::{BINARY, Terminal, deployment, policy, run};

#[test]
fn shells_and_readers_are_served() {
    let home = tempfile::tempdir().expect("there is room for a temporary directory");
    for shell in ["bash", "zsh", "fish"] {
        let said = run(home.path(), &format!("completion {shell}"), &[]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(said.stdout.contains("longshore") && said.stdout.contains("reconcile"), "{shell}");
    }
    let said = run(home.path(), "man pages", &[]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""), "{}", said.stderr);
    for page in ["longshore.1", "longshore-why.1", "longshore-rollout-undo.1"] {
        let text = std::fs::read_to_string(home.path().join("pages").join(page)).expect("the page is there");
        assert!(text.contains(".TH"), "{page}: {text}");
    }
}

#[test]
fn as_a_plugin_it_calls_itself_what_the_user_types() {
    let home = tempfile::tempdir().expect("there is room for a temporary directory");
    let link = home.path().join("kubectl-longshore");
    std::os::unix::fs::symlink(BINARY, &link).expect("the directory takes links");
    let help = |program: &std::path::Path| {
        let output = Command::new(program).args(["why", "--help"]).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(help(&link).contains("Usage: kubectl longshore why [OPTIONS]"), "{}", help(&link));
    assert!(help(BINARY.as_ref()).contains("Usage: longshore why [OPTIONS]"));
}

/// What each shell does when the user presses the tabulator behind `longshore uncordon member2`.
const BASH: &str = "source <(longshore completion bash); COMP_WORDS=(longshore uncordon member2); COMP_CWORD=2; \
                    _longshore_names longshore member2 uncordon; echo \"${COMPREPLY[@]}\"";
/// Only a terminal can press it in zsh, so the last step, which takes the names that begin with the word, prints them.
const ZSH: &str = "autoload -U compinit; compinit -u -D; source <(longshore completion zsh); \
                   compadd() { print -l -- ${(M)${(P)2}:#${words[CURRENT]}*} }; words=(longshore uncordon member2); CURRENT=3; _longshore_names";
const FISH: &str = "longshore completion fish | source; complete -C 'longshore uncordon member2'";

#[test]
fn names_are_completed_with_what_is_there() {
    let terminal = Terminal::open(2, &[]);
    terminal.apply(&[policy("web", &["member1"]), deployment("nginx", 1)]);
    assert_eq!(terminal.ok("complete-names -- cordon me"), "member1\nmember2\n");
    assert_eq!(terminal.ok("complete-names -- why deploy/"), "deploy/nginx\n");
    assert_eq!(terminal.ok("complete-names -- rollout status w"), "web\n");
    assert_eq!(
        terminal.ok("complete-names -- why deploy/x -n default --context m"),
        "longshore\nmember1\nmember2\n"
    );
    assert_eq!(terminal.ok("complete-names -- why nonsense/x"), "", "who types is not told of errors");
    let home = terminal.home.path();
    std::os::unix::fs::symlink(BINARY, home.join("longshore")).expect("the directory takes links");
    for (shell, typed) in [("bash", BASH), ("zsh", ZSH), ("fish", FISH)] {
        let path = format!("{}:{}", home.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new(shell);
        let output = command.args(["-c", typed]).env_clear().env("HOME", home).env("PATH", path).output();
        let Ok(output) = output else {
            let _ = writeln!(std::io::stderr(), "SKIPPED: there is no {shell}");
            continue;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "member2\n", "{shell}: {said}");
    }
}
