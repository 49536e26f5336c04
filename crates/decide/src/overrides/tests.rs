//! Every overrider, the order in which policies apply, and what they select.

use serde_json::json;

use super::*;

fn member(name: &str) -> Cluster {
    let mut cluster = Cluster::default();
    cluster.metadata.name = name.to_owned();
    cluster
}

fn policy(namespace: &str, name: &str, spec: Value) -> OverridePolicy {
    serde_json::from_value(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
        "metadata": {"namespace": namespace, "name": name}, "spec": spec,
    }))
    .expect("an override policy")
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "ns1", "name": "nginx", "labels": {"app": "web", "keep": "1"}},
        "spec": {"replicas": 2, "template": {"spec": {
            "initContainers": [{"name": "init", "image": "busybox:1"}],
            "containers": [{"name": "a", "image": "nginx:1.19", "args": ["-v", "-x"]}, {"name": "b", "image": "quay.io/b/c"}],
        }}},
    })
}

fn overridden(object: &Value, policies: &[OverridePolicy]) -> Value {
    match overrides(object, &member("m1"), policies) {
        Overridden::Done { object, .. } => object,
        Overridden::Failed(failed) => Value::String(failed.to_string()),
    }
}

/// Applies overriders and looks at one place of the result.
fn check(overriders: Value, path: &str, expected: Value) {
    let rules = json!({"overrideRules": [{"overriders": overriders}]});
    let result = overridden(&deployment(), &[policy("", "p", rules)]);
    let found =
        if result.is_string() { result } else { result.pointer(path).cloned().unwrap_or(Value::Null) };
    assert_eq!(found, expected, "{overriders}");
}

const POD: &str = "/spec/template/spec";

#[test]
fn images_change_in_containers_only() {
    let image = |component: &str, operator: &str, value: &str| json!({"imageOverrider": [{"component": component, "operator": operator, "value": value}]});
    let containers = |first: &str, second: &str| json!([{"name": "a", "image": first, "args": ["-v", "-x"]}, {"name": "b", "image": second}]);
    let path = &format!("{POD}/containers");
    check(image("Registry", "replace", "r.io"), path, containers("r.io/nginx:1.19", "r.io/b/c"));
    check(image("Tag", "replace", "2"), path, containers("nginx:2", "quay.io/b/c:2"));
    check(image("Repository", "add", "-x"), path, containers("nginx-x:1.19", "quay.io/b/c-x"));
    check(image("Tag", "remove", ""), &format!("{POD}/initContainers/0/image"), json!("busybox:1"));
    let predicate = |path: &str| json!({"imageOverrider": [{"predicate": {"path": path}, "component": "Tag", "operator": "replace", "value": "2"}]});
    check(
        predicate("/spec/template/spec/initContainers/0/image"),
        &format!("{POD}/initContainers/0/image"),
        json!("busybox:2"),
    );
    check(
        predicate("/spec/nothing"),
        "",
        json!("Apply cluster override policy(p) for cluster(m1) failed: there is nothing at /spec/nothing"),
    );
    check(
        predicate("/spec/replicas"),
        "",
        json!(
            "Apply cluster override policy(p) for cluster(m1) failed: the value at /spec/replicas is not a \
             text"
        ),
    );
}

#[test]
fn commands_and_arguments_change_in_the_named_container() {
    let words = |field: &str, container: &str, operator: &str| json!({field: [{"containerName": container, "operator": operator, "value": ["-x", "-y"]}]});
    check(
        words("argsOverrider", "a", "add"),
        &format!("{POD}/containers/0/args"),
        json!(["-v", "-x", "-x", "-y"]),
    );
    check(words("argsOverrider", "a", "remove"), &format!("{POD}/containers/0/args"), json!(["-v"]));
    check(words("commandOverrider", "b", "add"), &format!("{POD}/containers/1/command"), json!(["-x", "-y"]));
    check(words("commandOverrider", "nobody", "add"), &format!("{POD}/containers/1/command"), Value::Null);
}

#[test]
fn labels_and_annotations_change() {
    let pairs = |field: &str, operator: &str| json!({field: [{"operator": operator, "value": {"app": "new", "x/y": "z"}}]});
    check(
        pairs("labelsOverrider", "add"),
        "/metadata/labels",
        json!({"app": "new", "keep": "1", "x/y": "z"}),
    );
    check(pairs("labelsOverrider", "replace"), "/metadata/labels", json!({"app": "new", "keep": "1"}));
    check(pairs("labelsOverrider", "remove"), "/metadata/labels", json!({"keep": "1"}));
    check(pairs("annotationsOverrider", "add"), "/metadata/annotations", json!({"app": "new", "x/y": "z"}));
    check(pairs("annotationsOverrider", "replace"), "/metadata/annotations", Value::Null);
}

#[test]
fn pointers_change_anything() {
    check(
        json!({"plaintext": [{"path": "/spec/replicas", "operator": "replace", "value": 7}]}),
        "/spec/replicas",
        json!(7),
    );
    check(
        json!({"plaintext": [{"path": "/metadata/labels/a~1b", "operator": "add", "value": "c"}]}),
        "/metadata/labels/a~1b",
        json!("c"),
    );
    check(
        json!({"plaintext": [{"path": "/spec/replicas", "operator": "remove"}]}),
        "/spec",
        json!({"template": deployment()["spec"]["template"]}),
    );
    let bad = json!({"plaintext": [{"path": "spec", "operator": "remove"}]});
    check(
        bad,
        "",
        json!(
            "Apply cluster override policy(p) for cluster(m1) failed: \"spec\" is not a JSON pointer: write \
             /a/b/0, with ~1 for / and ~0 for ~"
        ),
    );
}

#[test]
fn documents_inside_fields_change() {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns1", "name": "c"},
        "data": {"config.json": "{\"db\": {\"host\": \"a\", \"port\": 1}}", "config.yaml": "db:\n  host: a\n  list: [1, 2]\n"},
    });
    let fields = json!({"overrideRules": [{"overriders": {"fieldOverrider": [
        {"fieldPath": "/data/config.json", "json": [{"subPath": "/db/host", "operator": "replace", "value": "b"}]},
        {"fieldPath": "/data/config.yaml", "yaml": [
            {"subPath": "/db/list/-", "operator": "add", "value": 3},
            {"subPath": "/db/host", "operator": "remove"},
        ]},
    ]}}]});
    let result = overridden(&object, &[policy("ns1", "p", fields)]);
    assert_eq!(result["data"]["config.json"], json!("{\"db\":{\"host\":\"b\",\"port\":1}}"));
    let yaml: Value =
        serde_saphyr::from_str(result["data"]["config.yaml"].as_str().expect("text")).expect("yaml");
    assert_eq!(yaml, json!({"db": {"list": [1, 2, 3]}}));
    let broken = json!({"overrideRules": [{"overriders": {"fieldOverrider": [
        {"fieldPath": "/data/config.yaml", "json": [{"subPath": "/a", "operator": "add", "value": 1}]},
    ]}}]});
    let failed = overridden(&object, &[policy("ns1", "p", broken)]);
    let text = failed.as_str().expect("a failure");
    assert!(text.starts_with("Apply override policy(ns1/p) for cluster(m1) failed: the text at /data/config.yaml cannot be read"), "{text}");
}

#[test]
fn the_most_specific_policy_of_the_namespace_has_the_last_word() {
    let says = |namespace: &str, name: &str, selector: Value| {
        let label = json!([{"operator": "add", "value": {"by": name, name: "was here"}}]);
        let mut spec = json!({"overrideRules": [{"overriders": {"labelsOverrider": label}}]});
        if !selector.is_null() {
            spec["resourceSelectors"] = json!([selector]);
        }
        policy(namespace, name, spec)
    };
    let kind = |field: &str, value: Value| {
        let mut selector = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
        selector[field] = value;
        selector
    };
    let policies = [
        says("ns1", "z-all", Value::Null),
        says("ns1", "b-name", kind("name", json!("nginx"))),
        says("ns1", "a-label", kind("labelSelector", json!({"matchLabels": {"app": "web"}}))),
        says("", "cluster-name", kind("name", json!("nginx"))),
        says("other", "elsewhere", Value::Null),
        says("ns1", "no-match", kind("name", json!("apache"))),
    ];
    let Overridden::Done { object, cluster_policies, policies } =
        overrides(&deployment(), &member("m1"), &policies)
    else {
        panic!("nothing is in the way");
    };
    assert_eq!(object["metadata"]["labels"]["by"], "b-name");
    let names =
        |applied: &[AppliedOverride]| applied.iter().map(|one| one.policy_name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&cluster_policies), ["cluster-name"]);
    assert_eq!(names(&policies), ["a-label", "b-name", "z-all"], "sorted by name (C6)");
    let annotations: Vec<_> = remembered(&cluster_policies, &[]).collect();
    assert_eq!(
        annotations,
        [(
            "policy.karmada.io/applied-cluster-overrides".to_owned(),
            "[{\"policyName\":\"cluster-name\",\"overriders\":{\"labelsOverrider\":[{\"operator\":\"add\",\
             \"value\":{\"by\":\"cluster-name\",\"cluster-name\":\"was here\"}}]}}]"
                .to_owned()
        )]
    );
}

#[test]
fn b1_b2_patterns_and_exclusions_hold_for_cluster_override_policies() {
    let check_spec = |spec: Value, expected: bool| {
        let mut spec = spec;
        spec["overriders"] = json!({"labelsOverrider": [{"operator": "add", "value": {"hit": "1"}}]});
        let object = overridden(&deployment(), &[policy("", "p", spec.clone())]);
        assert_eq!(object.pointer("/metadata/labels/hit").is_some(), expected, "{spec}");
    };
    let deployments =
        |namespace: &str| json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": namespace});
    check_spec(json!({"resourceSelectors": [deployments("a,ns*")]}), true);
    check_spec(json!({"resourceSelectors": [deployments("a,ns")]}), false);
    check_spec(
        json!({"resourceSelectors": [deployments("")], "excludeResourceSelectors": [deployments("ns*")]}),
        false,
    );
    check_spec(json!({"excludeResourceSelectors": [deployments("ns1")]}), false);
    let mut inner = deployments("");
    inner["exclude"] = json!({"namespace": "ns1"});
    check_spec(json!({"resourceSelectors": [inner]}), false);
    check_spec(json!({"targetCluster": {"clusterNames": ["m1"]}}), true);
    check_spec(json!({"targetCluster": {"clusterNames": ["m2"]}}), false);
}

#[test]
fn rules_of_a_policy_act_in_their_order() {
    let label = |value: &str| json!({"labelsOverrider": [{"operator": "add", "value": {"by": value}}]});
    let spec = json!({"overrideRules": [
        {"targetCluster": {"clusterNames": ["m1"]}, "overriders": label("first")},
        {"overriders": label("second")},
        {"targetCluster": {"clusterNames": ["m2"]}, "overriders": label("third")},
    ]});
    assert_eq!(overridden(&deployment(), &[policy("ns1", "p", spec)])["metadata"]["labels"]["by"], "second");
}
