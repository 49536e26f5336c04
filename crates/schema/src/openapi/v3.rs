//! The OpenAPI v3 document of one group version.

use serde_json::{Map, Value, json};

use super::GroupVersion;
use super::components::{Dialect, PATCH, components};
use super::routes::{Body, Operation, Route, routes};

/// The document, before it is text.
pub(super) fn document(group: &GroupVersion<'_>) -> Value {
    let routes = group.kinds.iter().flat_map(routes);
    let paths: Map<String, Value> = routes.map(|route| (route.path.clone(), path_item(&route))).collect();
    json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": "unversioned" },
        "paths": paths,
        "components": { "schemas": components(group.kinds.iter(), Dialect::V3) },
    })
}

fn path_item(route: &Route<'_>) -> Value {
    let in_path =
        |name: &str| json!({ "in": "path", "name": name, "required": true, "schema": { "type": "string" } });
    route.item(in_path, query("pretty", "string"), rendered)
}

fn query(name: &str, kind: &str) -> Value {
    json!({ "in": "query", "name": name, "schema": { "type": kind, "uniqueItems": true } })
}

fn rendered(operation: &Operation<'_>) -> Value {
    let (group, version, kind) = operation.gvk;
    let answer = json!({ "application/json": { "schema": Dialect::V3.reference(&operation.answer) } });
    let good = operation.codes.iter().map(|code| {
        (String::from(*code), json!({ "description": super::v2::reason(code), "content": answer }))
    });
    let mut responses: Map<String, Value> = good.collect();
    responses.insert("401".into(), json!({ "description": super::v2::reason("401") }));
    let mut rendered = json!({
        "operationId": operation.id,
        "responses": responses,
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": { "group": group, "version": version, "kind": kind },
    });
    if !operation.parameters.is_empty() {
        let parameters: Vec<Value> =
            operation.parameters.iter().map(|(name, kind)| query(name, kind)).collect();
        rendered["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = body(&operation.body) {
        rendered["requestBody"] = body;
    }
    rendered
}

fn body(body: &Body) -> Option<Value> {
    let any = |component: &str| json!({ "*/*": { "schema": Dialect::V3.reference(component) } });
    match body {
        Body::Nothing => None,
        Body::Object(component) => Some(json!({ "required": true, "content": any(component) })),
        Body::Options(component) => Some(json!({ "content": any(component) })),
        Body::Patch(media_types) => {
            let schema = json!({ "schema": Dialect::V3.reference(PATCH) });
            let content: Map<String, Value> =
                media_types.iter().map(|media| (String::from(*media), schema.clone())).collect();
            Some(json!({ "required": true, "content": content }))
        }
    }
}
