//! Prints the answers of several members: one table with a cluster column, or one list.

use std::collections::BTreeSet;

use api::annotations::CACHED_FROM_CLUSTER;
use serde_json::{Value, json};

use crate::get::list::{Answer, ListRequest, metadata, text};
use crate::terminal_text;

/// What `kubectl apply` keeps of what it applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The rows of all members under one header; nothing if no member has any.
pub fn table(answers: &[(String, Answer)], with_namespace: bool, is_wide: bool) -> String {
    let with_rows = answers.iter().filter(|(_, answer)| !answer.items.is_empty());
    let Some((_, first)) = with_rows.clone().next() else { return String::new() };
    let is_shown = |column: &Value| is_wide || column["priority"].as_i64().unwrap_or(0) == 0;
    let columns: Vec<&str> =
        first.columns.iter().filter(|column| is_shown(column)).map(|column| text(column, "name")).collect();
    let namespace = with_namespace.then_some("NAMESPACE");
    let titles = columns.iter().map(|title| title.to_uppercase()).collect::<Vec<_>>();
    let (name, others) =
        titles.split_first().map_or(("NAME", &[][..]), |(name, others)| (name.as_str(), others));
    let header: Vec<&str> =
        namespace.into_iter().chain([name, "CLUSTER"]).chain(others.iter().map(String::as_str)).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (cluster, answer) in with_rows {
        for item in &answer.items {
            let cell = |title: &&str| cell(answer, item, title);
            let mut cells = columns.iter().map(cell);
            let name = cells.next().unwrap_or_default();
            let namespace = with_namespace.then(|| text(metadata(item), "namespace").to_owned());
            rows.push(namespace.into_iter().chain([name, cluster.clone()]).chain(cells).collect());
        }
    }
    // By name, so that the members of one object stand together.
    rows.sort();
    terminal_text::table(&header, &rows)
}

/// Members may be of different versions, so a cell is found by the title of its column.
fn cell(answer: &Answer, row: &Value, title: &str) -> String {
    let place = answer.columns.iter().position(|column| text(column, "name") == title);
    match place.and_then(|place| row["cells"].get(place)) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => "<none>".to_owned(),
        Some(other) => other.to_string(),
    }
}

/// Each name once, as kubectl takes it.
pub fn names(list_request: &ListRequest, answers: &[(String, Answer)]) -> String {
    let names: BTreeSet<&str> = answers.iter().flat_map(|(_, answer)| answer.names()).collect();
    names.into_iter().map(|name| format!("{}/{name}\n", list_request.kind.printed())).collect()
}

/// The objects of one member, each with where it comes from. Values of Secrets are not shown.
pub fn items(cluster: &str, answer: &Answer) -> Vec<Value> {
    let marked = answer.items.iter().cloned().map(|mut object| {
        if object["kind"] == "Secret" && object["apiVersion"] == "v1" {
            hide(&mut object);
        }
        object["metadata"]["annotations"][CACHED_FROM_CLUSTER] = json!(cluster);
        object
    });
    marked.collect()
}

/// Takes the values out of a Secret.
pub fn hide(secret: &mut Value) {
    for field in ["data", "stringData"] {
        let values = secret.get_mut(field).and_then(Value::as_object_mut);
        values.into_iter().flatten().for_each(|(_, value)| *value = json!("<hidden>"));
    }
    if let Some(annotations) = secret.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(columns: Value, rows: Value) -> Answer {
        let list = |value: Value| if let Value::Array(list) = value { list } else { Vec::new() };
        Answer { columns: list(columns), items: list(rows) }
    }

    #[test]
    fn rows_of_members_stand_together_by_name() {
        let columns = json!([{ "name": "Name" }, { "name": "Ready" }, { "name": "Images", "priority": 1 }]);
        let row = |name: &str, ready: &str| json!({ "cells": [name, ready, "x:1"], "object": { "metadata": { "name": name, "namespace": "team" } } });
        // The second member is of a version that has no such column.
        let answers = [
            ("member1".to_owned(), answer(columns, json!([row("web", "1/1"), row("api", "0/2")]))),
            ("member2".to_owned(), answer(json!([{ "name": "Name" }]), json!([row("web", "")]))),
        ];
        let plain =
            "NAME   CLUSTER   READY\napi    member1   0/2\nweb    member1   1/1\nweb    member2   <none>\n";
        assert_eq!(table(&answers, false, false), plain);
        let wide = table(&answers, true, true);
        assert!(wide.starts_with("NAMESPACE   NAME   CLUSTER   READY    IMAGES\nteam "), "{wide}");
        assert_eq!(table(&[], false, false), "");
    }

    #[test]
    fn values_of_secrets_are_not_shown() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "data": { "key": "c2VjcmV0" },
            "metadata": { "name": "s", "annotations": { LAST_APPLIED: "c2VjcmV0" } },
        });
        let shown = items("member1", &answer(json!([]), json!([secret])));
        let text = shown[0].to_string();
        assert!(!text.contains("c2VjcmV0") && text.contains("\"key\":\"<hidden>\""), "{text}");
        assert_eq!(shown[0]["metadata"]["annotations"][CACHED_FROM_CLUSTER], "member1");
    }
}
