//! The RBAC role of our account in a member: every kind that a template can have, or only some kinds in some
//! namespaces. Earlier grants stay when credentials are replaced, unless the flags say otherwise.

use anyhow::{Context as _, Result, bail};
use api::labels;
use api::names::IMPERSONATOR_SERVICE_ACCOUNT as IMPERSONATOR;
use controllers::rest::{Collection, Rest};
use serde_json::{Value, json};

use super::{Account, JOINED_BY};
use crate::join::remove;

pub(super) const RBAC: &str = "rbac.authorization.k8s.io/v1";
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
/// The label of roles and bindings in namespaces that belong to the account of this name.
const ROLE_OF: &str = "longshore.io/role-of";
/// The annotation of a restricted role: the namespaces in which it writes.
const NAMESPACES: &str = "longshore.io/role-namespaces";
/// The annotation of a restricted role: the kinds that it writes, as `resource.group`.
const KINDS: &str = "longshore.io/role-kinds";
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 4] = ["create", "update", "patch", "delete"];

/// What a restricted role writes unless the flags say otherwise. Secrets are not among them: the controllers would have
/// to read those of all namespaces.
const USUAL_KINDS: [&str; 12] = [
    "configmaps",
    "persistentvolumeclaims",
    "serviceaccounts",
    "services",
    "daemonsets.apps",
    "deployments.apps",
    "statefulsets.apps",
    "cronjobs.batch",
    "jobs.batch",
    "horizontalpodautoscalers.autoscaling",
    "ingresses.networking.k8s.io",
    "poddisruptionbudgets.policy",
];

/// Which rights our account in the member gets.
#[derive(clap::Args, Debug, Default)]
pub struct ScopeFlags {
    /// Rights of the control plane in the cluster: full, or restricted to some kinds in some namespaces [default: full;
    /// with --rotate, the rights that it has]
    #[arg(long, value_name = "SCOPE", value_parser = ["full", "restricted"])]
    role_scope: Option<String>,
    /// Namespaces in which a restricted role may write; missing ones are created
    #[arg(long, value_name = "NAMES", value_delimiter = ',', required_if_eq("role_scope", "restricted"))]
    role_namespaces: Vec<String>,
    /// Resources that a restricted role may write, such as deployments.apps,services; it may read them in all
    /// namespaces [default: workloads, Services, ConfigMaps and similar kinds, without Secrets]
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',')]
    role_kinds: Vec<String>,
}

/// What our account may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleScope {
    /// To write whatever a template can be, everywhere.
    Full,
    /// To write these kinds in these namespaces, and to read them.
    Restricted { namespaces: Vec<String>, kinds: Vec<String> },
}

impl ScopeFlags {
    /// What the flags say; none if they leave it open.
    pub fn wanted(&self) -> Result<Option<RoleScope>> {
        let is_detailed = !self.role_namespaces.is_empty() || !self.role_kinds.is_empty();
        match self.role_scope.as_deref() {
            Some("restricted") => {
                let kinds = match self.role_kinds.is_empty() {
                    true => USUAL_KINDS.map(str::to_owned).into(),
                    false => self.role_kinds.clone(),
                };
                Ok(Some(RoleScope::Restricted { namespaces: self.role_namespaces.clone(), kinds }))
            }
            _ if is_detailed => bail!("--role-namespaces and --role-kinds need --role-scope=restricted"),
            Some(_) => Ok(Some(RoleScope::Full)),
            None => Ok(None),
        }
    }
}

impl RoleScope {
    /// What a role grants that is there already.
    fn of(role: &Value) -> Self {
        let list = |key: &str| {
            let text = role["metadata"]["annotations"][key].as_str()?;
            Some(text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect())
        };
        match (list(NAMESPACES), list(KINDS)) {
            (Some(namespaces), Some(kinds)) => Self::Restricted { namespaces, kinds },
            _ => Self::Full,
        }
    }

    /// The rules that hold in the whole cluster.
    fn cluster_rules(&self) -> Value {
        let paths = ["/readyz", "/healthz", "/version", "/api", "/api/*", "/apis", "/apis/*"];
        let documents = json!({ "nonResourceURLs": paths, "verbs": ["get"] });
        let all = [READ.as_slice(), WRITE.as_slice()].concat();
        match self {
            // Roles among the templates may grant what we do not have ourselves, which the two special verbs are for.
            // An account that may do that may give itself the rest, too.
            Self::Full => json!([
                { "apiGroups": ["*"], "resources": ["*"], "verbs": all },
                {
                    "apiGroups": [RBAC_GROUP],
                    "resources": ["roles", "clusterroles", "rolebindings", "clusterrolebindings"],
                    "verbs": ["escalate", "bind"],
                },
                documents,
            ]),
            Self::Restricted { namespaces, kinds } => {
                let mut rules = rules_of(kinds, &READ);
                rules.push(
                    json!({ "apiGroups": [""], "resources": ["namespaces", "nodes", "pods"], "verbs": READ }),
                );
                rules.push(json!({
                    "apiGroups": [""], "resources": ["namespaces"], "resourceNames": namespaces,
                    "verbs": ["update", "patch"],
                }));
                rules.push(documents);
                rules.into()
            }
        }
    }
}

/// A rule for each group of kinds.
fn rules_of(kinds: &[String], verbs: &[&str]) -> Vec<Value> {
    let mut groups: std::collections::BTreeMap<&str, Vec<&str>> = std::collections::BTreeMap::new();
    for kind in kinds {
        let (resource, group) = kind.split_once('.').unwrap_or((kind, ""));
        groups.entry(group).or_default().push(resource);
    }
    let rule = |(group, resources): (&str, Vec<&str>)| json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
    groups.into_iter().map(rule).collect()
}

impl Account {
    /// What the account may do now; none if it may do nothing.
    pub async fn scope(&self, member: &Rest) -> Result<Option<RoleScope>> {
        let path = Collection::new(RBAC, "clusterroles", "").object(&self.role);
        let role: Option<Value> =
            member.get(&path).await.with_context(|| format!("read {} in the cluster", self.role))?;
        Ok(role.map(|role| RoleScope::of(&role)))
    }

    /// Gives the account its rights; as long as it moves, also where it was.
    pub(super) async fn grant(
        &self,
        member: &Rest,
        control: &str,
        scope: &RoleScope,
        former: Option<&str>,
    ) -> Result<()> {
        let mut annotations = json!({ JOINED_BY: control });
        if let RoleScope::Restricted { namespaces, kinds } = scope {
            annotations[NAMESPACES] = namespaces.join(",").into();
            annotations[KINDS] = kinds.join(",").into();
        }
        let metadata = json!({
            "name": self.role, "labels": { labels::SYSTEM: labels::TRUE }, "annotations": annotations,
        });
        let rules = scope.cluster_rules();
        let role = json!({ "apiVersion": RBAC, "kind": "ClusterRole", "metadata": metadata, "rules": rules });
        let binding = json!({
            "apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": self.role },
            "subjects": self.subjects(former),
        });
        for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
            let path = Collection::new(RBAC, plural, "").object(&self.role);
            member.apply(&path, &object, true).await.with_context(|| format!("grant {}", self.role))?;
        }
        let RoleScope::Restricted { namespaces, kinds } = scope else {
            return self.revoke_in_namespaces(member, &[]).await;
        };
        for namespace in namespaces {
            plane::ensure_namespace(member, namespace, &[])
                .await
                .with_context(|| format!("make namespace {namespace} in the cluster"))?;
            self.grant_in(member, namespace, rules_of(kinds, &WRITE), former).await?;
        }
        // The account renews its own tokens.
        let renewal = json!({
            "apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"],
            "resourceNames": [self.user, IMPERSONATOR],
        });
        let mut places = namespaces.clone();
        if !places.contains(&self.namespace) {
            self.grant_in(member, &self.namespace, vec![renewal], former).await?;
            places.push(self.namespace.clone());
        } else {
            let rules = [rules_of(kinds, &WRITE), vec![renewal]].concat();
            self.grant_in(member, &self.namespace, rules, former).await?;
        }
        self.revoke_in_namespaces(member, &places).await
    }

    fn subjects(&self, former: Option<&str>) -> Value {
        let places = [Some(self.namespace.as_str()), former].into_iter().flatten();
        places
            .map(|place| json!({ "kind": "ServiceAccount", "name": self.user, "namespace": place }))
            .collect()
    }

    async fn grant_in(
        &self,
        member: &Rest,
        namespace: &str,
        rules: Vec<Value>,
        former: Option<&str>,
    ) -> Result<()> {
        let metadata = json!({
            "name": self.role, "namespace": namespace,
            "labels": { labels::SYSTEM: labels::TRUE, ROLE_OF: self.user },
        });
        let role = json!({ "apiVersion": RBAC, "kind": "Role", "metadata": metadata, "rules": rules });
        let binding = json!({
            "apiVersion": RBAC, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": RBAC_GROUP, "kind": "Role", "name": self.role },
            "subjects": self.subjects(former),
        });
        for (plural, object) in [("roles", role), ("rolebindings", binding)] {
            let path = Collection::new(RBAC, plural, namespace).object(&self.role);
            let granted = member.apply(&path, &object, true).await;
            granted.with_context(|| format!("grant {} in namespace {namespace}", self.role))?;
        }
        Ok(())
    }

    /// Takes away what the account may do in namespaces other than these.
    pub(super) async fn revoke_in_namespaces(&self, member: &Rest, kept: &[String]) -> Result<()> {
        for plural in ["rolebindings", "roles"] {
            let mut places = Vec::new();
            let each = |item: api::Unread| {
                let object: Value = item.read().unwrap_or_default();
                let metadata = &object["metadata"];
                let place = metadata["namespace"].as_str().unwrap_or_default().to_owned();
                if metadata["labels"][ROLE_OF] == self.user.as_str() && !kept.contains(&place) {
                    places.push(place);
                }
            };
            let listed = member.pages(&Collection::new(RBAC, plural, ""), "", each).await;
            listed.with_context(|| format!("list {plural} in the cluster"))?;
            for place in places {
                let removed = remove(member, &Collection::new(RBAC, plural, &place).object(&self.role)).await;
                removed.with_context(|| format!("revoke {} in namespace {place}", self.role))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_says_what_it_was_made_for() {
        let scope =
            |annotations: Value| RoleScope::of(&json!({ "metadata": { "annotations": annotations } }));
        assert_eq!(scope(json!({ JOINED_BY: "x" })), RoleScope::Full);
        let restricted = RoleScope::Restricted {
            namespaces: vec!["a".into(), "b".into()],
            kinds: vec!["services".into()],
        };
        assert_eq!(scope(json!({ NAMESPACES: "a,b", KINDS: "services" })), restricted);
    }

    #[test]
    fn a_restricted_role_writes_nothing_in_the_whole_cluster() {
        let kinds = USUAL_KINDS.map(str::to_owned).to_vec();
        let rules = RoleScope::Restricted { namespaces: vec!["a".into()], kinds }.cluster_rules();
        for rule in rules.as_array().expect("rules") {
            let verbs: Vec<&str> =
                rule["verbs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let writes = verbs.iter().any(|verb| !READ.contains(verb));
            assert!(!writes || rule["resourceNames"] == json!(["a"]), "{rule}");
            assert!(!rule.to_string().contains("secrets") && !rule.to_string().contains("\"*\""), "{rule}");
        }
    }

    #[test]
    fn flags_of_a_restricted_role_are_not_ignored() {
        let flags = ScopeFlags { role_kinds: vec!["services".into()], ..ScopeFlags::default() };
        assert!(flags.wanted().is_err());
        assert_eq!(ScopeFlags::default().wanted().expect("nothing is said"), None);
    }
}
