//! `apply` with the client's three-way merge, and `diff`.

use serde_json::json;

use super::{WEB, kubectl};

#[test]
fn apply_three_times() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.write("web.yaml", WEB);
    kubectl.ok("apply -f web.yaml").prints("deployment.apps/web created\n");
    kubectl.ok("apply -f web.yaml").prints("deployment.apps/web unchanged\n");
    kubectl.write("web.yaml", &WEB.replace("nginx:1.27", "nginx:1.28"));
    kubectl.ok("apply -f web.yaml").prints("deployment.apps/web configured\n");
    let object = kubectl.ok("get deployment web -o json").json();
    assert_eq!(object["spec"]["template"]["spec"]["containers"][0]["image"], "nginx:1.28");
    assert_eq!(object["metadata"]["generation"], 2);
}

#[test]
fn apply_removes_what_left_the_file_and_keeps_what_others_set() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.write("web.yaml", WEB);
    kubectl.ok("apply -f web.yaml");
    kubectl.ok("label deployment web owner=jane");
    kubectl.ok("set env deployment web COLOUR=blue");
    let without =
        WEB.replace("    tier: front\n", "").replace("        ports:\n        - containerPort: 80\n", "");
    kubectl.write("web.yaml", &without);
    kubectl.ok("apply -f web.yaml").prints("deployment.apps/web configured\n");
    let object = kubectl.ok("get deployment web -o json").json();
    assert_eq!(object["metadata"]["labels"], json!({"app": "web", "owner": "jane"}));
    let container = &object["spec"]["template"]["spec"]["containers"][0];
    assert!(container.get("ports").is_none(), "{container}");
    assert_eq!(container["env"], json!([{"name": "COLOUR", "value": "blue"}]));
}

#[test]
fn apply_merges_lists_by_their_keys() {
    let Some(kubectl) = kubectl() else { return };
    let two = format!("{WEB}      - name: sidecar\n        image: busybox\n");
    kubectl.write("web.yaml", &two);
    kubectl.ok("apply -f web.yaml");
    kubectl.write("web.yaml", WEB);
    kubectl.ok("apply -f web.yaml").prints("deployment.apps/web configured\n");
    kubectl.ok("get deployment web -o 'jsonpath={.spec.template.spec.containers[*].name}'").prints("nginx");
}

#[test]
fn apply_knows_what_it_applied() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("apply -f -", WEB);
    kubectl.ok("apply view-last-applied deployment web").shows("replicas: 3\n").hides("uid");
    kubectl.ok("create configmap plain");
    kubectl
        .ok_with("apply -f -", "{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}, data: {a: b}}")
        .prints("configmap/plain configured\n")
        .complains("Warning: resource configmaps/plain is missing the kubectl.kubernetes.io/last-applied-configuration annotation");
}

#[test]
fn apply_takes_many_objects_at_once() {
    let Some(kubectl) = kubectl() else { return };
    let settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {app: web}}}";
    kubectl.write("all.yaml", &format!("{WEB}---\n{settings}\n"));
    kubectl.ok("apply -f all.yaml").prints("deployment.apps/web created\nconfigmap/settings created\n");
    kubectl.ok("apply -f all.yaml").prints("deployment.apps/web unchanged\nconfigmap/settings unchanged\n");
    kubectl.write("all.yaml", WEB);
    let namespace = kubectl.ok("get deployment web -o jsonpath={.metadata.namespace}").stdout;
    kubectl
        .ok(&format!(
            "apply -f all.yaml --prune -l app=web -n {namespace} --prune-allowlist=core/v1/ConfigMap"
        ))
        .prints("deployment.apps/web unchanged\nconfigmap/settings pruned\n");
}

#[test]
fn apply_on_the_server_for_show_only() {
    let Some(kubectl) = kubectl() else { return };
    kubectl
        .ok_with("apply --dry-run=server -f -", WEB)
        .prints("deployment.apps/web created (server dry run)\n");
    kubectl.fails("get deployment web").complains("not found");
    kubectl.ok_with("apply -f -", WEB);
    kubectl
        .ok_with("apply --dry-run=server -f -", &WEB.replace("replicas: 3", "replicas: 4"))
        .prints("deployment.apps/web configured (server dry run)\n");
    kubectl.ok("get deployment web -o jsonpath={.spec.replicas}").prints("3");
}

#[test]
fn diff_reports_by_its_exit_code() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.write("web.yaml", WEB);
    kubectl.fails("diff -f web.yaml").shows("+kind: Deployment\n");
    kubectl.ok("apply -f web.yaml");
    kubectl.ok("diff -f web.yaml").prints("");
    kubectl.write("web.yaml", &WEB.replace("replicas: 3", "replicas: 5"));
    kubectl
        .fails("diff -f web.yaml")
        .shows("-  replicas: 3\n")
        .shows("+  replicas: 5\n")
        .shows("+  generation: 2\n");
    kubectl.ok("get deployment web -o jsonpath={.spec.replicas}").prints("3");
    kubectl.run("diff -f nothing.yaml").expect_code(2).complains("does not exist");
}

#[test]
fn diff_on_the_server_side() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.write("web.yaml", WEB);
    kubectl.ok("apply --server-side -f web.yaml");
    kubectl.ok("diff --server-side -f web.yaml").prints("");
    kubectl.write("web.yaml", &WEB.replace("replicas: 3", "replicas: 5"));
    kubectl.fails("diff --server-side -f web.yaml").shows("-  replicas: 3\n").shows("+  replicas: 5\n");
}
