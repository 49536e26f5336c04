//! Schemas of resource selectors, exclusions and suspension in policies.

use super::parts::label_selector;
use super::schema::{Described, Field, Schema, boolean, list_of, object, string, strings};
use crate::selector::SELECTORS_MAX;

fn resource_selectors() -> Schema {
    list_of(object([
        (
            "apiVersion",
            string()
                .required()
                .about("Group and version of the templates, for example `apps/v1`; `v1` for the core group."),
        ),
        ("kind", string().required().about("Kind of the templates, for example `Deployment`.")),
        (
            "labelSelector",
            label_selector().about("Selects templates by label. Absent: all. Ignored when `name` is set."),
        ),
        (
            "name",
            string().about(
                "Name of one template. Empty: all. A selector with a name is more exact than one with a \
                 labelSelector, and that is more exact than one with neither; namespaces do not count for \
                 this.",
            ),
        ),
        (
            "namespace",
            string().about(
                "Namespaces of the templates. A cluster-scoped policy takes a comma-separated list without \
                 spaces, whose items are exact names or prefixes that end in a star: `prod`, `user1-*` or \
                 `prod,user1-*`. Empty: every namespace, also those created later; a star alone, in front or \
                 in the middle is refused. A namespaced policy selects only in its own namespace, which is \
                 filled in. To leave namespaces out again, use `exclude` or spec.excludeResourceSelectors, \
                 which take the same patterns and win over every selector.",
            ),
        ),
        (
            "exclude",
            object(exclude_fields()).about(
                "Templates of this kind that the policy leaves out, for example `namespace: user1-*`. A \
                 template is left out when it matches every part that is set, and then no other selector of \
                 this policy selects it either.",
            ),
        ),
    ]))
    .at_most(SELECTORS_MAX)
}

/// The templates of a policy that has to name some.
pub(super) fn required_selectors() -> Described {
    resource_selectors().not_empty().required().about(&format!(
        "Templates that the policy is about: those that an item selects and no exclusion leaves out. 1 to \
         {SELECTORS_MAX} items."
    ))
}

/// The templates of a policy that is about all of them unless it names some.
pub(super) fn optional_selectors() -> Described {
    resource_selectors().about(&format!(
        "Templates that the policy is about: those that an item selects and no exclusion leaves out. Empty: \
         all that are not left out. At most {SELECTORS_MAX} items."
    ))
}

/// What a whole policy leaves out; `effect` says what that leads to.
pub(super) fn exclude_resource_selectors(effect: &str) -> Described {
    let kind = [
        (
            "apiVersion",
            string()
                .required()
                .about("Group and version of the templates to leave out, for example `apps/v1`."),
        ),
        ("kind", string().required().about("Kind of the templates to leave out, for example `Deployment`.")),
    ];
    list_of(object(kind.into_iter().chain(exclude_fields()))).at_most(SELECTORS_MAX).about(&format!(
        "Templates that this policy leaves out, whatever its selectors say; an item leaves out the templates \
         that match every part of it that is set. {effect} At most {SELECTORS_MAX} items."
    ))
}

fn exclude_fields() -> [Field; 3] {
    [
        (
            "labelSelector",
            label_selector().about(
                "Leaves out only templates with these labels, also beside a name. Absent: labels do not \
                 matter.",
            ),
        ),
        ("name", string().about("Leaves out only the template of this name. Empty: every name.")),
        (
            "namespace",
            string().about(
                "Leaves out only templates of these namespaces, written as in a selector: `prod`, `user1-*` \
                 or `prod,user1-*`. A cluster-scoped policy must set it when `name` is empty; a namespaced \
                 policy fills in its own namespace.",
            ),
        ),
    ]
}

/// What a policy suspends, in both spellings; admission turns the second pair into the first (U1).
pub(super) fn suspension() -> Described {
    object(
        dispatching_fields().into_iter().chain([
            (
                "suspendDispatching",
                boolean().about("Another name for `dispatching`; the server stores it under that name."),
            ),
            (
                "suspendDispatchingOnClusters",
                suspended_clusters()
                    .about("Another name for `dispatchingOnClusters`; the server stores it under that name."),
            ),
        ]),
    )
    .about(
        "Holds writes to member clusters back: while suspended, objects there are neither created, updated, \
         repaired nor scaled, and no failover moves them. Deletion still goes through. It acts at once, also \
         in a Lazy policy, and removing it delivers what was held back.",
    )
}

/// Whether writes to every cluster, or to some, are held back.
pub(super) fn dispatching_fields() -> [Field; 2] {
    [
        (
            "dispatching",
            boolean().about(
                "True suspends every cluster. Default false. True cannot be combined with names in \
                 dispatchingOnClusters.",
            ),
        ),
        (
            "dispatchingOnClusters",
            suspended_clusters().about("Suspends the clusters that it names, and no others."),
        ),
    ]
}

fn suspended_clusters() -> Schema {
    object([(
        "clusterNames",
        strings().about("Names of the suspended clusters. An empty list suspends none."),
    )])
}
