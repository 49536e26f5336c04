//! `--wait` and `--watch`: commands that end when what they set off is done in members, and tables that stay current.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::tenant::kubeconfig;
use crate::terminal::{BINARY, Said, Terminal, deployment, policy, run};

const POLICY: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies/pp";

fn write(terminal: &Terminal, name: &str, objects: &[Value]) {
    let text: Vec<String> = objects.iter().map(ToString::to_string).collect();
    std::fs::write(terminal.home.path().join(name), text.join("\n---\n")).expect("the home takes files");
}

/// What members have of Deployments, as `NAME CLUSTER READY`.
fn copies(terminal: &Terminal) -> Vec<String> {
    let table = terminal.run("get deploy").stdout;
    let rows = table.lines().skip(1).map(|row| row.split_whitespace().take(3).collect::<Vec<_>>().join(" "));
    rows.collect()
}

/// The last line of what a command said beside its answer.
fn last(said: &Said) -> &str {
    said.stderr.lines().last().unwrap_or_default()
}

#[track_caller]
fn done(terminal: &Terminal, line: &str, expected: &[&str]) {
    let said = terminal.run(line);
    assert_eq!(said.code, Some(0), "{line}: {said:?}");
    assert!(last(&said).starts_with("done after "), "{line}: {said:?}");
    assert_eq!(copies(terminal), expected, "{line}: {said:?}");
}

#[test]
fn a_command_ends_when_what_it_set_off_is_done() {
    let terminal = Terminal::open(2, &[]);
    write(&terminal, "web.yaml", &[policy("pp", &["member1"]), deployment("web", 2)]);
    let said = terminal.run("apply -f web.yaml --yes --wait");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(copies(&terminal), ["web member1 2/2"]);
    assert!(last(&said).ends_with(" s: 1 template"), "{said:?}");

    // A move is done when the copy that was left is gone.
    write(&terminal, "moved.yaml", &[policy("pp", &["member2"])]);
    done(&terminal, "apply -f moved.yaml --yes --wait", &["web member2 2/2"]);
    done(&terminal, "rollout undo pp --yes --wait", &["web member1 2/2"]);
    terminal.patch(POLICY, &json!({ "spec": { "activationPreference": "Lazy" } }));
    write(
        &terminal,
        "lazy.yaml",
        &[{
            let mut lazy = policy("pp", &["member1", "member2"]);
            lazy["spec"]["activationPreference"] = json!("Lazy");
            lazy
        }],
    );
    // An edit that waits for its templates sets nothing off.
    let waits = terminal.run("apply -f lazy.yaml --yes --wait");
    assert_eq!((waits.code, last(&waits)), (Some(0), "nothing to wait for"), "{waits:?}");
    done(&terminal, "reconcile deploy/web --yes --wait", &["web member1 2/2", "web member2 2/2"]);

    done(&terminal, "suspend deploy/web --wait", &["web member1 2/2", "web member2 2/2"]);
    terminal.patch("/apis/apps/v1/namespaces/default/deployments/web", &json!({ "spec": { "replicas": 1 } }));
    terminal.until("why deploy/web", |said| said.stdout.contains("chosen, 1 replica; suspended"));
    assert_eq!(copies(&terminal), ["web member1 2/2", "web member2 2/2"], "nothing is written any more");
    done(&terminal, "resume deploy/web --yes --wait", &["web member1 1/1", "web member2 1/1"]);
    done(&terminal, "taint member1 broken:NoExecute --yes --wait", &["web member2 1/1"]);
    done(&terminal, "taint member1 broken- --wait", &["web member1 1/1", "web member2 1/1"]);

    terminal.run("plan --delete deploy/web --save gone.plan");
    done(&terminal, "apply gone.plan --wait", &[]);
}

#[test]
fn what_is_missing_when_the_time_is_over_is_named() {
    let terminal = Terminal::open(1, &[]);
    // An image of this name never becomes ready.
    write(&terminal, "fail.yaml", &[policy("pp", &["member1"]), deployment("fail", 1)]);
    let said = terminal.run("apply -f fail.yaml --yes --wait --timeout 3s");
    assert_eq!(said.code, Some(1), "{said:?}");
    let expected = "error: wait: 1 of 1 template not done within 3 s:\n  Deployment default/fail: member1: applied, not yet \
                    healthy\nhint: `longshore why deployment.apps/fail -n default` explains why; the change \
                    is made; to wait longer, raise --timeout\n";
    assert!(said.stderr.ends_with(expected), "{said:?}");
    // Without a terminal every change is a line, told once.
    let line = "Deployment default/fail: member1: applied, not yet healthy";
    assert_eq!(said.stderr.lines().filter(|told| *told == line).count(), 1, "{said:?}");
    // What was asked for is there all the same, and the hint leads on.
    assert!(terminal.ok("why deployment.apps/fail -n default").contains("unhealthy"));
    for line in ["apply -f fail.yaml --yes --timeout 3s", "apply -f fail.yaml --yes --wait --timeout soon"] {
        assert_eq!(terminal.run(line).code, Some(2), "{line}");
    }
}

#[test]
fn a_tenant_waits_for_what_is_theirs() {
    let terminal = Terminal::open(2, &[]);
    let named = |kind: &str, namespace: &str, mut object: Value| {
        object["kind"] = kind.into();
        object["metadata"]["namespace"] = namespace.into();
        object
    };
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": { "name": "team" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "longshore:tenant" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice" }],
    });
    terminal.apply(&[
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team-a" } }),
        named("RoleBinding", "team-a", binding),
    ]);
    let alice = kubeconfig(&terminal, "alice", "kubeconfig --user alice -n team-a");
    let alice = |line: &str| {
        let said = run(terminal.home.path(), &format!("{line} --kubeconfig {}", alice.display()), &[]);
        assert_eq!(said.code, Some(0), "{line}: {said:?}");
        assert!(last(&said).starts_with("done after "), "{line}: {said:?}");
        let rows = terminal.ok("get deploy -n team-a");
        rows.lines().skip(1).map(|row| row.split_whitespace().take(3).collect::<Vec<_>>().join(" ")).collect()
    };
    let own = |object: Value, kind: &str| named(kind, "team-a", object);
    write(
        &terminal,
        "web.yaml",
        &[own(policy("pp", &["member1"]), "PropagationPolicy"), own(deployment("web", 2), "Deployment")],
    );
    let rows: Vec<String> = alice("apply -f web.yaml --yes --wait");
    assert_eq!(rows, ["web member1 2/2"]);
    // An update of what runs is seen to be an update.
    write(&terminal, "web.yaml", &[own(deployment("web", 3), "Deployment")]);
    let rows: Vec<String> = alice("apply -f web.yaml --yes --wait");
    assert_eq!(rows, ["web member1 3/3"]);
    let _: Vec<String> = alice("suspend deploy/web --wait");
    terminal.patch("/apis/apps/v1/namespaces/team-a/deployments/web", &json!({ "spec": { "replicas": 1 } }));
    let rows: Vec<String> = alice("resume deploy/web --yes --wait");
    assert_eq!(rows, ["web member1 1/1"]);
    write(&terminal, "moved.yaml", &[own(policy("pp", &["member2"]), "PropagationPolicy")]);
    let rows: Vec<String> = alice("apply -f moved.yaml --yes --wait");
    assert_eq!(rows, ["web member2 1/1"]);
}

/// A command that goes on until it is ended.
struct Watching {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Watching {
    fn start(terminal: &Terminal, line: &str) -> Self {
        let mut child = Command::new(BINARY)
            .args(line.split_whitespace())
            .env_clear()
            .env("HOME", terminal.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let stdout = child.stdout.take().expect("it was piped");
        Self { child, lines: BufReader::new(stdout).lines() }
    }

    /// Reads until a line begins like this; what was read before it.
    fn until(&mut self, begin: &str) -> Vec<String> {
        let mut before = Vec::new();
        for line in self.lines.by_ref().map_while(Result::ok) {
            if line.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(begin) {
                return before;
            }
            before.push(line);
        }
        panic!("it ended after {before:?}");
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

#[test]
fn a_watched_table_is_shown_again_when_it_changes() {
    let terminal = Terminal::open(1, &[]);
    let mut watching = Watching::start(&terminal, "get deploy --watch");
    watching.until("No resources found.");
    terminal.apply(&[policy("pp", &["member1"]), deployment("web", 1)]);
    watching.until("web member1 1/1");
    // Ages change all the time, and are no change.
    std::thread::sleep(std::time::Duration::from_secs(3));
    terminal.patch("/apis/apps/v1/namespaces/default/deployments/web", &json!({ "spec": { "replicas": 3 } }));
    let before = watching.until("web member1 3/3");
    let same = before.iter().filter(|line| line.contains("1/1")).count();
    assert!(same <= 1, "{before:?}");
    let refused = terminal.run("get deploy --watch -o json");
    assert_eq!(refused.code, Some(1), "{refused:?}");
}
