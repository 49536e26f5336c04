//! `create` of typed kinds: kubectl sends these as protobuf.

use serde_json::{Value, json};

use super::{WEB, kubectl};

/// Creates with kubectl's generator and looks at one part of what the server then holds.
fn check(line: &str, said: &str, object: &str, pointer: &str, expected: Value) {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok(&format!("create {line}")).prints(&format!("{said} created\n"));
    let stored = kubectl.ok(&format!("get {object} -o json")).json();
    assert_eq!(stored.pointer(pointer), Some(&expected), "create {line}: {stored:#}");
    assert!(stored["metadata"]["uid"].is_string(), "create {line}: {stored:#}");
}

#[test]
fn configuration() {
    check(
        "configmap a --from-literal=colour=blue",
        "configmap/a",
        "cm a",
        "/data",
        json!({"colour": "blue"}),
    );
    check("secret generic b --from-literal=key=x", "secret/b", "secret b", "/data", json!({"key": "eA=="}));
    check(
        "secret docker-registry c --docker-server=r --docker-username=u --docker-password=p",
        "secret/c",
        "secret c",
        "/type",
        json!("kubernetes.io/dockerconfigjson"),
    );
    check("serviceaccount d", "serviceaccount/d", "sa d", "/metadata/name", json!("d"));
    check("quota e --hard=pods=2", "resourcequota/e", "quota e", "/spec/hard/pods", json!("2"));
    check(
        "poddisruptionbudget f --selector=app=x --min-available=50%",
        "poddisruptionbudget.policy/f",
        "pdb f",
        "/spec/minAvailable",
        json!("50%"),
    );
}

#[test]
fn workloads() {
    check(
        "deployment a --image=nginx --replicas=2",
        "deployment.apps/a",
        "deploy a",
        "/spec/template/spec/containers/0/image",
        json!("nginx"),
    );
    check(
        "job b --image=busybox -- date",
        "job.batch/b",
        "job b",
        "/spec/template/spec/containers/0/command",
        json!(["date"]),
    );
    check(
        "cronjob c --image=busybox --schedule='*/5 * * * *'",
        "cronjob.batch/c",
        "cj c",
        "/spec/schedule",
        json!("*/5 * * * *"),
    );
}

#[test]
fn network() {
    check("service clusterip a --tcp=80:8080", "service/a", "svc a", "/spec/ports/0/targetPort", json!(8080));
    check("service nodeport b --tcp=80", "service/b", "svc b", "/spec/type", json!("NodePort"));
    check(
        "service externalname c --external-name=example.com",
        "service/c",
        "svc c",
        "/spec/externalName",
        json!("example.com"),
    );
    check(
        "ingress d --rule=host/path=svc:80",
        "ingress.networking.k8s.io/d",
        "ing d",
        "/spec/rules/0/http/paths/0/backend/service/port/number",
        json!(80),
    );
}

#[test]
fn access() {
    check(
        "role a --verb=get --resource=pods",
        "role.rbac.authorization.k8s.io/a",
        "role a",
        "/rules/0/resources",
        json!(["pods"]),
    );
    check(
        "rolebinding b --role=a --user=jane",
        "rolebinding.rbac.authorization.k8s.io/b",
        "rolebinding b",
        "/subjects/0/name",
        json!("jane"),
    );
    check(
        "clusterrole create-access --verb=get --resource=nodes",
        "clusterrole.rbac.authorization.k8s.io/create-access",
        "clusterrole create-access",
        "/rules/0/verbs",
        json!(["get"]),
    );
    check(
        "clusterrolebinding create-access --clusterrole=x --group=g",
        "clusterrolebinding.rbac.authorization.k8s.io/create-access",
        "clusterrolebinding create-access",
        "/roleRef/name",
        json!("x"),
    );
}

#[test]
fn scheduling() {
    check("namespace create-it", "namespace/create-it", "ns create-it", "/status/phase", json!("Active"));
    check(
        "priorityclass create-it --value=7",
        "priorityclass.scheduling.k8s.io/create-it",
        "priorityclass create-it",
        "/value",
        json!(7),
    );
}

#[test]
fn a_name_can_be_taken_only_once() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("create configmap a");
    kubectl
        .fails("create configmap a")
        .complains("error: failed to create configmap: configmaps \"a\" already exists\n");
    kubectl.ok_with("create -f -", WEB);
    kubectl.write("web.yaml", WEB);
    kubectl
        .fails("create -f web.yaml")
        .complains("Error from server (AlreadyExists): error when creating \"web.yaml\": deployments.apps \"web\" already exists\n");
}

#[test]
fn names_can_be_generated() {
    let Some(kubectl) = kubectl() else { return };
    let manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: part-}}";
    let created = kubectl.ok_with("create -f - -o name", manifest).stdout;
    assert!(
        created.starts_with("configmap/part-") && created.trim().len() == "configmap/part-".len() + 5,
        "{created}"
    );
}

#[test]
fn namespaces_must_exist() {
    let Some(kubectl) = kubectl() else { return };
    kubectl
        .fails("create configmap a -n nowhere")
        .complains("error: failed to create configmap: namespaces \"nowhere\" not found\n");
}

#[test]
fn dry_run_writes_nothing() {
    let Some(kubectl) = kubectl() else { return };
    kubectl
        .ok("create deployment a --image=nginx --dry-run=server")
        .prints("deployment.apps/a created (server dry run)\n");
    let drafted = kubectl.ok("create deployment a --image=nginx --dry-run=server -o json").json();
    assert_eq!(drafted["spec"]["revisionHistoryLimit"], 10, "defaults are filled in");
    kubectl.fails("get deployment a").complains("not found");
    let definition = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, \
                      metadata: {name: dryruns.example.com}, spec: {group: example.com, scope: Namespaced, \
                      names: {kind: DryRun, plural: dryruns}, versions: [{name: v1, served: true, storage: true, \
                      schema: {openAPIV3Schema: {type: object}}}]}}";
    kubectl.ok_with("create --dry-run=server -f -", definition);
    kubectl.fails("get dryruns").complains("the server doesn't have a resource type \"dryruns\"");
}
