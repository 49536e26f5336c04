//! `get --watch`: changes appear as they happen.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::{WEB, kubectl};

#[test]
fn changes_appear_as_rows() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok_with("create -f -", WEB);
    let watch = kubectl.start("get deployments --watch");
    watch.until("0/3");
    kubectl.ok("scale deployment web --replicas=4");
    watch.until("0/4");
    kubectl.ok("create deployment shop --image=nginx");
    watch.until("shop");
    kubectl.ok("scale deployment web --replicas=5");
    watch.until("0/5");
}

#[test]
fn events_can_be_named_and_past_skipped() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("create secret generic old");
    let watch = kubectl.start("get secrets --watch-only --output-watch-events");
    // The watch begins at some moment after this; one of the secrets falls behind it.
    let (number, enough) = (AtomicUsize::new(0), AtomicBool::new(false));
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !enough.load(SeqCst) && number.load(SeqCst) < 100 {
                kubectl.ok(&format!("create secret generic new-{}", number.fetch_add(1, SeqCst)));
            }
        });
        let seen = watch.until("new-");
        enough.store(true, SeqCst);
        seen
    });
    assert!(seen.contains("ADDED"), "{seen}");
    let last = format!("new-{}", number.load(SeqCst) - 1);
    kubectl.ok(&format!("delete secret {last}"));
    let line = watch.until("DELETED");
    assert!(line.contains(&last), "{line}");
}

#[test]
fn a_selection_is_left_and_entered() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("create secret generic marker");
    kubectl.ok("label secret marker colour=blue");
    kubectl.ok("create secret generic a");
    let watch = kubectl.start("get secrets --watch --output-watch-events -l colour=blue -L colour");
    watch.until("marker");
    kubectl.ok("label secret a colour=blue");
    assert!(watch.until(" a ").starts_with("ADDED"));
    kubectl.ok("label secret a colour=red --overwrite");
    assert!(watch.until(" a ").starts_with("DELETED"));
}

#[test]
fn one_object_can_be_watched_in_any_format() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("create configmap a --from-literal=colour=blue");
    let watch = kubectl.start("get configmap a --watch -o 'jsonpath={.data.colour}{\"\\n\"}'");
    watch.until("blue");
    kubectl.ok("patch configmap a -p '{\"data\":{\"colour\":\"green\"}}'");
    watch.until("green");
}
