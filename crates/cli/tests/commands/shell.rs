//! Completion, manual pages, and the program under kubectl's name for it.

use std::process::Command;

use crate::terminal::{BINARY, run};

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
