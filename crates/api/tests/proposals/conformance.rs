//! Validates a document against its schema: nothing would be pruned, refused or of another type.

use serde_json::Value;

/// What proposals shorten for their readers.
const SHORTENED: [&str; 2] = [".spec.workload.manifests[]: no object", ": spec is missing"];

/// Fails with every complaint of the schema.
pub fn check(document: &Value) {
    let definitions = api::crd::crds();
    let names = |definition: &&Value| definition["spec"]["names"]["kind"] == document["kind"];
    let definition = definitions.iter().find(names).expect("a definition for the kind");
    let group = definition["spec"]["group"].as_str().expect("group");
    let served = |version: &&Value| {
        version["served"] == true
            && document["apiVersion"] == format!("{group}/{}", version["name"].as_str().expect("name"))
    };
    let version = definition["spec"]["versions"].as_array().expect("versions").iter().find(served);
    let mut complaints = Vec::new();
    let schema = &version.expect("the version is served")["schema"]["openAPIV3Schema"];
    visit(schema, document, "", &mut complaints);
    complaints.retain(|complaint| !SHORTENED.contains(&complaint.as_str()));
    assert!(complaints.is_empty(), "{document}: {complaints:#?}");
}

fn visit(schema: &Value, value: &Value, path: &str, complaints: &mut Vec<String>) {
    let kind = schema["type"].as_str().unwrap_or("anything");
    let fits = match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64(),
        "boolean" => value.is_boolean(),
        _ => true,
    };
    if !fits {
        return complaints.push(format!("{path}: no {kind}"));
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        complaints.push(format!("{path}: {value} is not among {}", schema["enum"]));
    }
    for field in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(field).is_none() {
            complaints.push(format!("{path}: {field} is missing"));
        }
    }
    for item in value.as_array().into_iter().flatten() {
        visit(&schema["items"], item, &format!("{path}[]"), complaints);
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match schema["properties"].get(name).or(schema.get("additionalProperties")) {
            Some(inner) => visit(inner, field, &path, complaints),
            None if path.starts_with(".metadata.") => {}
            None if schema["x-kubernetes-preserve-unknown-fields"] == true => {}
            None => complaints.push(format!("{path}: would be pruned")),
        }
    }
}
