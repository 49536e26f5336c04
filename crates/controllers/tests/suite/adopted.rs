//! C7, M5: Karmada's decisions, also about kinds that only its interpreter scripts understand, stay as they are when
//! Longshore takes over, and can be changed afterwards.

use serde_json::{Value, json};

use crate::kinds::{MINI, define};
use crate::stack::{
    BINDING, CONFIG, NGINX, POLICY, Stack, at, config_map, deployment, namespace, policy, work_of,
};

const BOTH: [&str; 2] = ["member1", "member2"];
const CAR: &str = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/mini-car";

/// A car of five replicas that takes along what its policy says, whole in both members.
async fn delivered() -> Stack {
    let stack = Stack::new(&BOTH).await;
    for place in [&stack.control, stack.member("member1"), stack.member("member2")] {
        define(place).await;
    }
    let more = json!({
        "resourceSelectors": [{ "apiVersion": "example.com/v1", "kind": "Car" }], "propagateDeps": true,
    });
    stack.create(policy("pp", ("Car", ""), &BOTH, more)).await;
    stack.create(config_map("default", "conf")).await;
    stack
        .create(json!({
            "apiVersion": "example.com/v1", "kind": "Car",
            "metadata": { "namespace": "default", "name": "mini" }, "spec": { "replicas": 5 },
        }))
        .await;
    stack.until_in(MINI, &BOTH).await;
    stack.settle().await;
    stack
}

/// Only a Karmada interpreter script knows that a car needs its ConfigMap.
async fn needs_its_config(stack: &mut Stack) {
    stack.stop().await;
    let needs = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "conf" }]);
    let annotations = json!({
        "resourcebinding.karmada.io/dependencies": needs.to_string(), "longshore.io/pin": null,
    });
    stack.merge(CAR, json!({ "metadata": { "annotations": annotations } })).await;
    stack.restart().await;
    stack.until_in(CONFIG, &BOTH).await;
    stack.settle().await;
}

/// As Karmada divides them: by weight, the better cluster first.
async fn is_divided(stack: &mut Stack) {
    stack.stop().await;
    let weight =
        |name: &str, weight: u32| json!({ "targetCluster": { "clusterNames": [name] }, "weight": weight });
    let placement = json!({
        "clusterAffinity": { "clusterNames": BOTH },
        "replicaScheduling": {
            "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
            "weightPreference": { "staticWeightList": [weight("member1", 2), weight("member2", 3)] },
        },
    });
    stack.merge(POLICY, json!({ "spec": { "placement": placement } })).await;
    let placement = stack.get(POLICY).await["spec"]["placement"].clone();
    let annotations = json!({
        "policy.karmada.io/applied-placement": placement.to_string(), "longshore.io/pin": null,
    });
    let clusters = json!([{ "name": "member2", "replicas": 3 }, { "name": "member1", "replicas": 2 }]);
    let spec = json!({ "replicas": 5, "clusters": clusters, "placement": placement });
    stack.merge(CAR, json!({ "metadata": { "annotations": annotations }, "spec": spec })).await;
    let generation = stack.get(CAR).await["metadata"]["generation"].clone();
    let status = json!({ "status": { "schedulerObservedGeneration": generation } });
    stack.merge(&format!("{CAR}/status"), status).await;
    for (member, replicas) in [("member1", 2), ("member2", 3)] {
        let work = work_of(member, "Car", "mini");
        let mut manifest = stack.get(&work).await["spec"]["workload"]["manifests"][0].clone();
        manifest["spec"]["replicas"] = replicas.into();
        stack.merge(&work, json!({ "spec": { "workload": { "manifests": [manifest] } } })).await;
        applied_by_karmada(stack, &work).await;
        let patch = json!({ "spec": { "replicas": replicas } });
        stack.member(member).rest.merge(&at(MINI), &patch).await.expect("the server answers");
        stack.member(member).gate.forget();
    }
}

/// Name, spec and generation of every Work.
async fn works(stack: &Stack) -> Vec<Value> {
    let all = stack.get("/apis/work.karmada.io/v1alpha1/works").await;
    let said = |work: &Value| json!([work["metadata"]["name"], work["spec"], work["metadata"]["generation"]]);
    all["items"].as_array().expect("a list").iter().map(said).collect()
}

/// Karmada does not note which state of a Work it applied.
async fn applied_by_karmada(stack: &Stack, work: &str) {
    let mut conditions = stack.get(work).await["status"]["conditions"].clone();
    for condition in conditions.as_array_mut().expect("a list") {
        condition["observedGeneration"] = 0.into();
    }
    stack.merge(&format!("{work}/status"), json!({ "status": { "conditions": conditions } })).await;
}

#[tokio::test(start_paused = true)]
async fn what_scripts_found_out_is_kept_and_nothing_is_written_for_it() {
    let mut stack = delivered().await;
    needs_its_config(&mut stack).await;
    is_divided(&mut stack).await;
    let (spec, before) = (stack.get(CAR).await["spec"].clone(), works(&stack).await);
    stack.restart().await;
    stack.settle().await;
    assert_eq!(stack.get(CAR).await["spec"], spec);
    assert_eq!(works(&stack).await, before);
    for member in BOTH {
        assert_eq!(stack.member(member).gate.writes(), Vec::<String>::new(), "{member}");
    }
    let told = stack.told("mini", "SyncWorkFailed").await;
    assert!(told.iter().any(|(message, _)| message.contains("knows the replica field of a Car")), "{told:?}");
    stack.until_in(CONFIG, &BOTH).await;
    stack.stop().await;
}

/// `nginx` in both members as Karmada leaves it: without a record of ours, and with this list of dependencies.
async fn left_with_dependencies(list: &str) -> Stack {
    let mut stack = Stack::with_nginx(&BOTH, json!({ "propagateDeps": true })).await;
    stack.until_in(NGINX, &BOTH).await;
    stack.settle().await;
    stack.stop().await;
    let annotations = json!({ "resourcebinding.karmada.io/dependencies": list, "longshore.io/pin": null });
    stack.leave(BINDING, json!({ "metadata": { "annotations": annotations } })).await;
    stack.restart().await;
    stack
}

/// Karmada writes a list that it never filled as `null`.
#[tokio::test(start_paused = true)]
async fn m5_a_dependency_list_of_null_freezes_nothing() {
    let mut stack = left_with_dependencies("null").await;
    stack.merge(NGINX, json!({ "spec": { "replicas": 4 } })).await;
    for member in BOTH {
        let scaled = |object: &Value| object["spec"]["replicas"] == 4;
        stack.member(member).until("scaled", NGINX, scaled).await;
    }
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn m5_a_binding_that_admission_refuses_to_change_has_an_event() {
    let mut stack = left_with_dependencies("{").await;
    let told = async |stack: &Stack, object: &str| {
        let told = stack.told(object, "UpdateBindingRejected").await;
        told.iter().any(|(message, _)| message.contains("is no JSON list of references"))
    };
    stack.until("a warning on the binding", async |stack| told(stack, "nginx-deployment").await).await;
    stack.until("a warning on the template", async |stack| told(stack, "nginx").await).await;
    stack.stop().await;
}

const JOB: &str = "/apis/batch/v1/namespaces/default/jobs/once";
const TEAM: &str = "/api/v1/namespaces/team";
const DEPENDENT: &str = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/conf-configmap";

/// A Job, a namespace, a Deployment with a ConfigMap that goes along, and a Service whose annotations an override policy
/// replaces, all of them in both members.
async fn with_everything() -> Stack {
    let stack = Stack::new(&BOTH).await;
    stack.is_lenient.store(true, std::sync::atomic::Ordering::Relaxed);
    let replace = json!({
        "path": "/metadata/annotations", "operator": "replace", "value": { "note": "of the member" },
    });
    let selects = json!([{ "apiVersion": "v1", "kind": "Service" }]);
    stack
        .create(json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
            "metadata": { "namespace": "default", "name": "op" },
            "spec": {
                "resourceSelectors": selects, "overrideRules": [{ "overriders": { "plaintext": [replace] } }],
            },
        }))
        .await;
    stack.is_lenient.store(false, std::sync::atomic::Ordering::Relaxed);
    let selectors = json!([
        { "apiVersion": "batch/v1", "kind": "Job" }, { "apiVersion": "apps/v1", "kind": "Deployment" },
        { "apiVersion": "v1", "kind": "Service" },
    ]);
    let more = json!({ "resourceSelectors": selectors, "propagateDeps": true });
    stack.create(policy("pp", ("Deployment", ""), &BOTH, more)).await;
    stack.create(namespace("team", json!({ "owner": "me" }))).await;
    stack.create(config_map("default", "conf")).await;
    stack.create(deployment("web", "conf")).await;
    let pods = json!({ "spec": {
        "restartPolicy": "Never", "containers": [{ "name": "main", "image": "busybox" }],
    } });
    stack
        .create(json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": { "namespace": "default", "name": "once" }, "spec": { "template": pods },
        }))
        .await;
    stack
        .create(json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "namespace": "default", "name": "web", "annotations": { "note": "of the template" } },
            "spec": { "ports": [{ "port": 80 }] },
        }))
        .await;
    for path in [TEAM, JOB, CONFIG, "/api/v1/namespaces/default/services/web"] {
        stack.until_in(path, &BOTH).await;
    }
    stack.settle().await;
    stack
}

/// Rewrites what was rendered as Karmada renders it, with the objects in the members that come of it.
async fn as_karmada_left_it(stack: &Stack) {
    let bindings = stack.get("/apis/work.karmada.io/v1alpha2/resourcebindings").await;
    for binding in bindings["items"].as_array().expect("a list") {
        let name = binding["metadata"]["name"].as_str().expect("a name");
        let path = format!("/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/{name}");
        let ours = ["pin", "policy", "generation"].map(|key| (format!("longshore.io/{key}"), Value::Null));
        let annotations: Value = ours.into_iter().collect();
        stack.leave(&path, json!({ "metadata": { "annotations": annotations } })).await;
    }
    stack.leave(DEPENDENT, json!({ "spec": { "preserveResourcesOnDeletion": false } })).await;
    for member in BOTH {
        let namespace = work_of(member, "Namespace", "team").replace(
            &api::names::work_name("Namespace", "team", "default"),
            &api::names::work_name("Namespace", "team", ""),
        );
        let mut manifest = stack.get(&namespace).await["spec"]["workload"]["manifests"][0].clone();
        manifest["spec"] = stack.get(TEAM).await["spec"].clone();
        let spec = json!({
            "workload": { "manifests": [manifest] }, "suspendDispatching": null,
            "preserveResourcesOnDeletion": null,
        });
        stack.leave(&namespace, json!({ "spec": spec })).await;
        let job = work_of(member, "Job", "once");
        let mut manifest = stack.get(&job).await["spec"]["workload"]["manifests"][0].clone();
        manifest["spec"]["selector"] = json!({ "matchLabels": {} });
        stack.leave(&job, json!({ "spec": { "workload": { "manifests": [manifest] } } })).await;
        let all = stack.get("/apis/work.karmada.io/v1alpha1/works").await;
        for work in all["items"].as_array().expect("a list") {
            let place = |field: &str| work["metadata"][field].as_str().expect("a text").to_owned();
            let (namespace, name) = (place("namespace"), place("name"));
            let path = format!("/apis/work.karmada.io/v1alpha1/namespaces/{namespace}/works/{name}");
            applied_by_karmada(stack, &path).await;
        }
        stack.member(member).gate.forget();
    }
}

#[tokio::test(start_paused = true)]
async fn m5_what_karmada_rendered_stays_and_no_member_is_written() {
    let mut stack = with_everything().await;
    stack.stop().await;
    as_karmada_left_it(&stack).await;
    let (before, dependent) = (works(&stack).await, stack.get(DEPENDENT).await);
    stack.restart().await;
    stack.settle().await;
    assert_eq!(works(&stack).await, before);
    let after = stack.get(DEPENDENT).await;
    assert_eq!(after["spec"], dependent["spec"]);
    assert_eq!(after["metadata"]["generation"], dependent["metadata"]["generation"]);
    for member in BOTH {
        assert_eq!(stack.member(member).gate.writes(), Vec::<String>::new(), "{member}");
    }
    // A change arrives as ever.
    stack.merge(TEAM, json!({ "metadata": { "labels": { "owner": "you" } } })).await;
    for member in BOTH {
        let changed = |object: &Value| object["metadata"]["labels"]["owner"] == "you";
        stack.member(member).until("changed", TEAM, changed).await;
    }
    stack.stop().await;
}
