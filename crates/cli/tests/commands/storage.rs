//! How full the control plane is, as an administrator sees it before anything is refused.

use serde_json::{Value, json};

use crate::terminal::Terminal;

#[test]
fn a_namespace_that_is_nearly_full_is_warned_about() {
    let terminal = Terminal::open(0, &["--namespace-max-objects=20"]);
    assert!(!terminal.ok("status").contains("Warning: "));
    let map = |number: usize| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": format!("m{number}"), "namespace": "default" },
        })
    };
    terminal.apply(&(0..14).map(map).collect::<Vec<Value>>());
    let said = terminal.until("status", |said| said.stdout.contains("Warning: "));
    let text = said.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("% of the limit of objects in namespace default is used"), "{text}");
    assert!(text.contains("or raise --namespace-max-objects"), "{text}");
    assert!(!text.contains("Not ready"), "{text}");
    let report: Value = serde_json::from_str(&terminal.ok("status -o json")).expect("JSON");
    assert_eq!(report["warnings"].as_array().map(Vec::len), Some(1), "{report}");
}
