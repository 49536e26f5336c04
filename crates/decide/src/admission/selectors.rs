//! Validation of selectors and exclusions: patterns (B1), exclusions (B2), bounded preemption (P4).

use api::selector::{ExcludeResourceSelector, SELECTORS_MAX};
use api::{LabelSelector, ResourceSelector, Scope};

use super::{Findings, Review, syntax};
use crate::selector::pattern::Pattern;

/// Whose selectors they are.
#[derive(Clone, Copy)]
pub(super) struct Owner<'o> {
    /// Where the policy lives.
    pub scope: Scope,
    /// Its namespace, empty for cluster-scoped ones.
    pub namespace: &'o str,
}

/// Every selector and exclusion of a policy.
pub(super) fn check(
    owner: Owner<'_>,
    selectors: &[ResourceSelector],
    excluded: &[ExcludeResourceSelector],
    findings: &mut Findings,
) {
    limit("spec.resourceSelectors", selectors.len(), findings);
    limit("spec.excludeResourceSelectors", excluded.len(), findings);
    for (index, selector) in selectors.iter().enumerate() {
        let path = format!("spec.resourceSelectors[{index}]");
        namespace(owner, &path, &selector.namespace, findings);
        labels(&path, selector.label_selector.as_ref(), findings);
        if let Some(exclude) = &selector.exclude {
            let path = format!("{path}.exclude");
            exclusion(owner, &path, &exclude.namespace, &exclude.name, findings);
            labels(&path, exclude.label_selector.as_ref(), findings);
        }
    }
    for (index, exclude) in excluded.iter().enumerate() {
        let path = format!("spec.excludeResourceSelectors[{index}]");
        if exclude.api_version.is_empty() || exclude.kind.is_empty() {
            findings.refuse(&path, "needs apiVersion and kind, for example apps/v1 and Deployment");
        }
        exclusion(owner, &path, &exclude.namespace, &exclude.name, findings);
        labels(&path, exclude.label_selector.as_ref(), findings);
    }
}

/// The schema says the same, but is asked after admission.
fn limit(path: &str, count: usize, findings: &mut Findings) {
    if count > SELECTORS_MAX {
        findings.refuse(
            path,
            format!(
                "has {count} items, and {SELECTORS_MAX} are allowed; select by label or namespace, or write several policies"
            ),
        );
    }
}

/// B1 for cluster-scoped policies; a namespaced one speaks of its own namespace only.
fn namespace(owner: Owner<'_>, path: &str, written: &str, findings: &mut Findings) {
    let path = format!("{path}.namespace");
    match owner.scope {
        Scope::Namespaced if written != owner.namespace && !written.is_empty() => findings.refuse(
            path,
            format!(
                "{written:?} is not the policy's own namespace {:?}; leave it out, or use a cluster-scoped policy",
                owner.namespace
            ),
        ),
        Scope::Namespaced => {}
        Scope::Cluster => {
            if let Err(error) = Pattern::parse(written) {
                findings.refuse(path, error.to_string());
            }
        }
    }
}

/// B2: an exclusion without a name needs a namespace, or it would exclude more than its author means.
fn exclusion(owner: Owner<'_>, path: &str, in_namespace: &str, name: &str, findings: &mut Findings) {
    namespace(owner, path, in_namespace, findings);
    if name.is_empty() && in_namespace.is_empty() && owner.scope == Scope::Cluster {
        findings.refuse(
            format!("{path}.namespace"),
            "must be set when name is empty, for example `namespace: user1-*` or `namespace: prod,test`",
        );
    }
}

fn labels(path: &str, selector: Option<&LabelSelector>, findings: &mut Findings) {
    let Some(selector) = selector else { return };
    for (key, value) in &selector.match_labels {
        if !syntax::is_label_key(key) || !syntax::is_label_value(value) {
            findings.refuse(
                format!("{path}.labelSelector.matchLabels"),
                format!("{key}: {value} is not a label; write for example `app: nginx`"),
            );
        }
    }
    for (index, requirement) in selector.match_expressions.iter().enumerate() {
        use api::selector::Operator::{DoesNotExist, Exists, In, NotIn};
        let path = format!("{path}.labelSelector.matchExpressions[{index}]");
        let problem = match (&requirement.operator, requirement.values.is_empty()) {
            _ if !syntax::is_label_key(&requirement.key) => "the key is not a label key",
            (In | NotIn, false) | (Exists | DoesNotExist, true) => continue,
            (In | NotIn, true) => "In and NotIn need values",
            (Exists | DoesNotExist, false) => "Exists and DoesNotExist take no values",
            _ => "the operator must be In, NotIn, Exists or DoesNotExist",
        };
        findings.refuse(path, problem);
    }
}

/// P4: what takes templates from others must say which.
pub(super) fn bounded(
    review: &Review<'_>,
    owner: Owner<'_>,
    selectors: &[ResourceSelector],
    findings: &mut Findings,
) {
    if owner.scope == Scope::Namespaced {
        return;
    }
    for (index, selector) in selectors.iter().enumerate().filter(|(_, selector)| selector.name.is_empty()) {
        let path = format!("spec.resourceSelectors[{index}]");
        if (review.is_cluster_scoped)(&selector.api_version, &selector.kind) {
            findings.refuse(
                format!("{path}.name"),
                format!("must be set: preemption is Always and {} lives in no namespace; name the one to take, for example `name: nginx`", selector.kind),
            );
        } else if selector.namespace.is_empty() {
            findings.refuse(
                path,
                "must be bounded, because preemption is Always and would take every template of the kind: \
                 set a name (`name: nginx`) or a namespace (`namespace: user1-*`)",
            );
        }
    }
}
