//! A snapshot reads the same state as the watches, and never takes what it lacks permission to read for absent.

use controllers::snapshot::{Error, Listed, list_snapshot, works};
use decide::{Gates, Snapshot};
use http::StatusCode;
use serde_json::json;

use crate::stack::{Stack, config_map, policy};

const PASSWORD: &str = "aHVudGVyMg==";

async fn take(stack: &Stack) -> Result<Listed, Error> {
    list_snapshot(&stack.ctx.control, Gates::default(), (stack.clock)()).await
}

#[tokio::test(start_paused = true)]
async fn it_is_what_watches_bring() {
    let mut stack = Stack::with_nginx(&["member1", "member2"], json!({})).await;
    // More than a page.
    for number in 0..510 {
        stack.create(config_map("default", &format!("conf{number}"))).await;
    }
    stack.settle().await;
    let read = take(&stack).await.expect("everything may be read");
    {
        let known = stack.ctx.cache.snapshot();
        assert!(known.templates.len() > 510);
        assert!(known.templates.iter().eq(read.snapshot.templates.iter()));
        // A status that was written since is no news to controllers.
        let policies = |snapshot: &Snapshot| -> Vec<_> {
            snapshot.policies.iter().map(|one| (one.key.clone(), one.generation, one.spec.clone())).collect()
        };
        assert_eq!(policies(&known), policies(&read.snapshot));
        assert_eq!(known.bindings, read.snapshot.bindings);
        assert_eq!(known.clusters, read.snapshot.clusters);
    }
    assert_eq!(read.snapshot.now, (stack.clock)());
    assert!(read.kinds.iter().any(|kind| kind.kind == "Deployment"));
    let works = works(&stack.ctx.control).await.expect("everything may be read");
    let clusters: Vec<&str> =
        works.keys().filter(|work| work.name.contains("nginx")).map(|work| work.cluster.as_str()).collect();
    assert_eq!(clusters, ["member1", "member2"]);
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn no_value_of_a_secret_is_in_it() {
    let mut stack = Stack::new(&["member1"]).await;
    stack.create(policy("pp", ("Secret", "login"), &["member1"], json!({}))).await;
    let applied = format!("{{\"data\":{{\"password\":\"{PASSWORD}\"}}}}");
    stack
        .create(json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "namespace": "default", "name": "login",
                "annotations": { "kubectl.kubernetes.io/last-applied-configuration": applied },
            },
            "data": { "password": PASSWORD },
        }))
        .await;
    stack.settle().await;
    let read = take(&stack).await.expect("everything may be read");
    let of_name =
        |snapshot: &Snapshot| snapshot.templates.iter().find(|one| one.key.name == "login").cloned();
    let secret = of_name(&read.snapshot).expect("it is there");
    assert_eq!(
        Some(&secret.digest),
        of_name(&stack.ctx.cache.snapshot()).map(|one| one.digest.clone()).as_ref()
    );
    let works = works(&stack.ctx.control).await.expect("everything may be read");
    assert!(works.keys().any(|work| work.name.contains("login")));
    let all = format!("{read:?} {works:?}");
    assert!(!all.contains(PASSWORD));
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_read_is_an_error_that_names_it() {
    let mut stack = Stack::new(&["member1"]).await;
    stack.stop().await;
    let rollouts = "/apis/policy.karmada.io/v1alpha1/rolloutpolicies";
    let cases = [
        ("/api/v1/secrets", StatusCode::FORBIDDEN, Some("list every Secret")),
        ("/apis/policy.karmada.io/v1alpha1/overridepolicies", StatusCode::NOT_FOUND, Some("OverridePolicy")),
        (rollouts, StatusCode::FORBIDDEN, Some("list every RolloutPolicy")),
        ("/apis/apps/v1$", StatusCode::SERVICE_UNAVAILABLE, Some("nobody answers for apps/v1")),
        // Karmada does not have them.
        (rollouts, StatusCode::NOT_FOUND, None),
    ];
    for (path, status, wanted) in cases {
        stack.control.gate.refuse(&format!("GET {path}"), status);
        let error = take(&stack).await.err().map(|error| error.to_string());
        match (&error, wanted) {
            (Some(error), Some(part)) => assert!(error.contains(part), "{path}: {error}"),
            (error, wanted) => assert_eq!(error.as_deref(), wanted, "{path}"),
        }
        stack.control.gate.open();
    }
}
