//! CustomResourceDefinitions: from `apply -f crd.yaml` to the deletion of the definition.

use checks::kubectl::Kubectl;
use serde_json::json;

use super::{kubectl, kubectl_with_controllers};

/// A kind with a schema, defaults, columns, status and scale, in a group of the test's own.
fn definition(group: &str) -> String {
    format!(
        "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ships.{group}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: ships, singular: ship, kind: Ship, shortNames: [sh], categories: [all]}}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {{}}
      scale: {{specReplicasPath: .spec.boats, statusReplicasPath: .status.boats}}
    additionalPrinterColumns:
    - {{name: Captain, type: string, jsonPath: .spec.captain}}
    - {{name: Boats, type: integer, jsonPath: .spec.boats}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [captain]
            properties:
              captain: {{type: string, minLength: 2, description: Who commands.}}
              boats: {{type: integer, minimum: 0, default: 2}}
              crew:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {{type: object, required: [name], properties: {{name: {{type: string}}, rank: {{type: string}}}}}}
          status:
            type: object
            properties:
              boats: {{type: integer}}
"
    )
}

fn ship(group: &str, name: &str, spec: &str) -> String {
    format!("{{apiVersion: {group}/v1, kind: Ship, metadata: {{name: {name}}}, spec: {spec}}}\n")
}

/// A server that has the kind.
fn harbour(kubectl: &Kubectl, group: &str) {
    kubectl.ok_with("apply -f -", &definition(group));
    let wait = format!("wait crd/ships.{group} --for=condition=Established --timeout=20s");
    kubectl
        .ok(&wait)
        .prints(&format!("customresourcedefinition.apiextensions.k8s.io/ships.{group} condition met\n"));
}

#[test]
fn a_definition_and_its_object_from_the_same_files() {
    let Some(kubectl) = kubectl() else { return };
    let group = "files.example.com";
    kubectl.write("1-crd.yaml", &definition(group));
    kubectl.write("2-ship.yaml", &ship(group, "beagle", "{captain: fitzroy}"));
    // kubectl looks up every kind before it sends the first object, so the second call brings the ship.
    kubectl
        .fails("apply -f 1-crd.yaml -f 2-ship.yaml")
        .shows(&format!("customresourcedefinition.apiextensions.k8s.io/ships.{group} created\n"))
        .complains("no matches for kind \"Ship\" in version \"files.example.com/v1\"\nensure CRDs are installed first\n");
    kubectl.ok(&format!("wait crd/ships.{group} --for=condition=Established"));
    kubectl.ok("apply -f 1-crd.yaml -f 2-ship.yaml").prints(&format!(
        "customresourcedefinition.apiextensions.k8s.io/ships.{group} unchanged\nship.{group}/beagle created\n"
    ));
    kubectl.ok("apply -f 2-ship.yaml").prints(&format!("ship.{group}/beagle unchanged\n"));
}

#[test]
fn custom_objects_are_read_like_any_other() {
    let Some(kubectl) = kubectl() else { return };
    let group = "read.example.com";
    harbour(&kubectl, group);
    kubectl.ok_with("apply -f -", &ship(group, "beagle", "{captain: fitzroy}"));
    kubectl.ok(&format!("get ships.{group}")).lists(&["NAME CAPTAIN BOATS", "beagle fitzroy 2"]);
    kubectl.ok(&format!("get sh.{group} beagle -o name")).prints(&format!("ship.{group}/beagle\n"));
    kubectl.ok(&format!("describe ships.{group} beagle")).has_row("Captain: fitzroy").has_row("Boats: 2");
    kubectl
        .ok(&format!("api-resources --api-group={group} --no-headers"))
        .lists(&[&format!("ships sh {group}/v1 true Ship")]);
    kubectl
        .ok(&format!("explain ships.spec --api-version={group}/v1"))
        .has_row("captain <string> -required-")
        .shows("Who commands.");
    kubectl.ok(&format!("get all,ships.{group}")).has_row(&format!("ship.{group}/beagle fitzroy 2"));
}

#[test]
fn custom_objects_are_changed_like_any_other() {
    let Some(kubectl) = kubectl() else { return };
    let group = "change.example.com";
    harbour(&kubectl, group);
    let beagle = format!("ships.{group} beagle");
    kubectl.ok_with("apply -f -", &ship(group, "beagle", "{captain: fitzroy, crew: [{name: darwin}]}"));
    kubectl
        .ok_with("apply -f -", &ship(group, "beagle", "{captain: stokes}"))
        .prints(&format!("ship.{group}/beagle configured\n"));
    let object = kubectl.ok(&format!("get {beagle} -o json")).json();
    assert_eq!(object["spec"], json!({"captain": "stokes", "boats": 2}));
    assert_eq!(object["metadata"]["generation"], 2);
    kubectl.ok(&format!("scale {beagle} --replicas=6")).prints(&format!("ship.{group}/beagle scaled\n"));
    kubectl.ok(&format!("patch {beagle} --type=merge -p '{{\"spec\":{{\"captain\":\"wickham\"}}}}'"));
    kubectl.ok(&format!(
        "patch {beagle} --type=json -p '[{{\"op\":\"replace\",\"path\":\"/spec/boats\",\"value\":7}}]'"
    ));
    kubectl
        .fails(&format!("patch {beagle} -p '{{}}'"))
        .complains("application/strategic-merge-patch+json is not supported by change.example.com/v1, Kind=Ship: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml\n");
    kubectl.ok(&format!("patch {beagle} --subresource=status --type=merge -p '{{\"spec\":{{\"boats\":1}},\"status\":{{\"boats\":7}}}}'"));
    kubectl.ok(&format!("label {beagle} class=cherokee"));
    let object = kubectl.ok(&format!("get {beagle} -o json")).json();
    assert_eq!(object["spec"], json!({"captain": "wickham", "boats": 7}));
    assert_eq!(object["status"], json!({"boats": 7}));
    kubectl.write("editor", "sed s/wickham/sulivan/ \"$1\" > draft && cp draft \"$1\"\n");
    kubectl.ok(&format!("edit {beagle}")).prints(&format!("ship.{group}/beagle edited\n"));
    kubectl.ok(&format!("delete {beagle} -o name")).prints(&format!("ship.{group}/beagle\n"));
}

#[test]
fn custom_objects_are_applied_on_the_server() {
    let Some(kubectl) = kubectl() else { return };
    let group = "apply.example.com";
    harbour(&kubectl, group);
    let apply = |manager: &str, spec: &str| {
        let line = format!("apply --server-side --field-manager={manager} -f -");
        kubectl.run_with(&line, &ship(group, "beagle", spec))
    };
    apply("jane", "{captain: fitzroy, crew: [{name: darwin, rank: guest}]}").expect_code(0);
    apply("joe", "{captain: fitzroy, crew: [{name: earle}]}").expect_code(0);
    let crew = kubectl.ok(&format!("get ships.{group} beagle -o 'jsonpath={{.spec.crew[*].name}}'"));
    crew.prints("darwin earle");
    apply("joe", "{captain: stokes}")
        .expect_code(1)
        .complains("Apply failed with 1 conflict: conflict with \"jane\": .spec.captain\n");
}

#[test]
fn custom_objects_are_checked_against_their_schema() {
    let Some(kubectl) = kubectl() else { return };
    let group = "check.example.com";
    harbour(&kubectl, group);
    kubectl.write("ship.yaml", &ship(group, "beagle", "{captain: x, boats: -1}"));
    kubectl.fails("create -f ship.yaml").complains(
        "The Ship \"beagle\" is invalid: \n* spec.boats: Invalid value: -1: spec.boats in body should be greater than or equal to 0\n* spec.captain: Invalid value: \"x\": spec.captain in body should be at least 2 chars long\n",
    );
    kubectl.write("ship.yaml", &ship(group, "beagle", "{boats: many}"));
    kubectl.fails("create -f ship.yaml").complains("* spec.captain: Required value").complains(
        "* spec.boats: Invalid value: \"string\": spec.boats in body must be of type integer: \"string\"",
    );
    kubectl.write("ship.yaml", &ship(group, "beagle", "{captain: fitzroy, sails: 3}"));
    kubectl.fails("create -f ship.yaml").complains("strict decoding error: unknown field \"spec.sails\"\n");
    kubectl.ok("create --validate=warn -f ship.yaml").complains("Warning: unknown field \"spec.sails\"\n");
    kubectl
        .ok(&format!("get ships.{group} beagle -o jsonpath={{.spec}}"))
        .prints("{\"boats\":2,\"captain\":\"fitzroy\"}");
}

#[test]
fn definitions_are_checked_too() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.write("crd.yaml", &definition("bad.example.com").replace("name: ships.bad", "name: boats.bad"));
    kubectl.fails("create -f crd.yaml").complains(
        "The CustomResourceDefinition \"boats.bad.example.com\" is invalid: metadata.name: Invalid value: \"boats.bad.example.com\": must be spec.names.plural+\".\"+spec.group\n",
    );
}

#[test]
fn a_definition_takes_its_objects_along() {
    let Some(kubectl) = kubectl_with_controllers() else { return };
    let group = "end.example.com";
    harbour(&kubectl, group);
    kubectl.ok_with("apply -f -", &ship(group, "beagle", "{captain: fitzroy}"));
    kubectl
        .ok(&format!("delete crd ships.{group} -o name"))
        .prints(&format!("customresourcedefinition.apiextensions.k8s.io/ships.{group}\n"));
    kubectl
        .fails(&format!("get --raw /apis/{group}/v1/ships"))
        .complains("the server could not find the requested resource");
    harbour(&kubectl, group);
    kubectl.ok(&format!("get ships.{group} -o name")).prints("");
}
