//! Holds the types, the schemas and Karmada's own CRDs together.

use serde_json::Value;

#[path = "crds/agreement.rs"]
mod agreement;
#[path = "crds/descriptions.rs"]
mod descriptions;
#[path = "crds/facts.rs"]
mod facts;
#[path = "crds/fixed_point.rs"]
mod fixed_point;
#[path = "crds/karmada.rs"]
mod karmada;
#[path = "crds/probe.rs"]
mod probe;
#[path = "crds/sample.rs"]
mod sample;

/// Kind, version and schema of every version of every definition.
fn schemas(definitions: &[Value]) -> Vec<(String, String, Value)> {
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    let mut answer = Vec::new();
    for definition in definitions {
        let spec = &definition["spec"];
        for version in spec["versions"].as_array().expect("versions") {
            let schema = version["schema"]["openAPIV3Schema"].clone();
            answer.push((text(&spec["names"]["kind"]), text(&version["name"]), schema));
        }
    }
    answer
}

#[test]
fn every_kind_has_a_definition_under_its_name_and_stores_one_version() {
    let definitions = api::crd::crds();
    assert_eq!(definitions.len(), api::kinds::ALL.len());
    for (kind, definition) in api::kinds::ALL.iter().zip(&definitions) {
        assert_eq!(definition["metadata"]["name"], kind.crd_name());
        let versions = definition["spec"]["versions"].as_array().expect("versions");
        let stored: Vec<_> = versions.iter().filter(|version| version["storage"] == true).collect();
        assert_eq!(stored.len(), 1, "{}", kind.kind);
        assert_eq!(stored[0]["name"], kind.version, "{}", kind.kind);
        assert_eq!(stored[0]["served"], true, "{}", kind.kind);
    }
}
