//! Aggregated ClusterRoles: a role with an `aggregationRule` gets the rules of all ClusterRoles that its selectors
//! match.

use serde_json::{Value, json};
use store::Range;

use crate::authz::{CLUSTER_ROLES, Rule};
use crate::engine::Engine;
use crate::storage::stored;
use apimachinery::error::ApiError;
use apimachinery::selector::LabelSelector;

impl Engine {
    /// Brings every aggregated cluster role up to date; whether any was not. Roles that aggregate
    /// aggregated roles may then be behind.
    pub async fn aggregate_roles(&self) -> Result<bool, ApiError> {
        let entries = self.store.range(CLUSTER_ROLES, Range::default()).map_err(ApiError::internal)?.entries;
        let roles: Vec<Value> = entries.iter().map(|entry| stored::parse(&entry.value)).collect();
        let resource = self.resource("rbac.authorization.k8s.io", "v1", "clusterroles")?;
        let mut changed = false;
        for role in roles.iter().filter(|role| role["aggregationRule"].is_object()) {
            let rules = json!(aggregated_rules(role, &roles));
            if role["rules"] == rules || (role["rules"].is_null() && rules == json!([])) {
                continue;
            }
            let name = role["metadata"]["name"].as_str().unwrap_or_default();
            let call = self.internal_call(&resource, "", name);
            // It may have changed meanwhile; then this is looked at again anyway.
            self.internal_change(&call, |role| role["rules"] = rules.clone()).await?;
            changed = true;
        }
        Ok(changed)
    }
}

/// The rules of all roles that a role selects, in the order of their names, each once.
fn aggregated_rules(role: &Value, roles: &[Value]) -> Vec<Rule> {
    let selectors = role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array);
    let selectors = selectors.map(Vec::as_slice).unwrap_or_default();
    let mut rules: Vec<Rule> = Vec::new();
    for selector in selectors.iter().filter_map(|selector| LabelSelector::from_value(selector).ok()) {
        let others = roles.iter().filter(|other| other["metadata"]["name"] != role["metadata"]["name"]);
        for other in others.filter(|other| selector.matches_labels(&other["metadata"]["labels"])) {
            for rule in Rule::all_of(other) {
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
        }
    }
    rules
}
