//! What a namespace contains that Kubernetes did not put there: checked before the namespace is deleted, so every kind
//! is listed and every doubt is an error.

use anyhow::{Context as _, Result};
use controllers::rest::{Collection, Path, Rest};
use serde_json::Value;

/// Something in a namespace that is not in every new one, as kubectl would name it.
pub async fn foreign_object(rest: &Rest, namespace: &str) -> Result<Option<String>> {
    for (api_version, plural) in kinds(rest).await? {
        let mut found = None;
        let each = |item: api::Unread| {
            let object: Value = item.read().unwrap_or_default();
            if !is_usual(&plural, &object) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                found.get_or_insert(format!("{plural}/{name}"));
            }
        };
        rest.pages(&Collection::new(&api_version, &plural, namespace), "", each)
            .await
            .with_context(|| format!("list {plural} in namespace {namespace}"))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Every kind whose objects would go with their namespace, by version and plural.
async fn kinds(rest: &Rest) -> Result<Vec<(String, String)>> {
    let groups: Value = rest.fetch(&Path::fixed("/apis")).await.context("ask for the kinds")?;
    let versions = list(&groups["groups"]).flat_map(|group| list(&group["versions"]));
    let versions = versions.filter_map(|version| version["groupVersion"].as_str());
    let mut kinds = Vec::new();
    for version in std::iter::once("v1").chain(versions) {
        let served: Value =
            rest.fetch(&Path::of_version(version)).await.with_context(|| format!("ask for {version}"))?;
        let deleted = list(&served["resources"]).filter(|resource| is_deleted_with_namespace(resource));
        let plurals = deleted.filter_map(|resource| resource["name"].as_str());
        kinds.extend(plurals.map(|plural| (version.to_owned(), plural.to_owned())));
    }
    Ok(kinds)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn is_deleted_with_namespace(resource: &Value) -> bool {
    let can = |verb: &str| list(&resource["verbs"]).any(|one| one == verb);
    let is_whole = resource["name"].as_str().is_some_and(|name| !name.contains('/'));
    is_whole && resource["namespaced"] == true && can("list") && can("delete")
}

/// Whether every namespace has it, or it is an Event.
fn is_usual(plural: &str, object: &Value) -> bool {
    let metadata = &object["metadata"];
    match plural {
        "events" => true,
        "serviceaccounts" => metadata["name"] == "default",
        "configmaps" => metadata["name"] == "kube-root-ca.crt",
        // Before Kubernetes 1.24 every account had one.
        "secrets" => metadata["annotations"]["kubernetes.io/service-account.name"] == "default",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_every_namespace_has_is_usual() {
        let check = |plural: &str, name: &str, expected: bool| {
            let object = json!({ "metadata": { "name": name } });
            assert_eq!(is_usual(plural, &object), expected, "{plural}/{name}");
        };
        check("serviceaccounts", "default", true);
        check("serviceaccounts", "karmada-member2", false);
        check("configmaps", "kube-root-ca.crt", true);
        check("configmaps", "settings", false);
        check("secrets", "member2", false);
        check("works", "default", false);
        check("events", "anything", true);
    }

    #[test]
    fn kinds_are_those_that_a_namespace_takes_along() {
        let check = |name: &str, namespaced: bool, verbs: &[&str], expected: bool| {
            let resource = json!({ "name": name, "namespaced": namespaced, "verbs": verbs });
            assert_eq!(is_deleted_with_namespace(&resource), expected, "{resource}");
        };
        check("pods", true, &["list", "delete"], true);
        check("pods/exec", true, &["list", "delete"], false);
        check("nodes", false, &["list", "delete"], false);
        check("podmetrics", true, &["list"], false);
        check("bindings", true, &["create"], false);
    }
}
