//! Stage files: their syntax, and their effect on objects.

use serde_json::json;

use super::*;

const SCENE: Scene<'static> = Scene { now: "2026-01-01T00:00:00Z" };

fn named(api_version: &str, kind: &str) -> Named {
    Named { api_version: api_version.to_owned(), kind: kind.to_owned(), plural: String::new() }
}

fn pod(image: &str, owner: &str, phase: &str) -> Value {
    json!({
        "metadata": { "name": "a", "uid": "u", "ownerReferences": [{ "kind": owner }] },
        "spec": { "nodeName": "n", "containers": [{ "name": "c", "image": image }] },
        "status": { "phase": phase },
    })
}

fn stage_of(stages: &Stages, object: &Value) -> Option<String> {
    let next = stages.next(&named("v1", "Pod"), object, &SCENE)?;
    let key = ("v1".to_owned(), "Pod".to_owned());
    Some(stages.files[&key].stages[next.stage].name.clone())
}

#[test]
fn pods_take_the_stage_that_fits() {
    let stages = Stages::builtin();
    let check = |object: Value, expected: Option<&str>| {
        assert_eq!(stage_of(&stages, &object).as_deref(), expected, "{object}")
    };
    check(pod("nginx", "ReplicaSet", "Pending"), Some("run"));
    check(pod("nginx", "ReplicaSet", "Running"), None);
    check(pod("nginx", "Job", "Running"), Some("complete"));
    check(pod("nginx", "Job", "Succeeded"), None);
    for image in ["fail", "fail:1", "failing", "a.example:5000/b/fail@sha256:0"] {
        check(pod(image, "ReplicaSet", "Pending"), Some("image-pull-back-off"));
        check(pod(image, "Job", "Pending"), Some("fail"));
    }
    check(pod("fail/nginx", "ReplicaSet", "Pending"), Some("run"));
    check(pod("not-fail", "ReplicaSet", "Pending"), Some("run"));
    let mut homeless = pod("nginx", "ReplicaSet", "Pending");
    homeless["spec"]["nodeName"] = Value::Null;
    check(homeless.clone(), None);
    homeless["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    check(homeless, Some("end"));
}

#[test]
fn a_stage_that_acted_does_not_act_again() {
    let stages = Stages::builtin();
    for image in ["nginx", "fail"] {
        let mut object = pod(image, "ReplicaSet", "Pending");
        let next = stages.next(&named("v1", "Pod"), &object, &SCENE).unwrap();
        let Step::Status(status) = next.step else { panic!("{next:?}") };
        assert_eq!(status["containerStatuses"][0]["name"], "c");
        assert_eq!(status.get("initContainerStatuses"), None);
        object["status"] = status;
        assert_eq!(stages.next(&named("v1", "Pod"), &object, &SCENE), None);
    }
}

fn own(stages: &str) -> String {
    format!("apiVersion: example.io/v1\nkind: Thing\nplural: things\nstages:\n{stages}")
}

#[test]
fn expressions_give_values_of_their_type() {
    let text = own(
        "  - name: a\n    when: [{ at: /status/done, exists: false }]\n    status:\n      done: true\n      \
         count: $(/spec/count)\n      text: 'n=$(/spec/count) $(now)'\n      gone: $(/spec/nothing)\n      \
         names: { each: /spec/items, as: { is: $(./name) } }\n",
    );
    let stages = Stages::builtin().with_text("own.yaml", &text).unwrap();
    let object = json!({ "spec": { "count": 3, "items": [{ "name": "x" }, { "name": "y" }] } });
    let next = stages.next(&named("example.io/v1", "Thing"), &object, &SCENE).unwrap();
    let expected = json!({
        "done": true, "count": 3, "text": "n=3 2026-01-01T00:00:00Z",
        "names": [{ "is": "x" }, { "is": "y" }],
    });
    assert_eq!(next.step, Step::Status(expected));
}

#[test]
fn a_stage_that_would_never_end_is_left_out() {
    let text = own("  - name: spin\n    status: { at: $(now) }\n");
    let stages = Stages::builtin().with_text("own.yaml", &text).unwrap();
    assert_eq!(stages.next(&named("example.io/v1", "Thing"), &json!({}), &SCENE), None);
}

#[test]
fn addresses_lie_in_their_network() {
    let stages = Stages::builtin();
    for number in 0..300 {
        let object = json!({ "metadata": { "uid": number.to_string() }, "spec": { "type": "LoadBalancer" } });
        let next = stages.next(&named("v1", "Service"), &object, &SCENE).unwrap();
        let Step::Status(status) = next.step else { panic!("{next:?}") };
        let address = status["loadBalancer"]["ingress"][0]["ip"].as_str().unwrap();
        let last: u8 = address.strip_prefix("192.0.2.").unwrap().parse().unwrap();
        assert!((1..=254).contains(&last));
    }
}

#[test]
fn what_is_no_stage_file_is_refused_with_a_reason() {
    for (text, reason) in [
        ("kind: X", "missing field"),
        (&own("  - name: a\n"), "must have either a status or delete: true"),
        (&own("  - name: a\n    delete: true\n    status: {}\n"), "must have either"),
        (&own("  - name: a\n    status: { x: $(soon) }\n"), "$(soon) is none of"),
        (&own("  - name: a\n    status: { x: $(now }\n"), "does not end"),
        (&own("  - name: a\n    status: { x: '$(address 1.2.3.4)' }\n"), "is none of"),
        (&own("  - name: a\n    delete: true\n    when: [{ at: /x }]\n"), "exactly one of"),
        (&own("  - name: a\n    delete: true\n    when: [{ at: x, is: 1 }]\n"), "begins with a slash"),
        (&own("  - name: a\n    delete: true\n    when: [{ at: /x, like: '(' }]\n"), "regex"),
    ] {
        let error = Stages::builtin().with_text("own.yaml", text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn a_directory_of_files_replaces_what_it_speaks_of() {
    let directory = tempfile::tempdir().unwrap();
    let text = "apiVersion: v1\nkind: Service\nplural: services\nstages: []\n";
    std::fs::write(directory.path().join("service.yaml"), text).unwrap();
    std::fs::write(directory.path().join("notes.txt"), "no stages").unwrap();
    let stages = Stages::builtin().with_directory(directory.path()).unwrap();
    let service = json!({ "metadata": { "uid": "u" }, "spec": { "type": "LoadBalancer" } });
    assert_eq!(stages.next(&named("v1", "Service"), &service, &SCENE), None);
    assert!(Stages::builtin().with_directory(&directory.path().join("none")).is_err());
}
