//! Which kinds a cluster serves that policies could propagate: everything that can be listed, watched and
//! deleted, in its preferred version, except what belongs to the control plane itself.

use serde::Deserialize;

use crate::rest::{Error, Rest};

/// A kind that templates can have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplateKind {
    /// `group/version`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The plural name.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

/// Groups that are about propagation, and so are never propagated; and the noise of events.
const SKIPPED_GROUPS: [&str; 10] = [
    "apps.karmada.io",
    "autoscaling.karmada.io",
    "cluster.karmada.io",
    "config.karmada.io",
    "events.k8s.io",
    "networking.karmada.io",
    "policy.karmada.io",
    "remedy.karmada.io",
    "search.karmada.io",
    "work.karmada.io",
];

#[derive(Deserialize)]
struct GroupList {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    name: String,
    preferred_version: GroupVersion,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupVersion {
    group_version: String,
}

#[derive(Deserialize)]
struct ResourceList {
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    kind: String,
    namespaced: bool,
    verbs: Vec<String>,
}

/// The kinds that templates can have.
pub async fn template_kinds(rest: &Rest) -> Result<Vec<TemplateKind>, Error> {
    let groups: GroupList = rest.fetch("/apis").await?;
    let named = groups.groups.into_iter().filter(|group| !SKIPPED_GROUPS.contains(&group.name.as_str()));
    let versions = named.map(|group| group.preferred_version.group_version);
    let mut kinds = Vec::new();
    for api_version in std::iter::once("v1".to_owned()).chain(versions) {
        let root = if api_version.contains('/') { "/apis" } else { "/api" };
        let list: ResourceList = match rest.get(&format!("{root}/{api_version}")).await? {
            Some(list) => list,
            // The group went away between the two questions.
            None => continue,
        };
        let usable = list.resources.into_iter().filter(|resource| is_template(&api_version, resource));
        kinds.extend(usable.map(|resource| TemplateKind {
            api_version: api_version.clone(),
            kind: resource.kind,
            plural: resource.name,
            namespaced: resource.namespaced,
        }));
    }
    Ok(kinds)
}

fn is_template(api_version: &str, resource: &Resource) -> bool {
    let can = |verb: &str| resource.verbs.iter().any(|one| one == verb);
    let noise =
        matches!((api_version, resource.kind.as_str()), ("v1", "Event") | ("coordination.k8s.io/v1", _));
    !noise && !resource.name.contains('/') && can("list") && can("watch") && can("delete")
}

/// Whether objects of this namespace are never propagated.
pub fn is_skipped_namespace(namespace: &str) -> bool {
    namespace.starts_with("kube-") || api::names::is_reserved_namespace(namespace)
}
