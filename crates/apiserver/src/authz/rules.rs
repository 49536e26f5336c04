//! One RBAC policy rule: what it allows, and whether other rules cover it. Must not know who it is bound to.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Action, Object, On};
use apimachinery::gotext::quoted;

/// A rule as roles hold it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    /// What may be done.
    pub verbs: Vec<String>,
    /// In which API groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// To which resources and parts of resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// To which objects only; empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// To which paths that are no resources.
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

impl Rule {
    /// The rules of a stored role; what cannot be read allows nothing.
    pub fn all_of(role: &Value) -> Vec<Rule> {
        let rules = role["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
        rules.iter().filter_map(|rule| Rule::deserialize(rule).ok()).collect()
    }

    /// The two rules that allow everything.
    pub fn everything() -> [Rule; 2] {
        let star = || vec!["*".to_owned()];
        [
            Rule { verbs: star(), api_groups: star(), resources: star(), ..Rule::default() },
            Rule { verbs: star(), non_resource_urls: star(), ..Rule::default() },
        ]
    }

    /// Whether it allows an action.
    pub fn allows(&self, action: &Action<'_>) -> bool {
        if !has(&self.verbs, &action.verb) {
            return false;
        }
        match &action.on {
            On::Path(path) => self.non_resource_urls.iter().any(|url| url_matches(url, path)),
            On::Object(object) => {
                has(&self.api_groups, object.group)
                    && self.resources.iter().any(|rule| resource_matches(rule, object))
                    && (self.resource_names.is_empty()
                        || self.resource_names.iter().any(|name| name == object.name))
            }
        }
    }

    /// The rule taken apart: each part has one verb and one thing it is about.
    fn parts(&self) -> Vec<Rule> {
        let one = |text: &String| vec![text.clone()];
        let mut parts = Vec::new();
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let part = Rule {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        ..Rule::default()
                    };
                    match self.resource_names.is_empty() {
                        true => parts.push(part),
                        false => parts.extend(
                            self.resource_names
                                .iter()
                                .map(|name| Rule { resource_names: one(name), ..part.clone() }),
                        ),
                    }
                }
            }
        }
        for url in &self.non_resource_urls {
            let part = |verb| Rule { verbs: one(verb), non_resource_urls: one(url), ..Rule::default() };
            parts.extend(self.verbs.iter().map(part));
        }
        parts
    }

    /// Whether it allows all that a part of another rule allows.
    fn covers(&self, part: &Rule) -> bool {
        let named = match (self.resource_names.is_empty(), part.resource_names.is_empty()) {
            (true, _) => true,
            (false, true) => false,
            (false, false) => part.resource_names.iter().all(|name| self.resource_names.contains(name)),
        };
        named
            && part.verbs.iter().all(|verb| has(&self.verbs, verb))
            && part.api_groups.iter().all(|group| has(&self.api_groups, group))
            && part.resources.iter().all(|resource| covers_resource(&self.resources, resource))
            && part
                .non_resource_urls
                .iter()
                .all(|url| self.non_resource_urls.iter().any(|own| covers_url(own, url)))
    }

    /// As the message about a missing right prints it.
    fn compact(&self) -> String {
        let list = |name: &str, texts: &[String]| {
            let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            (!texts.is_empty()).then(|| format!("{name}:[{}]", texts.join(" ")))
        };
        let parts = [
            list("APIGroups", &self.api_groups),
            list("Resources", &self.resources),
            list("NonResourceURLs", &self.non_resource_urls),
            list("ResourceNames", &self.resource_names),
            list("Verbs", &self.verbs),
        ];
        format!("{{{}}}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// What some rules allow and others do not, a line each, sorted; none if it is all covered.
pub(crate) fn missing(owned: &[Rule], wanted: &[Rule]) -> Option<String> {
    let parts = wanted.iter().flat_map(Rule::parts);
    let uncovered = parts.filter(|part| !owned.iter().any(|rule| rule.covers(part)));
    let mut by_object: BTreeMap<[Vec<String>; 3], Rule> = BTreeMap::new();
    let mut lines = BTreeSet::new();
    for part in uncovered {
        if !part.non_resource_urls.is_empty() {
            lines.insert(part.compact());
            continue;
        }
        let object = [part.api_groups.clone(), part.resources.clone(), part.resource_names.clone()];
        match by_object.get_mut(&object) {
            Some(rule) => rule.verbs.extend(part.verbs),
            None => drop(by_object.insert(object, part)),
        }
    }
    lines.extend(by_object.values().map(Rule::compact));
    (!lines.is_empty()).then(|| lines.into_iter().collect::<Vec<_>>().join("\n"))
}

fn has(texts: &[String], wanted: &str) -> bool {
    texts.iter().any(|text| text == "*" || text == wanted)
}

fn resource_matches(rule: &str, object: &Object<'_>) -> bool {
    match (rule, object.subresource) {
        ("*", _) => true,
        (rule, "") => rule == object.resource,
        (rule, part) => rule
            .split_once('/')
            .is_some_and(|(resource, rest)| rest == part && (resource == "*" || resource == object.resource)),
    }
}

fn covers_resource(owned: &[String], wanted: &str) -> bool {
    let of_any = wanted.split_once('/').map(|(_, part)| format!("*/{part}"));
    has(owned, wanted) || of_any.is_some_and(|any| owned.contains(&any))
}

fn url_matches(rule: &str, path: &str) -> bool {
    rule == "*" || covers_url(rule, path)
}

fn covers_url(rule: &str, path: &str) -> bool {
    rule == path || (rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*')))
}
