//! Documents of the built-in groups and of one CustomResourceDefinition: what kubectl looks for in them.

use std::collections::BTreeSet;

use expect_test::expect;
use serde_json::{Value, json};

use super::{GroupVersion, Published, document, index, swagger, swagger_protobuf};
use crate::kinds;

fn builtin() -> Vec<GroupVersion<'static>> {
    let mut groups: Vec<GroupVersion<'static>> = Vec::new();
    for kind in kinds::all() {
        match groups.iter_mut().find(|group| group.group == kind.group && group.version == kind.version) {
            Some(group) => group.kinds.push(kind.into()),
            None => groups.push(GroupVersion {
                group: kind.group,
                version: kind.version,
                kinds: vec![kind.into()],
            }),
        }
    }
    groups
}

fn definition() -> Value {
    json!({
        "spec": {
            "group": "stable.example.com",
            "names": { "kind": "CronTab", "listKind": "CronTabList", "plural": "crontabs" },
            "scope": "Namespaced",
            "versions": [
                { "name": "v1", "served": true, "subresources": { "status": {}, "scale": {} },
                  "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "description": "A job that runs now and then.",
                    "required": ["spec"],
                    "properties": {
                        "metadata": { "type": "object" },
                        "spec": { "type": "object", "required": ["suspend", "replicas"], "properties": {
                            "replicas": { "type": "integer", "default": 1, "minimum": 0 },
                            "suspend": { "type": "boolean", "nullable": true },
                            "config": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                            "template": { "type": "object", "x-kubernetes-embedded-resource": true,
                                          "properties": { "spec": { "type": "object" } } },
                            "port": { "x-kubernetes-int-or-string": true,
                                      "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                        } },
                    },
                  } } },
                { "name": "v1beta1", "served": false },
            ],
        },
    })
}

fn custom(definition: &Value) -> GroupVersion<'_> {
    GroupVersion { group: "stable.example.com", version: "v1", kinds: Published::of_definition(definition) }
}

fn parsed(group: &GroupVersion<'_>) -> Value {
    serde_json::from_slice(&document(group).body).unwrap()
}

/// Every reference in a document, wherever it stands.
fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str));
            fields.values().for_each(|child| references(child, found));
        }
        Value::Array(elements) => elements.iter().for_each(|child| references(child, found)),
        _ => {}
    }
}

fn check_references(document: &Value, prefix: &str, components: &Value) {
    let mut found = BTreeSet::new();
    references(document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let name = reference.strip_prefix(prefix).unwrap_or_else(|| panic!("{reference}"));
        assert!(components[name].is_object(), "{name} is not there");
    }
}

#[test]
fn the_index_leads_to_every_document_and_changes_with_it() {
    let definition = definition();
    let mut group = custom(&definition);
    let first = document(&group);
    let url = format!("/openapi/v3/apis/stable.example.com/v1?hash={}", first.hash);
    assert_eq!(
        index([&first]),
        json!({ "paths": { "apis/stable.example.com/v1": { "serverRelativeURL": url } } })
    );
    assert_eq!(document(&group).hash, first.hash);
    group.kinds[0].namespaced = false;
    assert_ne!(document(&group).hash, first.hash);
    assert_eq!(builtin()[0].path(), "api/v1");
}

#[test]
fn documents_define_whatever_they_name() {
    let definition = definition();
    for group in builtin().iter().chain([&custom(&definition)]) {
        let document = parsed(group);
        check_references(&document, "#/components/schemas/", &document["components"]["schemas"]);
    }
    let mut groups = builtin();
    groups.push(custom(&definition));
    let swagger = swagger(&groups);
    check_references(&swagger, "#/definitions/", &swagger["definitions"]);
}

#[test]
fn operations_are_unique_and_say_their_kind() {
    let mut ids = BTreeSet::new();
    for group in builtin() {
        let document = parsed(&group);
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in
                item.as_object().unwrap().iter().filter(|(key, _)| *key != "parameters")
            {
                assert!(operation["x-kubernetes-group-version-kind"]["kind"].is_string(), "{method} {path}");
                assert!(ids.insert(operation["operationId"].to_string()), "{}", operation["operationId"]);
            }
        }
    }
}

/// kubectl asks this before it sends `fieldValidation` or a strategic merge patch.
#[test]
fn patch_operations_say_what_they_take() {
    let groups = builtin();
    let apps = parsed(groups.iter().find(|group| group.group == "apps").unwrap());
    let patch = &apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    let names: Vec<_> = patch["parameters"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    let content = &patch["requestBody"]["content"];
    assert!(content["application/strategic-merge-patch+json"].is_object());
    let definition = definition();
    let custom = parsed(&custom(&definition));
    let item = "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}";
    let content = &custom["paths"][item]["patch"]["requestBody"]["content"];
    assert!(content["application/merge-patch+json"].is_object());
    assert!(content["application/strategic-merge-patch+json"].is_null());
}

#[test]
fn references_keep_what_stands_beside_them() {
    let groups = builtin();
    let apps = parsed(groups.iter().find(|group| group.group == "apps").unwrap());
    let spec = &apps["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentSpec"]["properties"];
    let target = "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy";
    assert_eq!(
        spec["strategy"],
        json!({ "allOf": [{ "$ref": target }], "default": {}, "x-kubernetes-patch-strategy": "retainKeys" })
    );
    let target = "#/definitions/io.k8s.api.apps.v1.DeploymentStrategy";
    assert_eq!(
        swagger(&groups)["definitions"]["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"],
        json!({ "$ref": target, "x-kubernetes-patch-strategy": "retainKeys" })
    );
}

#[test]
fn custom_kinds_get_the_metadata_of_objects() {
    let definition = definition();
    let document = parsed(&custom(&definition));
    let schema = &document["components"]["schemas"]["com.example.stable.v1.CronTab"];
    let target = json!({ "$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" });
    let metadata = json!({ "allOf": [target], "description": super::custom::METADATA });
    let text = |description: &str| json!({ "type": "string", "description": description });
    let (api_version, kind) = (text(super::custom::API_VERSION), text(super::custom::KIND));
    let mut expected = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    expected["properties"]["apiVersion"] = api_version.clone();
    expected["properties"]["kind"] = kind.clone();
    expected["properties"]["metadata"] = metadata.clone();
    expected["properties"]["spec"]["properties"]["template"] = json!({
        "type": "object",
        "required": ["kind", "apiVersion"],
        "properties": { "apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": { "type": "object" } },
        "x-kubernetes-embedded-resource": true,
    });
    expected["x-kubernetes-group-version-kind"] =
        json!([{ "group": "stable.example.com", "kind": "CronTab", "version": "v1" }]);
    assert_eq!(schema, &expected);
    let paths: Vec<_> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(
        paths,
        [
            "/apis/stable.example.com/v1/crontabs",
            "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs",
            "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}",
            "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/scale",
            "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/status",
        ]
    );
}

#[test]
fn openapi_v2_of_custom_kinds_drops_what_it_cannot_say() {
    let definition = definition();
    let swagger = swagger(&[custom(&definition)]);
    let spec = &swagger["definitions"]["com.example.stable.v1.CronTab"]["properties"]["spec"];
    assert_eq!(spec["properties"]["suspend"], json!({}));
    assert_eq!(spec["required"], json!(["replicas"]));
    assert_eq!(spec["properties"]["replicas"], json!({ "type": "integer", "minimum": 0 }));
    assert_eq!(spec["properties"]["config"], json!({ "x-kubernetes-preserve-unknown-fields": true }));
    assert_eq!(spec["properties"]["port"], json!({ "x-kubernetes-int-or-string": true }));
}

#[test]
fn a_definition_without_a_schema_is_an_open_object() {
    let mut definition = definition();
    definition["spec"]["versions"][0]["schema"] = Value::Null;
    let document = parsed(&custom(&definition));
    let schema = &document["components"]["schemas"]["com.example.stable.v1.CronTab"];
    assert_eq!((schema["type"].as_str(), schema["properties"].is_null()), (Some("object"), true));
}

#[test]
fn the_protobuf_of_openapi_v2_is_stable() {
    let parameter = json!({ "in": "query", "name": "dryRun", "type": "string", "uniqueItems": true });
    let document = json!({
        "swagger": "2.0",
        "info": { "title": "T", "version": "V" },
        "paths": { "/p": { "patch": { "consumes": ["a/b"], "parameters": [parameter], "x-k": true } } },
        "definitions": { "d": { "type": "string", "maximum": 1.5, "maxLength": 300, "enum": ["x"] } },
    });
    let hex: String = swagger_protobuf(&document).iter().map(|byte| format!("{byte:02x}")).collect();
    expect!["0a03322e3012060a0154120156424212400a022f70123a42383a03612f6242200a1e121c1a1a12057175657279220664727952756e3206737472696e67a001014a006a0d0a03782d6b12061204747275654a260a240a0164121f39000000000000f83f58ac02a201051203227822b201080a06737472696e67"].assert_eq(&hex);
}
