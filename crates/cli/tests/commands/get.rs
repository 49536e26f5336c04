//! `longshore get` across members.

use serde_json::{Value, json};

use crate::terminal::Terminal;

fn policy(clusters: &[&str]) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": { "name": "all", "namespace": "default" },
        "spec": {
            "resourceSelectors": [
                { "apiVersion": "v1", "kind": "ConfigMap", "name": "settings" },
                { "apiVersion": "v1", "kind": "Secret", "name": "key" },
            ],
            "placement": { "clusterAffinity": { "clusterNames": clusters } },
        },
    })
}

#[test]
fn what_members_have_is_shown_in_one_table() {
    let terminal = Terminal::open(2, &[]);
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "1" },
        "metadata": { "name": "settings", "namespace": "default", "labels": { "app": "web" } },
    });
    let key = json!({
        "apiVersion": "v1", "kind": "Secret", "data": { "token": "dmVyeSBzZWNyZXQ=" },
        "metadata": { "name": "key", "namespace": "default" },
    });
    terminal.apply(&[policy(&["member1", "member2"]), settings, key]);
    let said = terminal.until("get cm settings", |said| said.stdout.lines().count() == 3);
    let words = |line: &str| line.split_whitespace().take(3).map(str::to_owned).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = said.stdout.lines().map(words).collect();
    assert_eq!(
        rows,
        [["NAME", "CLUSTER", "DATA"], ["settings", "member1", "1"], ["settings", "member2", "1"]]
    );
    assert!(terminal.ok("get cm -l app=web -A").starts_with("NAMESPACE   NAME       CLUSTER   DATA"));
    assert_eq!(terminal.ok("get configmaps -l app=web -o name"), "configmap/settings\n");
    let list: Value =
        serde_json::from_str(&terminal.ok("get cm/settings --clusters member2 -o json")).expect("JSON");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        list["items"][0]["metadata"]["annotations"]["resource.karmada.io/cached-from-cluster"],
        "member2"
    );
    let secret = terminal.until("get secret key -o yaml", |said| said.stdout.contains("member2"));
    assert!(
        secret.stdout.contains("<hidden>") && !secret.stdout.contains("dmVyeSBzZWNyZXQ="),
        "{}",
        secret.stdout
    );

    let missing = terminal.run("get cm nothing");
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(1), ""));
    assert!(missing.stderr.starts_with("error: configmaps \"nothing\" not found in any cluster\nhint: "));
    let nothing = terminal.run("get deploy");
    assert_eq!(
        (nothing.code, nothing.stderr.as_str()),
        (Some(0), "No resources found in default namespace.\n")
    );
    let unknown = terminal.run("get cm --clusters member9");
    assert_eq!(unknown.stderr, "error: find cluster \"member9\"\nhint: there are member1, member2\n");
    let no_kind = terminal.run("get nonsense");
    assert!(
        no_kind.stderr.starts_with("error: the server doesn't have a resource type \"nonsense\"\nhint: ")
    );
}

#[test]
fn a_cluster_that_does_not_answer_is_unknown() {
    let terminal = Terminal::open(1, &[]);
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "1" },
        "metadata": { "name": "settings", "namespace": "default" },
    });
    // Nothing listens on this port.
    let far = json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": { "name": "far" },
        "spec": { "syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1" },
    });
    terminal.apply(&[policy(&["member1"]), settings, far]);
    terminal.until("get cm settings -C member1", |said| said.stdout.contains("member1"));
    let said = terminal.run("get cm settings");
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stdout.contains("settings   member1"), "the others are shown: {}", said.stdout);
    assert!(said.stderr.starts_with("unknown: far "), "{}", said.stderr);
    assert!(
        said.stderr.contains("\nerror: get: these clusters did not answer: far\nhint: "),
        "{}",
        said.stderr
    );
    terminal.until("status", |said| said.stdout.contains("far       False since "));
    let list: Value = serde_json::from_str(&terminal.run("get cm settings -o json").stdout).expect("JSON");
    assert_eq!(
        (&list["unknown"][0]["cluster"], list["items"].as_array().map(Vec::len)),
        (&json!("far"), Some(1))
    );
    assert!(list["unknown"][0]["since"].is_string(), "{list}");
}
