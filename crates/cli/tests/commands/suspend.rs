//! `longshore suspend` and `longshore resume` against a running control plane.

use crate::terminal::{Terminal, deployment, policy};

const POLICY: &str = "propagationpolicy.policy.karmada.io/pp";

#[test]
fn a_policy_is_held_and_let_go() {
    let terminal = Terminal::open(2, &[]);
    terminal.apply(&[policy("pp", &["member1", "member2"]), deployment("nginx", 2)]);
    terminal.until("why deploy/nginx", |said| said.stdout.matches("applied, healthy").count() == 2);
    assert_eq!(terminal.ok("suspend --policy pp --cluster member2"), format!("{POLICY} suspended\n"));
    assert_eq!(terminal.ok("suspend --policy pp -C member2"), format!("{POLICY} already suspended\n"));
    terminal.until("why deploy/nginx", |said| {
        said.stdout.contains("Suspended   in member2, by PropagationPolicy default/pp\n")
    });
    assert_eq!(terminal.ok("suspend --policy pp/pp"), format!("{POLICY} suspended\n"));
    terminal.until("why deploy/nginx", |said| said.stdout.contains("Suspended   everywhere, by"));

    let one = terminal.run("resume --policy pp --cluster member1 --yes");
    assert_eq!(
        one.stderr,
        format!(
            "error: resume {POLICY}: it is suspended in all clusters, not only in member1\n\
             hint: resume it in all clusters, or first suspend the other clusters with `longshore suspend -C \
             NAME`\n"
        )
    );
    let silent = terminal.run("resume --policy pp");
    assert_eq!((silent.code, silent.stdout.as_str()), (Some(1), ""));
    assert!(
        silent.stderr.contains("hint: to make the change without confirmation, add --yes"),
        "{}",
        silent.stderr
    );
    let said = terminal.run("resume --policy pp --yes");
    assert_eq!((said.code, said.stdout), (Some(0), format!("{POLICY} resumed\n")));
    assert_eq!(said.stderr, "This dispatches:\n  Deployment default/nginx: to member1, member2\n");
    terminal.until("why deploy/nginx", |said| !said.stdout.to_lowercase().contains("suspended"));
    assert_eq!(terminal.ok("resume --policy pp --yes"), format!("{POLICY} is not suspended\n"));
}

#[test]
fn one_template_is_held_by_a_rollout_policy_of_its_own() {
    let terminal = Terminal::open(2, &[]);
    terminal.apply(&[policy("pp", &["member1", "member2"]), deployment("nginx", 2), deployment("web", 1)]);
    terminal.until("why deploy/nginx", |said| said.stdout.matches("applied, healthy").count() == 2);
    assert_eq!(terminal.ok("suspend deploy/nginx -C member1"), "deployment.apps/nginx suspended\n");
    let told = terminal.until("why deploy/nginx", |said| said.stdout.contains("Suspended"));
    assert!(
        told.stdout.contains("Suspended   in member1, by RolloutPolicy default/nginx-"),
        "{}",
        told.stdout
    );
    assert!(!terminal.ok("why deploy/web").to_lowercase().contains("suspended"));

    let said = terminal.run("resume deploy nginx --yes");
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "deployment.apps/nginx resumed\n"));
    assert_eq!(said.stderr, "This dispatches:\n  Deployment default/nginx: to member1\n");
    terminal.until("why deploy/nginx", |said| !said.stdout.to_lowercase().contains("suspended"));
    assert_eq!(terminal.ok("resume deploy/nginx"), "deployment.apps/nginx is not suspended\n");

    terminal.ok("suspend --policy pp");
    terminal.until("why deploy/nginx", |said| said.stdout.contains("Suspended"));
    let by_policy = terminal.run("resume deploy/nginx");
    assert_eq!(
        by_policy.stderr,
        "error: deployment.apps/nginx is suspended everywhere, by PropagationPolicy default/pp\n\
         hint: resume its policy with `longshore resume --policy NAME`, or change the object that suspends \
         it\n"
    );
    let unknown = terminal.run("suspend deploy/nginx -C member9");
    assert_eq!(unknown.stderr, "error: find cluster \"member9\"\nhint: there are member1, member2\n");
    let missing = terminal.run("suspend --policy nobody");
    assert!(missing.stderr.starts_with("error: policy \"nobody\" not found\nhint: "), "{}", missing.stderr);
    let nothing = terminal.run("suspend deploy/nothing");
    assert!(
        nothing.stderr.starts_with("error: deployments \"nothing\" not found\nhint: "),
        "{}",
        nothing.stderr
    );
}
