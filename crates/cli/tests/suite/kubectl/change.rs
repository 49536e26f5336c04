//! Changing what is there: label, annotate, patch, edit, replace, scale, set, expose, autoscale.

use serde_json::json;

use super::{WEB, kubectl};

#[test]
fn label_and_annotate() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("create configmap a");
    kubectl.ok("label configmap a tier=front").prints("configmap/a labeled\n");
    kubectl.ok("label configmap a tier=front").prints("configmap/a not labeled\n");
    kubectl
        .fails("label configmap a tier=back")
        .complains("error: 'tier' already has a value (front), and --overwrite is false\n");
    kubectl.ok("label configmap a tier=back --overwrite").prints("configmap/a labeled\n");
    kubectl.ok("get configmap a -o jsonpath={.metadata.labels}").prints("{\"tier\":\"back\"}");
    kubectl.ok("label configmap a tier-").prints("configmap/a unlabeled\n");
    kubectl.ok("get configmap a -o jsonpath={.metadata.labels}").prints("");
    kubectl.ok("annotate configmap a note='a b'").prints("configmap/a annotated\n");
    kubectl.ok("get configmap a -o jsonpath={.metadata.annotations.note}").prints("a b");
    kubectl.ok("annotate configmap a note-").prints("configmap/a annotated\n");
    kubectl.ok("create configmap b");
    kubectl.ok("label configmaps a b suite=x").prints("configmap/a labeled\nconfigmap/b labeled\n");
    kubectl
        .fails("label configmap a --resource-version=1 tier=front")
        .complains("Error from server (Conflict): Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again\n");
}

#[test]
fn patch_in_three_languages() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB);
    let image = r#"{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"nginx:1.28"}]}}}}"#;
    kubectl.ok(&format!("patch deployment web --patch '{image}'")).prints("deployment.apps/web patched\n");
    kubectl
        .ok(&format!("patch deployment web --patch '{image}'"))
        .prints("deployment.apps/web patched (no change)\n");
    let container = kubectl.ok("get deployment web -o 'jsonpath={.spec.template.spec.containers}'").json();
    assert_eq!(container[0]["image"], "nginx:1.28");
    assert_eq!(container[0]["ports"][0]["containerPort"], 80, "the rest of the container stays");
    kubectl
        .ok(r#"patch deployment web --type=merge -p '{"spec":{"replicas":1,"paused":true},"metadata":{"labels":{"tier":null}}}'"#)
        .prints("deployment.apps/web patched\n");
    kubectl
        .ok(r#"patch deployment web --type=json -p '[{"op":"test","path":"/spec/replicas","value":1},{"op":"replace","path":"/spec/replicas","value":2},{"op":"remove","path":"/spec/paused"}]'"#)
        .prints("deployment.apps/web patched\n");
    let object = kubectl.ok("get deployment web -o json").json();
    assert_eq!(object["spec"]["replicas"], 2);
    assert!(object["spec"].get("paused").is_none());
    assert_eq!(object["metadata"]["labels"], json!({"app": "web"}));
    assert_eq!(object["metadata"]["generation"], 4);
}

#[test]
fn patches_that_cannot_be_applied_change_nothing() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB);
    let before = kubectl.ok("get deployment web -o json").json();
    kubectl
        .fails(r#"patch deployment web --type=json -p '[{"op":"replace","path":"/spec/replicas","value":2},{"op":"remove","path":"/spec/nothing"}]'"#)
        .complains("The request is invalid: the server rejected our request due to an error in our request\n");
    kubectl
        .fails(r#"patch deployment web --type=json -p '[{"op":"test","path":"/spec/replicas","value":9}]'"#)
        .complains(
            "The request is invalid: the server rejected our request due to an error in our request\n",
        );
    kubectl.fails(r#"patch deployment web -p '{"spec":{"replicas":"many"}}'"#).complains(
        "The request is invalid: patch: Invalid value: \"map[spec:map[replicas:many]]\": unrecognized type: int32\n",
    );
    kubectl
        .fails(r#"patch deployment web --type=merge -p '{"spec":{"replicas":"many"}}'"#)
        .complains("The request is invalid: patch: Invalid value: \"{")
        .complains("}\": json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32\n");
    kubectl
        .fails(r#"patch deployment web -p '{"metadata":{"resourceVersion":"1"}}'"#)
        .complains("Error from server (Conflict): Operation cannot be fulfilled on deployments.apps \"web\": the object has been modified; please apply your changes to the latest version and try again\n");
    assert_eq!(kubectl.ok("get deployment web -o json").json(), before);
    kubectl
        .fails("patch deployment nothing -p '{}'")
        .complains("Error from server (NotFound): deployments.apps \"nothing\" not found\n");
}

#[test]
fn patch_of_a_subresource() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB);
    kubectl
        .ok(r#"patch deployment web --subresource=status --type=merge -p '{"spec":{"replicas":9},"status":{"replicas":3,"readyReplicas":2}}'"#)
        .prints("deployment.apps/web patched\n");
    kubectl.ok("get deployment web --no-headers").lists(&["web 2/3 0 0 *"]);
    kubectl
        .ok(r#"patch deployment web --subresource=scale --type=merge -p '{"spec":{"replicas":7}}'"#)
        .prints("scale.autoscaling/web patched\n");
    kubectl.ok("get deployment web -o jsonpath={.spec.replicas}").prints("7");
    let scale = kubectl.ok("get deployment web --subresource=scale -o json").json();
    assert_eq!((scale["kind"].as_str(), scale["spec"]["replicas"].as_i64()), (Some("Scale"), Some(7)));
    assert_eq!(scale["status"]["selector"], "app=web");
}

#[test]
fn edit_with_an_editor() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("create configmap a --from-literal=colour=blue");
    kubectl.write("editor", "sed s/blue/green/ \"$1\" > draft && cp draft \"$1\"\n");
    kubectl.ok("edit configmap a").prints("configmap/a edited\n");
    kubectl.ok("get configmap a -o jsonpath={.data.colour}").prints("green");
    kubectl.ok("edit configmap a").complains("Edit cancelled, no changes made.\n");
    kubectl.write(
        "editor",
        "cp \"$1\" seen; sed 's/^  name: a/  name: b/' seen > draft; cp draft \"$1\"; echo : > editor\n",
    );
    kubectl.fails("edit configmap a");
    assert!(kubectl.read("seen").contains("  name: a\n"), "the editor saw the object");
    kubectl.ok("get configmaps -o name").shows("configmap/a\n").hides("configmap/b\n");
}

#[test]
fn edit_of_a_deployment_is_checked_by_the_server() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB);
    kubectl.write("editor", "sed 's/replicas: 3/replicas: 6/' \"$1\" > draft && cp draft \"$1\"\n");
    kubectl.ok("edit deployment web").prints("deployment.apps/web edited\n");
    kubectl.ok("get deployment web -o jsonpath={.spec.replicas}").prints("6");
    kubectl
        .write("editor", "cp \"$1\" seen; sed 's/replicas: 6/replicas: -1/' seen > draft; cp draft \"$1\"\n");
    kubectl.fails("edit deployment web").complains("Edit cancelled, no valid changes were saved.");
    assert!(kubectl.read("seen").contains("must be greater than or equal to 0"), "{}", kubectl.read("seen"));
    kubectl.ok("get deployment web -o jsonpath={.spec.replicas}").prints("6");
}

#[test]
fn replace_whole_objects() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.write("web.yaml", WEB);
    kubectl
        .fails("replace -f web.yaml")
        .complains("Error from server (NotFound): error when replacing \"web.yaml\": deployments.apps \"web\" not found\n");
    kubectl.ok("create -f web.yaml");
    kubectl.ok("label deployment web owner=jane");
    kubectl.write("web.yaml", &WEB.replace("replicas: 3", "replicas: 1"));
    kubectl.ok("replace -f web.yaml").prints("deployment.apps/web replaced\n");
    let object = kubectl.ok("get deployment web -o json").json();
    assert_eq!(object["spec"]["replicas"], 1);
    assert_eq!(object["metadata"]["labels"], json!({"app": "web", "tier": "front"}));
    let stale =
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, resourceVersion: '{}'}}}}", 1);
    kubectl.ok("create configmap a");
    kubectl.write("stale.yaml", &stale);
    kubectl.fails("replace -f stale.yaml").complains("Error from server (Conflict): error when replacing \"stale.yaml\": Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again\n");
}

#[test]
fn replace_by_force_makes_a_new_object() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.write("web.yaml", WEB);
    kubectl.ok("create -f web.yaml");
    let uid = kubectl.ok("get deployment web -o jsonpath={.metadata.uid}").stdout;
    kubectl.ok("replace --force -f web.yaml").shows("deployment.apps/web replaced\n");
    assert_ne!(kubectl.ok("get deployment web -o jsonpath={.metadata.uid}").stdout, uid);
}

#[test]
fn scale_workloads() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB);
    kubectl.ok("scale deployment web --replicas=5").prints("deployment.apps/web scaled\n");
    kubectl.ok("get deployment web -o jsonpath={.spec.replicas}/{.metadata.generation}").prints("5/2");
    let object = kubectl.ok("get deployment web -o json --show-managed-fields").json();
    assert_eq!(
        object["metadata"]["managedFields"][0],
        json!({
            "manager": "kubectl", "operation": "Update", "subresource": "scale", "apiVersion": "apps/v1",
            "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:replicas": {} } },
        })
    );
    kubectl
        .ok("scale deployment web --current-replicas=5 --replicas=0")
        .prints("deployment.apps/web scaled\n");
    kubectl
        .fails("scale deployment web --current-replicas=5 --replicas=1")
        .complains("error: Expected replicas to be 5, was 0\n");
    kubectl.ok("get deployment web -o jsonpath={.spec.replicas}").prints("0");
    kubectl
        .fails("scale deployment nothing --replicas=1")
        .complains("deployments.apps \"nothing\" not found\n");
    kubectl.fails("scale configmap a --replicas=1");
}

#[test]
fn set_parts_of_a_template() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB);
    kubectl.ok("set image deployment/web nginx=nginx:2").prints("deployment.apps/web image updated\n");
    kubectl.ok("set env deployment/web COLOUR=blue").prints("deployment.apps/web env updated\n");
    kubectl
        .ok("set resources deployment/web --limits=cpu=200m")
        .prints("deployment.apps/web resource requirements updated\n");
    kubectl
        .ok("set serviceaccount deployment web robot")
        .prints("deployment.apps/web serviceaccount updated\n");
    let template = kubectl.ok("get deployment web -o jsonpath={.spec.template.spec}").json();
    assert_eq!(template["containers"][0]["image"], "nginx:2");
    assert_eq!(template["containers"][0]["env"][0]["value"], "blue");
    assert_eq!(template["containers"][0]["resources"]["limits"]["cpu"], "200m");
    assert_eq!(template["serviceAccountName"], "robot");
    assert_eq!(template["serviceAccount"], "robot");
}

#[test]
fn expose_and_autoscale() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB);
    kubectl.ok("expose deployment web --port=80 --target-port=8080").prints("service/web exposed\n");
    let service = kubectl.ok("get service web -o json").json();
    assert_eq!(service["spec"]["selector"], json!({"app": "web"}));
    assert_eq!(service["spec"]["ports"], json!([{"port": 80, "protocol": "TCP", "targetPort": 8080}]));
    assert_eq!(service["spec"]["clusterIP"].as_str().map(|ip| ip.starts_with("10.")), Some(true));
    kubectl.ok("get service web --no-headers").lists(&["web ClusterIP * <none> 80/TCP *"]);
    kubectl
        .ok("autoscale deployment web --min=2 --max=5 --cpu-percent=80")
        .prints("horizontalpodautoscaler.autoscaling/web autoscaled\n");
    let scaler = kubectl.ok("get horizontalpodautoscalers.v2.autoscaling web -o json").json();
    assert_eq!(scaler["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 80);
    let scaler = kubectl.ok("get horizontalpodautoscalers.v1.autoscaling web -o json").json();
    assert_eq!(scaler["spec"]["targetCPUUtilizationPercentage"], 80);
}

#[test]
fn what_is_empty_is_not_kept() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with(
        "create -f -",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {}, finalizers: []}, data: {}}",
    );
    let object = kubectl.ok("get configmap a -o json").json();
    assert!(object.get("data").is_none() && object["metadata"].get("labels").is_none(), "{object:#}");
    kubectl.ok_with("create -f -", WEB);
    kubectl.ok(
        r#"patch deployment web --type=merge -p '{"spec":{"template":{"spec":{"nodeSelector":{},"hostNetwork":false}}}}'"#,
    );
    kubectl.ok("get deployment web -o jsonpath={.metadata.generation}").prints("1");
}

#[test]
fn annotations_of_deployments_begin_a_generation() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB);
    kubectl.ok("label deployment web a=b");
    kubectl.ok("get deployment web -o jsonpath={.metadata.generation}").prints("1");
    kubectl.ok("annotate deployment web a=b");
    kubectl.ok("get deployment web -o jsonpath={.metadata.generation}").prints("2");
}

#[test]
fn the_server_owns_what_it_adds() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with(
        "create -f -",
        "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}",
    );
    let object = kubectl.ok("get job a -o json --show-managed-fields").json();
    assert!(object["spec"]["selector"].is_object(), "{object:#}");
    let owned = &object["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
    assert!(owned.get("f:completions").is_some() && owned.get("f:selector").is_none(), "{owned:#}");
}

#[test]
fn kinds_on_their_way_out_say_so() {
    let Some(kubectl) = kubectl() else { return };
    kubectl
        .ok("get endpoints")
        .complains("Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\n");
}
