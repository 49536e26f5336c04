//! API discovery: the kinds of a cluster that policies can propagate. These are all kinds that can be listed, watched
//! and deleted, in their preferred version, except the control plane's own.

use std::collections::BTreeSet;

use api::kinds::is_karmada_group;
use serde::Deserialize;

use crate::cache::Served;
use crate::rest::{Error, Path, Rest};

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

/// The group of Events, which change all the time and mean nothing elsewhere.
const EVENTS_GROUP: &str = "events.k8s.io";

#[derive(Deserialize)]
struct GroupList {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    name: String,
    preferred_version: GroupVersion,
    versions: Vec<GroupVersion>,
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

/// What a cluster said when it was asked for its kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The kinds that templates can have.
    pub kinds: Vec<TemplateKind>,
    /// Group versions that exist and did not answer: their kinds are not known, which is not the same as gone.
    pub unanswered: BTreeSet<String>,
}

/// The kinds that templates can have, each in its preferred version.
pub async fn template_kinds(rest: &Rest) -> Result<Found, Error> {
    let groups: GroupList = rest.fetch(&Path::fixed("/apis")).await?;
    let is_skipped = |name: &str| name == EVENTS_GROUP || is_karmada_group(name);
    let named = groups.groups.into_iter().filter(|group| !is_skipped(&group.name));
    let versions = named.map(|group| group.preferred_version.group_version);
    kinds(rest, versions.collect(), is_template).await
}

/// Every kind that a cluster serves, in every version.
pub async fn all_kinds(rest: &Rest) -> Result<Found, Error> {
    let groups: GroupList = rest.fetch(&Path::fixed("/apis")).await?;
    let versions = groups.groups.into_iter().flat_map(|group| group.versions);
    let versions = versions.map(|version| version.group_version).collect();
    kinds(rest, versions, |_, resource| !resource.name.contains('/')).await
}

async fn kinds(
    rest: &Rest,
    versions: Vec<String>,
    usable: impl Fn(&str, &Resource) -> bool,
) -> Result<Found, Error> {
    let mut found = Found::default();
    for api_version in std::iter::once("v1".to_owned()).chain(versions) {
        let resources = match resources(rest, &api_version).await {
            Ok(resources) => resources,
            Err(error) => {
                tracing::debug!(%error, api_version, "a group does not tell its kinds");
                found.unanswered.insert(api_version);
                continue;
            }
        };
        let usable = resources.into_iter().filter(|resource| usable(&api_version, resource));
        found.kinds.extend(usable.map(|resource| TemplateKind {
            api_version: api_version.clone(),
            kind: resource.kind,
            plural: resource.name,
            namespaced: resource.namespaced,
        }));
    }
    Ok(found)
}

async fn resources(rest: &Rest, api_version: &str) -> Result<Vec<Resource>, Error> {
    Ok(rest.fetch::<ResourceList>(&Path::of_version(api_version)).await?.resources)
}

/// What a cluster calls one kind in paths; none if it says that it does not serve it.
pub async fn served(rest: &Rest, api_version: &str, kind: &str) -> Result<Option<Served>, Error> {
    let all = match resources(rest, api_version).await {
        Ok(resources) => resources,
        Err(Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = all.into_iter().find(|one| one.kind == kind && !one.name.contains('/'));
    Ok(found.map(|one| Served { plural: one.name, namespaced: one.namespaced }))
}

/// Whether a kind is served in no version at all, by the word of the server itself. Asked about one kind and
/// before something is taken away, so every doubt counts as "no": a server that starts or stumbles may leave out
/// kinds, but not their definition.
pub async fn is_gone(rest: &Rest, api_version: &str, kind: &str) -> Result<bool, Error> {
    let Some((group, _)) = api_version.split_once('/') else { return Ok(false) };
    let groups: GroupList = rest.fetch(&Path::fixed("/apis")).await?;
    let versions = groups.groups.into_iter().filter(|one| one.name == group).flat_map(|one| one.versions);
    for version in versions {
        if served(rest, &version.group_version, kind).await?.is_some() {
            return Ok(false);
        }
    }
    let definitions = Path::fixed("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
    let all: Definitions = rest.fetch(&definitions).await?;
    Ok(!all.items.iter().any(|one| one.spec.group == group && one.spec.names.kind == kind))
}

#[derive(Deserialize)]
struct Definitions {
    items: Vec<Definition>,
}

#[derive(Deserialize)]
struct Definition {
    spec: DefinitionSpec,
}

#[derive(Deserialize)]
struct DefinitionSpec {
    group: String,
    names: DefinitionNames,
}

#[derive(Deserialize)]
struct DefinitionNames {
    kind: String,
}

fn is_template(api_version: &str, resource: &Resource) -> bool {
    let can = |verb: &str| resource.verbs.iter().any(|one| one == verb);
    let noise =
        matches!((api_version, resource.kind.as_str()), ("v1", "Event") | ("coordination.k8s.io/v1", _));
    !noise && !resource.name.contains('/') && can("list") && can("watch") && can("delete")
}
