//! The table of roles in docs/security.md is what the shipped roles say. `UPDATE_EXPECT=1` writes it anew.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use apiserver::authn::Identity;
use apiserver::{ApiServer, Config, Security};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tower::ServiceExt as _;

const ROLES: [&str; 5] = ["longshore:policy-admin", "longshore:tenant", "admin", "edit", "view"];
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 4] = ["create", "update", "patch", "delete"];
const BEGIN: &str = "<!-- table of roles: UPDATE_EXPECT=1 cargo test -p cli --test commands roles -->\n";
const END: &str = "<!-- end of the table of roles -->\n";

/// The verbs on a kind, and what a write of it causes in members.
struct Power {
    what: &'static str,
    group: &'static str,
    resource: &'static str,
    in_members: &'static str,
}

const fn power(
    what: &'static str,
    group: &'static str,
    resource: &'static str,
    in_members: &'static str,
) -> Power {
    Power { what, group, resource, in_members }
}

const DELIVERED: &str =
    "what is written is delivered where a policy places it, under the same kind, namespace and name";
const NOTHING: &str = "nothing";
const POWERS: [Power; 22] = [
    power("workloads (Deployments and others)", "apps", "deployments", DELIVERED),
    power("Services", "", "services", DELIVERED),
    power("ConfigMaps", "", "configmaps", DELIVERED),
    power("Secrets", "", "secrets", DELIVERED),
    power("Pods", "", "pods", "delivered like a workload if a policy selects it"),
    power("ServiceAccounts", "", "serviceaccounts", DELIVERED),
    power(
        "Roles",
        "rbac.authorization.k8s.io",
        "roles",
        "delivered; they hold in that namespace of the member",
    ),
    power(
        "RoleBindings",
        "rbac.authorization.k8s.io",
        "rolebindings",
        "delivered; on the control plane none is written that grants more than its writer has",
    ),
    power(
        "PropagationPolicies",
        "policy.karmada.io",
        "propagationpolicies",
        "decides which members have the objects of the namespace: copies appear, move and go",
    ),
    power(
        "OverridePolicies",
        "policy.karmada.io",
        "overridepolicies",
        "changes fields of the copies of the namespace's objects, never their identity",
    ),
    power(
        "RolloutPolicies",
        "policy.karmada.io",
        "rolloutpolicies",
        "holds and releases delivery of the namespace's objects",
    ),
    power("ResourceBindings", "work.karmada.io", "resourcebindings", "would place objects without a policy"),
    power("Works", "work.karmada.io", "works", "would write anything into a member"),
    power(
        "ClusterPropagationPolicies",
        "policy.karmada.io",
        "clusterpropagationpolicies",
        "decides which members have the objects of every namespace and of the cluster",
    ),
    power(
        "ClusterOverridePolicies",
        "policy.karmada.io",
        "clusteroverridepolicies",
        "changes fields of the copies of all objects, never their identity",
    ),
    power(
        "ClusterRolloutPolicies",
        "policy.karmada.io",
        "clusterrolloutpolicies",
        "holds and releases delivery of all objects",
    ),
    power(
        "ClusterTaintPolicies",
        "policy.karmada.io",
        "clustertaintpolicies",
        "taints members by their conditions, which evicts workloads",
    ),
    power(
        "WorkloadRebalancers",
        "apps.karmada.io",
        "workloadrebalancers",
        "places workloads anew, as their policies say",
    ),
    power(
        "ResourceInterpreterCustomizations",
        "config.karmada.io",
        "resourceinterpretercustomizations",
        "nothing here: its scripts are stored and not run",
    ),
    power("Clusters", "cluster.karmada.io", "clusters", "would join, taint and remove members"),
    power(
        "Namespaces",
        "",
        "namespaces",
        "a namespace is made in members; its deletion deletes its contents",
    ),
    power(
        "ClusterRoles",
        "rbac.authorization.k8s.io",
        "clusterroles",
        "delivered if a policy of the cluster selects it",
    ),
];

async fn roles() -> Vec<Value> {
    let security = Security { roles: Some(plane::roles::roles()), ..Security::bare().expect("keys") };
    let config = Config {
        store: store::Store::in_memory(),
        now: Arc::new(jiff::Timestamp::now),
        random: Arc::new(rand::random),
        admission: apiserver::admission::admit_all(),
        root_ca: String::new(),
    };
    let server = ApiServer::secured(config, security).await.expect("a server");
    let mut found = Vec::new();
    for role in ROLES {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}");
        let request = Request::get(path).body(Full::new(bytes::Bytes::new())).expect("a request");
        let answer = server.trusting(Identity::internal("test")).oneshot(request).await.expect("an answer");
        assert_eq!(answer.status(), 200, "{role}");
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        found.push(serde_json::from_slice(&body).expect("a role"));
    }
    found
}

/// What a role may do to a kind: nothing, read or write.
fn allowed(role: &Value, power: &Power) -> &'static str {
    let says = |rule: &Value, key: &str, wanted: &str| {
        let entries = rule[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        entries.into_iter().any(|entry| entry == "*" || entry == wanted)
    };
    let may = |verb: &&str| {
        role["rules"].as_array().into_iter().flatten().any(|rule| {
            says(rule, "verbs", verb)
                && says(rule, "apiGroups", power.group)
                && says(rule, "resources", power.resource)
        })
    };
    match (READ.iter().all(may), WRITE.iter().any(may), READ.iter().any(may)) {
        (true, true, _) => "read, write",
        (true, false, _) => "read",
        (false, true, _) => "write",
        (false, false, true) => "read some",
        (false, false, false) => "–",
    }
}

fn table(roles: &[Value]) -> String {
    let mut text = format!("| | `{}` | what a writer causes in members |\n", ROLES.join("` | `"));
    text += &format!("|---|{}---|\n", "---|".repeat(ROLES.len()));
    for power in &POWERS {
        let cells: Vec<&str> = roles.iter().map(|role| allowed(role, power)).collect();
        let is_written = cells.iter().any(|cell| cell.contains("write"));
        let effect = match is_written {
            true => power.in_members.to_owned(),
            false => format!("{NOTHING}: no shipped role writes it ({})", power.in_members),
        };
        let _ = writeln!(text, "| {} | {} | {effect} |", power.what, cells.join(" | "));
    }
    text
}

#[tokio::test]
async fn the_table_of_roles_is_what_they_say() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let (before, rest) = text.split_once(BEGIN).expect("the table begins");
    let (written, after) = rest.split_once(END).expect("the table ends");
    let wanted = table(&roles().await);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&page, format!("{before}{BEGIN}{wanted}{END}{after}")).expect("the page is written");
        return;
    }
    assert_eq!(
        written, wanted,
        "docs/security.md is behind: UPDATE_EXPECT=1 cargo test -p cli --test commands roles"
    );
}
