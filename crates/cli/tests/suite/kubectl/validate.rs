//! Invalid manifests: the errors that kubectl shows.

use super::{WEB, kubectl};

#[test]
fn unknown_fields_are_refused_strictly_and_reported_otherwise() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.write("web.yaml", &WEB.replace("  replicas: 3\n", "  replicas: 3\n  replics: 4\n"));
    kubectl
        .fails("create --validate=strict -f web.yaml")
        .complains("Error from server (BadRequest): error when creating \"web.yaml\": Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: unknown field \"spec.replics\"\n");
    kubectl
        .fails("apply --validate=strict -f web.yaml")
        .complains("strict decoding error: unknown field \"spec.replics\"\n");
    kubectl
        .fails("apply --server-side -f web.yaml")
        .complains("failed to create typed patch object (")
        .complains("/web; apps/v1, Kind=Deployment): .spec.replics: field not declared in schema\n");
    kubectl
        .ok("create --validate=warn -f web.yaml")
        .prints("deployment.apps/web created\n")
        .complains("Warning: unknown field \"spec.replics\"\n");
    let ignored = kubectl.ok("replace --validate=ignore -f web.yaml");
    assert_eq!(ignored.stderr, "");
}

#[test]
fn wrong_types_are_refused() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.write("web.yaml", &WEB.replace("replicas: 3", "replicas: many"));
    kubectl
        .fails("create -f web.yaml")
        .complains("Error from server (BadRequest): error when creating \"web.yaml\": Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32\n");
    kubectl.write("other.yaml", "{apiVersion: v1, kind: Wombat, metadata: {name: a}}");
    kubectl
        .fails("create -f other.yaml")
        .complains("error: resource mapping not found for name: \"a\" namespace: \"\" from \"other.yaml\": no matches for kind \"Wombat\" in version \"v1\"\nensure CRDs are installed first\n");
}

#[test]
fn invalid_values_are_refused_all_at_once() {
    let Some(kubectl) = kubectl() else { return };
    let bad =
        WEB.replace("replicas: 3", "replicas: -3").replace("image: nginx:1.27", "imagePullPolicy: Sometimes");
    kubectl.write("web.yaml", &bad);
    kubectl
        .fails("create -f web.yaml")
        .complains("The Deployment \"web\" is invalid: \n* spec.replicas: Invalid value: -3: must be greater than or equal to 0\n")
        .complains("* spec.template.spec.containers[0].image: Required value\n")
        .complains("* spec.template.spec.containers[0].imagePullPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"IfNotPresent\", \"Never\"\n");
    kubectl
        .fails("create deployment web --image=nginx --replicas=-1")
        .complains("error: failed to create deployment: Deployment.apps \"web\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0\n");
}

#[test]
fn fields_that_never_change_do_not_change() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("apply -f -", WEB);
    let other = WEB.replace("app: web", "app: shop");
    kubectl.write("web.yaml", &other);
    kubectl.fails("apply -f web.yaml").complains(
        "The Deployment \"web\" is invalid: spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"shop\"}}: field is immutable\n",
    );
    kubectl.ok_with("create -f -", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, immutable: true}");
    kubectl.fails("patch configmap a -p '{\"data\":{\"b\":\"c\"}}'").complains(
        "The ConfigMap \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set\n",
    );
}

#[test]
fn names_and_labels_have_rules() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.fails("create configmap Bad_Name").complains(
        "error: failed to create configmap: ConfigMap \"Bad_Name\" is invalid: metadata.name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')\n",
    );
    let label = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {colour: 'light blue'}}}";
    kubectl.run_with("create -f -", label).expect_code(1).complains(
        "The ConfigMap \"a\" is invalid: metadata.labels: Invalid value: \"light blue\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')\n",
    );
    kubectl
        .run_with("create -f -", "{apiVersion: v1, kind: ConfigMap, metadata: {}}")
        .expect_code(1)
        .complains("metadata.name: Required value: name or generateName is required\n");
}
