//! Commands within and beyond a change budget, and a start with other feature gates.

use std::path::Path;

use checks::process::Longshore;
use serde_json::{Value, json};

use crate::terminal::{BINARY, Terminal, deployment, policy};

const POLICY: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies/pp";

fn lazy(name: &str, clusters: &[&str]) -> Value {
    let mut policy = policy(name, clusters);
    policy["spec"]["activationPreference"] = json!("Lazy");
    policy
}

fn send_to(terminal: &Terminal, cluster: &str) {
    terminal.patch(
        POLICY,
        &json!({ "spec": { "placement": { "clusterAffinity": { "clusterNames": [cluster] } } } }),
    );
}

/// Two Deployments that run in member1.
fn running(policy: Value, more: &[&str]) -> Terminal {
    let terminal = Terminal::open(2, more);
    terminal.apply(&[policy, deployment("a", 1), deployment("b", 1)]);
    terminal.until("get deploy", |said| said.stdout.matches("1/1").count() == 2);
    terminal.until("plan --restart", |said| said.code == Some(0));
    terminal
}

#[test]
fn reconcile_keeps_to_the_budget() {
    let mut policy = lazy("pp", &["member1"]);
    policy["metadata"]["annotations"] = json!({ "longshore.io/max-moved": "1" });
    let terminal = running(policy, &[]);
    send_to(&terminal, "member2");
    terminal.until("reconcile --policy pp --dry-run", |said| said.stderr.contains("2 moved"));
    let refused = terminal.run("reconcile --policy pp --yes");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let why = "the change exceeds its budget: it would move 2 templates of PropagationPolicy default/pp";
    assert!(refused.stderr.contains(why) && refused.stderr.contains("--approve"), "{}", refused.stderr);
    assert!(!terminal.ok("get deploy").contains("member2"), "nothing was changed");
    let done = terminal.ok("reconcile --policy pp --yes --approve");
    assert_eq!(done, "deployment.apps/a reconciled\ndeployment.apps/b reconciled\n");
    terminal.until("get deploy", |said| said.stdout.matches("member2").count() == 2);
}

#[test]
fn what_acts_on_many_shows_its_plan_first() {
    let terminal = running(policy("pp", &["member1"]), &["--max-moved=1"]);
    terminal.patch(POLICY, &json!({ "metadata": { "annotations": { "longshore.io/max-moved": "2" } } }));
    send_to(&terminal, "member2");
    terminal.until("get deploy", |said| said.stdout.matches("member2").count() == 2);
    terminal.until("plan --restart", |said| said.code == Some(0));
    terminal.patch(POLICY, &json!({ "metadata": { "annotations": { "longshore.io/max-moved": "1" } } }));
    let asked = terminal.run("rollout undo pp");
    assert!(asked.stderr.contains("2 moved"), "{}", asked.stderr);
    let note = asked.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(note.contains("or with --approve.") && !note.contains("saved plan"), "{}", asked.stderr);
    let refused = terminal.run("rollout undo pp --yes");
    assert!(
        refused.stderr.contains("the change exceeds its budget: it would move 2 templates"),
        "{}",
        refused.stderr
    );
    terminal.ok("rollout undo pp --yes --approve");
    terminal.until("get deploy", |said| said.stdout.matches("member1").count() == 2);
}

#[test]
fn a_taint_that_evicts_shows_its_plan_first() {
    let terminal = Terminal::open(2, &[]);
    terminal.apply(&[policy("pp", &["member1", "member2"]), deployment("a", 1)]);
    terminal.until("why deploy/a", |said| said.stdout.matches("applied, healthy").count() == 2);
    // There is no terminal to ask, so the command does nothing without --yes.
    let asked = terminal.run("taint member1 broken:NoExecute");
    assert!(asked.code == Some(1) && asked.stderr.contains("hint: "), "{asked:?}");
    assert!(asked.stderr.contains("1 to delete"), "{asked:?}");
    assert_eq!(terminal.run("taint member1 broken:NoExecute --dry-run").code, Some(0));
    assert!(!terminal.ok("get clusters").contains("broken"));
    terminal.ok("taint member1 broken:NoExecute --yes");
    // Now the copy in member2 is the last one. It would stay (M2), so there is nothing to ask about.
    let done = terminal.run("taint member2 broken:NoExecute");
    assert!(done.code == Some(0) && done.stderr.contains("nothing changes"), "{done:?}");
}

#[test]
fn a_plan_goes_beyond_a_budget_only_with_an_approval() {
    let terminal = running(policy("pp", &["member1"]), &[]);
    let file = terminal.home.path().join("move.yaml");
    std::fs::write(&file, policy("pp", &["member2"]).to_string()).expect("the home takes files");
    assert_eq!(terminal.run("plan -f move.yaml --save move.plan").code, Some(2));
    // The budget comes after the plan was saved.
    terminal.patch(
        "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies/pp",
        &json!({ "metadata": { "annotations": { "longshore.io/max-moved": "0" } } }),
    );
    let refused = terminal.run("apply move.plan");
    assert!(
        refused.code == Some(1) && refused.stderr.contains("the change exceeds its budget"),
        "{refused:?}"
    );
    terminal.ok("apply move.plan --approve");
    terminal.until("get deploy", |said| said.stdout.matches("member2").count() == 2);
    let deleted = terminal.run("plan --delete pp/pp");
    assert_eq!(deleted.code, Some(2), "{deleted:?}");
}

#[test]
fn a_start_with_other_gates_waits() {
    let terminal =
        running(policy("pp", &["member1"]), &["--feature-gates=StaticPolicy=true", "--max-moved=1"]);
    send_to(&terminal, "member2");
    terminal
        .until("plan --restart --feature-gates StaticPolicy=false", |said| said.stdout.contains("2 moved"));
    let planned = terminal.run("plan --restart --feature-gates StaticPolicy=false");
    assert!(planned.stdout.contains("--accept="), "{}", planned.stdout);
    let Terminal { home, server } = terminal;
    assert_eq!(server.interrupt(), Some(0));
    let data = home.path().join(".local/share/longshore");
    let data = data.to_str().expect("temporary paths are readable").to_owned();
    let start = |more: &[&str]| {
        let usual = ["--port=0", "--data-dir", &data, "--members=2", "--max-moved=1"];
        let arguments: Vec<&str> = usual.into_iter().chain(more.iter().copied()).collect();
        Longshore::start(Path::new(BINARY), &arguments).expect("it starts")
    };
    let held = Terminal { home, server: start(&[]) };
    assert!(held.server.logged().contains("the controllers do not run"), "{}", held.server.logged());
    let status = held.run("status");
    assert!(status.stderr.contains("the controllers do not run"), "{status:?}");
    assert!(!held.ok("get deploy").contains("member2"), "nothing was changed");
    let Terminal { home, server } = held;
    assert_eq!(server.interrupt(), Some(0));
    let accepted = Terminal { home, server: start(&["--accept"]) };
    accepted.until("get deploy", |said| said.stdout.matches("member2").count() == 2);
    assert!(!accepted.run("status").stderr.contains("do not run"));
}
