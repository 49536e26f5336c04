//! `longshore plan` and `longshore apply`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use expect_test::expect;
use serde_json::{Value, json};

use crate::terminal::{BINARY, Said, Terminal, deployment, policy};

fn file(terminal: &Terminal, name: &str, objects: &[Value]) {
    let text: Vec<String> = objects.iter().map(ToString::to_string).collect();
    std::fs::write(terminal.home.path().join(name), text.join("\n---\n")).expect("it can be written");
}

/// Everything rests, as far as decisions go.
fn rest(terminal: &Terminal) {
    terminal.until("plan --restart", |said| said.code == Some(0));
}

fn planned(terminal: &Terminal, line: &str) -> String {
    let said = terminal.run(line);
    assert_eq!((said.code, said.stderr.as_str()), (Some(2), ""), "longshore {line}\n{}", said.stdout);
    said.stdout
}

fn refused(terminal: &Terminal, line: &str) -> String {
    let Said { code, stdout, stderr, .. } = terminal.run(line);
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "longshore {line}\n{stderr}");
    stderr
}

#[test]
fn a_change_is_seen_before_it_is_made_and_made_as_it_was_seen() {
    let terminal = Terminal::open(2, &[]);
    terminal.apply(&[policy("pp", &["member1"]), deployment("web", 2)]);
    terminal.until("get deploy web", |said| said.stdout.contains("member1"));
    rest(&terminal);

    file(&terminal, "move.yaml", &[policy("pp", &["member2"])]);
    let said = planned(&terminal, "plan -f move.yaml");
    expect![[r#"
        Plan: 1 template, 1 moved, 1 to create, 1 to delete.

        ~ Deployment default/web
            + member2: create with 2 replicas
            - member1: then delete with 2 replicas
              because PropagationPolicy default/pp claims it and still matches; the
              policy acts at once
    "#]]
    .assert_eq(&said);
    let document: Value =
        serde_json::from_str(&terminal.run("plan -f move.yaml -o json").stdout).expect("JSON");
    assert_eq!((&document["totals"]["moved"], &document["totals"]["created"]), (&json!(1), &json!(1)));
    assert!(terminal.run("plan -f move.yaml -o yaml").stdout.contains("moved: 1"));
    assert!(terminal.ok("get deploy web").contains("member1"), "a plan changes nothing");

    let saved = terminal.run("plan -f move.yaml --save move.plan");
    assert_eq!(saved.stderr, "saved; to apply exactly this plan: longshore apply move.plan\n");
    assert_eq!(
        terminal.ok("apply move.plan"),
        "propagationpolicy.policy.karmada.io/pp configured\n\
         Plan: 1 template, 1 moved, 1 to create, 1 to delete.\n"
    );
    terminal
        .until("get deploy web", |said| said.stdout.contains("member2") && !said.stdout.contains("member1"));
    rest(&terminal);
    let nothing = terminal.run("plan -f move.yaml");
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), "Plan: nothing changes.\n"));
    expect![[r#"
        error: apply the plan: objects have changed since it was made:
          propagationpolicy.policy.karmada.io/pp: it has changed since the plan was made
        hint: nothing was changed; make and read a new plan with `longshore plan --save FILE`, then apply that
    "#]]
    .assert_eq(&refused(&terminal, "apply move.plan"));

    expect![[r#"
        Plan: 1 template, 1 released, 1 to delete.

        - Deployment default/web
            = released by PropagationPolicy default/pp
            - member2: delete with 2 replicas
              because the template is deleted
    "#]]
    .assert_eq(&planned(&terminal, "plan --delete deploy/web"));
    expect![[r#"
        error: propagationpolicy.policy.karmada.io/none does not exist
        hint: `kubectl get` lists the objects that exist
    "#]]
    .assert_eq(&refused(&terminal, "plan --delete pp/none"));
}

#[test]
fn a_plan_is_refused_when_the_world_has_moved() {
    let terminal = Terminal::open(2, &[]);
    terminal.apply(&[deployment("web", 2)]);
    file(&terminal, "new.yaml", &[policy("pp", &["member1"])]);
    rest(&terminal);
    assert_eq!(terminal.run("plan -f new.yaml --save new.plan").code, Some(2));
    terminal.apply(&[deployment("late", 1)]);
    expect![[r#"
        error: apply the plan: objects have changed since it was made:
          apps/v1/Deployment default/late: nothing when the plan was made, claimed, create member1 (1) now
        hint: nothing was changed; make and read a new plan with `longshore plan --save FILE`, then apply that
    "#]]
    .assert_eq(&refused(&terminal, "apply new.plan"));
    assert!(terminal.run("plan --delete pp/pp").stderr.contains("does not exist"), "nothing was applied");

    let path = terminal.home.path().join("new.plan");
    let text = std::fs::read_to_string(&path).expect("it was saved").replace("member1", "member2");
    std::fs::write(&path, text).expect("it can be written");
    assert!(refused(&terminal, "apply new.plan").contains("is not a plan file, or was edited"));
}

#[test]
fn values_of_secrets_are_nowhere() {
    let terminal = Terminal::open(1, &[]);
    let secret = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "key", "namespace": "default" },
            "stringData": { "password": value },
        })
    };
    let mut pp = policy("pp", &["member1"]);
    pp["spec"]["resourceSelectors"] = json!([{ "apiVersion": "v1", "kind": "Secret" }]);
    terminal.apply(&[pp, secret("hunter2")]);
    terminal.until("get secret key", |said| said.stdout.contains("member1"));
    rest(&terminal);
    file(&terminal, "secret.yaml", &[secret("correct-horse")]);
    for line in ["plan -f secret.yaml", "plan -f secret.yaml -o json --detailed", "plan --delete secret/key"]
    {
        let said = planned(&terminal, line);
        assert!(said.contains("key") && !said.contains("horse") && !said.contains("hunter"), "{said}");
    }
    let said = refused(&terminal, "plan -f secret.yaml --save secret.plan");
    assert!(said.starts_with(
        "error: secret/key cannot be saved\nhint: plan files must not contain values of Secrets"
    ));
    assert!(!terminal.home.path().join("secret.plan").exists());
}

#[test]
fn what_cannot_be_planned_is_an_error_that_says_why() {
    let terminal = Terminal::open(1, &[]);
    let mut wrong = policy("pp", &["member1"]);
    wrong["spec"]["suspension"] =
        json!({ "dispatching": true, "dispatchingOnClusters": { "clusterNames": ["member1"] } });
    file(&terminal, "wrong.yaml", &[wrong]);
    let said = refused(&terminal, "plan -f wrong.yaml");
    assert!(said.starts_with("error: try propagationpolicy.policy.karmada.io/pp: post"), "{said}");
    assert!(said.contains("suspension"), "{said}");
    file(&terminal, "empty.yaml", &[]);
    assert!(
        refused(&terminal, "plan -f empty.yaml").starts_with("error: the files contain no objects\nhint: ")
    );
    assert!(refused(&terminal, "plan -f missing.yaml").starts_with("error: read missing.yaml: "));
    let usage = terminal.run("plan");
    assert_eq!(usage.code, Some(2), "clap's own, as for every command: {}", usage.stderr);
}

#[test]
fn what_belongs_together_is_planned_together() {
    let terminal = Terminal::open(2, &[]);
    let mut web = deployment("web", 3);
    web["metadata"]["namespace"] = "shop".into();
    let mut pp = policy("pp", &["member1", "member2"]);
    pp["metadata"]["namespace"] = "shop".into();
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
    let text: Vec<String> = [namespace, pp, web].iter().map(ToString::to_string).collect();
    let mut plan = Command::new(BINARY)
        .args(["plan", "-f", "-"])
        .current_dir(terminal.home.path())
        .env_clear()
        .env("HOME", terminal.home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    plan.stdin.take().expect("it listens").write_all(text.join("\n---\n").as_bytes()).expect("it reads");
    let output = plan.wait_with_output().expect("it ends");
    expect![[r#"
        Plan: 2 templates, 1 claimed, 4 to create.

        CLUSTER   CREATE
        member1   2
        member2   2

        NAMESPACE   CREATE
        <none>      2
        shop        2

        + Deployment shop/web
            = claimed by PropagationPolicy shop/pp
            + member1, member2: create with 3 replicas
              because PropagationPolicy shop/pp is the only policy that matches it; the
              policy acts at once

        + Namespace shop
            + member1, member2: create
              because every namespace goes to every cluster
    "#]]
    .assert_eq(&String::from_utf8_lossy(&output.stdout));
    expect![[r#"
        note: the server cannot dry-run these changes, so this command fills in the defaults:
          propagationpolicy.policy.karmada.io/pp: post /apis/policy.karmada.io/v1alpha1/namespaces/shop/propagationpolicies: not found
          deployment.apps/web: post /apis/apps/v1/namespaces/shop/deployments: not found
    "#]].assert_eq(&String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_plan_that_was_seen_may_go_beyond_its_budget() {
    let terminal = Terminal::open(2, &[]);
    let sent_to = |cluster: &str| {
        let mut policy = policy("pp", &[cluster]);
        policy["metadata"]["annotations"] =
            json!({ "longshore.io/max-moved": "0", "longshore.io/max-deleted": "1" });
        policy
    };
    terminal.apply(&[sent_to("member1"), deployment("web", 2), deployment("api", 1)]);
    terminal.until("get deploy", |said| said.stdout.lines().count() == 3);
    rest(&terminal);
    file(&terminal, "move.yaml", &[sent_to("member2")]);
    let said = planned(&terminal, "plan -f move.yaml");
    let note =
        said.split("\nNote: ").nth(1).expect("a note").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        note.starts_with(
            "The change exceeds its budget: it would move 2 templates, and longshore.io/max-moved allows 0. \
             The server accepts it with the annotation longshore.io/approved-plan="
        ),
        "{note}"
    );
    assert_eq!(terminal.run("plan -f move.yaml --save move.plan").code, Some(2));
    terminal.ok("apply move.plan --approve");
    terminal.until("get deploy", |said| said.stdout.matches("member2").count() == 2);
    rest(&terminal);

    // It is the same with a deletion, and every plan is approved by itself.
    assert_eq!(terminal.run("plan --delete pp/pp --save gone.plan").code, Some(2));
    terminal.apply(&[deployment("late", 1)]);
    terminal.until("get deploy", |said| said.stdout.matches("member2").count() == 3);
    rest(&terminal);
    assert!(
        refused(&terminal, "apply gone.plan --approve").contains("objects have changed since it was made")
    );
    assert_eq!(terminal.run("plan --delete pp/pp --save gone.plan").code, Some(2));
    assert!(
        terminal.ok("apply gone.plan --approve").contains("propagationpolicy.policy.karmada.io/pp deleted\n")
    );
}

#[test]
fn what_a_policy_does_to_others_is_noted() {
    let terminal = Terminal::open(1, &[]);
    terminal.apply(&[policy("first", &["member1"]), deployment("web", 1)]);
    terminal.until("get deploy", |said| said.stdout.contains("member1"));
    rest(&terminal);
    file(&terminal, "second.yaml", &[policy("second", &["member1"])]);
    let said = terminal.run("plan -f second.yaml");
    assert_eq!(said.code, Some(0));
    expect![[r#"
        Plan: nothing changes.

        Note: Templates that it selects belong to other policies: PropagationPolicy
              default/first (1).
    "#]]
    .assert_eq(&said.stdout);
    let document: Value =
        serde_json::from_str(&terminal.run("plan -f second.yaml -o json").stdout).expect("JSON");
    assert_eq!(document["notes"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_kind_is_planned_together_with_its_objects() {
    let terminal = Terminal::open(1, &[]);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "shops.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "kind": "Shop", "plural": "shops" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    });
    let shop = json!({
        "apiVersion": "example.com/v1", "kind": "Shop", "metadata": { "name": "corner" }, "spec": { "open": true },
    });
    let mut shops = policy("shops", &["member1"]);
    shops["spec"]["resourceSelectors"] = json!([{ "apiVersion": "example.com/v1", "kind": "Shop" }]);
    let mut kinds = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
        "metadata": { "name": "kinds" }, "spec": shops["spec"],
    });
    kinds["spec"]["resourceSelectors"] = json!([{ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": "shops.example.com" }]);
    file(&terminal, "shop.yaml", &[kinds, shops, definition, shop]);
    let said = terminal.run("plan -f shop.yaml");
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    assert!(said.stdout.contains("CustomResourceDefinition shops.example.com"), "{}", said.stdout);
    assert!(
        said.stdout.contains("Shop default/corner\n    = claimed by PropagationPolicy default/shops"),
        "{}",
        said.stdout
    );
    assert!(said.stderr.starts_with("note: the server cannot dry-run these changes"), "{}", said.stderr);
    assert!(said.stderr.contains("shop.example.com/corner: "), "{}", said.stderr);
    assert!(
        terminal.run("get shops").stderr.contains("doesn't have a resource type"),
        "a plan defines no kind"
    );
    assert_eq!(terminal.run("plan -f shop.yaml --save shop.plan").code, Some(2));
    assert!(terminal.ok("apply shop.plan").contains("shop.example.com/corner created\n"));
    terminal.until("get shops", |said| said.stdout.contains("member1"));
}

#[test]
fn a_policy_and_its_template_in_one_file_belong_together() {
    let terminal = Terminal::open(2, &[]);
    let mut base = policy("base", &["member1"]);
    base["kind"] = "ClusterPropagationPolicy".into();
    base["metadata"] = json!({ "name": "base" });
    terminal.apply(&[base]);
    file(&terminal, "both.yaml", &[deployment("web", 1), policy("own", &["member2"])]);
    let said = planned(&terminal, "plan -f both.yaml");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(
            "Note: With `kubectl apply`, ClusterPropagationPolicy base would claim Deployment default/web, \
             because PropagationPolicy default/own comes later in the files."
        ),
        "{said}"
    );
    let shown = terminal.ok("apply -f both.yaml --dry-run");
    assert!(shown.contains("= claimed by PropagationPolicy default/own\n"), "{shown}");
    let unasked = terminal.run("apply -f both.yaml");
    assert_eq!(unasked.code, Some(1), "{}", unasked.stderr);
    let done = terminal.ok("apply -f both.yaml --yes");
    assert!(
        done.ends_with("propagationpolicy.policy.karmada.io/own created\ndeployment.apps/web created\n"),
        "{done}"
    );
    terminal
        .until("get deploy web", |said| said.stdout.contains("member2") && !said.stdout.contains("member1"));
}

#[test]
fn what_an_update_changes_is_shown_field_by_field() {
    let terminal = Terminal::open(2, &[]);
    terminal.apply(&[policy("pp", &["member1"]), deployment("web", 2)]);
    terminal.until("get deploy web", |said| said.stdout.contains("member1"));
    rest(&terminal);
    let mut next = deployment("web", 2);
    next["spec"]["template"]["spec"]["containers"][0]["image"] = "web:2".into();
    file(&terminal, "next.yaml", &[next]);
    let said = planned(&terminal, "plan -f next.yaml");
    let field =
        "    ~ member1: update\n        spec.template.spec.containers[web].image: \"web\" → \"web:2\"\n";
    assert!(said.contains(field), "{said}");
    let document: Value =
        serde_json::from_str(&terminal.run("plan -f next.yaml -o json").stdout).expect("JSON");
    assert_eq!(document["breakdown"]["clusters"]["member1"]["updated"], 1);
    assert_eq!(document["templates"]["apps/v1/Deployment default/web"]["fields"][0]["to"], "\"web:2\"");
    let wrong = refused(&terminal, "plan -k nowhere");
    assert!(wrong.starts_with("error: build the kustomization nowhere: "), "{wrong}");
}
