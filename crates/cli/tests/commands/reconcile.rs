//! `longshore reconcile` against a running control plane.

use serde_json::{Value, json};

use crate::terminal::{Terminal, deployment, policy};

fn lazy(name: &str, clusters: &[&str]) -> Value {
    let mut policy = policy(name, clusters);
    policy["spec"]["activationPreference"] = json!("Lazy");
    policy
}

/// Three Deployments that run in member1 while their policy says member2.
fn pending() -> Terminal {
    let terminal = Terminal::open(2, &[]);
    terminal.apply(&[lazy("pp", &["member1"])]);
    let mut labelled = deployment("labelled", 1);
    labelled["metadata"]["labels"]["tier"] = json!("front");
    terminal.apply(&[deployment("a", 1), deployment("b", 1), labelled]);
    for name in ["a", "b", "labelled"] {
        terminal.until(&format!("why deploy/{name}"), |said| said.stdout.contains("applied, healthy"));
    }
    terminal.patch(
        "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies/pp",
        &json!({ "spec": { "placement": { "clusterAffinity": { "clusterNames": ["member2"] } } } }),
    );
    terminal.until("status", |said| said.stdout.contains("default/pp   Lazy         0          3         3"));
    terminal
}

#[test]
fn pending_changes_take_effect_on_reconcile() {
    let terminal = pending();
    let why = terminal.ok("why deploy/a");
    assert!(why.contains("Now: longshore reconcile deployment.apps/a -n default"), "{why}");
    assert_eq!(
        terminal.ok("reconcile deploy/a --dry-run"),
        "deployment.apps/a would be reconciled (dry run)\n"
    );
    assert_eq!(terminal.ok("reconcile deploy/a --yes"), "deployment.apps/a reconciled\n");
    terminal
        .until("why deploy/a", |said| said.stdout.contains("member2   chosen, 1 replica; applied, healthy"));
    assert!(terminal.ok("why deploy/b").contains("member1   chosen"), "nobody asked for b");
    let again = terminal.run("reconcile deploy a");
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""));
    assert_eq!(again.stderr, "deployment.apps/a follows its policy already\nNothing waits.\n");

    assert_eq!(terminal.ok("reconcile all -l tier=front --yes"), "deployment.apps/labelled reconciled\n");
    let by_annotation = "reconcile deploy,cm -l propagationpolicy.karmada.io/name=pp --yes";
    assert_eq!(terminal.ok(by_annotation), "deployment.apps/b reconciled\n");
    terminal.until("status", |said| said.stdout.contains("default/pp   Lazy         0          3         0"));
    let missing = terminal.run("reconcile deploy/nothing");
    assert!(
        missing.stderr.starts_with("error: deployments \"nothing\" not found\nhint: "),
        "{}",
        missing.stderr
    );
    let wrong = terminal.run("reconcile deploy -l =");
    assert!(wrong.stderr.starts_with("error: read the selector: "), "{}", wrong.stderr);
}

#[test]
fn everything_that_a_policy_claims() {
    let terminal = pending();
    let expected =
        "deployment.apps/a reconciled\ndeployment.apps/b reconciled\ndeployment.apps/labelled reconciled\n";
    assert_eq!(terminal.ok("reconcile --policy pp --yes"), expected);
    terminal.until("status", |said| said.stdout.contains("default/pp   Lazy         0          3         0"));
    let nothing = terminal.run("reconcile --policy pp/pp");
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), ""));
    assert_eq!(nothing.stderr, "Nothing waits.\n");
}

#[test]
fn s4_what_runs_without_a_policy_is_reached() {
    let terminal = Terminal::open(2, &["--feature-gates=StaticPolicy=true"]);
    terminal.apply(&[policy("first", &["member1"]), deployment("web", 1)]);
    terminal.until("why deploy/web", |said| said.stdout.contains("applied, healthy"));
    terminal.apply(&[policy("second", &["member2"])]);
    let plan = "plan --delete pp/first --save gone.plan";
    terminal.until(plan, |said| said.code == Some(2));
    terminal.ok("apply gone.plan");
    let status = terminal.until("status", |said| said.stdout.contains("Orphaned: "));
    assert!(status.stdout.contains("    Deployment default/web\n"), "{}", status.stdout);
    let why = terminal.ok("why deploy/web");
    assert!(why.contains("\nOrphaned    No policy claims the template"), "{why}");
    assert!(why.contains("Now: longshore reconcile deployment.apps/web -n default"), "{why}");
    let line = "reconcile --policy second --dry-run";
    terminal.until(line, |said| said.stdout.contains("deployment.apps/web would be reconciled"));
    terminal.ok("reconcile deploy/web --yes");
    terminal.until("why deploy/web", |said| {
        said.stdout.contains("member2   chosen, 1 replica; applied, healthy")
    });
    assert!(!terminal.ok("status").contains("Orphaned"));
}
