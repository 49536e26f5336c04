//! The audit policy (`audit.k8s.io/v1`): which requests are logged, and at which level. The first matching rule
//! decides.

use serde::Deserialize;

use crate::authn::Identity;
use crate::authz::{Action, Object, On};

/// How much is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) enum Level {
    None,
    Metadata,
    Request,
    RequestResponse,
}

/// When something is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Stage {
    RequestReceived,
    ResponseStarted,
    ResponseComplete,
    Panic,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::None => "None",
            Level::Metadata => "Metadata",
            Level::Request => "Request",
            Level::RequestResponse => "RequestResponse",
        }
    }
}

impl Stage {
    pub fn name(self) -> &'static str {
        match self {
            Stage::RequestReceived => "RequestReceived",
            Stage::ResponseStarted => "ResponseStarted",
            Stage::ResponseComplete => "ResponseComplete",
            Stage::Panic => "Panic",
        }
    }
}

/// A policy cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the audit policy cannot be read: {0}")]
pub struct PolicyError(String);

/// Which requests are written down, and how much of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuditPolicy {
    api_version: String,
    kind: String,
    #[serde(default, rename = "metadata")]
    _metadata: serde_json::Value,
    rules: Vec<Rule>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    /// Whether unauthenticated requests are logged whatever the rules say.
    #[serde(skip)]
    records_refusals: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    level: Level,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    user_groups: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default)]
    resources: Vec<Resources>,
    #[serde(default, rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Resources {
    #[serde(default)]
    group: String,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
}

impl AuditPolicy {
    /// Reads a policy in YAML or JSON.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let policy: Self = serde_saphyr::from_str(text).map_err(|error| PolicyError(error.to_string()))?;
        match (policy.api_version.as_str(), policy.kind.as_str()) {
            ("audit.k8s.io/v1", "Policy") => Ok(policy),
            (version, kind) => {
                Err(PolicyError(format!("it is a {kind} of {version}, not a Policy of audit.k8s.io/v1")))
            }
        }
    }

    /// Level `Metadata` for every request that may change something: no bodies.
    pub fn changes() -> Self {
        let rule = |level, verbs: &[&str]| Rule {
            level,
            users: Vec::new(),
            user_groups: Vec::new(),
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            namespaces: Vec::new(),
            resources: Vec::new(),
            non_resource_urls: Vec::new(),
            omit_stages: Vec::new(),
        };
        Self {
            api_version: String::new(),
            kind: String::new(),
            _metadata: serde_json::Value::Null,
            rules: vec![rule(Level::None, &["get", "list", "watch", "head"]), rule(Level::Metadata, &[])],
            omit_stages: vec![Stage::RequestReceived],
            records_refusals: true,
        }
    }

    /// Whether an unauthenticated request is logged.
    pub(super) fn records_refusal(&self, anonymous: &Identity, action: &Action<'_>) -> bool {
        let (level, omitted) = self.level(anonymous, action);
        self.records_refusals || (level > Level::None && !omitted.contains(&Stage::ResponseComplete))
    }

    /// How much of a request is written down, and when not.
    pub(super) fn level(&self, identity: &Identity, action: &Action<'_>) -> (Level, Vec<Stage>) {
        let rule = self.rules.iter().find(|rule| rule.fits(identity, action));
        let level = rule.map_or(Level::None, |rule| rule.level);
        let own = rule.map(|rule| rule.omit_stages.as_slice()).unwrap_or_default();
        (level, self.omit_stages.iter().chain(own).copied().collect())
    }
}

impl Rule {
    fn fits(&self, identity: &Identity, action: &Action<'_>) -> bool {
        let is_said = |said: &[String], wanted: &str| said.is_empty() || said.iter().any(|one| one == wanted);
        let of_group = self.user_groups.is_empty()
            || identity.groups.iter().any(|group| self.user_groups.contains(group));
        if !of_group || !is_said(&self.users, &identity.user) || !is_said(&self.verbs, &action.verb) {
            return false;
        }
        let about_objects = !self.namespaces.is_empty() || !self.resources.is_empty();
        match &action.on {
            On::Object(object) if about_objects => {
                is_said(&self.namespaces, object.namespace)
                    && (self.resources.is_empty() || self.resources.iter().any(|one| one.fits(object)))
            }
            On::Object(_) => self.non_resource_urls.is_empty(),
            On::Path(_) if about_objects => false,
            On::Path(path) => {
                self.non_resource_urls.is_empty()
                    || self.non_resource_urls.iter().any(|url| url_fits(url, path))
            }
        }
    }
}

impl Resources {
    fn fits(&self, object: &Object<'_>) -> bool {
        if self.group != object.group {
            return false;
        }
        let named =
            self.resource_names.is_empty() || self.resource_names.iter().any(|name| name == object.name);
        self.resources.is_empty() || (named && self.resources.iter().any(|one| resource_fits(one, object)))
    }
}

fn resource_fits(said: &str, object: &Object<'_>) -> bool {
    match said.split_once('/') {
        None => said == "*" || (object.subresource.is_empty() && said == object.resource),
        Some(("*", part)) => !part.is_empty() && part == object.subresource,
        Some((resource, "*")) => resource == object.resource,
        Some((resource, part)) => resource == object.resource && part == object.subresource,
    }
}

fn url_fits(said: &str, path: &str) -> bool {
    said == path || (said.ends_with('*') && path.starts_with(said.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits_decides() {
        let policy = AuditPolicy::parse(
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n\
             - { level: None, users: [robot], verbs: [watch] }\n\
             - { level: Metadata, resources: [{ group: '', resources: [secrets, 'pods/*'] }] }\n\
             - { level: Request, namespaces: [kube-system], omitStages: [Panic] }\n\
             - { level: None, nonResourceURLs: ['/healthz*'] }\n\
             - { level: RequestResponse, userGroups: [ops] }\n",
        )
        .expect("a policy");
        let check = |user: &str, verb: &str, resource: &str, namespace: &str, expected: Level| {
            let identity = Identity::named(user, if user == "ann" { vec!["ops"] } else { vec![] });
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let object = Object { resource, subresource, namespace, ..Object::default() };
            assert_eq!(
                policy.level(&identity, &Action::on(verb, object)).0,
                expected,
                "{user} {verb} {resource}"
            );
        };
        check("robot", "watch", "secrets", "a", Level::None);
        check("robot", "get", "secrets", "a", Level::Metadata);
        check("robot", "get", "pods/log", "a", Level::Metadata);
        check("robot", "get", "pods", "a", Level::Metadata);
        check("robot", "get", "maps", "kube-system", Level::Request);
        check("ann", "get", "maps", "a", Level::RequestResponse);
        check("bob", "get", "maps", "a", Level::None);
        let path = |path| Action { verb: "get".into(), on: On::Path(path) };
        assert_eq!(policy.level(&Identity::named("ann", ["ops"]), &path("/healthz/x")).0, Level::None);
        assert_eq!(
            policy.level(&Identity::named("ann", ["ops"]), &path("/metrics")).0,
            Level::RequestResponse
        );
    }

    #[test]
    fn an_invalid_audit_policy_is_refused() {
        for text in [
            "",
            "kind: Policy",
            "apiVersion: v1\nkind: Policy\nrules: []",
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{ level: Some }]",
        ] {
            assert!(AuditPolicy::parse(text).is_err(), "{text:?}");
        }
    }
}
