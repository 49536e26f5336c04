//! Reading: every output format, selectors, describe and events.

use super::{WEB, kubectl};

#[test]
fn get_prints_tables() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB).prints("deployment.apps/web created\n");
    kubectl.ok("get deployment web").lists(&["NAME READY UP-TO-DATE AVAILABLE AGE", "web 0/3 0 0 *"]);
    kubectl.ok("get deploy/web -o wide").lists(&[
        "NAME READY UP-TO-DATE AVAILABLE AGE CONTAINERS IMAGES SELECTOR",
        "web 0/3 0 0 * nginx nginx:1.27 app=web",
    ]);
    kubectl
        .ok("get deployments --no-headers -L tier --show-labels")
        .lists(&["web 0/3 0 0 * front app=web,tier=front"]);
    kubectl.ok("get all").has_row("deployment.apps/web 0/3 0 0 *");
    kubectl.ok("get deployments -A").has_row("NAMESPACE NAME READY UP-TO-DATE AVAILABLE AGE");
    kubectl.ok("get deployments,configmaps --show-kind").has_row("deployment.apps/web 0/3 0 0 *");
}

#[test]
fn get_prints_yaml_json_names_and_paths() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB);
    kubectl.ok("get deployment web -o name").prints("deployment.apps/web\n");
    kubectl
        .ok("get deployment web -o yaml")
        .shows("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n")
        .shows("  replicas: 3\n")
        .shows("      - image: nginx:1.27\n");
    let object = kubectl.ok("get deployment web -o json").json();
    assert_eq!(object["kind"], "Deployment");
    assert_eq!(object["metadata"]["generation"], 1);
    assert_eq!(object["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%");
    kubectl
        .ok("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}")
        .prints("nginx:1.27");
    kubectl
        .ok("get deployments -o 'jsonpath={range .items[*]}{.metadata.name}={.spec.replicas}{end}'")
        .prints("web=3");
    kubectl
        .ok("get deployments -o custom-columns=NAME:.metadata.name,COPIES:.spec.replicas")
        .lists(&["NAME COPIES", "web 3"]);
    kubectl.ok("get deployments -o 'go-template={{len .items}}'").prints("1");
    let list = kubectl.ok("get deployments -o json").json();
    assert_eq!((list["kind"].as_str(), list["apiVersion"].as_str()), (Some("List"), Some("v1")));
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
}

#[test]
fn get_shows_managed_fields_when_asked() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB);
    kubectl.ok("get deployment web -o yaml").hides("managedFields");
    let object = kubectl.ok("get deployment web -o json --show-managed-fields").json();
    let entry = &object["metadata"]["managedFields"][0];
    assert_eq!(entry["manager"], "kubectl-create");
    assert_eq!(entry["operation"], "Update");
    assert_eq!(entry["apiVersion"], "apps/v1");
    assert!(entry["fieldsV1"]["f:spec"]["f:replicas"].is_object(), "{entry}");
}

#[test]
fn get_selects_by_label() {
    let Some(kubectl) = kubectl() else { return };
    for (name, labels) in [("a", "colour=red,size=1"), ("b", "colour=blue"), ("c", "size=2")] {
        kubectl.ok(&format!("create configmap {name}"));
        kubectl.ok(&format!("label configmap {name} suite=labels {}", labels.replace(',', " ")));
    }
    let check = |selector: &str, expected: &str| {
        let found = kubectl.ok(&format!("get configmaps -o name --selector '{selector}'"));
        let names: Vec<&str> =
            found.stdout.lines().filter_map(|line| line.strip_prefix("configmap/")).collect();
        assert_eq!(names.join(","), expected, "{selector}");
    };
    check("suite=labels", "a,b,c");
    check("colour=red", "a");
    check("colour!=red,suite", "b,c");
    check("colour in (red,blue)", "a,b");
    check("colour notin (red),suite", "b,c");
    check("!colour,suite=labels", "c");
    check("size>1", "c");
    check("colour==green", "");
    kubectl.fails("get configmaps -l 'colour in red'").complains("unable to parse requirement");
}

#[test]
fn get_selects_by_field() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("run one --image=nginx");
    kubectl.ok("run two --image=nginx");
    kubectl.ok("get pods -o name --field-selector=metadata.name=one").prints("pod/one\n");
    kubectl.ok("get pods -o name --field-selector=metadata.name!=one").prints("pod/two\n");
    kubectl
        .ok("get pods -o name --field-selector=status.phase=Pending,spec.nodeName=")
        .prints("pod/one\npod/two\n");
    kubectl.ok("get pods -o name --field-selector=status.phase=Running").prints("");
    kubectl
        .fails("get pods --field-selector=spec.colour=red")
        .complains("Error from server (BadRequest): Unable to find \"/v1, Resource=pods\" that match label selector \"\", field selector \"spec.colour=red\": field label not supported: spec.colour\n");
}

#[test]
fn get_pages_through_long_lists() {
    let Some(kubectl) = kubectl() else { return };
    let documents: Vec<String> = (0..25)
        .map(|number| format!("{{apiVersion: v1, kind: Secret, metadata: {{name: s{number:02}}}}}"))
        .collect();
    kubectl.ok_with("create -f -", &documents.join("\n---\n"));
    let names = kubectl.ok("get secrets --chunk-size=4 -o name").stdout;
    assert_eq!(names.lines().count(), 25);
    assert!(names.starts_with("secret/s00\n") && names.ends_with("secret/s24\n"), "{names}");
    kubectl.ok("get secrets --chunk-size=4 --sort-by=.metadata.name --no-headers").has_row("s24 Opaque 0 *");
}

#[test]
fn get_says_what_is_not_there() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.fails("get pods nothing").complains("Error from server (NotFound): pods \"nothing\" not found\n");
    kubectl.ok("get pods nothing --ignore-not-found").prints("");
    kubectl.ok("get pods").complains("No resources found in ");
    kubectl.fails("get wombats").complains("error: the server doesn't have a resource type \"wombats\"\n");
    kubectl.fails("get pods -n nowhere nothing").complains("Error from server (NotFound): ");
}

#[test]
fn describe_reads_like_a_story() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB);
    kubectl
        .ok("describe deployment web")
        .has_row("Name: web")
        .has_row("Labels: app=web")
        .has_row("Selector: app=web")
        .has_row("Replicas: 3 desired | 0 updated | 0 total | 0 available | 0 unavailable")
        .has_row("StrategyType: RollingUpdate")
        .has_row("Image: nginx:1.27")
        .has_row("Events: <none>");
    kubectl.ok("create configmap settings --from-literal=colour=blue");
    kubectl.ok("describe configmap settings").has_row("Name: settings").has_row("blue");
    kubectl.ok("run one --image=nginx");
    kubectl.ok("describe pod one").has_row("Status: Pending").has_row("QoS Class: BestEffort");
    kubectl.ok("expose deployment web --port=80");
    kubectl.ok("describe service web").has_row("Port: <unset> 80/TCP").has_row("Selector: app=web");
    kubectl.ok("describe namespace default").has_row("Status: Active");
    kubectl.fails("describe pod nothing").complains("Error from server (NotFound): ");
}

#[test]
fn events_are_shown_with_what_they_are_about() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("events").complains("No events found in ");
    kubectl.ok("create configmap settings");
    let namespace = kubectl.ok("get configmap settings -o jsonpath={.metadata.namespace}").stdout;
    let uid = kubectl.ok("get configmap settings -o jsonpath={.metadata.uid}").stdout;
    let event = format!(
        "{{apiVersion: v1, kind: Event, metadata: {{name: settings.1}}, reason: Repainted, message: now blue,
          type: Normal, count: 1, lastTimestamp: '2026-01-01T00:00:00Z',
          involvedObject: {{kind: ConfigMap, name: settings, namespace: {namespace}, uid: {uid}, apiVersion: v1}}}}"
    );
    kubectl.ok_with("create -f -", &event).prints("event/settings.1 created\n");
    kubectl
        .ok("events")
        .lists(&["LAST SEEN TYPE REASON OBJECT MESSAGE", "* Normal Repainted ConfigMap/settings now blue"]);
    kubectl
        .ok("events --for configmap/settings --types=Normal --no-headers")
        .has_row("* Normal Repainted ConfigMap/settings now blue");
    kubectl
        .ok("get events")
        .lists(&["LAST SEEN TYPE REASON OBJECT MESSAGE", "* Normal Repainted configmap/settings now blue"]);
    kubectl.ok("describe configmap settings").has_row("Normal Repainted * now blue");
    kubectl.ok("get events.events.k8s.io settings.1 -o jsonpath={.note}").prints("now blue");
}
