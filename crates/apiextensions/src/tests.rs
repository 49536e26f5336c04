//! Definitions and objects against the answers of kube-apiserver 1.35.4, recorded in the two JSON files.

use serde_json::{Value, json};

use super::*;
use apimachinery::recorded::{check_all, lines};

mod properties;
mod status;

fn expected(case: &Value, key: &str) -> Vec<String> {
    texts(&case[key]).map(str::to_owned).collect()
}

/// Go walks through the fields of an object in no order, so that recorded errors have none.
fn sorted(mut lines: Vec<String>) -> Value {
    lines.sort();
    json!(lines)
}

/// A definition of `ex.com/v1` Case whose objects have one field, `x`.
fn definition(schema: &Value) -> Value {
    let mut crd = json!({
        "metadata": { "name": "cases.ex.com" },
        "spec": {
            "group": "ex.com",
            "scope": "Namespaced",
            "names": { "plural": "cases", "kind": "Case" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "x": schema } } },
            }],
        },
    });
    default_crd(&mut crd);
    keep_status(&mut crd, None);
    crd
}

fn check_object(case: &Value) -> Result<(), String> {
    let kind = compile(&definition(&case["schema"])).unwrap();
    let version = &kind.versions[0];
    let mut object = json!({
        "apiVersion": "ex.com/v1", "kind": "Case",
        "metadata": { "name": "n", "namespace": "default" },
        "x": case["value"],
    });
    let (got, want) = match kind.decode(version, &mut object) {
        Err(error) => (json!([error.message]), json!([case["refused"]])),
        Ok(unknown) => match kind.validate_create(version, &object) {
            errors if !errors.is_empty() => (sorted(lines(&errors)), sorted(expected(case, "causes"))),
            _ => {
                CustomKind::canonicalize(&mut object);
                let warnings: Vec<String> =
                    unknown.iter().map(|path| format!("\"unknown field \\\"{path}\\\"\"")).collect();
                let stored = object.get("x").map_or(json!({}), |x| json!({ "x": x }));
                (json!([stored, warnings]), json!([case["stored"], case["warnings"]]))
            }
        },
    };
    if got == want {
        Ok(())
    } else {
        Err(format!("{} <- {}\n   got {got}\n  want {want}", case["schema"], case["value"]))
    }
}

#[test]
fn objects_are_judged_as_recorded() {
    check_all(include_str!("tests/objects.json"), 250, check_object);
}

fn check_definition(case: &Value) -> Result<(), String> {
    let mut crd = case["crd"].clone();
    default_crd(&mut crd);
    keep_status(&mut crd, None);
    let errors = lines(&validate_crd(&crd, None));
    let mut wrong = Vec::new();
    if errors != expected(case, "causes") {
        wrong.push(format!("got {:#?}\n  want {:#?}", errors, expected(case, "causes")));
    }
    if errors.is_empty() {
        let warnings: Vec<String> = unknown_format_warnings(&crd, None)
            .iter()
            .map(|line| format!("\"{}\"", line.replace('"', "\\\"")))
            .collect();
        if warnings != expected(case, "warnings") {
            wrong.push(format!("warnings {warnings:?}"));
        }
        if crd["spec"]["names"] != case["spec"]["names"]
            || crd["spec"]["conversion"] != case["spec"]["conversion"]
        {
            wrong.push(format!("defaults {}", crd["spec"]));
        }
        if compile(&crd).is_err() {
            wrong.push(String::from("does not compile"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{}\n  {}", case["crd"], wrong.join("\n  "))) }
}

#[test]
fn definitions_are_judged_as_recorded() {
    check_all(include_str!("tests/crds.json"), 150, check_definition);
}
