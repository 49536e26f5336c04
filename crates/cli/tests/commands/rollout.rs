//! `longshore rollout` against a running control plane.

use serde_json::{Value, json};

use crate::terminal::{Terminal, deployment, policy};

const PATH: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies/pp";
const POLICY: &str = "propagationpolicy.policy.karmada.io/pp";

fn send_to(terminal: &Terminal, cluster: &str, cause: &str) {
    let placement = json!({ "clusterAffinity": { "clusterNames": [cluster] } });
    let annotations = json!({ "kubernetes.io/change-cause": cause });
    terminal.patch(
        PATH,
        &json!({ "metadata": { "annotations": annotations }, "spec": { "placement": placement } }),
    );
}

#[test]
fn a_policy_is_followed_through_its_generations_and_back() {
    let terminal = Terminal::open(3, &[]);
    let mut lazy = policy("pp", &["member1"]);
    lazy["spec"]["activationPreference"] = json!("Lazy");
    terminal.apply(&[lazy, deployment("a", 1), deployment("b", 1)]);
    for name in ["a", "b"] {
        terminal.until(&format!("why deploy/{name}"), |said| said.stdout.contains("applied, healthy"));
    }
    let nothing = terminal.run("rollout undo pp --yes");
    assert_eq!(
        nothing.stderr,
        format!(
            "error: {POLICY} has no earlier generation with another spec\nhint: `longshore rollout history` shows what is recorded\n"
        )
    );
    send_to(&terminal, "member2", "a move");
    terminal.ok("reconcile deploy/a --yes");
    terminal.until("why deploy/a", |said| said.stdout.contains("member2   chosen, 1 replica; applied"));
    send_to(&terminal, "member3", "another move");
    terminal.ok("suspend --policy pp -C member3");
    let expected = format!(
        "{POLICY} is at generation 4: 0 of 2 templates\nfollow it.\n\n\
         TEMPLATE               FOLLOWS        STATE\n\
         Deployment default/a   generation 2   waits for a change of the template\n\
         Deployment default/b   generation 1   waits for a change of the template\n"
    );
    terminal.until("rollout status pp", |said| said.stdout == expected);

    let history = terminal.ok("rollout history pp/pp");
    let rows: Vec<Vec<&str>> = history.lines().skip(2).map(|line| line.split("   ").collect()).collect();
    let first = |row: &[&str]| row[0].trim().to_owned();
    assert_eq!(rows.iter().map(|row| first(row)).collect::<Vec<_>>(), ["1", "2", "3", "4"], "{history}");
    assert!(history.lines().nth(3).is_some_and(|row| row.ends_with("1           a move")), "{history}");
    let said = terminal.ok("rollout history pp --generation 2");
    assert!(said.contains("- member2\n") && !said.contains("member3"), "{said}");
    let list: Value = serde_json::from_str(&terminal.ok("rollout history pp -o json")).expect("JSON");
    assert_eq!(list[0]["templates"], 1);

    assert!(terminal.ok("rollout undo pp --dry-run").contains("- member2\n"));
    let undone = terminal.run("rollout undo pp --yes");
    assert_eq!(
        (undone.code, undone.stdout),
        (Some(0), format!("{POLICY} rolled back to generation 2, as generation 5\n"))
    );
    assert!(undone.stderr.contains("longshore reconcile --policy pp"), "{}", undone.stderr);
    let now = terminal.ok("rollout history pp --generation 5");
    assert!(now.contains("- member2\n"), "{now}");
    assert!(now.contains("suspension:"), "the brake stays: {now}");
    assert!(
        terminal
            .ok("rollout undo pp --to-generation 1 --yes")
            .starts_with(&format!("{POLICY} rolled back to generation 1"))
    );
    let already = terminal.ok("rollout undo pp --to-generation 1 --yes");
    assert_eq!(already, format!("{POLICY} already has the spec of generation 1\n"));
    let unknown = terminal.run("rollout undo pp --to-generation 9");
    assert_eq!(
        unknown.stderr,
        format!("error: find generation 9 of {POLICY}\nhint: recorded are 1, 2, 3, 4, 5, 6\n")
    );
}

#[test]
fn watching_ends_when_everything_follows() {
    let terminal = Terminal::open(1, &[]);
    terminal.apply(&[policy("pp", &["member1"]), deployment("a", 1)]);
    terminal.until("status", |said| said.stdout.contains("default/pp   <none>       0          1"));
    let said = terminal.ok("rollout status pp --watch");
    assert!(said.ends_with("Deployment default/a   generation 1   up to date\n"), "{said}");
}
