//! Compares our CRDs with Karmada's own, which are not ours to keep in this repository. Runs when `KARMADA_CRDS` names
//! a directory with files like `policy.karmada.io_propagationpolicies.yaml`.

use std::path::Path;

use serde_json::{Map, Value};

/// What we add to schemas that Karmada has too; nothing else may differ.
const OURS: [&str; 11] = [
    ".spec.excludeResourceSelectors",
    ".spec.failover.application.evictLastCopy",
    ".spec.failover.cluster.evictLastCopy",
    ".spec.resourceSelectors[].exclude",
    ".spec.rolloutStrategy",
    ".spec.suspension.rollout",
    ".spec.suspension.suspendDispatching",
    ".spec.suspension.suspendDispatchingOnClusters",
    ".status",
    ".status.manifestStatuses[].outdated",
    ".status.rollout",
];

#[test]
fn karmadas_fields_types_defaults_and_enums_are_all_there() {
    let Some(directory) = std::env::var_os("KARMADA_CRDS") else {
        eprintln!("SKIPPED: set KARMADA_CRDS to a directory with Karmada's definitions to compare with them");
        return;
    };
    let mut differences = Vec::new();
    let mut compared = 0;
    for definition in api::crd::crds() {
        let spec = &definition["spec"];
        let name = format!("{}_{}.yaml", text(&spec["group"]), text(&spec["names"]["plural"]));
        let Ok(yaml) = std::fs::read_to_string(Path::new(&directory).join(&name)) else {
            eprintln!("not compared, Karmada has no {name}");
            continue;
        };
        let theirs: Value = serde_saphyr::from_str(&yaml).expect("YAML");
        compare_definitions(&name, &theirs["spec"], spec, &mut differences);
        compared += 1;
    }
    assert_eq!(compared, 10, "definitions found in {}", directory.display());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn compare_definitions(file: &str, theirs: &Value, ours: &Value, differences: &mut Vec<String>) {
    for key in ["group", "names", "scope"] {
        if theirs[key] != ours[key] {
            differences.push(format!("{file} {key}: {} there, {} here", theirs[key], ours[key]));
        }
    }
    for version in theirs["versions"].as_array().expect("versions") {
        let name = &version["name"];
        let versions = ours["versions"].as_array().expect("versions");
        let Some(own) = versions.iter().find(|own| own["name"] == *name) else {
            differences.push(format!("{file}: no version {name}"));
            continue;
        };
        for column in version["additionalPrinterColumns"].as_array().into_iter().flatten() {
            let columns = own["additionalPrinterColumns"].as_array();
            if !columns.is_some_and(|columns| columns.contains(column)) {
                differences.push(format!("{file} {name}: no column {column}"));
            }
        }
        let schemas = [version, own].map(|version| &version["schema"]["openAPIV3Schema"]);
        compare(file, "", schemas, differences);
    }
}

fn compare(file: &str, path: &str, [theirs, ours]: [&Value; 2], differences: &mut Vec<String>) {
    let [there, here] = [theirs, ours].map(|schema| schema.as_object().expect("a schema"));
    let mut keywords: Vec<_> = there.keys().chain(here.keys()).collect();
    keywords.sort();
    keywords.dedup();
    for keyword in keywords {
        let pair = [theirs, ours].map(|schema| &schema[keyword]);
        match keyword.as_str() {
            "description" => {}
            // Lists that a tenant writes are limited here, and not there.
            "maxItems" if pair[0].is_null() => {}
            "properties" => compare_fields(file, path, pair.map(Value::as_object), differences),
            "items" if pair.iter().all(|side| side.is_object()) => {
                compare(file, &format!("{path}[]"), pair, differences);
            }
            "additionalProperties" if pair.iter().all(|side| side.is_object()) => {
                compare(file, &format!("{path}{{}}"), pair, differences);
            }
            _ if sorted(pair[0]) != sorted(pair[1]) => {
                differences.push(format!("{file} {path} {keyword}: {} there, {} here", pair[0], pair[1]));
            }
            _ => {}
        }
    }
}

fn compare_fields(
    file: &str,
    path: &str,
    [theirs, ours]: [Option<&Map<String, Value>>; 2],
    differences: &mut Vec<String>,
) {
    let empty = Map::new();
    let (theirs, ours) = (theirs.unwrap_or(&empty), ours.unwrap_or(&empty));
    for name in ours.keys().filter(|name| !theirs.contains_key(*name)) {
        let added = format!("{path}.{name}");
        if !OURS.contains(&added.as_str()) {
            differences.push(format!("{file} {added}: not there, but here"));
        }
    }
    for (name, field) in theirs {
        let path = format!("{path}.{name}");
        match ours.get(name) {
            Some(own) => compare(file, &path, [field, own], differences),
            None => differences.push(format!("{file} {path}: there, but not here")),
        }
    }
}

/// `required` and `enum` are sets.
fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(items) = value.as_array_mut() {
        items.sort_by_key(Value::to_string);
    }
    value
}
