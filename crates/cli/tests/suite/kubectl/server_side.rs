//! `apply --server-side`: field ownership, conflicts and how they are resolved.

use serde_json::json;

use super::{WEB, kubectl};

const CONFLICT: &str = "\
error: Apply failed with 1 conflict: conflict with \"jane\": .spec.replicas
Please review the fields above--they currently have other managers. Here
are the ways you can resolve this warning:
* If you intend to manage all of these fields, please re-run the apply
  command with the `--force-conflicts` flag.
* If you do not intend to manage all of the fields, please edit your
  manifest to remove references to the fields that should keep their
  current managers.
* You may co-own fields by updating your manifest to match the existing
  value; in this case, you'll become the manager if the other manager(s)
  stop managing the field (remove it from their configuration).
See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
";

#[test]
fn two_managers_may_not_disagree() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.write("web.yaml", WEB);
    kubectl
        .ok("apply --server-side --field-manager=jane -f web.yaml")
        .prints("deployment.apps/web serverside-applied\n");
    kubectl.write("web.yaml", &WEB.replace("replicas: 3", "replicas: 5"));
    let refused = kubectl.fails("apply --server-side --field-manager=joe -f web.yaml");
    assert_eq!(refused.stderr, CONFLICT);
    kubectl.ok("get deployment web -o jsonpath={.spec.replicas}").prints("3");
    kubectl
        .ok("apply --server-side --field-manager=joe --force-conflicts -f web.yaml")
        .prints("deployment.apps/web serverside-applied\n");
    kubectl.ok("get deployment web -o jsonpath={.spec.replicas}").prints("5");
    kubectl.write("web.yaml", WEB);
    kubectl
        .fails("apply --server-side --field-manager=jane -f web.yaml")
        .complains("Apply failed with 1 conflict: conflict with \"joe\": .spec.replicas\n");
}

#[test]
fn a_conflict_with_an_update_names_its_version() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("apply --server-side -f -", WEB);
    kubectl.ok("patch deployment web -p '{\"spec\": {\"minReadySeconds\": 7}}'");
    kubectl.write("web.yaml", &WEB.replace("  replicas: 3\n", "  replicas: 3\n  minReadySeconds: 9\n"));
    kubectl
        .fails("apply --server-side -f web.yaml")
        .complains("Apply failed with 1 conflict: conflict with \"kubectl-patch\" using apps/v1: .spec.minReadySeconds\n");
}

#[test]
fn what_is_no_longer_applied_goes_and_what_is_shared_stays() {
    let Some(kubectl) = kubectl() else { return };
    let apply = |manager: &str, data: &str| {
        let manifest =
            format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: settings}}, data: {data}}}");
        kubectl.ok_with(&format!("apply --server-side --field-manager={manager} -f -"), &manifest);
        kubectl.ok("get configmap settings -o json").json()["data"].clone()
    };
    assert_eq!(apply("jane", "{a: '1', b: '2'}"), json!({"a": "1", "b": "2"}));
    assert_eq!(apply("joe", "{b: '2', c: '3'}"), json!({"a": "1", "b": "2", "c": "3"}));
    assert_eq!(apply("jane", "{}"), json!({"b": "2", "c": "3"}));
    assert_eq!(apply("joe", "{c: '3'}"), json!({"c": "3"}));
}

#[test]
fn lists_merge_by_their_keys() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("apply --server-side --field-manager=jane -f -", WEB);
    let sidecar = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: sidecar, image: busybox}]}}}}";
    kubectl.ok_with("apply --server-side --field-manager=joe -f -", sidecar);
    kubectl
        .ok("get deployment web -o 'jsonpath={.spec.template.spec.containers[*].name}'")
        .prints("nginx sidecar");
    let object = kubectl.ok("get deployment web -o json --show-managed-fields").json();
    let joe = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|entry| entry["manager"] == "joe");
    let container = r#"/fieldsV1/f:spec/f:template/f:spec/f:containers/k:{"name":"sidecar"}"#;
    assert_eq!(
        joe.and_then(|entry| entry.pointer(container)),
        Some(&json!({".": {}, "f:image": {}, "f:name": {}})),
        "{:#}",
        object["metadata"]["managedFields"]
    );
}

#[test]
fn applying_the_same_again_changes_nothing() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("apply --server-side -f -", WEB);
    let before = kubectl.ok("get deployment web -o json --show-managed-fields").json();
    kubectl.ok_with("apply --server-side -f -", WEB);
    let after = kubectl.ok("get deployment web -o json --show-managed-fields").json();
    assert_eq!(before, after);
}

#[test]
fn a_client_side_applier_can_move_over() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("apply -f -", WEB);
    let without = WEB.replace("    tier: front\n", "");
    kubectl.ok_with("apply --server-side -f -", &without).prints("deployment.apps/web serverside-applied\n");
    let object = kubectl.ok("get deployment web -o json --show-managed-fields").json();
    let managers: Vec<_> = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| (entry["manager"].as_str(), entry["operation"].as_str()))
        .collect();
    assert_eq!(managers, [(Some("kubectl-last-applied"), Some("Apply")), (Some("kubectl"), Some("Apply"))]);
    assert_eq!(object["metadata"]["labels"], json!({"app": "web"}));
}

#[test]
fn apply_without_a_trace_when_it_is_a_dry_run() {
    let Some(kubectl) = kubectl() else { return };
    kubectl
        .ok_with("apply --server-side --dry-run=server -f -", WEB)
        .prints("deployment.apps/web serverside-applied (server dry run)\n");
    kubectl.fails("get deployment web").complains("not found");
}
