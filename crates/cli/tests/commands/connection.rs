//! How commands choose the control plane: flag, `KUBECONFIG`, ~/.kube/config, or the control plane of this machine.

use serde_json::json;

use crate::terminal::{Terminal, deployment, policy, run};

#[test]
fn commands_find_the_control_plane_as_kubectl_does() {
    let terminal = Terminal::open(1, &["--feature-gates=StaticPolicy=true"]);
    let home = terminal.home.path();
    // Nothing names a cluster: the control plane of this machine.
    let found = terminal.ok("status");
    assert!(
        found.starts_with("Control plane: context longshore, feature gates StaticPolicy=true\n"),
        "{found}"
    );
    let file = terminal.server.kubeconfig.to_str().expect("temporary paths are readable");
    let by_flag = run(home, &format!("status --kubeconfig {file}"), &[]);
    assert_eq!((by_flag.code, by_flag.stdout), (Some(0), found.clone()));
    // A file that is not there says nothing.
    let by_variable = run(home, "status", &[("KUBECONFIG", &format!("/nowhere:{file}"))]);
    assert_eq!((by_variable.code, by_variable.stdout), (Some(0), found));

    let written = terminal.run("cordon member1");
    let server = format!("https://{} (context longshore)", terminal.server.address);
    assert_eq!((written.code, written.server), (Some(0), server), "a command that writes says where");
    assert_eq!(terminal.run("status").server, "", "one that reads does not");

    let unknown = run(home, "status --context nobody", &[]);
    assert_eq!(unknown.code, Some(1));
    assert_eq!(
        unknown.stderr,
        "error: find context \"nobody\" in the kubeconfig\nhint: there are longshore, member1\n"
    );
    let a_member = run(home, "status --context member1", &[]);
    assert_eq!(a_member.code, Some(1));
    assert!(a_member.stderr.starts_with("error: read the control plane: list every "), "{}", a_member.stderr);
    assert!(
        a_member.stderr.contains("\nhint: check that the context is that of a control plane"),
        "{}",
        a_member.stderr
    );
}

#[test]
fn no_other_control_plane_takes_the_place_of_one_that_is_missing() {
    let terminal = Terminal::open(1, &[]);
    let home = terminal.home.path();
    std::fs::write(home.join("empty"), "apiVersion: v1\nkind: Config\n").expect("the directory takes files");
    let hint =
        "hint: correct KUBECONFIG, or `unset KUBECONFIG` to use ~/.kube/config or else `longshore up`\n";
    for (value, problem) in [
        ("/nowhere", "/nowhere does not exist"),
        ("/nowhere:empty", "/nowhere does not exist, empty has no context"),
    ] {
        for line in ["status", "cordon member1"] {
            let said = run(home, line, &[("KUBECONFIG", value)]);
            assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{line}");
            let error =
                format!("error: find a control plane in the files that KUBECONFIG names: {problem}\n{hint}");
            assert_eq!((said.stderr, said.server), (error, String::new()), "{line}");
        }
    }
    let by_flag = run(home, "status --kubeconfig /nowhere", &[]);
    assert_eq!(by_flag.code, Some(1));
    assert!(
        by_flag.stderr.starts_with("error: read the kubeconfig /nowhere: there is no such file\nhint: "),
        "{}",
        by_flag.stderr
    );
    assert!(!terminal.ok("status").contains("unschedulable"), "nothing was written");
}

#[test]
fn every_command_knows_what_is_left_out() {
    let terminal = Terminal::open(1, &["--skipped-propagating-namespaces=default"]);
    terminal.apply(&[policy("web", &["member1"]), deployment("web", 1)]);
    let why = terminal.ok("why deploy/web");
    assert!(why.contains("skip its namespace or kind"), "{why}");
    let note = "/api/v1/namespaces/kube-public/configmaps/longshore-feature-gates";
    terminal.patch(note, &json!({ "data": { "skipped-propagating-namespaces": "(" } }));
    let said = terminal.run("why deploy/web");
    assert_eq!(
        (said.code, said.stderr.as_str()),
        (
            Some(1),
            "error: ask for the feature gates: read ConfigMap kube-public/longshore-feature-gates: \"(\" is \
             not a regular expression: unclosed group\n"
        )
    );
}

#[test]
fn without_a_server_the_error_has_a_hint() {
    let home = tempfile::tempdir().expect("there is room for a temporary directory");
    let nowhere = run(home.path(), "status", &[]);
    assert_eq!(nowhere.code, Some(1));
    assert_eq!(
        nowhere.stderr,
        "error: find a control plane: no kubeconfig names one\n\
         hint: start `longshore up`, or pass a kubeconfig with --kubeconfig or KUBECONFIG\n"
    );
    let config = "
current-context: gone
clusters: [{ name: gone, cluster: { server: 'https://127.0.0.1:1' } }]
users: [{ name: gone, user: { token: t } }]
contexts: [{ name: gone, context: { cluster: gone, user: gone } }]
";
    std::fs::write(home.path().join("config"), config).expect("the directory takes files");
    let gone = run(home.path(), "status --kubeconfig config", &[]);
    assert_eq!(gone.code, Some(1));
    assert!(
        gone.stderr.starts_with("error: reach the control plane of context \"gone\": "),
        "{}",
        gone.stderr
    );
    assert!(gone.stderr.contains("\nhint: check that it runs: "), "{}", gone.stderr);
}
