//! `delete` in all its ways: one, many, by file, with dependents and whole namespaces.

use checks::kubectl::Kubectl;

use super::{WEB, kubectl, kubectl_with_controllers};

#[test]
fn delete_by_name_label_and_file() {
    let Some(kubectl) = kubectl() else { return };
    for name in ["a", "b", "c", "d"] {
        kubectl.ok(&format!("create secret generic {name}"));
    }
    let deleted = kubectl.ok("delete secret a").stdout;
    assert!(deleted.starts_with("secret \"a\" deleted"), "{deleted}");
    kubectl.fails("delete secret a").complains("Error from server (NotFound): secrets \"a\" not found\n");
    kubectl.ok("delete secret a --ignore-not-found").prints("");
    kubectl.ok("label secret b c suite=delete");
    kubectl.ok("delete secrets -l suite=delete -o name").prints("secret/b\nsecret/c\n");
    kubectl.ok("delete secrets --all --dry-run=server").shows("(server dry run)");
    kubectl.ok("get secrets -o name").prints("secret/d\n");
    kubectl.ok("delete secrets --all -o name").prints("secret/d\n");
    kubectl.write("web.yaml", WEB);
    kubectl.ok("create -f web.yaml");
    kubectl.ok("delete -f web.yaml -o name").prints("deployment.apps/web\n");
    kubectl.ok("get deployments -o name").prints("");
}

#[test]
fn delete_waits_for_finalizers() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with(
        "create -f -",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/hold]}}",
    );
    let mut delete = kubectl.start("delete configmap held");
    delete.until("configmap \"held\" deleted");
    let object = kubectl.ok("get configmap held -o json").json();
    assert!(object["metadata"]["deletionTimestamp"].is_string(), "{object:#}");
    kubectl
        .fails("delete configmap held --timeout=1s")
        .complains("timed out waiting for the condition on configmaps/held");
    kubectl.ok("delete configmap held --wait=false");
    kubectl.ok(r#"patch configmap held --type=merge -p '{"metadata":{"finalizers":null}}'"#);
    assert_eq!(delete.end(), Some(0));
    kubectl.fails("get configmap held").complains("not found");
}

#[test]
fn pods_end_gracefully_or_at_once() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("run one --image=nginx");
    kubectl.ok("delete pod one --now -o name").prints("pod/one\n");
    kubectl.ok("run two --image=nginx");
    kubectl
        .ok("delete pod two --grace-period=0 --force")
        .complains("Warning: Immediate deletion does not wait");
    kubectl.ok("get pods -o name").prints("");
}

/// An owner and its dependent.
fn family(kubectl: &Kubectl) {
    kubectl.ok("create configmap owner");
    let uid = kubectl.ok("get configmap owner -o jsonpath={.metadata.uid}").stdout;
    let child = format!(
        "{{apiVersion: v1, kind: Secret, metadata: {{name: child, ownerReferences:
           [{{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}, blockOwnerDeletion: true}}]}}}}"
    );
    kubectl.ok_with("create -f -", &child);
}

#[test]
fn background_deletion_takes_dependents_along() {
    let Some(kubectl) = kubectl_with_controllers() else { return };
    family(&kubectl);
    kubectl.ok("delete configmap owner --cascade=background");
    kubectl.ok("wait secret/child --for=delete --timeout=20s");
    kubectl.ok("get secrets -o name").prints("");
}

#[test]
fn foreground_deletion_takes_dependents_first() {
    let Some(kubectl) = kubectl_with_controllers() else { return };
    family(&kubectl);
    kubectl.ok(r#"patch secret child --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'"#);
    let mut delete = kubectl.start("delete configmap owner --cascade=foreground");
    delete.until("configmap \"owner\" deleted");
    kubectl.ok("wait secret/child --for=jsonpath={.metadata.deletionTimestamp} --timeout=20s");
    kubectl.ok("get configmap owner -o jsonpath={.metadata.finalizers}").prints("[\"foregroundDeletion\"]");
    kubectl.ok(r#"patch secret child --type=merge -p '{"metadata":{"finalizers":null}}'"#);
    assert_eq!(delete.end(), Some(0));
    kubectl.fails("get configmap owner").complains("not found");
    kubectl.fails("get secret child").complains("not found");
}

#[test]
fn orphans_stay() {
    let Some(kubectl) = kubectl_with_controllers() else { return };
    family(&kubectl);
    kubectl.ok("delete configmap owner --cascade=orphan");
    kubectl.fails("get configmap owner").complains("not found");
    kubectl.ok("get secret child -o jsonpath={.metadata.ownerReferences}").prints("");
}

#[test]
fn dependents_of_a_missing_owner_are_collected() {
    let Some(kubectl) = kubectl_with_controllers() else { return };
    let child = "{apiVersion: v1, kind: Secret, metadata: {name: child, ownerReferences:
       [{apiVersion: v1, kind: ConfigMap, name: gone, uid: 00000000-0000-4000-8000-000000000000}]}}";
    kubectl.ok_with("create -f -", child);
    kubectl.ok("wait secret/child --for=delete --timeout=20s");
}

#[test]
fn namespaces_come_with_their_objects_and_go_with_them() {
    let Some(kubectl) = kubectl_with_controllers() else { return };
    kubectl.ok("create namespace shop").prints("namespace/shop created\n");
    kubectl.ok("wait -n shop serviceaccount/default --for=create --timeout=20s");
    kubectl.ok("wait -n shop configmap/kube-root-ca.crt --for=create --timeout=20s");
    kubectl.ok_with("create -n shop -f -", WEB);
    let held = "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/hold]}}";
    kubectl.ok_with("create -n shop -f -", held);
    let mut delete = kubectl.start("delete namespace shop");
    delete.until("namespace \"shop\" deleted");
    kubectl.ok("wait -n shop deployment/web --for=delete --timeout=20s");
    kubectl.ok("get namespace shop --no-headers").lists(&["shop Terminating *"]);
    kubectl.fails("create configmap late -n shop").complains(
        "error: failed to create configmap: configmaps \"late\" is forbidden: unable to create new content in namespace shop because it is being terminated\n",
    );
    kubectl.ok(r#"patch configmap held -n shop --type=merge -p '{"metadata":{"finalizers":null}}'"#);
    assert_eq!(delete.end(), Some(0));
    kubectl.fails("get namespace shop").complains("namespaces \"shop\" not found");
    kubectl.ok("create namespace shop");
    kubectl.ok("get deployments -n shop -o name").prints("");
}

#[test]
fn some_namespaces_stay() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.fails("delete namespace default").complains(
        "Error from server (Forbidden): namespaces \"default\" is forbidden: this namespace may not be deleted\n",
    );
}
