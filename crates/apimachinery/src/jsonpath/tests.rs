//! JSONPaths that match, that are refused, and that are made to exhaust the server.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn object() -> Value {
    json!({
        "metadata": { "name": "web", "labels": { "app.kubernetes.io/name": "web", "tier": "front" } },
        "spec": { "replicas": 3, "ports": [{ "port": 80, "name": "http" }, { "port": 443, "name": "https" }] },
        "status": { "conditions": [
            { "type": "Progressing", "status": "Unknown", "weight": 1 },
            { "type": "Ready", "status": "True", "weight": 2.5 },
        ], "items": ["a", "b", "c"], "empty": null },
    })
}

#[track_caller]
fn check(path: &str, expected: Value) {
    let object = object();
    let parsed = JsonPath::parse(path).unwrap();
    let found: Vec<&Value> = parsed.find(&object).unwrap();
    assert_eq!(Value::from_iter(found.iter().map(|value| (*value).clone())), expected, "{path}");
    assert_eq!(parsed.first(&object), found.first().copied(), "first of {path}");
}

#[test]
fn paths_find() {
    check(".spec.replicas", json!([3]));
    check("{.spec.replicas}", json!([3]));
    check("$.spec['replicas']", json!([3]));
    check(".spec.missing.deeper", json!([]));
    check(".metadata.labels.app\\.kubernetes\\.io/name", json!(["web"]));
    check(".metadata.labels['app\\.kubernetes\\.io/name']", json!(["web"]));
    check(".metadata.labels['app.kubernetes.io/name']", json!(["web"]));
    check(".metadata.labels.*", json!(["web", "front"]));
    check(".spec.ports[0].name", json!(["http"]));
    check(".spec.ports[-1].name", json!(["https"]));
    check(".spec.ports[-1:].name", json!(["https"]));
    check(".spec.ports[*].port", json!([80, 443]));
    check(".status.items[0:2]", json!(["a", "b"]));
    check(".status.items[::2]", json!(["a", "c"]));
    check(".status.items[0,2]", json!(["a", "c"]));
    check(".metadata['name','missing']", json!(["web"]));
    check("..port", json!([80, 443]));
    check(".spec..name", json!(["http", "https"]));
    check(".status.empty", json!([null]));
    check(".status.empty.x", json!([]));
    check(r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"]));
    check(".status.conditions[?(@.type=='Ready')].status", json!(["True"]));
    check(r#".status.conditions[?(@.type != "Ready")].status"#, json!(["Unknown"]));
    check(".status.conditions[?(@.weight > 2)].type", json!(["Ready"]));
    check(".status.conditions[?(@.weight<=1)].type", json!(["Progressing"]));
    check(".status.conditions[?(@.missing)].type", json!([]));
    check(".spec.ports[?(@.name)].port", json!([80, 443]));
    check(r#".status.conditions[?(@.type==")")].status"#, json!([]));
    check(".", json!([]));
    check("$", json!([object()]));
    check(".metadata.['name']", json!([]));
}

#[test]
fn paths_are_refused() {
    for (path, message) in [
        (".a[", "unterminated array"),
        (".a[x]", "invalid array index x"),
        (".a[1:2:3:4]", "invalid array index 1:2:3:4"),
        (".a[::0]", "step must be > 0"),
        (".a[?(@.b==\"c)]", "unterminated filter"),
        (".a[?(@.b)", "unclosed array expect ]"),
        (".a[?(@.b=1)]", "unrecognized filter operator ="),
        ("....a", "invalid multiple recursive descent"),
        ("#", "unrecognized character in action: U+0023 '#'"),
        ("a", "unrecognized identifier a"),
        ("'a", "unterminated quoted string"),
    ] {
        assert_eq!(JsonPath::parse(path).unwrap_err(), message, "{path}");
    }
}

#[test]
fn evaluation_fails_where_kubernetes_fails() {
    for (path, message) in [
        (".spec.ports[5]", "array index out of bounds: index 5, length 2"),
        (".spec[0]", "map[string]interface {} is not array or slice"),
        (".status.conditions[?(@.type>1)]", "incompatible types for comparison"),
        (".spec.ports[?(@.*==1)]", "can only compare one element at a time"),
    ] {
        let object = object();
        let parsed = JsonPath::parse(path).unwrap();
        assert_eq!(parsed.find(&object).unwrap_err(), message, "{path}");
        assert_eq!(parsed.first(&object), None);
    }
}

#[test]
fn no_path_multiplies_without_end() {
    let list = json!({ "a": (0..1_000).collect::<Vec<i32>>() });
    let again = format!("[{}]", vec!["0"; 200].join(","));
    let nested = json!({ "a": [[[[(0..500).map(|_| json!([1])).collect::<Vec<_>>()]]]] });
    for (path, object) in [
        (format!(".a{}", "['', '']".repeat(200)), &list),
        (format!(".a[*]{0}{0}{0}", ".*"), &list),
        (format!(".a{again}{again}{again}{again}.*"), &nested),
        ("..*..*..*..*..*..*..*..*".to_owned(), &nested),
        (".a[?(@..[?(@..[?(@..[?(@..x)])])])]".to_owned(), &nested),
    ] {
        let begun = std::time::Instant::now();
        let found = JsonPath::parse(&path).map(|path| path.find(object).map_or(0, |found| found.len()));
        assert!(found.unwrap_or_default() <= 100_000, "{path}");
        // Without bounds it would take hours.
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{path}: {:?}", begun.elapsed());
    }
}

#[test]
fn plain_paths_tell_their_fields() {
    let fields =
        |path: &str| JsonPath::parse(path).unwrap().fields().map(|names| names.map(str::to_owned).collect());
    assert_eq!(fields(".spec.replicas"), Some(vec![String::from("spec"), String::from("replicas")]));
    assert_eq!(fields(".spec.ports[0]"), None::<Vec<String>>);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn nothing_panics(path in r#"[.\[\]\*?@()'"a-c0-9:,=<>!\\ {}$é-]{0,30}"#) {
        if let Ok(parsed) = JsonPath::parse(&path) {
            let object = json!({ "a": [{ "b": "c" }, { "b": 1, "a": [1, 2, [3]] }], "b": { "a": null }, "c": "é" });
            let _ = parsed.find(&object);
            let _ = parsed.first(&object);
        }
    }
}
