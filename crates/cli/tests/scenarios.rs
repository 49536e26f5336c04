//! The scenario files: every one passes in every way, and a scenario that fails says where, what and why. That every
//! rule has one is tested in `checks`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use scenario::Scenario;

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn longshore(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longshore")).arg("test").args(arguments).output().expect("it starts")
}

fn read_all() -> Vec<Scenario> {
    let paths = scenario::find(&[scenarios()]).expect("there are scenarios");
    paths.iter().map(|path| Scenario::read(path).unwrap_or_else(|error| panic!("{error}"))).collect()
}

#[test]
fn every_scenario_passes_in_every_way() {
    // One seed, so that two runs are the same; another one is tried with LONGSHORE_SCENARIO_SEED.
    let seed = std::env::var("LONGSHORE_SCENARIO_SEED").unwrap_or_else(|_| "1".to_owned());
    let output = longshore(&[scenarios().to_str().expect("the path is text"), "--seed", &seed]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let last = said.lines().last().unwrap_or_default();
    assert!(last.contains(&format!("{} passed, 0 failed", 4 * read_all().len())), "{last}");
}

fn file(directory: &tempfile::TempDir, text: &str) -> String {
    let path = directory.path().join("story.yaml");
    std::fs::write(&path, text).expect("it can be written");
    path.to_str().expect("the path is text").to_owned()
}

#[test]
fn a_scenario_that_fails_says_where_and_why() {
    let directory = tempfile::tempdir().expect("a directory");
    let story = file(
        &directory,
        "
scenario: A policy that does not match
steps:
- policy: { name: pp, select: Deployment web, clusters: [member1] }
- template: nginx
- say: It runs all the same
  expect:
    Deployment nginx: { claimedBy: PropagationPolicy pp, runsIn: [member1] }
",
    );
    let output = longshore(&[&story, "--ways", "plain", "--seed", "7"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    for part in [
        "A policy that does not match",
        "step 3: It runs all the same",
        "Deployment nginx: is claimed by nobody, not by PropagationPolicy default/pp",
        "Deployment nginx: runs in nowhere, not member1",
        "why: Deployment default/nginx: no policy matches it",
        "--ways plain --seed 7",
        "1 scenario: 0 passed, 1 failed",
    ] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
}

#[track_caller]
fn unreadable(text: &str, part: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let output = longshore(&[&file(&directory, text)]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("story.yaml") && said.contains(part), "{part:?} is not in {said}");
}

#[test]
fn a_file_that_cannot_be_read_does_not_stop_the_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let write = |name: &str, text: &str| std::fs::write(path(name), text).expect("it can be written");
    std::fs::create_dir(path("policies")).expect("it can be made");
    write(
        "policies/pp.yaml",
        "apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: { name: pp, namespace: default }
spec:
  resourceSelectors: [{ apiVersion: apps/v1, kind: Deployment, name: nginx }]
  placement: { clusterAffinity: { clusterNames: [member2] } }
",
    );
    std::fs::create_dir(path("stories")).expect("it can be made");
    write("stories/a.yaml", "scenario: broken\nsteps:\n- template: a\n- {}\n");
    write("stories/two.yaml", "scenario: one\nsteps: []\n---\nscenario: two\nsteps: []\n");
    write(
        "stories/b.yaml",
        "scenario: The policy of a file
steps:
- apply: ../policies/
- template: nginx
- expect: { Deployment nginx: { runsIn: [member2] } }
",
    );
    write(
        "stories/c.yaml",
        "scenario: 1 < 2\nsteps:\n- template: nginx\n- expect: { Deployment nginx: { runsIn: [member1] } }\n",
    );
    let stories = path("stories").display().to_string();
    let output = longshore(&[&stories, "--ways", "plain"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in [
        "a.yaml: line 4: step 2: a step needs a verb",
        "two.yaml: it has 2 documents; write one scenario into each file",
        "line 4: step 2: expect",
        "4 scenarios: 1 passed, 3 failed",
    ] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
    let report = longshore(&[&stories, "--ways", "plain", "-o", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("JSON");
    assert_eq!((&report["passed"], &report["failed"]), (&1.into(), &3.into()));
    assert_eq!((&report["cases"][2]["line"], &report["cases"][1]["result"]), (&4.into(), &"passed".into()));
    let xml = longshore(&[&stories, "--ways", "plain", "-o", "junit"]);
    let xml = String::from_utf8_lossy(&xml.stdout);
    assert!(xml.contains("tests=\"4\" failures=\"3\"") && xml.contains("name=\"1 &lt; 2 (plain)\""), "{xml}");
}

#[test]
fn the_schema_is_printed_for_editors() {
    let output = longshore(&["--schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(schema["title"], "Longshore scenario");
}

#[test]
fn what_cannot_be_read_is_named() {
    unreadable("steps: []", "scenario");
    unreadable("scenario: x\nsteps:\n- {}", "step 1: a step needs a verb");
    unreadable(
        "scenario: x\nsteps:\n- { touch: Deployment a, delete: Deployment a }",
        "step 1: a step has one verb",
    );
    unreadable("scenario: x\nsteps:\n- touch: nginx", "is not an object");
    unreadable("scenario: x\nsteps:\n- tuoch: Deployment nginx", "tuoch");
    unreadable("scenario: x\nsteps:\n- edit: Deployment nginx", "say which fields with `set`");
    unreadable("scenario: x\nsteps:\n- wait: soon", "is not a duration");
    unreadable("scenario: x\nsteps:\n- expect: { Deployment nginx: { runIn: [] } }", "runIn");
    unreadable("scenario: x\nsteps:\n- apply: { kind: Deployment }", "lacks apiVersion");
    unreadable("scenario: x\nsteps:\n- policy: { name: a, select: Workload b }", "does not know Workload");
}

#[test]
fn what_is_not_there_is_named() {
    let output = longshore(&["/nowhere/at/all.yaml"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("/nowhere/at/all.yaml") && !output.status.success(), "{said}");
}
