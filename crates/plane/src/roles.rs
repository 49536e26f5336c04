//! Default RBAC roles for policies: the administrator of cluster-scoped policies, and the tenant of one namespace.
//! Passed to the API server, which knows RBAC and nothing of policies.

use serde_json::{Value, json};

use crate::extension;

const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];

/// The cluster roles that a control plane has beside Kubernetes' own.
///
/// `longshore:policy-admin` is bound in the cluster; `longshore:tenant` in a namespace, where it is what `edit` and
/// `view` are together. The other two add policies to `edit` and what became of them to `view`.
pub fn roles() -> Vec<Value> {
    let all = [READ.as_slice(), WRITE.as_slice()].concat();
    let of_namespace = ["propagationpolicies", "overridepolicies", "rolloutpolicies"];
    let of_cluster = [
        "clusterpropagationpolicies",
        "clusteroverridepolicies",
        "clusterrolloutpolicies",
        "clustertaintpolicies",
    ];
    let (plans, answers) = ([extension::PLANS], [extension::EXPLANATIONS, extension::REPORTS]);
    let reviews = [extension::DELIVERY_REVIEWS];
    let results = ["resourcebindings", "resourcebindings/status"];
    let policy_admin = json!([
        rule(&all, "policy.karmada.io", &[of_namespace.as_slice(), of_cluster.as_slice()].concat()),
        rule(&all, "apps.karmada.io", &["workloadrebalancers"]),
        rule(&all, "config.karmada.io", &["resourceinterpretercustomizations"]),
        rule(&READ, "cluster.karmada.io", &["clusters", "clusters/status"]),
        rule(&READ, "work.karmada.io", &["resourcebindings", "clusterresourcebindings"]),
        rule(&["create"], extension::GROUP, &[plans, reviews].concat()),
        rule(&["get"], extension::GROUP, &answers),
    ]);
    let gathers = json!([
        { "matchLabels": { "rbac.authorization.k8s.io/aggregate-to-edit": "true" } },
        { "matchLabels": { "rbac.authorization.k8s.io/aggregate-to-view": "true" } },
    ]);
    let mut tenant = role("longshore:tenant", "", Value::Null);
    tenant["aggregationRule"] = json!({ "clusterRoleSelectors": gathers });
    vec![
        role("longshore:policy-admin", "", policy_admin),
        tenant,
        role(
            "longshore:aggregate-to-edit",
            "edit",
            json!([
                rule(&WRITE, "policy.karmada.io", &of_namespace),
                rule(&["create"], extension::GROUP, &plans)
            ]),
        ),
        role(
            "longshore:aggregate-to-view",
            "view",
            json!([
                rule(&READ, "policy.karmada.io", &of_namespace),
                rule(&READ, "work.karmada.io", &results),
                rule(&["get"], extension::GROUP, &answers),
                rule(&["create"], extension::GROUP, &reviews)
            ]),
        ),
    ]
}

fn rule(verbs: &[&str], group: &str, resources: &[&str]) -> Value {
    json!({ "verbs": verbs, "apiGroups": [group], "resources": resources })
}

fn role(name: &str, added_to: &str, rules: Value) -> Value {
    let mut labels = json!({ "kubernetes.io/bootstrapping": "rbac-defaults" });
    if !added_to.is_empty() {
        labels[format!("rbac.authorization.k8s.io/aggregate-to-{added_to}")] = "true".into();
    }
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": name, "labels": labels, "annotations": { AUTOUPDATE: "true" } },
        "rules": rules,
    })
}
