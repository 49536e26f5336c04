//! Rules in definitions (`x-kubernetes-validations`): which are accepted, and what they say about objects. The
//! answers lie in files beside the tests, written down from a real kube-apiserver.

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::client::{Ask, DEFINITIONS, Server};
use crate::table::Table;

const THINGS: &str = "/apis/rules.example.com/v1/namespaces/ruled/things";

fn definition(schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.rules.example.com" },
        "spec": {
            "group": "rules.example.com", "scope": "Namespaced",
            "names": { "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

/// A schema whose spec has these fields and rules.
fn spec(properties: Value, rules: Value) -> Value {
    let spec = json!({ "type": "object", "properties": properties, "x-kubernetes-validations": rules });
    json!({ "type": "object", "properties": { "spec": spec } })
}

fn with_rule(rule: &str) -> Value {
    let fields = json!({
        "x": { "type": "integer" }, "y": { "type": "integer" }, "s": { "type": "string", "maxLength": 20 },
        "any": { "x-kubernetes-int-or-string": true },
        "open": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        "list": { "type": "array", "maxItems": 10, "items": { "type": "integer" } },
        "long": { "type": "array", "items": { "type": "string" } },
    });
    spec(fields, json!([{ "rule": rule }]))
}

#[tokio::test]
async fn definitions() {
    let server = Server::new().await;
    let mut table = Table::new(&server);
    let mut refused = Vec::new();
    for rule in [
        "self.z == 100",
        "self = 42",
        "self.x",
        "self.x + self.s > 1",
        "self.s.matches('(')",
        "nothing(self.x)",
        "self.x == 'a' || nobody",
        "",
        "self.long.all(a, self.long.all(b, a == b))",
        "self.open.a == 1",
    ] {
        refused.push(with_rule(rule));
    }
    let more = |more: Value| {
        let mut rule = json!({ "rule": "self.x > 0" });
        more.as_object().into_iter().flatten().for_each(|(key, value)| rule[key] = value.clone());
        spec(json!({ "x": { "type": "integer" } }), json!([rule]))
    };
    refused.push(more(json!({ "messageExpression": "self.x" })));
    refused.push(more(json!({ "messageExpression": "self.z" })));
    refused.push(more(json!({ "optionalOldSelf": true })));
    refused.push(more(json!({ "reason": "Because" })));
    refused.push(more(json!({ "fieldPath": ".z" })));
    let item = json!({ "type": "integer", "x-kubernetes-validations": [{ "rule": "self >= oldSelf" }] });
    refused.push(spec(json!({ "list": { "type": "array", "maxItems": 5, "items": item } }), json!([])));
    let strings = json!({ "type": "array", "items": { "type": "string" }, "x-kubernetes-validations": [{ "rule": "self.all(s, s == 'string constant')" }] });
    refused.push(spec(json!({ "x": { "type": "array", "items": strings } }), json!([])));
    let deep = (0..300).fold("1".to_owned(), |inner, _| format!("({inner})"));
    refused.push(with_rule(&format!("{deep} == 1")));
    for schema in refused {
        table.ask(Ask::post(&format!("{DEFINITIONS}?dryRun=All"), definition(schema))).await;
    }
    table.is(expect_file!["answers/rules-definitions.txt"]);
}

fn ruled() -> Value {
    let item = json!({
        "type": "object", "required": ["name"],
        "properties": { "name": { "type": "string", "maxLength": 9 }, "size": { "type": "integer", "x-kubernetes-validations": [{ "rule": "self >= oldSelf", "message": "sizes only grow" }] } },
    });
    let fields = json!({
        "x": { "type": "integer" }, "y": { "type": "integer", "minimum": 0 },
        "name": { "type": "string", "maxLength": 20, "x-kubernetes-validations": [{ "rule": "self != 'bad'", "message": "not that one" }] },
        "once": { "type": "string", "maxLength": 20, "x-kubernetes-validations": [{ "rule": "self == oldSelf", "message": "is immutable", "reason": "FieldValueForbidden" }] },
        "kept": { "type": "integer", "x-kubernetes-validations": [{ "rule": "oldSelf.hasValue() || self == 1", "optionalOldSelf": true, "message": "begins with 1" }] },
        "any": { "x-kubernetes-int-or-string": true },
        "when": { "type": "string", "format": "date-time" },
        "labels": { "type": "object", "maxProperties": 5, "additionalProperties": { "type": "string", "maxLength": 9, "x-kubernetes-validations": [{ "rule": "self.size() > 1" }] } },
        "items": { "type": "array", "maxItems": 5, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item },
        "large": { "type": "array", "maxItems": 725, "items": { "type": "integer" } },
    });
    let rules = json!([
        { "rule": "!has(self.x) || self.x < 10", "message": "x is small" },
        { "rule": "!has(self.x) || !has(self.y) || self.x <= self.y", "messageExpression": "'x (%d) is above y (%d)'.format([self.x, self.y])", "fieldPath": ".x", "reason": "FieldValueInvalid" },
        { "rule": "!has(self.any) || (type(self.any) == int ? self.any > 5 : self.any.endsWith('%'))" },
        { "rule": "!has(self.when) || self.when > timestamp('2020-01-01T00:00:00Z')", "reason": "FieldValueRequired", "fieldPath": ".when" },
        { "rule": "!has(self.large) || self.large.all(x, self.large.all(y, y == x))", "message": "all are the same" },
    ]);
    let mut schema = spec(fields, rules);
    schema["x-kubernetes-validations"] = json!([{ "rule": "self.metadata.name.startsWith('t')" }]);
    let health = json!({ "type": "string", "maxLength": 20 });
    let rule = json!([{ "rule": "self.health == 'ok' || self.health == 'unhealthy'" }]);
    schema["properties"]["status"] =
        json!({ "type": "object", "properties": { "health": health }, "x-kubernetes-validations": rule });
    schema
}

fn thing(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "rules.example.com/v1", "kind": "Thing", "metadata": { "name": name }, "spec": spec })
}

#[tokio::test]
async fn objects() {
    let server = Server::with_namespace("ruled").await;
    if server.ask(Ask::get(THINGS)).await.code != 200 {
        server.define(definition(ruled())).await;
    }
    let first = json!({ "x": 1, "y": 2, "once": "a", "items": [{ "name": "a", "size": 5 }] });
    let mut table = Table::new(&server).guarding(THINGS, thing("t", first));
    let post = |spec: Value| Ask::post(&format!("{THINGS}?dryRun=All"), thing("tt", spec));
    for spec in [
        json!({}),
        json!({ "x": 10 }),
        json!({ "x": 5, "y": 4 }),
        json!({ "x": 5, "y": -1 }),
        json!({ "x": "five" }),
        json!({ "name": "bad" }),
        json!({ "kept": 1 }),
        json!({ "kept": 2 }),
        json!({ "any": 6 }),
        json!({ "any": 4 }),
        json!({ "any": "50%" }),
        json!({ "any": "50" }),
        json!({ "when": "2021-01-01T00:00:00Z" }),
        json!({ "when": "2019-01-01T00:00:00Z" }),
        json!({ "labels": { "a": "bb", "c": "d" } }),
        json!({ "x": 11, "y": 1, "name": "bad" }),
        json!({ "large": vec![20; 100] }),
        json!({ "large": vec![20; 725] }),
    ] {
        table.ask(post(spec)).await;
    }
    table.ask(Ask::post(&format!("{THINGS}?dryRun=All"), thing("other", json!({})))).await;
    let path = format!("{THINGS}/t");
    let merge = |spec: Value| Ask::merge(&path, json!({ "spec": spec }));
    table.ask(merge(json!({ "once": "a", "x": 2 }))).await;
    table.ask(merge(json!({ "once": "b" }))).await;
    table.ask(merge(json!({ "items": [{ "name": "a", "size": 4 }] }))).await;
    table.ask(merge(json!({ "items": [{ "name": "a", "size": 6 }, { "name": "b", "size": 1 }] }))).await;
    table.ask(merge(json!({ "kept": 2 }))).await;
    table.ask(Ask::merge(&format!("{path}/status"), json!({ "status": { "health": "ok" } }))).await;
    table.ask(Ask::merge(&format!("{path}/status"), json!({ "status": { "health": "so so" } }))).await;
    table.is(expect_file!["answers/rules-objects.txt"]);
}

/// What broke a rule before the rule was there may stay as it is.
#[tokio::test]
async fn rules_that_come_later_forgive_what_is_there() {
    let server = Server::new().await;
    let fields = json!({ "x": { "type": "integer" }, "y": { "type": "integer" } });
    server.define(definition(spec(fields.clone(), json!([])))).await;
    let things = "/apis/rules.example.com/v1/namespaces/default/things";
    server.ask(Ask::post(things, thing("t", json!({ "x": -1 })))).await.expect(201);
    let mut with_rules = fields;
    with_rules["x"]["x-kubernetes-validations"] = json!([{ "rule": "self >= 0" }]);
    let schema = spec(with_rules, json!([]));
    let change = json!({ "spec": definition(schema)["spec"] });
    server.ask(Ask::merge(&format!("{DEFINITIONS}/things.rules.example.com"), change)).await.expect(200);
    let path = format!("{things}/t");
    let kept = server.ask(Ask::merge(&path, json!({ "spec": { "y": 1 } }))).await;
    let warning = "299 - \"spec.x: Invalid value: -1: failed rule: self >= 0\"";
    assert_eq!(
        (kept.code, kept.warnings.as_slice()),
        (200, [warning.to_owned()].as_slice()),
        "{}",
        kept.text
    );
    server.ask(Ask::merge(&path, json!({ "spec": { "x": -2 } }))).await.expect(422);
    server.ask(Ask::merge(&path, json!({ "spec": { "x": 2 } }))).await.expect(200);
}
