//! What the reflector reports, against a server with scripted responses.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Request, Response, StatusCode};
use kube::client::Body;
use serde_json::json;
use supervise::Injector;

use super::*;
use crate::metrics::Metrics;

/// A server that gives these answers, one after the other, and then none.
fn answering(answers: Vec<(StatusCode, Value)>) -> Rest {
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let service = tower::service_fn(move |_: Request<Body>| {
        let next = answers.lock().expect("no one panics while holding it").pop_front();
        async move {
            let Some((status, body)) = next.filter(|(_, body)| !body.is_null()) else {
                return std::future::pending().await;
            };
            let mut response = Response::new(Body::from(body.to_string().into_bytes()));
            *response.status_mut() = status;
            Ok::<_, Infallible>(response)
        }
    });
    Rest::new(kube::Client::new(service, "default"))
}

fn list(names: &[&str], next: &str) -> (StatusCode, Value) {
    let item =
        |name: &&str| json!({ "metadata": { "namespace": "n", "name": name, "resourceVersion": "1" } });
    let items: Vec<Value> = names.iter().map(item).collect();
    (StatusCode::OK, json!({ "metadata": { "resourceVersion": "1", "continue": next }, "items": items }))
}

/// A watch on which nothing ever comes.
fn hanging() -> (StatusCode, Value) {
    (StatusCode::OK, Value::Null)
}

fn refusal(code: u16) -> (StatusCode, Value) {
    let status =
        json!({ "kind": "Status", "status": "Failure", "message": "no", "reason": "x", "code": code });
    (StatusCode::from_u16(code).expect("a status"), status)
}

/// Everything that is reported until the server has no more responses.
async fn reported(answers: Vec<(StatusCode, Value)>) -> Vec<String> {
    reported_despite(Injector::default(), answers).await
}

/// The same, while something fails.
async fn reported_despite(injector: Injector, answers: Vec<(StatusCode, Value)>) -> Vec<String> {
    let supervisor = Supervisor::new(Metrics::default(), injector);
    let mut reported = Vec::new();
    let collection = Collection::new("v1", "configmaps", "");
    let types = TypeMeta { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned() };
    let sink = |report: Report| {
        reported.push(match report {
            Report::Change(Delta::Applied(object)) => format!("applied {}", object.namespaced_name().name),
            Report::Change(Delta::Deleted(deleted)) => format!("deleted {}", deleted.name),
            Report::Synced => "synced".to_owned(),
            Report::ListRefused => "refused".to_owned(),
        });
    };
    let stop = CancellationToken::new();
    let reflecting = reflect(answering(answers), collection, types, "", stop, &supervisor, sink);
    assert!(tokio::time::timeout(Duration::from_secs(20), reflecting).await.is_err());
    reported
}

#[tokio::test(start_paused = true)]
async fn an_object_deleted_while_lists_fail_is_reported() {
    let answers = vec![
        list(&["a", "b"], ""),
        refusal(500), // the watch
        refusal(500), // the list
        list(&["a"], ""),
    ];
    assert_eq!(
        reported(answers).await,
        ["applied a", "applied b", "synced", "applied a", "deleted b", "synced"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_of_an_unfinished_list_is_reported_when_it_is_deleted() {
    let answers = vec![list(&["a", "b"], "more"), refusal(500), list(&["b"], "")];
    assert_eq!(reported(answers).await, ["applied a", "applied b", "applied b", "deleted a", "synced"]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_watch_leads_to_lists_with_backoff() {
    let refused = |_| [list(&["a"], ""), refusal(403)];
    let reported = reported((0..50).flat_map(refused).collect()).await;
    // After 0, 0.2, 0.6, 1.4, 3, 6.2, 12.6 and no further one within 20 seconds.
    assert_eq!(reported.iter().filter(|one| *one == "synced").count(), 7, "{reported:?}");
    assert!(!reported.contains(&"refused".to_owned()), "it can be listed");
}

#[tokio::test(start_paused = true)]
async fn a_lasting_refusal_is_reported_and_an_outage_is_not() {
    let lasting = |code: u16| (0..7).map(|_| refusal(code)).collect::<Vec<_>>();
    assert_eq!(reported(lasting(403)).await, ["refused"]);
    assert_eq!(reported(lasting(500)).await, ["refused"]);
    assert!(reported(lasting(503)).await.is_empty());
    assert!(reported(lasting(429)).await.is_empty());
}

/// Panics so many times where an object of this name is handled.
fn panicking(name: &'static str, times: u32) -> Injector {
    let left = Mutex::new(times);
    Injector::new(move |_, subject| {
        let mut left = left.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if format!("{subject:?}").ends_with(&format!("/{name}")) && *left > 0 {
            *left -= 1;
            panic!("injected");
        }
    })
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_handling_panics_hides_no_other_and_is_tried_again() {
    let lists = || vec![list(&["a", "b", "c"], ""), hanging(), list(&["a", "b", "c"], "")];
    let expected = ["applied a", "applied c", "applied a", "applied b", "applied c", "synced"];
    assert_eq!(reported_despite(panicking("b", 1), lists()).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_whose_handling_panics_is_reported_with_the_next_list() {
    let answers = vec![
        list(&["a", "b"], ""),
        refusal(500), // the watch
        list(&["a"], ""),
        hanging(),
        list(&["a"], ""),
    ];
    // The first one to panic is the second report about b.
    let panics_at_second = {
        let seen = Mutex::new(0);
        Injector::new(move |_, subject| {
            let mut seen = seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            *seen += u32::from(format!("{subject:?}").contains("/b"));
            assert!(*seen != 2 || !format!("{subject:?}").contains("/b"), "injected");
        })
    };
    let expected = ["applied a", "applied b", "synced", "applied a", "applied a", "deleted b", "synced"];
    assert_eq!(reported_despite(panics_at_second, answers).await, expected);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_always_panics_is_never_taken_for_absent() {
    let answers = (0..6).flat_map(|_| [list(&["a", "b"], ""), hanging()]).collect();
    let reported = reported_despite(panicking("b", u32::MAX), answers).await;
    assert_eq!(reported, ["applied a", "applied a", "applied a", "refused", "applied a", "applied a"]);
}
