//! Panics are isolated: every reconcile, the informer cache, the watches and discovery panic in turn, and what users
//! asked for happens all the same.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use controllers::scrape;
use serde_json::{Value, json};
use supervise::Injector;

use crate::stack::{BINDING, NGINX, Stack, condition, policy};

/// Counts how often each point was passed, and panics the first times.
#[derive(Clone, Default)]
struct Points(Arc<Mutex<BTreeMap<&'static str, u32>>>);

impl Points {
    /// Panics at the first `times` passes of each point that is meant.
    fn injector(
        &self,
        times: u32,
        means: impl Fn(&str, &dyn Debug) -> bool + Send + Sync + 'static,
    ) -> Injector {
        let points = self.clone();
        Injector::new(move |point, subject| {
            if !means(point, subject) {
                return;
            }
            let mut passed = points.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let passed = passed.entry(point).or_default();
            *passed += 1;
            assert!(*passed > times, "injected at {point}: {subject:?}");
        })
    }

    fn passed(&self, point: &str) -> u32 {
        let passed = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        passed.get(point).copied().unwrap_or_default()
    }
}

/// How often a counter was raised.
fn counted(stack: &Stack, series: &str) -> u64 {
    let text = scrape::render(&stack.ctx);
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0, |count| count.parse().expect("a number"))
}

#[tokio::test(start_paused = true)]
async fn every_reconcile_may_panic_and_what_is_asked_for_happens() {
    let points = Points::default();
    let mut stack = Stack::new(&["member1", "member2"]).await;
    stack.restart_with_faults(points.injector(3, |point, _| !["cache", "watch"].contains(&point))).await;
    stack.create(policy("pp", ("Deployment", "nginx"), &["member1", "member2"], json!({}))).await;
    stack.create(crate::stack::nginx()).await;
    stack.until_in(NGINX, &["member1", "member2"]).await;
    let applied = |binding: &Value| condition(binding, "FullyApplied") == "True";
    stack.control.until("fully applied", BINDING, applied).await;
    stack.delete(NGINX).await;
    stack.until_in(NGINX, &[]).await;
    let controllers = [
        "detector",
        "scheduler",
        "binding",
        "binding-status",
        "clients",
        "cluster",
        "cluster-status",
        "policies",
        "failover",
        "taints",
        "policy-status",
        "events",
        "namespaces",
        "execution",
    ];
    for controller in controllers {
        assert!(points.passed(controller) > 3, "{controller}: {}", points.passed(controller));
        let series = format!("reconcile_panics_total{{controller=\"{controller}\"}}");
        assert_eq!(counted(&stack, &series), 3, "{controller}");
    }
    assert_eq!(counted(&stack, "task_panics_total{task=\"discovery\"}"), 3);
    assert_eq!(stack.ctx.supervisor.failure(), None, "everything goes on");
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_has_an_event_on_the_object_and_delays_no_other() {
    let points = Points::default();
    let mut stack = Stack::new(&["member1"]).await;
    let broken =
        |point: &str, subject: &dyn Debug| point == "detector" && format!("{subject:?}").contains("broken");
    stack.restart_with_faults(points.injector(u32::MAX, broken)).await;
    stack.create(policy("pp", ("ConfigMap", ""), &["member1"], json!({}))).await;
    for name in [
        "broken-1", "broken-2", "broken-3", "broken-4", "broken-5", "broken-6", "broken-7", "broken-8",
        "well",
    ] {
        stack
            .create(json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "default" },
            }))
            .await;
    }
    stack.until_in("/api/v1/namespaces/default/configmaps/well", &["member1"]).await;
    stack.until("told", async |stack| !stack.told("broken-1", "ReconcilePanicked").await.is_empty()).await;
    let told = stack.told("broken-1", "ReconcilePanicked").await;
    assert!(told.len() == 1 && !told[0].0.contains("injected"), "{told:?}");
    assert!(points.passed("detector") < 200, "back-off: {}", points.passed("detector"));
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cache_lock_poisoned_during_a_change_stops_no_controller() {
    let points = Points::default();
    let mut stack = Stack::new(&["member1"]).await;
    let nginx =
        |point: &str, subject: &dyn Debug| point == "cache" && format!("{subject:?}").contains("nginx");
    stack.restart_with_faults(points.injector(2, nginx)).await;
    stack.create(policy("pp", ("Deployment", "nginx"), &["member1"], json!({}))).await;
    stack.create(crate::stack::nginx()).await;
    stack.until_in(NGINX, &["member1"]).await;
    assert!(points.passed("cache") > 2);
    assert!(counted(&stack, "task_panics_total{task=\"watch\"}") >= 2);
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn watches_may_panic_at_every_object_and_nothing_is_missed() {
    let points = Points::default();
    let mut stack = Stack::new(&["member1"]).await;
    stack.restart_with_faults(points.injector(40, |point, _| point == "watch")).await;
    stack.create(policy("pp", ("Deployment", "nginx"), &["member1"], json!({}))).await;
    stack.create(crate::stack::nginx()).await;
    stack.until_in(NGINX, &["member1"]).await;
    stack.delete(NGINX).await;
    stack.until_in(NGINX, &[]).await;
    assert_eq!(counted(&stack, "task_panics_total{task=\"watch\"}"), 40);
    stack.stop().await;
}
