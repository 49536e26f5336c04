//! Tenants: a kubeconfig of their own, and nothing visible of other tenants.

use std::path::PathBuf;

use checks::client::ApiClient;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::terminal::{Said, Terminal, deployment, policy, run};

/// A kubeconfig that a command printed, in a file.
pub fn kubeconfig(terminal: &Terminal, name: &str, line: &str) -> PathBuf {
    let file = terminal.home.path().join(name);
    std::fs::write(&file, terminal.ok(line)).expect("the home takes files");
    file
}

/// The identity of a kubeconfig, as the server reports it.
fn review(file: &std::path::Path) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (status, answer) =
        runtime.block_on(ApiClient::open(file).request(Method::POST, path, review.to_string()));
    assert_eq!(status, StatusCode::CREATED, "{answer}");
    answer["status"]["userInfo"].clone()
}

#[test]
fn a_kubeconfig_for_another_user_is_one_command() {
    let terminal = Terminal::open(0, &[]);
    let line = "kubeconfig --user alice --group team-a --expires 1h -n team-a";
    let said = terminal.run(line);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stderr.starts_with("alice can use it until 20"), "{}", said.stderr);
    assert!(
        said.stderr.contains(
            "\n  kubectl create rolebinding NAME --clusterrole=longshore:tenant --user=alice -n team-a\n"
        ),
        "{}",
        said.stderr
    );
    assert!(said.stdout.contains("    namespace: team-a\n"), "{}", said.stdout);
    let file = kubeconfig(&terminal, "alice", line);
    let who = review(&file);
    assert_eq!(
        (&who["username"], &who["groups"]),
        (&json!("alice"), &json!(["team-a", "system:authenticated"]))
    );

    let file = kubeconfig(&terminal, "carol", "kubeconfig --user carol --group team-a --group on-call");
    assert_eq!(review(&file)["groups"], json!(["team-a", "on-call", "system:authenticated"]));

    for (group, refused) in [
        ("system:masters", true),
        // One name that is refused is enough, wherever it stands.
        ("team-a --group system:masters", true),
        ("system:masters --force", false),
    ] {
        let said = terminal.run(&format!("kubeconfig --user eve --group {group}"));
        assert_eq!(said.code, Some(i32::from(refused)), "{}", said.stderr);
        assert_eq!(said.stdout.is_empty(), refused, "nothing is printed that would let them in");
        assert_eq!(
            said.stderr.starts_with("error: group \"system:masters\" is refused"),
            refused,
            "{}",
            said.stderr
        );
    }
    for line in [
        "kubeconfig --user eve --expires 400d",
        "kubeconfig --user eve --expires 1",
        "kubeconfig --expires 1h",
    ] {
        let said = terminal.run(line);
        assert_ne!((said.code, said.stdout.as_str()), (Some(0), ""), "{line}");
        assert!(said.stdout.is_empty(), "{line}");
    }
}

#[test]
fn a_kubeconfig_for_a_service_account_is_one_command() {
    let terminal = Terminal::open(0, &[]);
    let home = terminal.home.path();
    let missing = terminal.run("kubeconfig --serviceaccount team-a/deployer");
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(1), ""));
    assert!(
        missing
            .stderr
            .contains("\nhint: create it with `kubectl create serviceaccount deployer -n team-a`\n"),
        "{}",
        missing.stderr
    );
    let account = |kind: &str, name: &str, namespace: &str| {
        let mut object = json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name } });
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
    };
    terminal.apply(&[account("Namespace", "team-a", ""), account("ServiceAccount", "deployer", "team-a")]);
    let file = kubeconfig(&terminal, "deployer", "kubeconfig --serviceaccount team-a/deployer --expires 20m");
    let file = file.to_str().expect("temporary paths are readable");
    let text = std::fs::read_to_string(file).expect("the file");
    assert!(text.contains("- name: \"team-a/deployer\"\n  user:\n    token: "), "{text}");
    // It has the identity it names, and no rights before a role is bound to it.
    let said = run(home, &format!("suspend deploy/web --kubeconfig {file}"), &[]);
    assert!(said.stderr.contains("system:serviceaccount:team-a:deployer"), "{}", said.stderr);
}

/// What the other tenant's things are called.
const OTHERS: &str = "b-secret";

fn object(api_version: &str, kind: &str, namespace: &str, name: &str, rest: Value) -> Value {
    let mut object = rest;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object["metadata"]["name"] = name.into();
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    }
    object
}

fn within(namespace: &str, mut object: Value) -> Value {
    object["metadata"]["namespace"] = namespace.into();
    object
}

/// A control plane with two tenants, alice in team-a and bob in team-b, each with a policy and a Deployment, and policies
/// of the cluster that concern one of them each.
struct Tenants {
    terminal: Terminal,
    alice: PathBuf,
}

impl Tenants {
    fn open() -> Self {
        let terminal = Terminal::open(2, &[]);
        for (team, user) in [("team-a", "alice"), ("team-b", "bob")] {
            let binding = json!({
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "longshore:tenant" },
                "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
            });
            terminal.apply(&[
                object("v1", "Namespace", "", team, json!({})),
                object("rbac.authorization.k8s.io/v1", "RoleBinding", team, "team", binding),
            ]);
        }
        let of_cluster = |name: &str, namespace: &str| {
            let spec = json!({
                "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap", "namespace": namespace },
                                      { "apiVersion": "apps/v1", "kind": "Deployment", "namespace": namespace }],
                "placement": { "clusterAffinity": { "clusterNames": ["member1"] } },
            });
            object(
                "policy.karmada.io/v1alpha1",
                "ClusterPropagationPolicy",
                "",
                name,
                json!({ "spec": spec }),
            )
        };
        let others = format!("{OTHERS}-web");
        terminal.apply(&[
            of_cluster("for-team-a", "team-a"),
            of_cluster(&format!("{OTHERS}-cluster"), "team-b"),
            within("team-a", policy("own", &["member1"])),
            within("team-b", policy(&format!("{OTHERS}-policy"), &["member2"])),
            within("team-a", deployment("web", 1)),
            within("team-b", deployment(&others, 1)),
            object("v1", "ConfigMap", "team-a", "settings", json!({ "data": { "a": "1" } })),
            object(
                "v1",
                "ConfigMap",
                "team-b",
                &format!("{OTHERS}-settings"),
                json!({ "data": { "a": "1" } }),
            ),
        ]);
        terminal.until("why deploy/web -n team-a", |said| said.stdout.contains("applied, healthy"));
        terminal.until(&format!("why deploy/{others} -n team-b"), |said| {
            said.stdout.contains("applied, healthy")
        });
        let alice = kubeconfig(&terminal, "alice", "kubeconfig --user alice --group team-a -n team-a");
        // What bindings report comes after what Works do.
        let own = format!("get deploy --kubeconfig {}", alice.display());
        terminal.until(&own, |said| said.stdout.contains("applied, healthy"));
        Self { terminal, alice }
    }

    /// Types a command as alice.
    fn alice(&self, line: &str) -> Said {
        let file = self.alice.to_str().expect("temporary paths are readable");
        run(self.terminal.home.path(), &format!("{line} --kubeconfig {file}"), &[])
    }

    /// The same; it has to end like this and to tell nothing of others.
    #[track_caller]
    fn tells(&self, line: &str, code: i32, parts: &[&str]) {
        let said = self.alice(line);
        assert_eq!(said.code, Some(code), "{line}: {said:?}");
        for stream in [&said.stdout, &said.stderr] {
            assert!(
                !stream.contains(OTHERS) && !stream.contains("team-b"),
                "{line} tells of others:\n{stream}"
            );
        }
        for part in parts {
            assert!(said.stdout.contains(part), "{line}: {part:?} in\n{}{}", said.stdout, said.stderr);
        }
    }
}

#[test]
fn a_tenant_sees_their_own_and_nothing_of_others() {
    let tenants = Tenants::open();
    let home = tenants.terminal.home.path();
    let moved = within("team-a", policy("own", &["member2"]));
    std::fs::write(home.join("moved.yaml"), moved.to_string()).expect("the home takes files");

    tenants.tells(
        "why deploy/web",
        0,
        &["PropagationPolicy team-a/own", "ClusterPropagationPolicy for-team-a", "member1"],
    );
    tenants.tells("why deploy/web -o json", 0, &["\"members\"", "\"Healthy\""]);
    tenants.tells("why deploy/web -C member2", 0, &["member2"]);
    tenants.tells("why cm/settings", 0, &["ClusterPropagationPolicy for-team-a"]);
    tenants.tells("plan -f moved.yaml", 2, &["1 moved", "Deployment team-a/web", "member2: create"]);
    tenants.tells("plan -f moved.yaml -o json", 2, &["\"moved\": 1"]);
    tenants.tells("plan --delete deploy/web", 2, &["member1: delete"]);
    tenants.tells("status", 0, &["member1", "team-a/own", "for-team-a"]);
    tenants.tells("status -o json", 0, &["\"policies\""]);
    tenants.tells("get deploy", 0, &["web", "member1", "1/1", "applied, healthy"]);
    tenants.tells("get deploy -o json", 0, &["member1"]);
    tenants.tells("rollout status own", 0, &["Deployment team-a/web"]);
    tenants.tells("rollout history own", 0, &["GENERATION"]);
    tenants.tells("status", 0, &["CLUSTER   READY\nmember1   True\n"]);
    tenants.tells("reconcile deploy/web", 0, &[]);
    // What a tenant may suspend they may resume.
    tenants.tells("suspend deploy/web", 0, &["deployment.apps/web suspended"]);
    tenants.tells("suspend deploy/web -C member1", 0, &[]);
    let own = format!("get deploy --kubeconfig {}", tenants.alice.display());
    tenants.terminal.until(&own, |said| said.stdout.contains("suspended; applied, healthy"));
    tenants.tells("resume deploy/web --yes", 0, &["deployment.apps/web resumed"]);
    tenants.tells("suspend --policy own -C member1", 0, &["suspended"]);
    tenants.tells("resume --policy own --yes", 0, &["resumed"]);
    tenants.tells("resume deploy/web --yes", 0, &["is not suspended"]);
    // The way back of a policy takes no more rights than the way there.
    tenants.terminal.patch(
        "/apis/policy.karmada.io/v1alpha1/namespaces/team-a/propagationpolicies/own",
        &json!({ "spec": { "placement": { "clusterAffinity": { "clusterNames": ["member2"] } } } }),
    );
    tenants.tells("rollout undo own --yes", 0, &["rolled back to generation"]);
    let refused = tenants.alice("taint member1 broken:NoExecute --yes");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("\nhint: only administrators may list Clusters"), "{refused:?}");
    // Asked for by name, others' things are refused, there or not.
    let others = format!("why deploy/{OTHERS}-web -n team-b");
    let refused = [tenants.alice(&others), tenants.alice("why deploy/nothing -n team-b")];
    for said in refused {
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.stderr.contains("\"alice\" cannot get resource"), "{said:?}");
    }
}

#[test]
fn the_answers_of_the_control_plane_keep_to_the_rights_of_the_caller() {
    let tenants = Tenants::open();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let ask = |method: Method, path: &str, body: &Value| {
        let path = format!("/apis/longshore.io/v1alpha1{path}");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        runtime.block_on(ApiClient::open(&tenants.alice).request(method, &path, body))
    };
    let plan = |objects: &[&Value]| {
        let changes: Vec<Value> = objects.iter().map(|object| json!({ "put": object })).collect();
        json!({ "apiVersion": "longshore.io/v1alpha1", "kind": "Plan", "spec": { "changes": changes } })
    };
    let own = within("team-a", deployment("web", 2));
    let others = within("team-b", deployment("web", 2));
    let of_cluster =
        object("policy.karmada.io/v1alpha1", "ClusterPropagationPolicy", "", "all", json!({ "spec": {} }));
    let binding =
        object("work.karmada.io/v1alpha2", "ResourceBinding", "team-a", "web", json!({ "spec": {} }));
    let check = |method: Method, path: &str, body: Value, expected: u16| {
        let (status, answer) = ask(method, path, &body);
        assert_eq!(status.as_u16(), expected, "{path}: {answer}");
        let text = answer.to_string();
        assert!(!text.contains(OTHERS), "{path}: {text}");
    };
    let post = || Method::POST;
    check(post(), "/namespaces/team-a/plans", plan(&[&own]), 201);
    check(post(), "/namespaces/team-b/plans", plan(&[&others]), 403);
    check(post(), "/plans", plan(&[&own]), 403);
    // In their own namespace they may not plan what they may not write, nor what lies elsewhere.
    check(post(), "/namespaces/team-a/plans", plan(&[&others]), 400);
    check(post(), "/namespaces/team-a/plans", plan(&[&of_cluster]), 400);
    check(post(), "/namespaces/team-a/plans", plan(&[&binding]), 403);
    check(post(), "/namespaces/team-a/plans", json!({ "spec": { "changes": "all" } }), 400);
    check(post(), "/namespaces/team-a/plans", plan(&vec![&own; 1_001]), 400);
    // There is no plan of what admission refuses.
    let mut breakout = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
        "metadata": { "name": "breakout", "namespace": "team-a" },
        "spec": { "overrideRules": [{ "overriders": { "plaintext": [
            { "path": "/metadata/namespace", "operator": "replace", "value": "team-b" },
        ] } }] },
    });
    check(post(), "/namespaces/team-a/plans", plan(&[&breakout]), 422);
    breakout["spec"]["overrideRules"][0]["overriders"]["plaintext"][0]["path"] = "/spec/replicas".into();
    check(post(), "/namespaces/team-a/plans", plan(&[&breakout]), 201);
    let review = |api_version: &str, kind: &str, namespace: &str, count: usize| {
        let key = json!({ "apiVersion": api_version, "kind": kind, "namespace": namespace, "name": "web" });
        json!({ "spec": { "templates": vec![key; count] } })
    };
    let own = "/namespaces/team-a/deliveryreviews";
    check(post(), own, review("apps/v1", "Deployment", "team-a", 1), 201);
    check(post(), own, review("apps/v1", "Deployment", "team-b", 1), 400);
    check(post(), own, review("apps/v1", "Deployment", "team-a", 1_001), 400);
    check(post(), own, review("rbac.authorization.k8s.io/v1", "Role", "team-a", 1), 403);
    check(post(), own, review("example.com/v1", "Nothing", "team-a", 1), 403);
    check(post(), own, json!({ "spec": { "templates": "all" } }), 400);
    check(post(), "/namespaces/team-b/deliveryreviews", review("apps/v1", "Deployment", "team-b", 1), 403);
    check(post(), "/deliveryreviews", review("apps/v1", "Deployment", "team-a", 1), 403);
    for report in ["status", "templates", "copies"] {
        check(Method::GET, &format!("/namespaces/team-a/reports/{report}"), Value::Null, 200);
        check(Method::GET, &format!("/namespaces/team-b/reports/{report}"), Value::Null, 403);
        check(Method::GET, &format!("/reports/{report}"), Value::Null, 403);
    }
    check(Method::GET, "/namespaces/team-a/reports/secrets", Value::Null, 404);
    check(Method::GET, "/namespaces/team-a/reports", Value::Null, 403);
    check(Method::GET, "/namespaces/team-a/explanations/deployments.apps:web", Value::Null, 200);
    check(Method::GET, "/namespaces/team-a/explanations/deployments.apps:none", Value::Null, 404);
    check(Method::GET, "/namespaces/team-a/explanations/web", Value::Null, 400);
    check(Method::DELETE, "/namespaces/team-a/explanations/deployments.apps:web", Value::Null, 403);
}

#[test]
fn kubectl_is_told_where_the_pods_are() {
    let tenants = Tenants::open();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let list = |command: &str, query: &str| {
        runtime.block_on(async {
            let mut connection = ApiClient::open(&tenants.alice).connect().await.expect("it answers");
            let request = http::Request::get(format!("/api/v1/namespaces/team-a/pods?{query}"))
                .header("host", "longshore")
                .header("kubectl-command", command)
                .body(http_body_util::Full::default())
                .expect("a request");
            let response = connection.send(request).await.expect("an answer");
            let code = response.status().as_u16();
            let body =
                http_body_util::BodyExt::collect(response.into_body()).await.expect("a body").to_bytes();
            (code, String::from_utf8_lossy(&body).into_owned())
        })
    };
    for (command, more) in [
        ("kubectl logs", "\""),
        ("kubectl attach", "\""),
        ("kubectl exec", " -- COMMAND\""),
        ("kubectl port-forward", " PORT\""),
    ] {
        for query in ["labelSelector=app%3Dweb", "labelSelector=app%3Dweb&watch=true"] {
            let (code, answer) = list(command, query);
            assert_eq!(code, 404, "{answer}");
            let told = format!(
                "deployment/web runs in member1; ask the cluster itself, with a kubeconfig for it, for example: {command} \
                 deployment/web -n team-a --context member1{more}"
            );
            assert!(answer.contains(&told), "{answer}");
        }
    }
    // Other commands and clients get the list as it is.
    for command in ["kubectl get", ""] {
        let (code, answer) = list(command, "labelSelector=app%3Dweb");
        assert_eq!(code, 200, "{answer}");
        assert!(answer.contains("\"items\":[]"), "{answer}");
    }
}
