//! `longshore why` against a running control plane.

use serde_json::{Value, json};

use crate::terminal::{Terminal, deployment, policy};

#[test]
fn the_chain_from_template_to_member_is_told() {
    let terminal = Terminal::open(2, &[]);
    terminal.apply(&[policy("pp", &["member1"]), deployment("nginx", 2)]);
    let said = terminal.until("why deploy/nginx", |said| said.stdout.contains("applied, healthy"));
    let rows = "Clusters    2 replicas in full to each cluster: member1 2.\n  \
                member1   chosen, 2 replicas; applied, healthy\n  \
                member2   not chosen: the placement does not select it\n";
    assert!(said.stdout.starts_with("Deployment default/nginx\n\n"), "{}", said.stdout);
    assert!(said.stdout.ends_with(rows), "{}", said.stdout);
    let onto = terminal.ok("why deployment nginx --cluster member2");
    assert!(onto.contains("To get it onto member2 you would have to\n  1. let the placement of"), "{onto}");
    let story: Value =
        serde_json::from_str(&terminal.ok("why deploy nginx -o json -C member2")).expect("JSON");
    assert_eq!(story["owner"], json!({ "namespace": "default", "name": "pp" }));
    assert_eq!(story["inEffect"]["generation"], 1);
    assert_eq!(story["members"]["member1"]["applied"], true);
    assert_eq!(story["onto"]["steps"][0]["step"], "addToPlacement");
    assert!(terminal.ok("why deploy nginx -o yaml").contains("\nowner:\n"));
}

#[test]
fn what_cannot_be_explained_is_an_error_with_a_hint() {
    let terminal = Terminal::open(1, &[]);
    terminal.apply(&[policy("pp", &["member1"])]);
    let missing = terminal.run("why deploy/nothing");
    assert_eq!(missing.code, Some(1));
    assert_eq!(
        missing.stderr,
        "error: deployments \"nothing\" not found among the templates\n\
         hint: the search was in namespace default; choose another with -n\n"
    );
    let policy = terminal.run("why pp/pp");
    assert!(
        policy.stderr.starts_with("error: propagationpolicy.policy.karmada.io/pp is not a template\nhint: ")
    );
    let nothing = terminal.run("why deploy");
    assert!(
        nothing.stderr.starts_with("error: \"deploy\" does not name an object\nhint: "),
        "{}",
        nothing.stderr
    );
}

#[test]
fn values_of_secrets_are_not_told() {
    let terminal = Terminal::open(1, &[]);
    let mut policy = policy("pp", &["member1"]);
    policy["spec"]["resourceSelectors"] = json!([{ "apiVersion": "v1", "kind": "Secret", "name": "key" }]);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "data": { "token": "dmVyeSBzZWNyZXQ=" },
        "metadata": { "name": "key", "namespace": "default" },
    });
    terminal.apply(&[policy, secret]);
    terminal.until("why secret/key", |said| said.stdout.contains("; applied"));
    for form in ["", "-o json", "-o yaml"] {
        let said = terminal.ok(&format!("why secret/key {form}"));
        assert!(!said.contains("dmVyeSBzZWNyZXQ=") && !said.contains("very secret"), "{said}");
    }
}
