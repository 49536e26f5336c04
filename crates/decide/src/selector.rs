//! Resource selectors: labels, names, namespaces, and both forms of exclusion. Ranks nothing and knows no claims.

use std::collections::BTreeMap;

use api::selector::{Exclude, ExcludeResourceSelector, Operator, Requirement};
use api::{LabelSelector, ResourceSelector};
use serde::{Deserialize, Serialize};

use crate::template::TemplateKey;

pub mod pattern;

use pattern::Pattern;

/// How exactly a selector means a template; the better one counts (B4: a pattern is no level of its own).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Specificity {
    /// Its kind, perhaps its namespace.
    All,
    /// Its labels.
    Labels,
    /// Its name.
    Name,
}

impl Specificity {
    /// How a sentence says it.
    pub fn words(self) -> &'static str {
        match self {
            Specificity::All => "by kind",
            Specificity::Labels => "by label",
            Specificity::Name => "by name",
        }
    }
}

/// How well a selector without its exclusion means a template; none if it does not.
pub fn specificity(
    selector: &ResourceSelector,
    key: &TemplateKey,
    labels: &BTreeMap<String, String>,
) -> Option<Specificity> {
    let kind = selector.kind == key.kind && selector.api_version == key.api_version;
    if !kind || !namespace_matches(&selector.namespace, &key.namespace) {
        return None;
    }
    // As in Karmada, a name leaves no room for labels.
    if !selector.name.is_empty() {
        return (selector.name == key.name).then_some(Specificity::Name);
    }
    match &selector.label_selector {
        None => Some(Specificity::All),
        Some(wanted) => labels_match(wanted, labels).then_some(Specificity::Labels),
    }
}

/// True when one of a policy's exclusions, in either form, means the template (B2).
pub fn is_excluded(
    selectors: &[ResourceSelector],
    excluded: &[ExcludeResourceSelector],
    key: &TemplateKey,
    labels: &BTreeMap<String, String>,
) -> bool {
    let same_kind = |api_version: &str, kind: &str| api_version == key.api_version && kind == key.kind;
    let inner = selectors.iter().filter(|selector| same_kind(&selector.api_version, &selector.kind));
    inner
        .filter_map(|selector| selector.exclude.as_ref())
        .any(|exclude| exclude_matches(exclude, key, labels))
        || excluded
            .iter()
            .filter(|exclude| same_kind(&exclude.api_version, &exclude.kind))
            .any(|exclude| exclude_matches(&narrow(exclude), key, labels))
}

/// How well a list of selectors with its exclusions means a template: the best one counts.
pub fn best_match(
    selectors: &[ResourceSelector],
    excluded: &[ExcludeResourceSelector],
    key: &TemplateKey,
    labels: &BTreeMap<String, String>,
) -> Option<Specificity> {
    let best = selectors.iter().filter_map(|selector| specificity(selector, key, labels)).max()?;
    (!is_excluded(selectors, excluded, key, labels)).then_some(best)
}

fn narrow(exclude: &ExcludeResourceSelector) -> Exclude {
    Exclude {
        namespace: exclude.namespace.clone(),
        name: exclude.name.clone(),
        label_selector: exclude.label_selector.clone(),
    }
}

/// Every part that is set must hold; nothing set excludes nothing, because that is surely a slip.
fn exclude_matches(exclude: &Exclude, key: &TemplateKey, labels: &BTreeMap<String, String>) -> bool {
    let empty = exclude.namespace.is_empty() && exclude.name.is_empty() && exclude.label_selector.is_none();
    !empty
        && namespace_matches(&exclude.namespace, &key.namespace)
        && (exclude.name.is_empty() || exclude.name == key.name)
        && exclude.label_selector.as_ref().is_none_or(|wanted| labels_match(wanted, labels))
}

/// A text that is no pattern matches nothing: admission refuses it, and acting on a guess is worse.
fn namespace_matches(pattern: &str, namespace: &str) -> bool {
    pattern.is_empty() || Pattern::parse(pattern).is_ok_and(|pattern| pattern.matches(namespace))
}

/// True when every part of a label selector holds; a selector with an unknown operator matches nothing.
pub fn labels_match(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    selector.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
        && selector.match_expressions.iter().all(|requirement| requirement_holds(requirement, labels))
}

fn requirement_holds(requirement: &Requirement, labels: &BTreeMap<String, String>) -> bool {
    let (value, values) = (labels.get(&requirement.key), &requirement.values);
    match requirement.operator {
        Operator::In => !values.is_empty() && value.is_some_and(|value| values.contains(value)),
        Operator::NotIn => !values.is_empty() && value.is_none_or(|value| !values.contains(value)),
        Operator::Exists => values.is_empty() && value.is_some(),
        Operator::DoesNotExist => values.is_empty() && value.is_none(),
        Operator::Gt | Operator::Lt | Operator::Other(_) => false,
    }
}

/// What a label selector surely needs, so that an index can find it; see [`Pivot`].
pub(crate) fn pivot(selector: &LabelSelector) -> Pivot<'_> {
    if let Some((key, value)) = selector.match_labels.iter().next() {
        return Pivot::Pairs(key, std::slice::from_ref(value));
    }
    let expressions = &selector.match_expressions;
    if let Some(listed) = expressions.iter().find(|requirement| requirement.operator == Operator::In) {
        return Pivot::Pairs(&listed.key, &listed.values);
    }
    match expressions.iter().find(|requirement| requirement.operator == Operator::Exists) {
        Some(present) => Pivot::Key(&present.key),
        None => Pivot::Nothing,
    }
}

/// One thing a template must have before a label selector can match it.
pub(crate) enum Pivot<'s> {
    /// The label with one of these values.
    Pairs(&'s String, &'s [String]),
    /// The label with whatever value.
    Key(&'s String),
    /// Nothing: also a template without labels may match.
    Nothing,
}

#[cfg(test)]
mod tests;
