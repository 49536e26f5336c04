//! `longshore promote` against a running control plane and a member that had something before.

use checks::client::ApiClient;
use http::Method;
use serde_json::{Value, json};

use crate::terminal::{Terminal, deployment, policy};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn request(api_client: &ApiClient, method: Method, path: &str, body: &Value) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, answer) = runtime.block_on(api_client.request(method, path, body));
    assert!(status.is_success(), "{path}: {answer}");
    answer
}

#[test]
fn what_runs_in_a_member_is_taken_over_as_it_is() {
    let terminal = Terminal::open(2, &[]);
    let member = ApiClient::of_context(&terminal.server.kubeconfig, "member1");
    let before = request(&member, Method::POST, DEPLOYMENTS, &deployment("legacy", 2));
    let dry = terminal.ok("promote deploy/legacy -C member1 --dry-run");
    assert!(dry.contains("conflictResolution: Overwrite") && !dry.contains("resourceVersion"), "{dry}");
    assert!(terminal.run("why deploy/legacy").code == Some(1), "a dry run writes nothing");

    let said = terminal.ok("promote deploy/legacy --cluster member1");
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines[0].starts_with("propagationpolicy.policy.karmada.io/legacy-") && lines[0].ends_with(" created")
    );
    assert_eq!(lines[1], "deployment.apps/legacy promoted from member1");
    terminal.until("why deploy/legacy", |said| {
        said.stdout.contains("member1   chosen, 2 replicas; applied, healthy")
    });
    let after = request(&member, Method::GET, &format!("{DEPLOYMENTS}/legacy"), &Value::Null);
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"], "it is the same object");
    assert_eq!(after["metadata"]["labels"]["karmada.io/managed"], "true");

    let again = terminal.run("promote deploy/legacy -C member1");
    assert!(again.stderr.starts_with(
        "error: deployment.apps/legacy in cluster member1 is already managed by a control plane\n"
    ));
    let missing = terminal.run("promote deploy/nothing -C member1");
    assert!(
        missing.stderr.starts_with("error: deployments \"nothing\" not found in cluster member1\nhint: ")
    );
}

#[test]
fn what_would_go_elsewhere_is_not_taken_over() {
    let terminal = Terminal::open(2, &[]);
    let mut strong = policy("strong", &["member2"]);
    strong["spec"]["priority"] = json!(5);
    terminal.apply(&[strong]);
    let member = ApiClient::of_context(&terminal.server.kubeconfig, "member1");
    request(&member, Method::POST, DEPLOYMENTS, &deployment("legacy", 1));
    let refused = terminal.run("promote deploy/legacy -C member1");
    assert_eq!(
        refused.stderr,
        "error: PropagationPolicy default/strong would claim deployment.apps/legacy instead of a policy of its own\n\
         hint: exclude it in that policy, or create the template with kubectl and let that policy claim it\n"
    );
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "data": { "token": "dmVyeSBzZWNyZXQ=" },
        "metadata": { "name": "key", "namespace": "default" },
    });
    request(&member, Method::POST, "/api/v1/namespaces/default/secrets", &secret);
    let dry = terminal.ok("promote secret/key -C member1 --dry-run");
    assert!(dry.contains("token:") && !dry.contains("dmVyeSBzZWNyZXQ="), "{dry}");
}
