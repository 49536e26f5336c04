//! Golden names that were recorded from Karmada itself.

use super::*;

fn check((kind, name, namespace): (&str, &str, &str), work: &str, binding: &str) {
    assert_eq!(work_name(kind, name, namespace), work);
    assert_eq!(binding_name(kind, name), binding);
}

#[test]
fn c7_works_and_bindings_have_karmadas_names() {
    check(("Deployment", "nginx", "default"), "nginx-687f7fb96f", "nginx-deployment");
    check(("Service", "nginx", "default"), "nginx-64b7849b5", "nginx-service");
    check(("ClusterRole", "system:foo", ""), "system.foo-5f7d88f69", "system.foo-clusterrole");
    check(("Namespace", "test", ""), "test-69fd499b4c", "test-namespace");
    check(("ConfigMap", "My.Conf", "ns1"), "my.conf-7dd7659ff", "my.conf-configmap");
    check(("Secret", "a", "b"), "a-89d8fd54", "a-secret");
}

#[test]
fn c7_dependencies_and_policies_have_karmadas_names() {
    assert_eq!(
        depended_by_label("default", "nginx-deployment"),
        "resourcebinding.karmada.io/depended-by-5bdc5c4dcf"
    );
    assert_ne!(depended_by_label("", "nginx-deployment"), depended_by_label("default", "nginx-deployment"));
    assert_eq!(policy_name("apps/v1", "Deployment", "default", "nginx"), "nginx-6d7f8d5f5b");
}

#[test]
fn a_core_kind_prints_an_empty_group() {
    // Go: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}.String() == "/v1, Kind=Pod".
    assert_eq!(policy_name("v1", "Pod", "ns", "a"), format!("a-{}", hash("ns/v1, Kind=Pod")));
}

#[test]
fn execution_namespaces_name_their_member_and_are_reserved() {
    assert_eq!(execution_namespace("member1"), "karmada-es-member1");
    for (namespace, member, reserved) in [
        ("karmada-es-member1", Some("member1"), true),
        ("karmada-es-", None, true),
        ("karmada-system", None, true),
        ("karmada-cluster", None, true),
        ("karmada-es", None, false),
        ("default", None, false),
    ] {
        assert_eq!(cluster_of_execution_namespace(namespace), member, "{namespace}");
        assert_eq!(is_reserved_namespace(namespace), reserved, "{namespace}");
    }
}

#[test]
fn members_know_the_control_plane_by_karmadas_names() {
    assert_eq!(member_service_account("member1"), "karmada-member1");
    assert_eq!(member_role("member1"), "karmada-controller-manager:karmada-member1");
    assert_eq!(impersonator_secret("member1"), "member1-impersonator");
}

#[test]
fn a_permanent_id_is_a_version_4_uuid() {
    assert_eq!(permanent_id([0; 16]), "00000000-0000-4000-8000-000000000000");
    assert_eq!(permanent_id([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
}

#[test]
fn roles_that_every_server_makes_are_told_from_those_that_somebody_wrote() {
    let check = |api_version: &str, labels: serde_json::Value, expected: bool| {
        let metadata = serde_json::json!({ "name": "n", "labels": labels });
        let object = serde_json::json!({ "apiVersion": api_version, "metadata": metadata });
        assert_eq!(is_made_by_server(&object), expected, "{object}");
    };
    let label = |value: &str| serde_json::json!({ "kubernetes.io/bootstrapping": value });
    check("rbac.authorization.k8s.io/v1", label("rbac-defaults"), true);
    check("rbac.authorization.k8s.io/v1", label("other"), false);
    // Users may label what they like.
    check("apps/v1", label("rbac-defaults"), false);
    check("rbac.authorization.k8s.io/v1", serde_json::json!(null), false);
}

#[test]
fn the_service_of_an_api_server_is_no_template() {
    let check = |api_version: &str, kind: &str, namespace: &str, name: &str, expected: bool| {
        let metadata = serde_json::json!({ "name": name, "namespace": namespace });
        let object = serde_json::json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
        assert_eq!(is_no_template(namespace, &object), expected, "{object}");
    };
    check("v1", "Service", "default", "kubernetes", true);
    check("v1", "Endpoints", "default", "kubernetes", true);
    check("discovery.k8s.io/v1", "EndpointSlice", "default", "kubernetes", true);
    check("v1", "Service", "team-a", "kubernetes", false);
    check("v1", "Service", "default", "web", false);
    check("v1", "ConfigMap", "default", "kubernetes", false);
}

#[test]
fn what_belongs_to_the_system_is_no_template() {
    let check = |namespace: &str, labels: serde_json::Value, expected: bool| {
        let metadata = serde_json::json!({ "name": "member1", "namespace": namespace, "labels": labels });
        let object = serde_json::json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata });
        assert_eq!(is_no_template(namespace, &object), expected, "{object}");
    };
    let mark = |value: &str| serde_json::json!({ "karmada.io/system": value });
    check("karmada-cluster", serde_json::json!(null), true);
    check("kube-system", serde_json::json!(null), true);
    check("platform", serde_json::json!(null), false);
    check("platform", mark("true"), true);
    check("platform", mark("false"), false);
}
