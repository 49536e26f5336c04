//! Restarting every controller between any two steps changes nothing: neither the final state nor the number of writes
//! to reach it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::stack::{Stack, config_map, deployment, policy};

/// A story with dependencies, laziness, preemption, suspension and eviction in it.
async fn play(restarts: bool) -> BTreeMap<String, Value> {
    let mut stack = Stack::new(&["member1", "member2"]).await;
    for step in 0..9 {
        take(&stack, step).await;
        stack.settle().await;
        if restarts {
            stack.restart().await;
            stack.settle().await;
        }
    }
    let revision = stack.control.revision().await;
    stack.restart().await;
    stack.settle().await;
    assert_eq!(
        stack.control.revision().await,
        revision,
        "a restart writes nothing (restarts before: {restarts})"
    );
    let end = end(&stack).await;
    stack.stop().await;
    end
}

async fn take(stack: &Stack, step: usize) {
    let pp = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies/pp";
    let web = "/apis/apps/v1/namespaces/default/deployments/web";
    let both = ["member1", "member2"];
    match step {
        0 => drop(stack.create(config_map("default", "conf")).await),
        1 => drop(stack.create(deployment("web", "conf")).await),
        2 => {
            let lazy = json!({ "activationPreference": "Lazy", "propagateDeps": true });
            drop(stack.create(policy("pp", ("Deployment", "web"), &both, lazy)).await);
        }
        3 => stack.merge(web, json!({ "spec": { "replicas": 3 } })).await,
        4 => stack.merge(pp, json!({ "spec": { "suspension": { "dispatching": true } } })).await,
        5 => stack.merge(web, json!({ "spec": { "replicas": 4 } })).await,
        6 => {
            let always = json!({ "priority": 5, "preemption": "Always", "propagateDeps": true });
            drop(stack.create(policy("strong", ("Deployment", "web"), &["member2"], always)).await);
        }
        7 => {
            let taint = json!({ "spec": { "taints": [{ "key": "gone", "effect": "NoExecute" }] } });
            stack.merge("/apis/cluster.karmada.io/v1alpha1/clusters/member1", taint).await;
        }
        _ => stack.delete(pp).await,
    }
}

/// Everything that matters in the end, without what differs between any two runs.
async fn end(stack: &Stack) -> BTreeMap<String, Value> {
    let mut end = BTreeMap::new();
    let lists = [
        "/apis/work.karmada.io/v1alpha2/resourcebindings",
        "/apis/work.karmada.io/v1alpha1/works",
        "/apis/policy.karmada.io/v1alpha1/propagationpolicies",
    ];
    for list in lists {
        for object in stack.get(list).await["items"].as_array().into_iter().flatten() {
            let metadata = &object["metadata"];
            let key = format!("{list} {}/{}", metadata["namespace"], metadata["name"]);
            let mut spec = object["spec"].clone();
            if let Some(resource) = spec["resource"].as_object_mut() {
                resource.retain(|key, _| key != "uid" && key != "resourceVersion");
            }
            if let Some(spec) = spec.as_object_mut() {
                spec.remove("workload");
            }
            end.insert(key, json!({ "spec": spec, "templates": object["status"]["templates"] }));
        }
    }
    for path in
        ["/apis/apps/v1/namespaces/default/deployments/web", "/api/v1/namespaces/default/configmaps/conf"]
    {
        let mut labels = stack.get(path).await["metadata"]["annotations"].clone();
        if let Some(labels) = labels.as_object_mut() {
            labels.retain(|key, _| key.contains("karmada.io"));
        }
        end.insert(path.to_owned(), json!({ "claim": labels, "members": stack.members_with(path).await }));
    }
    end
}

/// Nothing is left to chance, so that whatever is found once can be found again.
#[tokio::test(start_paused = true)]
async fn the_same_story_is_the_same_to_the_last_request() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let mut stack = Stack::new(&["member1", "member2"]).await;
        for step in 0..9 {
            take(&stack, step).await;
            stack.settle().await;
        }
        stack.stop().await;
        let members = stack.members.values().map(|member| member.gate.asked());
        runs.push((stack.control.gate.asked(), members.collect::<Vec<_>>()));
    }
    assert!(runs[0].0.len() > 100);
    let differs = runs[0].0.iter().zip(&runs[1].0).position(|(one, other)| one != other);
    assert_eq!(differs, None, "{:?}", differs.map(|place| (&runs[0].0[place], &runs[1].0[place])));
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(start_paused = true)]
async fn restarts_between_steps_change_nothing() {
    let (plain, restarted) = (play(false).await, play(true).await);
    assert_eq!(plain.len(), restarted.len());
    for (key, value) in plain {
        assert_eq!(restarted.get(&key), Some(&value), "{key}");
    }
}
