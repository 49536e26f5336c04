//! M3 for whatever is written: what is rendered has the identity of its template, its Work has the template's name, and
//! every manifest is explained by a template in the namespace of its binding.

use proptest::prelude::*;

use super::*;
use crate::Snapshot;
use crate::snapshot::Interpreters;

const KINDS: [(&str, &str, bool); 7] = [
    ("apps/v1", "Deployment", true),
    ("v1", "ConfigMap", true),
    ("v1", "Secret", true),
    ("batch/v1", "Job", true),
    ("v1", "ServiceAccount", true),
    ("v1", "Namespace", false),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", false),
];
const NAMESPACES: [&str; 3] = ["team-a", "team-b", "kube-public"];
const NAMES: [&str; 3] = ["web", "db", "team-b"];
const PATHS: [&str; 20] = [
    "",
    "/",
    "/metadata",
    "/metadata/name",
    "/metadata/namespace",
    "/kind",
    "/apiVersion",
    "/metadata/labels",
    "/metadata/annotations",
    "/metadata/labels/karmada.io~1managed",
    "/metadata/annotations/work.karmada.io~1name",
    "/metadata/uid",
    "/metadata/finalizers",
    "/metadata/ownerReferences",
    "/metadata/generateName",
    "/spec",
    "/spec/replicas",
    "/data",
    "/status",
    "/metadata/labels/app",
];

fn key() -> impl Strategy<Value = TemplateKey> {
    let parts =
        (prop::sample::select(&KINDS), prop::sample::select(&NAMESPACES), prop::sample::select(&NAMES));
    parts.prop_map(|((api_version, kind, namespaced), namespace, name)| TemplateKey {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: if namespaced { namespace.to_owned() } else { String::new() },
        name: name.to_owned(),
    })
}

fn object(key: &TemplateKey) -> Value {
    let mut object = json!({
        "apiVersion": key.api_version, "kind": key.kind,
        "metadata": { "name": key.name, "uid": format!("{}-{}", key.namespace, key.name), "labels": { "app": "x" } },
        "spec": { "replicas": 2, "template": { "spec": {
            "containers": [{ "name": "a", "image": "nginx" }],
            "volumes": [{ "name": "v", "secret": { "secretName": "db" } }],
        } } },
    });
    if !key.namespace.is_empty() {
        object["metadata"]["namespace"] = key.namespace.as_str().into();
    }
    object
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        "[a-z?/%#.]{0,8}".prop_map(Value::from),
        prop::sample::select(&NAMESPACES).prop_map(Value::from),
        key().prop_map(|key| object(&key)),
        key().prop_map(|key| object(&key)["metadata"].clone()),
        Just(json!({ "karmada.io/managed": "false", "work.karmada.io/name": "x", "app": "y" })),
        Just(json!([])),
    ]
}

fn override_policy() -> impl Strategy<Value = OverridePolicy> {
    let path = prop_oneof![prop::sample::select(&PATHS).prop_map(str::to_owned), "(/[a-z~01]{0,4}){0,3}"];
    let plaintext = (path, prop::sample::select(&["add", "replace", "remove"][..]), value());
    let namespace = prop::sample::select(&["", "team-a", "team-b", "kube-public"][..]);
    (namespace, prop::collection::vec(plaintext, 1..4)).prop_map(|(namespace, changes)| {
        let changes: Vec<Value> = changes
            .into_iter()
            .map(|(path, operator, value)| json!({ "path": path, "operator": operator, "value": value }))
            .collect();
        serde_json::from_value(json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
            "metadata": { "namespace": namespace, "name": "op" },
            "spec": { "overrideRules": [{ "overriders": { "plaintext": changes } }] },
        }))
        .expect("an override policy")
    })
}

/// A binding in any namespace, or in none, about anything, that says that it needs anything.
fn any_binding() -> impl Strategy<Value = Binding> {
    let namespace = prop::sample::select(&["", "team-a", "team-b", "kube-public"][..]);
    (namespace, key(), prop::collection::vec(key(), 0..3), "[a-z]{3}").prop_map(|(namespace, about, needs, name)| {
        let template = template(object(&about));
        let spec = json!({ "clusters": [{ "name": "m1" }, { "name": "m2" }], "propagateDeps": true });
        let mut binding = binding(&template, spec);
        let needs: Vec<Value> = needs
            .iter()
            .map(|key| json!({ "apiVersion": key.api_version, "kind": key.kind, "namespace": key.namespace, "name": key.name }))
            .collect();
        let needs = serde_json::to_string(&needs).expect("JSON");
        binding.metadata.annotations.insert(api::annotations::DEPENDENCIES.to_owned(), needs);
        binding.metadata.namespace = namespace.to_owned();
        binding.metadata.name = name;
        binding.kind = if namespace.is_empty() { "ClusterResourceBinding" } else { "ResourceBinding" }.to_owned();
        binding
    })
}

fn identity(manifest: &Value) -> TemplateKey {
    let part =
        |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    TemplateKey {
        api_version: part("/apiVersion"),
        kind: part("/kind"),
        namespace: part("/metadata/namespace"),
        name: part("/metadata/name"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn m3_a_manifest_has_the_identity_of_its_template(about in key(), customised in value()) {
        let template = template(object(&about));
        let manifest = Manifest::new(&template, customised);
        prop_assert_eq!(identity(manifest.object()), about);
        for field in ["uid", "ownerReferences", "finalizers", "resourceVersion", "generateName"] {
            prop_assert!(manifest.object()["metadata"].get(field).is_none(), "{}", field);
        }
    }

    #[test]
    fn m3_what_is_rendered_is_explained_by_its_template(
        about in any_binding(),
        overrides in prop::collection::vec(override_policy(), 0..3),
    ) {
        let key = TemplateKey::of(&about);
        let template = template(object(&key));
        let answer = rendered(&about, &template, &overrides, &[]);
        for work in answer.works.values() {
            prop_assert_eq!(&work.metadata.name, &names::work_name(&key.kind, &key.name, &key.namespace));
            let manifests = &work.spec.workload.manifests;
            prop_assert_eq!(manifests.len(), 1);
            prop_assert_eq!(&identity(&manifests[0]), &key);
            prop_assert!(about.metadata.namespace.is_empty() || key.namespace == about.metadata.namespace);
            prop_assert_eq!(&manifests[0]["metadata"]["labels"]["karmada.io/managed"], "true");
            prop_assert_eq!(&manifests[0]["metadata"]["annotations"]["work.karmada.io/name"], work.metadata.name.as_str());
            prop_assert_eq!(foreign(work, &about), None);
        }
    }

    #[test]
    fn m3_nothing_goes_along_from_another_namespace(
        templates in prop::collection::vec(key(), 1..6),
        bindings in prop::collection::vec(any_binding(), 1..4),
    ) {
        let mut snapshot = Snapshot::default();
        for key in &templates {
            snapshot.take(object(key)).expect("a template");
        }
        for binding in &bindings {
            snapshot.take(serde_json::to_value(binding).expect("JSON")).expect("a binding");
        }
        for (key, attached) in snapshot.attachments(Interpreters::BUILT_IN) {
            prop_assert!(!attached.spec.required_by.is_empty(), "{:?}", key);
            for by in &attached.spec.required_by {
                prop_assert!(!key.namespace.is_empty() && by.namespace == key.namespace, "{:?} for {:?}", key, by);
            }
        }
    }
}
