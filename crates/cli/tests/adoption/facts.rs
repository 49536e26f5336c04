//! What a real Karmada v1.18.2 left that we render otherwise: a Namespace Work with `spec`, a Job Work with
//! `spec.selector`, a dependency whose binding says `preserveResourcesOnDeletion: false`, and a Service whose annotations
//! an override policy replaced.

use checks::client::ApiClient;
use http::Method;
use serde_json::{Value, json};

use crate::left::{
    Marks, NAMESPACE, Place, WORKS, applied, applied_placement, binding_spec, collection, deliver, manifest,
    merged, must, owner, write_binding,
};

const TEAM: &str = "/api/v1/namespaces/team";
const JOB: &str = "/apis/batch/v1/namespaces/default/jobs/once";
const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";
const CONF: &str = "/api/v1/namespaces/default/configmaps/conf";
const SERVICE: &str = "/api/v1/namespaces/default/services/web";

/// What is in the member.
pub const OBJECTS: [&str; 5] = [TEAM, JOB, WEB, CONF, SERVICE];
/// The bindings behind it.
pub const BINDINGS: [&str; 4] = [
    "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/once-job",
    "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/web-deployment",
    "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/conf-configmap",
    "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/web-service",
];

const POLICY_ID: &str = "77777777-2a91-43e7-9d3a-0a4a35e3a4f1";
const WEB_ID: &str = "88888888-8f4e-4c39-bb7b-5cbe6d9dbe02";

/// Writes all of it.
pub async fn write(control: &ApiClient, member: &ApiClient) {
    policies(control).await;
    namespace(control, member).await;
    job(control, member).await;
    let needs = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "namespace": NAMESPACE, "name": "conf" }]);
    let web = Propagated {
        path: WEB,
        binding: BINDINGS[1],
        binding_id: WEB_ID,
        work_id: "88888888-1f8a-4f6e-9a37-1f62f6c1f003",
        replicas: 1,
        claimed: true,
        annotations: json!({ "resourcebinding.karmada.io/dependencies": needs.to_string() }),
        spec: json!({}),
    };
    web.write(control, member, deployment(), |_| {}).await;
    dependency(control, member).await;
    service(control, member).await;
}

async fn policies(control: &ApiClient) {
    let select = |api_version: &str, kind: &str, name: &str| json!({ "apiVersion": api_version, "kind": kind, "name": name, "namespace": NAMESPACE });
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {
            "name": "facts", "namespace": NAMESPACE,
            "labels": { "propagationpolicy.karmada.io/permanent-id": POLICY_ID },
            "finalizers": ["karmada.io/propagation-policy-controller"],
        },
        "spec": {
            "conflictResolution": "Abort", "preemption": "Never", "priority": 0,
            "placement": { "clusterAffinity": { "clusterNames": ["member1"] } },
            "schedulerName": "default-scheduler", "propagateDeps": true,
            "resourceSelectors": [
                select("batch/v1", "Job", "once"), select("apps/v1", "Deployment", "web"),
                select("v1", "Service", "web"),
            ],
        },
    });
    let path = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies";
    must(control, Method::POST, path, &policy).await;
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
        "metadata": { "name": "notes", "namespace": NAMESPACE },
        "spec": {
            "resourceSelectors": [select("v1", "Service", "web")],
            "overrideRules": [{ "overriders": { "plaintext": [replacement()] } }],
        },
    });
    let path = "/apis/policy.karmada.io/v1alpha1/namespaces/default/overridepolicies";
    must(control, Method::POST, path, &policy).await;
}

/// A template that Karmada has propagated.
struct Propagated<'p> {
    path: &'p str,
    binding: &'p str,
    binding_id: &'p str,
    work_id: &'p str,
    replicas: u32,
    /// By the policy; otherwise something else needs it.
    claimed: bool,
    /// More annotations of the binding.
    annotations: Value,
    /// More of the binding's spec.
    spec: Value,
}

impl Propagated<'_> {
    /// Template, binding, Work and the object in the member; `change` makes of the manifest what Karmada makes of it.
    async fn write(
        &self,
        control: &ApiClient,
        member: &ApiClient,
        template: Value,
        change: impl FnOnce(&mut Value),
    ) {
        let (labels, claim) = match self.claimed {
            true => (
                json!({ "propagationpolicy.karmada.io/permanent-id": POLICY_ID }),
                json!({
                    "propagationpolicy.karmada.io/name": "facts",
                    "propagationpolicy.karmada.io/namespace": NAMESPACE,
                }),
            ),
            false => (json!({}), json!({})),
        };
        let mut template = template;
        for (field, marks) in [("labels", &labels), ("annotations", &claim)] {
            let own = template["metadata"][field].clone();
            let own = if own.is_object() { own } else { json!({}) };
            template["metadata"][field] = merged(&own, marks);
        }
        let template = must(control, Method::POST, collection(self.path), &template).await;
        let name = self.binding.rsplit('/').next().expect("a path has a name");
        let id = json!({ "resourcebinding.karmada.io/permanent-id": self.binding_id });
        let mut spec = binding_spec(&template, self.replicas);
        let mut annotations = merged(&claim, &self.annotations);
        if self.claimed {
            spec["propagateDeps"] = true.into();
            annotations = merged(&annotations, &applied_placement());
        } else {
            for field in ["placement", "clusters", "schedulerName"] {
                spec.as_object_mut().expect("a map").remove(field);
            }
        }
        let mut finalizers = vec!["karmada.io/binding-controller"];
        finalizers.extend(self.claimed.then_some("karmada.io/binding-dependencies-distributor"));
        let mut of_binding = merged(&labels, &id);
        if !self.claimed {
            let needed = api::names::depended_by_label(NAMESPACE, "web-deployment");
            of_binding[needed] = WEB_ID.into();
        }
        let binding = json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {
                "name": name, "namespace": NAMESPACE, "labels": of_binding, "annotations": annotations,
                "finalizers": finalizers, "ownerReferences": [owner(&template)],
            },
            "spec": merged(&spec, &self.spec),
        });
        write_binding(control, self.binding, &binding, &Value::Null).await;
        let kind = template["kind"].as_str().expect("a kind");
        let called = template["metadata"]["name"].as_str().expect("a name");
        let place = Place {
            work: &api::names::work_name(kind, called, NAMESPACE),
            work_id: self.work_id,
            owner: ("resourcebinding.karmada.io/permanent-id", self.binding_id),
        };
        let back = json!({
            "resourcebinding.karmada.io/name": name, "resourcebinding.karmada.io/namespace": NAMESPACE,
        });
        let own = |field: &str| match &template["metadata"][field] {
            Value::Null => json!({}),
            marks => marks.clone(),
        };
        let marks =
            Marks { labels: merged(&own("labels"), &id), annotations: merged(&own("annotations"), &back) };
        let mut manifest = manifest(&template, &marks, &place);
        change(&mut manifest);
        deliver(control, member, &manifest, &marks, &place, self.path).await;
    }
}

async fn namespace(control: &ApiClient, member: &ApiClient) {
    let template = json!({ "metadata": { "name": "team", "labels": { "owner": "me" } } });
    let template = must(control, Method::POST, "/api/v1/namespaces", &template).await;
    let work = api::names::work_name("Namespace", "team", "");
    let work_id = "99999999-1f8a-4f6e-9a37-1f62f6c1f003";
    let place = Place { work: &work, work_id, owner: ("", "") };
    let marks = Marks { labels: template["metadata"]["labels"].clone(), annotations: json!({}) };
    let mut manifest = manifest(&template, &marks, &place);
    // No policy is behind it, so nothing says how conflicts are resolved.
    let annotations = manifest["metadata"]["annotations"].as_object_mut().expect("a map");
    annotations.remove("work.karmada.io/conflict-resolution");
    let listed = "resourcetemplate.karmada.io/managed-annotations";
    let list =
        annotations[listed].as_str().expect("a text").replace("work.karmada.io/conflict-resolution,", "");
    annotations.insert(listed.to_owned(), list.into());
    assert!(manifest["spec"]["finalizers"].is_array(), "{manifest:#}");
    let object = json!({
        "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {
            "name": work, "namespace": "karmada-es-member1", "labels": { "work.karmada.io/permanent-id": work_id },
            "finalizers": ["karmada.io/execution-controller"], "ownerReferences": [owner(&template)],
        },
        "spec": { "workload": { "manifests": [manifest] } },
    });
    must(control, Method::POST, WORKS, &object).await;
    must(member, Method::POST, "/api/v1/namespaces", &manifest).await;
    applied(control, &work).await;
}

async fn job(control: &ApiClient, member: &ApiClient) {
    let template = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "once", "namespace": NAMESPACE },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "main", "image": "busybox" }],
        } } },
    });
    let once = Propagated {
        path: JOB,
        binding: BINDINGS[0],
        binding_id: "aaaaaaaa-8f4e-4c39-bb7b-5cbe6d9dbe02",
        work_id: "aaaaaaaa-1f8a-4f6e-9a37-1f62f6c1f003",
        replicas: 1,
        claimed: true,
        annotations: json!({ "resourcebinding.karmada.io/dependencies": "null" }),
        spec: json!({}),
    };
    let change = |manifest: &mut Value| {
        assert!(manifest["spec"]["selector"]["matchLabels"].is_object(), "{manifest:#}");
        manifest["spec"]["selector"]["matchLabels"] = json!({});
        manifest["spec"]["template"]["metadata"]["labels"] = json!({});
    };
    once.write(control, member, template, change).await;
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "namespace": NAMESPACE },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": {
                    "containers": [{ "name": "main", "image": "nginx" }],
                    "volumes": [{ "name": "config", "configMap": { "name": "conf" } }],
                },
            },
        },
    })
}

async fn dependency(control: &ApiClient, member: &ApiClient) {
    let template = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "conf", "namespace": NAMESPACE },
        "data": { "key": "one" },
    });
    let clusters = json!([{ "name": "member1", "replicas": 1 }]);
    let conf = Propagated {
        path: CONF,
        binding: BINDINGS[2],
        binding_id: "bbbbbbbb-8f4e-4c39-bb7b-5cbe6d9dbe02",
        work_id: "bbbbbbbb-1f8a-4f6e-9a37-1f62f6c1f003",
        replicas: 0,
        claimed: false,
        annotations: json!({}),
        spec: json!({
            "requiredBy": [{ "namespace": NAMESPACE, "name": "web-deployment", "clusters": clusters }],
            "preserveResourcesOnDeletion": false,
        }),
    };
    conf.write(control, member, template, |_| {}).await;
}

async fn service(control: &ApiClient, member: &ApiClient) {
    let template = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "web", "namespace": NAMESPACE, "annotations": { "note": "of the template" } },
        "spec": { "ports": [{ "port": 80 }], "selector": { "app": "web" } },
    });
    let web = Propagated {
        path: SERVICE,
        binding: BINDINGS[3],
        binding_id: "cccccccc-8f4e-4c39-bb7b-5cbe6d9dbe02",
        work_id: "cccccccc-1f8a-4f6e-9a37-1f62f6c1f003",
        replicas: 0,
        claimed: true,
        annotations: json!({ "resourcebinding.karmada.io/dependencies": "null" }),
        spec: json!({}),
    };
    let change = |manifest: &mut Value| {
        for field in ["clusterIP", "clusterIPs"] {
            manifest["spec"].as_object_mut().expect("a map").remove(field);
        }
        let annotations = manifest["metadata"]["annotations"].as_object_mut().expect("a map");
        annotations.insert("note".to_owned(), "of the member".into());
        annotations.retain(|key, _| !key.starts_with("propagationpolicy.karmada.io/"));
        let listed = "resourcetemplate.karmada.io/managed-annotations";
        let keys: Vec<&str> = annotations.keys().map(String::as_str).collect();
        let list = Value::from(sorted(keys).join(","));
        annotations.insert(listed.to_owned(), list);
    };
    web.write(control, member, template, change).await;
    // Karmada notes on the Work which override policies acted.
    let overriders = json!({ "plaintext": [replacement()] });
    let applied = json!([{ "policyName": "notes", "overriders": overriders }]).to_string();
    let patch = json!({ "metadata": { "annotations": { "policy.karmada.io/applied-overrides": applied } } });
    let work = api::names::work_name("Service", "web", NAMESPACE);
    must(control, Method::PATCH, &format!("{WORKS}/{work}"), &patch).await;
}

/// What the override policy does with the annotations.
fn replacement() -> Value {
    json!({ "path": "/metadata/annotations", "operator": "replace", "value": { "note": "of the member" } })
}

fn sorted(mut keys: Vec<&str>) -> Vec<&str> {
    keys.sort_unstable();
    keys
}
