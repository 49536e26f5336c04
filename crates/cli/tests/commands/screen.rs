//! What a person sees: the commands on a terminal of 80 columns, which is a real pseudo-terminal, and in a pipe.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::terminal::{BINARY, Terminal, deployment, policy};

/// Types `longshore` and these words on a terminal, and this as the answer to a question.
fn on_a_terminal(terminal: &Terminal, line: &str, answer: &str) -> (Option<i32>, String) {
    let typed = format!("printf '{answer}\\n' | script -qec '{BINARY} {line}' /dev/null");
    let output = Command::new("sh")
        .args(["-c", &typed])
        .current_dir(terminal.home.path())
        .env_clear()
        .env("HOME", terminal.home.path())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output()
        .expect("there is a shell on every machine");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).replace('\r', ""))
}

/// False, after saying so, where no terminal can be made.
fn has_terminals() -> bool {
    let found = Command::new("script").arg("--version").output().is_ok_and(|said| said.status.success());
    if !found {
        checks::client_is_missing("script (util-linux) is not on PATH");
    }
    found
}

/// A text without what paints it.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, painted)) = rest.split_once('\u{1b}') {
        plain += before;
        rest = painted.split_once(|letter: char| letter.is_ascii_alphabetic()).map_or("", |(_, rest)| rest);
    }
    plain + rest
}

#[test]
fn a_question_is_asked_on_a_terminal_and_its_answer_counts() {
    if !has_terminals() {
        return;
    }
    let terminal = Terminal::open(1, &[]);
    terminal.apply(&[policy("pp", &["member1"]), deployment("web", 1)]);
    terminal.until("why deploy/web", |said| said.stdout.contains("applied, healthy"));
    terminal.ok("suspend --policy pp");
    terminal.until("why deploy/web", |said| said.stdout.contains("Suspended   everywhere"));

    let (code, said) = on_a_terminal(&terminal, "resume --policy pp", "n");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("This dispatches:\n  Deployment default/web: to member1\n"), "{said}");
    assert!(said.contains("Resume propagationpolicy.policy.karmada.io/pp? [y/N] "), "{said}");
    assert!(said.ends_with("error: nothing was changed\n"), "{said}");
    let (code, said) = on_a_terminal(&terminal, "resume --policy pp", "maybe");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("\"maybe\" is neither yes nor no: nothing was changed"), "{said}");
    assert!(terminal.ok("why deploy/web").contains("Suspended   everywhere"), "nothing was changed");

    // Without a terminal there is no prompt, and nothing happens without `--yes`.
    let silent = terminal.run("resume --policy pp");
    assert_eq!((silent.code, silent.stdout.as_str()), (Some(1), ""));
    assert!(
        silent.stderr.ends_with(
            "error: ask for confirmation: stdin is not a terminal\n\
             hint: to make the change without confirmation, add --yes\n"
        ),
        "{}",
        silent.stderr
    );

    let (code, said) = on_a_terminal(&terminal, "resume --policy pp", "y");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.ends_with("propagationpolicy.policy.karmada.io/pp resumed\n"), "{said}");
    terminal.until("why deploy/web", |said| !said.stdout.to_lowercase().contains("suspended"));
}

#[test]
fn everything_fits_on_a_terminal_and_is_plain_in_a_pipe() {
    if !has_terminals() {
        return;
    }
    let terminal = Terminal::open(3, &[]);
    let mut lazy = policy("everything-the-shop-needs", &["member1", "member2", "member3"]);
    lazy["spec"]["activationPreference"] = json!("Lazy");
    terminal.apply(&[lazy, deployment("front", 2), deployment("back", 3)]);
    terminal.ok("taint member3 gpu=only:NoSchedule maintenance=planned:NoSchedule zone:PreferNoSchedule");
    terminal.until("get deploy", |said| said.stdout.lines().count() == 7);
    let mut later = policy("everything-the-shop-needs", &["member1"]);
    later["spec"]["suspension"] =
        json!({ "dispatchingOnClusters": { "clusterNames": ["member1", "member2"] } });
    let path =
        "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies/everything-the-shop-needs";
    terminal.patch(path, &later);
    terminal.until("rollout status everything-the-shop-needs", |said| said.stdout.contains("suspended in"));
    std::fs::write(terminal.home.path().join("next.yaml"), policy("next", &["member2"]).to_string())
        .expect("it can be written");

    let lines = [
        "status",
        "get deploy -A",
        "get deploy -o wide",
        "why deploy/front",
        "why deploy/front -C member3",
        "why deploy/nothing",
        "plan -f next.yaml",
        "plan --delete pp/everything-the-shop-needs",
        "plan --delete pp/everything-the-shop-needs --detailed",
        "rollout status everything-the-shop-needs",
        "rollout history everything-the-shop-needs",
        "reconcile --policy everything-the-shop-needs --dry-run",
        "resume --policy everything-the-shop-needs",
        "cordon member9",
    ];
    for line in lines {
        let (_, seen) = on_a_terminal(&terminal, line, "n");
        // A user presses Enter after the answer.
        let seen = seen.replace("[y/N] ", "[y/N]\n");
        let too_wide = plain(&seen).lines().find(|line| line.chars().count() > 80).map(str::to_owned);
        // kubectl's wide tables are wider than that, too.
        assert!(too_wide.is_none() || line.contains("wide"), "$ longshore {line}\n{seen}");
        let piped = terminal.run(line);
        assert!(!piped.stdout.contains('\u{1b}') && !piped.stderr.contains('\u{1b}'), "{piped:?}");
    }
    // Rows stay rows in a pipe, for programs that read them.
    let rows = terminal.ok("status");
    let row = "gpu=only:NoSchedule, maintenance=planned:NoSchedule, zone:PreferNoSchedule";
    assert!(rows.lines().any(|line| line.starts_with("member3") && line.ends_with(row)), "{rows}");
    let painted = on_a_terminal(&terminal, "plan --delete pp/everything-the-shop-needs", "").1;
    assert!(painted.contains('\u{1b}'), "{painted}");
}

#[test]
fn who_waits_is_told_for_what() {
    if !has_terminals() {
        return;
    }
    // A server that accepts connections and never answers.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there are ports");
    let address = listener.local_addr().expect("it listens");
    let home = tempfile::tempdir().expect("there is room for a temporary directory");
    let config = format!(
        "current-context: slow\n\
         clusters: [{{ name: slow, cluster: {{ server: 'http://{address}' }} }}]\n\
         users: [{{ name: slow, user: {{ token: t }} }}]\n\
         contexts: [{{ name: slow, context: {{ cluster: slow, user: slow }} }}]\n"
    );
    std::fs::write(home.path().join("config"), config).expect("the directory takes files");
    let typed = format!("timeout 4 {BINARY} status --kubeconfig config");
    let seen = Command::new("script")
        .args(["-qec", &typed, "/dev/null"])
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let seen = String::from_utf8_lossy(&seen.stdout).into_owned();
    assert!(seen.contains("reaching the control plane … 1 s"), "{seen:?}");
    let piped = Command::new("timeout")
        .args(["3", BINARY, "status", "--kubeconfig", "config"])
        .current_dir(home.path())
        .output()
        .expect("it runs");
    assert!(piped.stderr.is_empty(), "nobody looks: {}", String::from_utf8_lossy(&piped.stderr));
}
