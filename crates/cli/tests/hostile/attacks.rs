//! The attacks. Each asserts itself what has to be refused; the members are checked for the rest afterwards.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::ground::{BINDINGS, Environment, MEMBERS, NEWS, POLICIES, deployment, map, policy, secret, until};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/team-a/deployments";
const MAPS: &str = "/api/v1/namespaces/team-a/configmaps";

fn overriding(overriders: Value) -> Value {
    json!({
        "metadata": { "name": "breakout" },
        "spec": {
            "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" }],
            "overrideRules": [{ "overriders": overriders }],
        },
    })
}

/// Overriders that would make another object of a template, each with a part of the reason.
fn breakouts() -> Vec<(Value, &'static str)> {
    let plain = |path: &str, value: Value| json!({ "plaintext": [{ "path": path, "operator": "replace", "value": value }] });
    let root = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "root" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve" }],
    });
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team-b" } });
    let identity = "are those of its template";
    let mark = "mark its own objects";
    let image = json!({ "predicate": { "path": "/metadata/namespace" }, "component": "Repository", "operator": "replace", "value": "kube-system" });
    vec![
        (plain("", root), identity),
        (plain("", namespace), identity),
        (plain("/", json!("x")), identity),
        (plain("/metadata", json!({ "name": "dns", "namespace": "kube-system" })), identity),
        (plain("/metadata/namespace", json!("kube-system")), identity),
        (plain("/metadata/namespace", json!("kube-system?x=")), identity),
        (plain("/metadata/name", json!("dns")), identity),
        (plain("/metadata/generateName", json!("dns")), identity),
        (plain("/metadata/uid", json!("x")), identity),
        (plain("/metadata/ownerReferences", json!([])), identity),
        (plain("/metadata/finalizers/-", json!("x")), identity),
        (plain("/kind", json!("DaemonSet")), identity),
        (plain("/apiVersion", json!("v1")), identity),
        (plain("/metadata/labels/karmada.io~1managed", json!("false")), mark),
        (plain("/metadata/annotations/work.karmada.io~1name", json!("shop")), mark),
        (plain("/metadata/annotations", json!({ "work.karmada.io/namespace": "karmada-es-member2" })), mark),
        (
            json!({ "labelsOverrider": [{ "operator": "add", "value": { "karmada.io/managed": "false" } }] }),
            mark,
        ),
        (
            json!({ "annotationsOverrider": [{ "operator": "add", "value": { "work.karmada.io/name": "shop" } }] }),
            mark,
        ),
        (json!({ "imageOverrider": [image] }), identity),
        (
            json!({ "fieldOverrider": [{ "fieldPath": "/metadata/name", "json": [{ "subPath": "/a", "operator": "add", "value": 1 }] }] }),
            identity,
        ),
    ]
}

/// Overrides that change what an object is, new ones and ones that were honest before, in every form of a patch.
pub async fn overrides(ground: &Environment) {
    let eve = &ground.eve;
    eve.make(DEPLOYMENTS, deployment("web")).await;
    eve.make(&format!("{POLICIES}/team-a/propagationpolicies"), policy("web", "apps/v1", "Deployment")).await;
    ground.until_in_members(&format!("{DEPLOYMENTS}/web")).await;
    let collection = format!("{POLICIES}/team-a/overridepolicies");
    for (overriders, reason) in breakouts() {
        let said = eve.refused(Method::POST, &collection, overriding(overriders.clone())).await;
        assert!(said.contains("spec.overrideRules[0].overriders.") && said.contains(reason), "{said}");
        let mut deprecated = overriding(Value::Null);
        deprecated["spec"] = json!({ "overriders": overriders });
        eve.refused(Method::POST, &collection, deprecated).await;
    }
    let honest = json!({ "labelsOverrider": [{ "operator": "add", "value": { "tier": "front" } }] });
    eve.make(&collection, overriding(honest)).await;
    let object = format!("{collection}/breakout");
    for (overriders, _) in breakouts() {
        let patch = json!({ "spec": { "overrideRules": [{ "overriders": overriders }] } });
        eve.refused(Method::PATCH, &object, patch).await;
        let value = overriders;
        let step = json!([{ "op": "replace", "path": "/spec/overrideRules/0/overriders", "value": value }]);
        let (status, answer) = eve.ask_as(Method::PATCH, &object, "application/json-patch+json", step).await;
        assert!(status.is_client_error(), "{value}: {answer}");
    }
    for collection in ["clusteroverridepolicies", "clusterpropagationpolicies", "clusterrolloutpolicies"] {
        let path = format!("/apis/policy.karmada.io/v1alpha1/{collection}");
        eve.refused(Method::POST, &path, overriding(json!({}))).await;
    }
    let other = format!("{POLICIES}/team-b/overridepolicies");
    eve.refused(Method::POST, &other, overriding(json!({}))).await;
}

/// A binding as Longshore itself would write it, about whatever Mallory likes.
fn binding(name: &str, resource: Value) -> Value {
    let clusters: Vec<Value> = MEMBERS.iter().map(|name| json!({ "name": name })).collect();
    let pin = json!({ "policy": { "uid": "", "generation": 0 }, "template": "" }).to_string();
    json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": { "name": name, "annotations": { "longshore.io/pin": pin } },
        "spec": { "resource": resource, "clusters": clusters, "propagateDeps": true },
    })
}

fn reference(api_version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name })
}

/// Bindings by hand: about what lies in other namespaces or in none, with copied ids, and what is said about them.
pub async fn bindings(ground: &Environment) {
    let collection = format!("{BINDINGS}/team-a/resourcebindings");
    let stolen = reference("v1", "Secret", "team-b", "db");
    ground.eve.refused(Method::POST, &collection, binding("db-secret", stolen.clone())).await;

    let mallory = &ground.mallory;
    let mut foreign = vec![
        binding("db-secret", stolen.clone()),
        binding("shop-configmap", reference("v1", "ConfigMap", "team-b", "shop")),
        binding(
            "admin-clusterrole",
            reference("rbac.authorization.k8s.io/v1", "ClusterRole", "", "cluster-admin"),
        ),
        binding("team-b-namespace", reference("v1", "Namespace", "", "team-b")),
    ];
    // The id of team-b's own binding, as if Mallory had overheard it.
    let theirs = ground.admin.get(&format!("{BINDINGS}/team-b/resourcebindings/shop-configmap")).await;
    let id = theirs["metadata"]["labels"]["resourcebinding.karmada.io/permanent-id"].clone();
    assert!(id.is_string(), "{theirs}");
    foreign[1]["metadata"]["labels"] = json!({ "resourcebinding.karmada.io/permanent-id": id });
    for binding in &foreign {
        mallory.make(&collection, binding.clone()).await;
    }
    for binding in &foreign {
        let path = format!("{collection}/{}", binding["metadata"]["name"].as_str().expect("a name"));
        let is_told = async || {
            let conditions = mallory.get(&path).await["status"]["conditions"].clone();
            let mut conditions = conditions.as_array().into_iter().flatten();
            conditions.any(|one| one["type"] == "Scheduled" && one["reason"] == "ResourceOutsideNamespace")
        };
        until(&format!("{path} says that it is ignored"), is_told).await;
    }
    let events = async || mallory.get("/api/v1/namespaces/team-a/events").await.to_string();
    until("an event says so", async || events().await.contains("ResourceOutsideNamespace")).await;

    // One about her own, with the id of team-b's, that asks for nothing: team-b's Works are none of its business.
    let mut copied = binding("mine-configmap", reference("v1", "ConfigMap", "team-a", "mine"));
    copied["metadata"]["labels"] = json!({ "resourcebinding.karmada.io/permanent-id": id });
    copied["spec"]["clusters"] = json!([]);
    mallory.make(&collection, copied.clone()).await;
    foreign.push(copied);
    for binding in &foreign {
        let path = format!("{collection}/{}", binding["metadata"]["name"].as_str().expect("a name"));
        let (status, answer) = mallory.ask(Method::DELETE, &path, Value::Null).await;
        // Longshore itself deletes a binding whose template is not there.
        assert!(matches!(status, StatusCode::OK | StatusCode::NOT_FOUND), "{answer}");
        until(&format!("{path} is gone"), async || mallory.get(&path).await.is_null()).await;
    }
}

/// Works by hand: not where they count, and of no effect elsewhere.
pub async fn works(ground: &Environment) {
    let manifest = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "root" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
    });
    let mut work =
        json!({ "metadata": { "name": "root" }, "spec": { "workload": { "manifests": [manifest] } } });
    let works = |namespace: &str| format!("/apis/work.karmada.io/v1alpha1/namespaces/{namespace}/works");
    for person in [&ground.eve, &ground.mallory] {
        for namespace in ["karmada-es-member1", "team-b", "karmada-system", "karmada-cluster"] {
            person.refused(Method::POST, &works(namespace), work.clone()).await;
        }
        person.refused(Method::GET, &works("karmada-es-member1"), Value::Null).await;
        person.refused(Method::GET, "/apis/work.karmada.io/v1alpha1/works", Value::Null).await;
    }
    ground.eve.refused(Method::POST, &works("team-a"), work.clone()).await;
    ground.mallory.make(&works("team-a"), work.clone()).await;

    // Not even an administrator makes a binding bring something that it is not about, nor take it away.
    for (manifest, id) in [
        (manifest, "none"),
        (json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team-b" } }), "other"),
    ] {
        let name = format!("strange-{id}");
        work["metadata"] = json!({
            "name": name, "finalizers": ["karmada.io/execution-controller"],
            "labels": { "resourcebinding.karmada.io/permanent-id": id },
            "annotations": { "resourcebinding.karmada.io/namespace": "team-b", "resourcebinding.karmada.io/name": "shop-configmap" },
        });
        work["spec"] = json!({ "workload": { "manifests": [manifest] } });
        let works = works("karmada-es-member1");
        ground.admin.make(&works, work.clone()).await;
        let path = format!("{works}/{name}");
        let is_refused =
            async || ground.admin.get(&path).await["status"].to_string().contains("it is not delivered");
        until(&format!("{path} says that it is not delivered"), is_refused).await;
        let (status, answer) = ground.admin.ask(Method::DELETE, &path, Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        until(&format!("{path} is gone"), async || ground.admin.get(&path).await.is_null()).await;
    }
}

/// Names that mean something in a path. Kinds of access control may have nearly any.
pub async fn names(ground: &Environment) {
    let mallory = &ground.mallory;
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/roles";
    let policies = format!("{POLICIES}/team-a/propagationpolicies");
    mallory.make(&policies, policy("roles", "rbac.authorization.k8s.io/v1", "Role")).await;
    for name in ["kube-system?x=", "a b", "x#y", "ü", "a&dryRun=All", "x;y", "..x"] {
        // Whether the name is taken is the server's decision; it must only mean nothing else.
        mallory.ask(Method::POST, roles, json!({ "metadata": { "name": name }, "rules": [] })).await;
    }
    for name in ["../../namespaces", "a/b", "a%2Fb", "..", "."] {
        mallory.refused(Method::POST, roles, json!({ "metadata": { "name": name }, "rules": [] })).await;
        mallory.refused(Method::POST, MAPS, map(name)).await;
    }
    for path in [
        "/api/v1/namespaces/team-a%2F..%2Fteam-b/secrets/db",
        "/api/v1/namespaces/team-a/../team-b/secrets/db",
        "/api/v1/namespaces/team-b%3F/secrets/db",
    ] {
        mallory.refused(Method::GET, path, Value::Null).await;
    }
}

/// What lies in other namespaces does not come along, whatever a template or a binding says that it needs.
pub async fn dependencies(ground: &Environment) {
    let mallory = &ground.mallory;
    let mut needy = deployment("needy");
    needy["spec"]["template"]["spec"]["volumes"] = json!([{ "name": "v", "secret": { "secretName": "db" } }, { "name": "w", "secret": { "secretName": "own" } }]);
    needy["metadata"]["annotations"] = json!({
        "resourcebinding.karmada.io/dependencies": r#"[{"apiVersion":"v1","kind":"Secret","namespace":"team-b","name":"db"}]"#,
    });
    mallory.make("/api/v1/namespaces/team-a/secrets", secret("own", "mine")).await;
    let mut taking_along = policy("needy", "apps/v1", "Deployment");
    taking_along["spec"]["resourceSelectors"][0]["name"] = "needy".into();
    taking_along["spec"]["propagateDeps"] = true.into();
    mallory.make(&format!("{POLICIES}/team-a/propagationpolicies"), taking_along).await;
    mallory.make(DEPLOYMENTS, needy).await;
    ground.until_in_members("/api/v1/namespaces/team-a/secrets/own").await;

    let path = format!("{BINDINGS}/team-a/resourcebindings/needy-deployment");
    let stolen = json!([
        { "apiVersion": "v1", "kind": "Secret", "namespace": "team-b", "name": "db" },
        { "apiVersion": "v1", "kind": "Secret", "namespace": "team-a", "name": "own" },
        { "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "namespace": "", "name": "cluster-admin" },
    ]);
    let patch = json!({ "metadata": { "annotations": { "resourcebinding.karmada.io/dependencies": stolen.to_string() } } });
    let (status, answer) = mallory.ask(Method::PATCH, &path, patch).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    // A binding without a template, so that only its own annotation names dependencies.
    let mut ghost = binding("ghost-deployment", reference("apps/v1", "Deployment", "team-a", "ghost"));
    ghost["metadata"]["annotations"]["resourcebinding.karmada.io/dependencies"] = stolen.to_string().into();
    mallory.make(&format!("{BINDINGS}/team-a/resourcebindings"), ghost).await;
    let events = async || mallory.get("/api/v1/namespaces/team-a/events").await.to_string();
    until("an event says so", async || events().await.contains("DependencyOutsideNamespace")).await;
    let theirs = ground.admin.get(&format!("{BINDINGS}/team-b/resourcebindings/db-secret")).await;
    assert_eq!(theirs, Value::Null, "nothing is bound that its owner did not bind");
}

/// Marks of the control plane on templates, and their removal afterwards.
pub async fn marks(ground: &Environment) {
    let shop = ground.admin.get("/api/v1/namespaces/team-b/configmaps/shop").await;
    let works = ground.admin.get("/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member1/works").await;
    let of_shop = |work: &&Value| work["spec"]["workload"]["manifests"][0]["metadata"]["name"] == "shop";
    let work =
        works["items"].as_array().expect("a list").iter().find(of_shop).expect("team-b's Work").clone();
    let id = &work["metadata"]["labels"]["resourcebinding.karmada.io/permanent-id"];
    let mut forged = map("forged");
    forged["metadata"]["labels"] = json!({
        "sentinel": "yes",
        "karmada.io/managed": "true",
        "resourcebinding.karmada.io/permanent-id": id,
        "work.karmada.io/permanent-id": work["metadata"]["labels"]["work.karmada.io/permanent-id"],
        "clusterpropagationpolicy.karmada.io/permanent-id": "11111111-1111-4111-8111-111111111111",
    });
    forged["metadata"]["annotations"] = json!({
        "work.karmada.io/name": work["metadata"]["name"],
        "work.karmada.io/namespace": "karmada-es-member1",
        "resourcebinding.karmada.io/name": "shop-configmap",
        "resourcebinding.karmada.io/namespace": "team-b",
        "resourcetemplate.karmada.io/uid": shop["metadata"]["uid"],
        "clusterpropagationpolicy.karmada.io/name": "theirs",
        "work.karmada.io/conflict-resolution": "overwrite",
    });
    ground.eve.make(MAPS, forged).await;
    ground.until_in_members(&format!("{MAPS}/forged")).await;
    let (status, answer) = ground.eve.ask(Method::DELETE, &format!("{MAPS}/forged"), Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    ground.until_gone_from_members(&format!("{MAPS}/forged")).await;
}

/// Objects that say that they belong to those of other namespaces, and the deletion of them.
pub async fn owners(ground: &Environment) {
    let shop = ground.admin.get("/api/v1/namespaces/team-b/configmaps/shop").await;
    let namespace = ground.admin.get("/api/v1/namespaces/team-b").await;
    let owner = |kind: &str, object: &Value| {
        json!({ "apiVersion": "v1", "kind": kind, "name": object["metadata"]["name"], "uid": object["metadata"]["uid"],
            "controller": true, "blockOwnerDeletion": true })
    };
    for (name, owner) in [("owned-1", owner("ConfigMap", &shop)), ("owned-2", owner("Namespace", &namespace))]
    {
        let mut object = map(name);
        object["metadata"]["labels"] = json!({ "sentinel": "yes" });
        object["metadata"]["ownerReferences"] = json!([owner]);
        ground.mallory.ask(Method::POST, MAPS, object).await;
        let foreground =
            json!({ "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground" });
        ground.mallory.ask(Method::DELETE, &format!("{MAPS}/{name}"), foreground).await;
    }
    for name in ["owned-1", "owned-2"] {
        ground.until_gone_from_members(&format!("{MAPS}/{name}")).await;
    }
    for path in ["/api/v1/namespaces/team-b/configmaps/shop", "/api/v1/namespaces/team-b"] {
        assert_ne!(ground.admin.get(path).await, Value::Null, "{path} is still there");
    }
}

/// Many changes at once; a change of team-b still gets through.
pub async fn floods(ground: &Environment) {
    let flood = (0..8).map(|client| {
        let eve = ground.eve.clone();
        tokio::spawn(async move {
            for number in 0..25 {
                let mut object = map(&format!("flood-{client}-{number}"));
                object["metadata"]["labels"] = json!({ "sentinel": "yes" });
                eve.ask(Method::POST, MAPS, object).await;
            }
        })
    });
    let flood: Vec<_> = flood.collect();
    let path = format!("/api/v1/namespaces/team-b/configmaps/{NEWS}");
    let (status, answer) =
        ground.admin.ask(Method::PATCH, &path, json!({ "data": { "changed": "yes" } })).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    until("team-b's change is in its members", async || ground.is_in_members(&path, "/data/changed").await)
        .await;
    for client in flood {
        client.await.expect("no client fails");
    }
}
