//! Resolves `deploy/nginx`, `Deployment nginx` or `deployments.apps nginx` as kubectl does: the kinds of a server by
//! every name, from discovery. Knows nothing of what is done with them.

use anyhow::{Context as _, Result, anyhow};
use controllers::rest::{Collection, Path, Rest};
use decide::TemplateKey;
use futures::future::join_all;
use serde::Deserialize;
use serde_json::Value;

use crate::Hint;

/// A kind that a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// `group/version`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The name in paths.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    singular: String,
    short_names: Vec<String>,
}

/// Every kind of a server in its preferred version, in the order in which names are looked up.
#[derive(Debug, Clone, Default)]
pub struct Kinds(Vec<Kind>);

/// One object by kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// What it is.
    pub kind: Kind,
    /// Empty for kinds without namespaces.
    pub namespace: String,
    /// Name.
    pub name: String,
}

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    preferred_version: Version,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    group_version: String,
}

#[derive(Deserialize)]
struct Resources {
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    name: String,
    #[serde(default)]
    singular_name: String,
    kind: String,
    namespaced: bool,
    #[serde(default)]
    short_names: Vec<String>,
}

/// What a CustomResourceDefinition says about its kind.
#[derive(Deserialize)]
struct Definition {
    group: String,
    scope: String,
    names: Names,
    versions: Vec<Served>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Names {
    kind: String,
    plural: String,
    singular: Option<String>,
    #[serde(default)]
    short_names: Vec<String>,
}

#[derive(Deserialize)]
struct Served {
    name: String,
    served: bool,
}

impl Kind {
    /// API group, empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The kind as kubectl prints it before a name.
    pub fn printed(&self) -> String {
        match self.group() {
            "" => self.kind.to_lowercase(),
            group => format!("{}.{group}", self.kind.to_lowercase()),
        }
    }

    /// Where objects of it are; an empty namespace is all of them.
    pub fn collection(&self, namespace: &str) -> Collection {
        let namespace = if self.namespaced { namespace } else { "" };
        Collection::new(&self.api_version, &self.plural, namespace)
    }

    fn goes_by(&self, name: &str) -> bool {
        self.plural == name
            || self.singular == name
            || self.kind.to_lowercase() == name
            || self.short_names.iter().any(|short| short == name)
    }
}

impl Kinds {
    /// Asks a server for everything it has. A group that does not answer has no names for now.
    pub async fn of(rest: &Rest) -> Result<Self> {
        let groups: Groups = rest.fetch(&Path::fixed("/apis")).await.context("ask for the kinds")?;
        let versions = groups.groups.into_iter().map(|group| group.preferred_version.group_version);
        let versions: Vec<String> = std::iter::once("v1".to_owned()).chain(versions).collect();
        let asked = versions
            .iter()
            .map(|version| async move { rest.fetch::<Resources>(&Path::of_version(version)).await });
        let mut kinds = Vec::new();
        for (version, answer) in versions.iter().zip(join_all(asked).await) {
            let Ok(answer) = answer else { continue };
            let whole = answer.resources.into_iter().filter(|resource| !resource.name.contains('/'));
            kinds.extend(whole.map(|resource| Kind {
                api_version: version.clone(),
                singular: resource.singular_name,
                kind: resource.kind,
                plural: resource.name,
                namespaced: resource.namespaced,
                short_names: resource.short_names,
            }));
        }
        Ok(Self(kinds))
    }

    /// Adds the kinds that definitions among these manifests bring along and the server does not have yet.
    pub fn add_defined(&mut self, manifests: &[Value]) {
        let is_definition = |manifest: &&Value| manifest["kind"] == "CustomResourceDefinition";
        for spec in manifests.iter().filter(is_definition).map(|manifest| &manifest["spec"]) {
            let Ok(definition) = Definition::deserialize(spec) else { continue };
            let Some(version) = definition.versions.iter().find(|version| version.served) else { continue };
            let kind = Kind {
                api_version: format!("{}/{}", definition.group, version.name),
                plural: definition.names.plural,
                namespaced: definition.scope == "Namespaced",
                singular: definition.names.singular.unwrap_or_else(|| definition.names.kind.to_lowercase()),
                short_names: definition.names.short_names,
                kind: definition.names.kind,
            };
            if !self.0.iter().any(|known| known.group() == kind.group() && known.kind == kind.kind) {
                self.0.push(kind);
            }
        }
    }

    /// The kind of a name: singular, plural, short, or the kind itself, with or without `.group`.
    pub fn named(&self, text: &str) -> Result<&Kind> {
        let lower = text.to_lowercase();
        let (name, rest) = lower.split_once('.').unwrap_or((&lower, ""));
        let means = |kind: &&Kind| {
            let (group, version) = kind.api_version.split_once('/').unwrap_or(("", &kind.api_version));
            kind.goes_by(name) && (rest.is_empty() || rest == group || rest == format!("{version}.{group}"))
        };
        self.0.iter().find(means).ok_or_else(|| {
            let hint = "`kubectl api-resources` lists the kinds of the server";
            anyhow::Error::new(Hint(hint.to_owned()))
                .context(format!("the server doesn't have a resource type {text:?}"))
        })
    }

    /// The objects that arguments such as `deploy/nginx`, `deploy nginx` or `deploy a b` name.
    pub fn targets(&self, words: &[String], namespace: &str) -> Result<Vec<Target>> {
        let named = |kind: &str, name: &str| -> Result<Target> {
            let kind = self.named(kind)?.clone();
            if name.is_empty() {
                return Err(anyhow!("{} needs a name, as in {0}/NAME", kind.plural));
            }
            let namespace = if kind.namespaced { namespace.to_owned() } else { String::new() };
            Ok(Target { kind, namespace, name: name.to_owned() })
        };
        match words {
            [kind, names @ ..] if !kind.contains('/') => match names {
                [] => Err(naming(kind)),
                names if names.iter().any(|name| name.contains('/')) => Err(naming(kind)),
                names => names.iter().map(|name| named(kind, name)).collect(),
            },
            words => words
                .iter()
                .map(|word| {
                    word.split_once('/').map_or_else(|| Err(naming(word)), |(kind, name)| named(kind, name))
                })
                .collect(),
        }
    }
}

impl Kinds {
    /// A template as an object of this server; none if it does not have the kind.
    pub fn target(&self, key: &TemplateKey) -> Option<Target> {
        let is_of = |kind: &&Kind| kind.kind == key.kind && kind.api_version == key.api_version;
        let kind = self.0.iter().find(is_of)?.clone();
        Some(Target { kind, namespace: key.namespace.clone(), name: key.name.clone() })
    }

    /// The one template that the words name.
    pub fn template(&self, words: &[String], namespace: &str) -> Result<Target> {
        let mut targets = self.targets(words, namespace)?;
        if targets.len() != 1 {
            let hint = Hint("name one object at a time".to_owned());
            return Err(anyhow::Error::new(hint).context("too many objects"));
        }
        let target = targets.remove(0);
        if api::kinds::is_karmada_group(target.kind.group()) {
            let hint = "name a Deployment or another object that policies propagate".to_owned();
            return Err(
                anyhow::Error::new(Hint(hint)).context(format!("{} is not a template", target.printed()))
            );
        }
        Ok(target)
    }
}

fn naming(word: &str) -> anyhow::Error {
    let hint = "name objects as KIND/NAME or KIND NAME, such as deploy/nginx".to_owned();
    anyhow::Error::new(Hint(hint)).context(format!("{word:?} does not name an object"))
}

impl Target {
    /// Where it is.
    pub fn path(&self) -> Path {
        self.kind.collection(&self.namespace).object(&self.name)
    }

    /// It as a template.
    pub fn template(&self) -> TemplateKey {
        TemplateKey {
            api_version: self.kind.api_version.clone(),
            kind: self.kind.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// It as kubectl prints it: `deployment.apps/nginx`.
    pub fn printed(&self) -> String {
        format!("{}/{}", self.kind.printed(), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds() -> Kinds {
        let kind = |api_version: &str, kind: &str, plural: &str, namespaced: bool, short: &[&str]| Kind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            namespaced,
            singular: kind.to_lowercase(),
            short_names: short.iter().map(|name| (*name).to_owned()).collect(),
        };
        Kinds(vec![
            kind("v1", "Namespace", "namespaces", false, &["ns"]),
            kind("v1", "Event", "events", true, &["ev"]),
            kind("apps/v1", "Deployment", "deployments", true, &["deploy"]),
            kind("events.k8s.io/v1", "Event", "events", true, &["ev"]),
        ])
    }

    #[test]
    fn kinds_go_by_every_name_that_kubectl_knows() {
        let check = |text: &str, expected: &str| {
            let kinds = kinds();
            let found = kinds.named(text).map(|kind| format!("{} {}", kind.api_version, kind.kind));
            assert_eq!(found.unwrap_or_else(|error| error.to_string()), expected, "{text}");
        };
        for name in
            ["deploy", "deployment", "deployments", "Deployment", "deployments.apps", "deployment.v1.apps"]
        {
            check(name, "apps/v1 Deployment");
        }
        check("ns", "v1 Namespace");
        check("ev", "v1 Event");
        check("events.events.k8s.io", "events.k8s.io/v1 Event");
        check("deploy.example.com", "the server doesn't have a resource type \"deploy.example.com\"");
        check("", "the server doesn't have a resource type \"\"");
    }

    #[test]
    fn definitions_bring_their_kinds_along() {
        let definition = serde_json::json!({
            "kind": "CustomResourceDefinition",
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": { "kind": "Shop", "plural": "shops" },
                "versions": [{ "name": "v1alpha1", "served": false }, { "name": "v1", "served": true }],
            },
        });
        let mut kinds = kinds();
        kinds.add_defined(&[definition.clone(), definition, serde_json::json!({ "kind": "ConfigMap" })]);
        let found = kinds.named("Shop.example.com").map(|kind| (kind.api_version.as_str(), kind.namespaced));
        assert_eq!(found.ok(), Some(("example.com/v1", true)));
        assert_eq!(kinds.0.iter().filter(|kind| kind.kind == "Shop").count(), 1);
    }

    #[test]
    fn objects_are_named_in_one_word_or_in_two() {
        let check = |words: &[&str], expected: &str| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let found = kinds().targets(&words, "team");
            let found =
                found.map(|targets| targets.iter().map(|one| one.template().to_string()).collect::<Vec<_>>());
            assert_eq!(found.map_or_else(|error| error.to_string(), |all| all.join(", ")), expected);
        };
        check(&["deploy/nginx"], "Deployment team/nginx");
        check(&["deploy", "nginx"], "Deployment team/nginx");
        check(&["deploy", "a", "b"], "Deployment team/a, Deployment team/b");
        check(&["deploy/a", "ns/b"], "Deployment team/a, Namespace b");
        check(&["deploy"], "\"deploy\" does not name an object");
        check(&["deploy/a", "b"], "\"b\" does not name an object");
        check(&["deploy", "ns/b"], "\"deploy\" does not name an object");
        check(&["deploy/"], "deployments needs a name, as in deployments/NAME");
    }

    #[test]
    fn objects_are_printed_as_kubectl_prints_them() {
        let words = ["deploy/nginx".to_owned(), "ns/team".to_owned()];
        let targets = kinds().targets(&words, "team").expect("both exist");
        let printed: Vec<String> = targets.iter().map(Target::printed).collect();
        assert_eq!(printed, ["deployment.apps/nginx", "namespace/team"]);
        assert_eq!(targets[0].path().to_string(), "/apis/apps/v1/namespaces/team/deployments/nginx");
        assert_eq!(targets[1].path().to_string(), "/api/v1/namespaces/team");
    }
}
