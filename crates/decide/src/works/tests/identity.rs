//! M3: what is delivered has the identity of its template, whatever stored override policies say.

use super::*;

#[test]
fn m3_no_override_makes_another_object_of_a_template() {
    let template = template(deployment());
    let binding = binding(&template, json!({"replicas": 1, "clusters": [{"name": "m1", "replicas": 1}]}));
    let root = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "root"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "name": "mallory"}],
    });
    let before = existing(&rendered(&binding, &template, &[], &[]));
    for (path, value) in [
        ("", root),
        ("", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-b"}})),
        ("", json!("text")),
        ("/metadata", json!([])),
        ("/metadata/labels", json!("text")),
        ("/metadata/name", json!("other")),
        ("/metadata/namespace", json!("kube-system")),
        ("/metadata/namespace", json!("kube-system?x=")),
        ("/kind", json!("DaemonSet")),
        ("/apiVersion", json!("apps/v1beta1")),
    ] {
        for namespace in ["", "default"] {
            let policy: OverridePolicy = serde_json::from_value(json!({
                "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
                "metadata": {"namespace": namespace, "name": "op"},
                "spec": {"overrideRules": [{"overriders": {"plaintext": [{"path": path, "operator": "replace", "value": value}]}}]},
            }))
            .expect("a policy");
            for existing in [&[][..], &before] {
                let answer = rendered(&binding, &template, std::slice::from_ref(&policy), existing);
                assert!(answer.works.is_empty() && answer.orphans.is_empty(), "{path} {value}: {answer}");
                assert_eq!(answer.failed.keys().collect::<Vec<_>>(), ["m1"], "{path} {value}");
            }
        }
    }
}

#[test]
fn m3_marks_do_not_change_by_overrides() {
    let template = template(deployment());
    let binding = binding(&template, json!({"replicas": 1, "clusters": [{"name": "m1", "replicas": 1}]}));
    let marked = |policies: &[OverridePolicy]| {
        let mut manifest =
            rendered(&binding, &template, policies, &[]).works["m1"].spec.workload.manifests[0].clone();
        let metadata = manifest["metadata"].as_object_mut().expect("a map");
        for (field, listed) in [("labels", "managed-labels"), ("annotations", "managed-annotations")] {
            assert!(metadata[field].as_object().expect("a map").len() > 3, "{metadata:?}");
            let listed = format!("resourcetemplate.karmada.io/{listed}");
            metadata["annotations"].as_object_mut().expect("a map").remove(&listed);
        }
        metadata["labels"].as_object_mut().expect("a map").remove("app");
        metadata["annotations"].as_object_mut().expect("a map").remove("note");
        metadata.clone()
    };
    let forged = json!({
        "karmada.io/managed": "false", "work.karmada.io/permanent-id": "x", "work.karmada.io/name": "another",
        "resourcebinding.karmada.io/permanent-id": "y", "resourcetemplate.karmada.io/uid": "z",
        "clusterresourcebinding.karmada.io/permanent-id": "c", "clusterresourcebinding.karmada.io/name": "c",
    });
    let change =
        |path: &str, value: Value| json!({"plaintext": [{"path": path, "operator": "add", "value": value}]});
    for overriders in [
        change("/metadata/labels", forged.clone()),
        change("/metadata/annotations", forged.clone()),
        json!({"labelsOverrider": [{"operator": "add", "value": forged}]}),
        json!({"annotationsOverrider": [{"operator": "add", "value": forged}]}),
        change("/metadata/ownerReferences", json!([{"kind": "Node", "name": "n", "uid": "u"}])),
        change("/metadata/finalizers", json!(["theirs"])),
        change("/metadata/uid", json!("theirs")),
    ] {
        let policy: OverridePolicy = serde_json::from_value(json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
            "metadata": {"namespace": "default", "name": "op"}, "spec": {"overrideRules": [{"overriders": overriders}]},
        }))
        .expect("a policy");
        assert_eq!(marked(&[policy]), marked(&[]), "{overriders}");
    }
}
