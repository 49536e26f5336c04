//! Bootstrap roles and bindings that every secured server has: Kubernetes' own, and those that the embedding process
//! adds. As in Kubernetes they are recreated when missing, and missing rules are added, unless
//! `rbac.authorization.kubernetes.io/autoupdate` says otherwise.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::authz::{Rule, missing};
use crate::engine::Engine;
use crate::storage::stored;
use apimachinery::error::ApiError;

const GROUP: &str = "rbac.authorization.k8s.io";
const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
/// How deep aggregated roles aggregate others at start; beyond that, the controller goes on.
const PASSES_MAX: usize = 10;

/// A role or binding in the short form of the committed file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RoleSpec {
    kind: String,
    name: String,
    #[serde(default)]
    labels: Value,
    #[serde(default)]
    rules: Value,
    #[serde(default)]
    aggregation_rule: Value,
    #[serde(default)]
    role_ref: String,
    #[serde(default)]
    subjects: Vec<(String, String)>,
}

impl Engine {
    /// Makes sure that the default roles are there and can do what they should.
    pub async fn bootstrap_roles(&self, own: &[Value]) -> Result<(), ApiError> {
        for object in defaults().into_iter().chain(own.iter().cloned()) {
            self.ensure_role(object).await?;
        }
        let mut passes = 0;
        while self.aggregate_roles().await? && passes < PASSES_MAX {
            passes += 1;
        }
        Ok(())
    }

    async fn ensure_role(&self, object: Value) -> Result<(), ApiError> {
        let plural = match object["kind"].as_str() {
            Some("ClusterRole") => "clusterroles",
            _ => "clusterrolebindings",
        };
        let resource = self.resource(GROUP, "v1", plural)?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let Some(entry) = self.store.get(&resource.table, name) else {
            return self.ensure(&resource, "", object).await;
        };
        let old = stored::parse(&entry.value);
        let lost = match plural {
            "clusterroles" => missing(&Rule::all_of(&old), &Rule::all_of(&object)).is_some(),
            _ => old["subjects"] != object["subjects"],
        };
        if !lost || old["metadata"]["annotations"][AUTOUPDATE] == "false" {
            return Ok(());
        }
        let call = self.internal_call(&resource, "", name);
        self.internal_change(&call, |old| complete(old, &object)).await
    }
}

/// Adds what an object lost; what was added to it stays.
fn complete(old: &mut Value, wanted: &Value) {
    for key in ["rules", "subjects"] {
        let Some(wanted) = wanted[key].as_array() else { continue };
        let mut entries = old[key].as_array().cloned().unwrap_or_default();
        let lost: Vec<Value> = wanted.iter().filter(|entry| !entries.contains(entry)).cloned().collect();
        entries.extend(lost);
        old[key] = entries.into();
    }
}

fn defaults() -> Vec<Value> {
    let specs: Vec<RoleSpec> = serde_json::from_str(include_str!("../../data/roles.json"))
        .expect("the committed roles are tested to be readable");
    specs.into_iter().map(object).collect()
}

fn object(spec: RoleSpec) -> Value {
    let mut labels = json!({ "kubernetes.io/bootstrapping": "rbac-defaults" });
    for (key, value) in spec.labels.as_object().into_iter().flatten() {
        labels[key] = value.clone();
    }
    let metadata = json!({ "name": spec.name, "labels": labels, "annotations": { AUTOUPDATE: "true" } });
    let mut object = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": spec.kind, "metadata": metadata });
    if spec.kind == "ClusterRole" {
        object["rules"] = spec.rules;
        if !spec.aggregation_rule.is_null() {
            object["aggregationRule"] = spec.aggregation_rule;
        }
        return object;
    }
    object["roleRef"] = json!({ "apiGroup": GROUP, "kind": "ClusterRole", "name": spec.role_ref });
    let subject = |(kind, name): (String, String)| json!({ "apiGroup": GROUP, "kind": kind, "name": name });
    object["subjects"] = spec.subjects.into_iter().map(subject).collect();
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_roles_are_whole() {
        let all = defaults();
        let named = |name: &str| all.iter().filter(|one| one["metadata"]["name"] == name).count();
        for name in ["cluster-admin", "system:discovery", "system:basic-user", "system:public-info-viewer"] {
            assert_eq!(named(name), 2, "a role and a binding {name}");
        }
        for name in ["admin", "edit", "view"] {
            assert_eq!(named(name), 1, "{name}");
        }
    }
}
