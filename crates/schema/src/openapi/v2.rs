//! The OpenAPI v2 document of everything that is served, for clients older than OpenAPI v3.

use serde_json::{Map, Value, json};

use super::GroupVersion;
use super::components::{Dialect, PATCH, components};
use super::routes::{Body, Operation, Route, routes};

/// What `/openapi/v2` answers in JSON.
pub fn swagger(groups: &[GroupVersion<'_>]) -> Value {
    let kinds = || groups.iter().flat_map(|group| &group.kinds);
    let routes = kinds().flat_map(routes);
    let paths: Map<String, Value> = routes.map(|route| (route.path.clone(), path_item(&route))).collect();
    json!({
        "swagger": "2.0",
        "info": { "title": "Kubernetes", "version": "unversioned" },
        "paths": paths,
        "definitions": components(kinds(), Dialect::V2),
    })
}

/// The words of an HTTP status.
pub(super) fn reason(code: &str) -> &'static str {
    match code {
        "201" => "Created",
        "202" => "Accepted",
        "401" => "Unauthorized",
        _ => "OK",
    }
}

fn path_item(route: &Route<'_>) -> Value {
    let in_path = |name: &str| json!({ "in": "path", "name": name, "required": true, "type": "string", "uniqueItems": true });
    route.item(in_path, query("pretty", "string"), rendered)
}

fn query(name: &str, kind: &str) -> Value {
    json!({ "in": "query", "name": name, "type": kind, "uniqueItems": true })
}

fn rendered(operation: &Operation<'_>) -> Value {
    let (group, version, kind) = operation.gvk;
    let schema = Dialect::V2.reference(&operation.answer);
    let good = operation.codes.iter();
    let mut responses: Map<String, Value> = good
        .map(|code| (String::from(*code), json!({ "description": reason(code), "schema": schema })))
        .collect();
    responses.insert("401".into(), json!({ "description": reason("401") }));
    let mut parameters: Vec<Value> = body(&operation.body).into_iter().collect();
    parameters.extend(operation.parameters.iter().map(|(name, kind)| query(name, kind)));
    json!({
        "operationId": operation.id,
        "consumes": consumes(&operation.body),
        "produces": ["application/json"],
        "schemes": ["https"],
        "parameters": parameters,
        "responses": responses,
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": { "group": group, "version": version, "kind": kind },
    })
}

fn consumes(body: &Body) -> Value {
    match body {
        Body::Patch(media_types) => json!(media_types),
        _ => json!(["*/*"]),
    }
}

fn body(body: &Body) -> Option<Value> {
    let parameter = |component: &str, required: bool| {
        let mut parameter =
            json!({ "in": "body", "name": "body", "schema": Dialect::V2.reference(component) });
        if required {
            parameter["required"] = json!(true);
        }
        parameter
    };
    match body {
        Body::Nothing => None,
        Body::Object(component) => Some(parameter(component, true)),
        Body::Options(component) => Some(parameter(component, false)),
        Body::Patch(_) => Some(parameter(PATCH, true)),
    }
}
