//! What names mean, and how refusals read.

use serde_json::json;

use super::*;

#[track_caller]
fn check(name: &str, expected: Option<(&str, Counter)>) {
    let found = counted(name);
    assert_eq!(found.as_ref().map(|(table, counter)| (table.as_str(), *counter)), expected, "{name}");
}

#[test]
fn names_of_object_counts_and_no_others_are_counted() {
    check("count/configmaps", Some(("/configmaps", Counter::Entries)));
    check("count/deployments.apps", Some(("apps/deployments", Counter::Entries)));
    check("count/widgets.stable.example.com", Some(("stable.example.com/widgets", Counter::Entries)));
    check("configmaps", Some(("/configmaps", Counter::Entries)));
    check("count/pods", Some(("/pods", Counter::Entries)));
    check("pods", Some(("/pods", measures::ACTIVE)));
    check("services.nodeports", Some(("/services", measures::NODE_PORTS)));
    for name in ["cpu", "requests.cpu", "limits.memory", "requests.storage", "count/events", "deployments"] {
        check(name, None);
    }
    check("count/events.events.k8s.io", None);
    check("gold.storageclass.storage.k8s.io/persistentvolumeclaims", None);
}

#[test]
fn a_refusal_reads_as_in_kubernetes() {
    let object = json!({
        "metadata": { "name": "q" },
        "spec": { "hard": { "count/configmaps": "1000", "configmaps": "3", "cpu": "1" } },
    });
    let quota = Quota::read(&object);
    let counts: Vec<&Count> = quota.about("/configmaps").collect();
    assert_eq!(
        refusal(&quota.name, &counts, |_| 1, |_| 1000),
        "exceeded quota: q, requested: configmaps=1,count/configmaps=1, \
         used: configmaps=1k,count/configmaps=1k, limited: configmaps=3,count/configmaps=1k"
    );
}

#[test]
fn quotas_with_scopes_count_nothing_here() {
    for spec in [
        json!({ "hard": { "pods": "1" }, "scopes": ["BestEffort"] }),
        json!({ "hard": { "pods": "1" }, "scopeSelector": { "matchExpressions": [{ "scopeName": "PriorityClass" }] } }),
    ] {
        let object = json!({ "metadata": { "name": "q" }, "spec": spec });
        assert!(Quota::read(&object).counts.is_empty());
        assert_eq!(warnings(&object, None).len(), 1);
    }
}

#[test]
fn a_quota_warns_once_about_what_it_does_not_enforce() {
    let object = |hard: Value| json!({ "spec": { "hard": hard } });
    assert_eq!(
        warnings(&object(json!({ "cpu": "1", "count/secrets": "2", "limits.memory": "1Gi" })), None),
        [
            "spec.hard: cpu, limits.memory is stored and not enforced by this API server: only numbers of objects are \
          counted here"
        ]
    );
    assert!(warnings(&object(json!({ "pods": "1", "count/jobs.batch": "2" })), None).is_empty());
    let same = object(json!({ "cpu": "1" }));
    assert!(warnings(&same, Some(&same)).is_empty(), "a change of something else");
}
