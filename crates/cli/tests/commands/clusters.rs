//! `longshore cordon`, `uncordon`, `taint` and `status` against a running control plane.

use serde_json::json;

use crate::terminal::{Terminal, deployment, policy};

#[test]
fn clusters_are_cordoned_and_tainted() {
    let terminal = Terminal::open(2, &[]);
    assert_eq!(terminal.ok("cordon member1"), "cluster/member1 cordoned\n");
    assert_eq!(terminal.ok("cordon member1"), "cluster/member1 already cordoned\n");
    let status = terminal.ok("status");
    assert!(status.contains("cluster.karmada.io/unschedulable:NoSchedule"), "{status}");
    terminal.apply(&[policy("pp", &["member1"]), deployment("nginx", 1)]);
    let stuck = terminal.until("status", |said| said.stdout.contains("Stuck:"));
    assert!(
        stuck.stdout.contains("Deployment default/nginx: 0/2 clusters are available:"),
        "{}",
        stuck.stdout
    );
    let why = terminal.ok("why deploy/nginx -C member1");
    assert!(why.contains("remove the taint cluster.karmada.io/unschedulable:NoSchedule"), "{why}");
    assert_eq!(terminal.ok("uncordon member1"), "cluster/member1 uncordoned\n");
    assert_eq!(terminal.ok("uncordon member1"), "cluster/member1 already uncordoned\n");
    terminal.until("status", |said| said.stdout.contains("Nothing is stuck."));

    assert_eq!(terminal.ok("taint member2 gpu=only:NoSchedule"), "cluster/member2 tainted\n");
    let again = terminal.run("taint member2 gpu=some:NoSchedule");
    assert_eq!(
        again.stderr,
        "error: change the taints of cluster member2: it already has a taint gpu:NoSchedule; to replace it, add --overwrite\n"
    );
    assert_eq!(terminal.ok("taint member2 gpu=some:NoSchedule --overwrite"), "cluster/member2 tainted\n");
    assert!(terminal.ok("status").contains("gpu=some:NoSchedule"));
    assert_eq!(terminal.ok("taint member2 gpu- other:NoExecute"), "cluster/member2 modified\n");
    assert_eq!(terminal.ok("taint member2 other:NoExecute-"), "cluster/member2 untainted\n");
    let nonsense = terminal.run("taint member2 gpu");
    assert!(nonsense.stderr.starts_with("error: \"gpu\" is not a taint\nhint: "), "{}", nonsense.stderr);
    let nobody = terminal.run("cordon member9");
    assert_eq!(nobody.stderr, "error: find cluster \"member9\"\nhint: there are member1, member2\n");
}

#[test]
fn the_whole_system_is_seen_at_a_glance() {
    let terminal = Terminal::open(1, &[]);
    let mut lazy = policy("lazy", &["member1"]);
    lazy["spec"]["activationPreference"] = json!("Lazy");
    lazy["spec"]["priority"] = json!(3);
    terminal.apply(&[deployment("nginx", 1), lazy]);
    let said =
        terminal.until("status", |said| said.stdout.contains("default/lazy   Lazy         3          1"));
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines[0], "Control plane: context longshore");
    assert!(lines[2].starts_with("CLUSTER   READY   VERSION"), "{}", said.stdout);
    assert_eq!(lines[5], "KIND   POLICY         ACTIVATION   PRIORITY   CLAIMED   PENDING   SUSPENDED");
    assert_eq!(lines[6], "pp     default/lazy   Lazy         3          1         1         0");
    assert_eq!(lines[8], "Nothing is stuck.");
    let report: serde_json::Value = serde_json::from_str(&terminal.ok("status -o json")).expect("JSON");
    assert_eq!((&report["context"], &report["stuck"]), (&json!("longshore"), &json!([])));
    assert_eq!(report["clusters"][0]["ready"], "True");
    let lazy = json!({
        "kind": "pp", "namespace": "default", "name": "lazy", "lazy": true, "priority": 3,
        "claimed": 1, "pending": 1, "suspended": 0,
    });
    assert_eq!(report["policies"], json!([lazy]));
    assert!(terminal.ok("status -o yaml").contains("\n  lazy: true\n"));
}
