//! Schema of failover, which policies and bindings share.

use super::schema::{Described, Schema, boolean, int32, list_of, object, one_of, string};

pub(super) fn failover() -> Schema {
    object([
        (
            "application",
            application().about(
                "Moves a template away from clusters in which it stays unhealthy. Needs propagateDeps: true \
                 and a kind whose health Longshore can judge, for example Deployment. Absent: bad health \
                 moves nothing.",
            ),
        ),
        (
            "cluster",
            cluster().about(
                "How a template leaves a cluster with a `NoExecute` taint that it does not tolerate. Absent: \
                 Gracefully, and the last copy stays.",
            ),
        ),
    ])
}

fn application() -> Schema {
    let modes = ["Directly", "Gracefully", "Never", "Immediately", "Graciously"];
    let decision_conditions = object([(
        "tolerationSeconds",
        int32().default(300).about(
            "Seconds that the template may be unhealthy without a break before it is moved; default 300, 0 \
             moves it at once. A restart of the control plane does not start the time anew.",
        ),
    )]);
    object([
        (
            "decisionConditions",
            decision_conditions.required().about("When an unhealthy template counts as failed."),
        ),
        ("evictLastCopy", evict_last_copy()),
        (
            "gracePeriodSeconds",
            int32().about(
                "Longest time in seconds that the old copy stays beside the new one; default 600, and \
                 greater than 0. Only for purgeMode Gracefully, refused for others.",
            ),
        ),
        (
            "purgeMode",
            one_of(&modes).default("Gracefully").about(
                "`Gracefully` (default) keeps the old copy until the new one is healthy or \
                 gracePeriodSeconds are over. `Directly` removes it before a new one is created. `Never` \
                 keeps it until a person sets suppressDeletion of the binding's eviction task to false. \
                 `Graciously` and `Immediately` are older words for the first two.",
            ),
        ),
        ("statePreservation", state_preservation()),
    ])
}

fn cluster() -> Schema {
    object([
        ("evictLastCopy", evict_last_copy()),
        (
            "purgeMode",
            one_of(&["Directly", "Gracefully"]).default("Gracefully").about(
                "`Gracefully` (default) keeps the old copy until the new one is healthy or 600 seconds are \
                 over. `Directly` removes it before a new one is created, also where no other cluster fits.",
            ),
        ),
        ("statePreservation", state_preservation()),
    ])
}

fn evict_last_copy() -> Described {
    boolean().about(
        "True removes the last copy, too, so that nothing runs where no other cluster fits. Default false: \
         it stays until something fits, and the binding's condition LastCopyKept says so. `purgeMode: \
         Directly` implies true; `purgeMode: Never` refuses it.",
    )
}

fn state_preservation() -> Described {
    let rule = object([
        (
            "aliasLabelName",
            string().required().about("Key of the label, for example `example.com/last-state`."),
        ),
        (
            "jsonPath",
            string()
                .required()
                .about("Where the value is, from the object's status on, for example `{.leader}`."),
        ),
    ]);
    object([("rules", list_of(rule).required().about("What is preserved: one label per rule."))]).about(
        "Values from the status of the old copy that the new copy gets as labels. Kept for Karmada; \
         Longshore does not inject them.",
    )
}
