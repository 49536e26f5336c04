//! Rules of field ownership that one write shows, as tables.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::element::PathElement;
use super::super::*;

fn write<'a>(manager: &'a str, subresource: &'a str, schema: &'a Schema) -> WriteContext<'a> {
    WriteContext {
        manager,
        api_version: "v1",
        kind: "Thing",
        subresource,
        now: Timestamp::from_second(1_800_000_000).unwrap(),
        schema,
        builtin: false,
        reset: &[],
    }
}

fn thing(spec: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Thing", "metadata": { "name": "a" }, "spec": spec })
}

#[test]
fn fields_are_written_and_read_as_kubernetes_does() {
    let check = |text: &str, shown: &str| {
        let element = PathElement::decode(text).unwrap().unwrap();
        assert_eq!(element.to_string(), shown);
        assert_eq!(element.into_encoded(), text);
    };
    check("f:name", ".name");
    check("f:", ".");
    check(r#"k:{"port":80,"protocol":"TCP"}"#, r#"[port=80,protocol="TCP"]"#);
    check(r#"v:"a""#, r#"[="a"]"#);
    check("v:1.5", "[=1.5]");
    check("v:true", "[=true]");
    check("i:-3", "[-3]");
    assert_eq!(PathElement::decode("x:later"), Ok(None));
    for malformed in ["", "f", "name", "k:[]", "k:{", "v:", "i:x", "é:", "f€"] {
        assert!(PathElement::decode(malformed).is_err(), "{malformed}");
    }
}

#[test]
fn malformed_owners_are_refused_by_apply_and_forgotten_by_updates() {
    let schema = Schema::default();
    let entry = |change: Value| {
        let mut entry = json!({
            "manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {},
        });
        entry.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        entry
    };
    let check = |change: Value, message: &str| {
        let mut live = thing(json!({}));
        live["metadata"]["managedFields"] = json!([entry(change)]);
        let error = server_side_apply(Some(&live), &thing(json!({})), false, &write("m", "", &schema));
        assert_eq!(error.unwrap_err().message, format!("failed to decode managed fields: {message}"));
        let mut new = thing(json!({ "a": 1 }));
        track_update(Some(&live), &mut new, &write("m", "", &schema));
        assert_eq!(new["metadata"].get("managedFields"), None);
    };
    check(json!({ "operation": "Delete" }), "operation must be `Apply` or `Update`");
    check(json!({ "apiVersion": "" }), "apiVersion must not be empty");
    check(json!({ "fieldsType": "" }), "missing fieldsType in managed fields entry 0");
    check(json!({ "fieldsType": "V2" }), "invalid fieldsType \"V2\" in managed fields entry 0");
    check(json!({ "fieldsV1": { "f:a": 3 } }), "expected an object, got 3");
}

#[test]
fn whole_and_fractional_numbers_are_one_value() {
    let schema = Schema::default();
    let mut live = thing(json!({ "a": 1 }));
    track_update(None, &mut live, &write("one", "", &schema));
    let mut new = thing(json!({ "a": 1.0 }));
    track_update(Some(&live), &mut new, &write("two", "", &schema));
    assert_eq!(new["metadata"]["managedFields"], live["metadata"]["managedFields"]);
}

#[test]
fn a_field_that_became_atomic_is_owned_as_a_whole() {
    let map = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let spec = |map: Value| {
        let spec = json!({ "type": "object", "properties": { "map": map } });
        Schema::from_openapi(&json!({ "type": "object", "properties": { "spec": spec } }))
    };
    let granular = spec(map.clone());
    let mut atomic = map;
    atomic["x-kubernetes-map-type"] = "atomic".into();
    let atomic = spec(atomic);
    let config = thing(json!({ "map": { "a": "1" } }));
    let live = server_side_apply(None, &config, false, &write("one", "", &granular)).unwrap();
    let other = thing(json!({ "map": { "a": "1", "b": "2" } }));
    let error = server_side_apply(Some(&live), &other, false, &write("two", "", &atomic)).unwrap_err();
    assert_eq!(error.message, "Apply failed with 1 conflict: conflict with \"one\": .spec.map");
}

#[test]
fn scaling_takes_the_replicas_and_nothing_else() {
    let schema = Schema::default();
    let mut live = thing(json!({ "replicas": 1, "paused": true }));
    track_update(None, &mut live, &write("one", "", &schema));
    let scale = |replicas: u32, live: &Value| {
        let mut scale = json!({ "metadata": {}, "spec": { "replicas": replicas } });
        let path = ["spec", "replicas"];
        set_managed_fields(&mut scale, managed_fields_of_scale(live, &path));
        let before = scale.clone();
        scale["spec"]["replicas"] = 3.into();
        let write = WriteContext { api_version: "autoscaling/v1", ..write("two", "scale", &schema) };
        track_update(Some(&before), &mut scale, &write);
        managed_fields_after_scale(live, &scale, &path, "v1").unwrap()
    };
    let owned = |entry: &Value| (entry["manager"].clone(), entry["fieldsV1"].clone());
    let entries = scale(1, &live);
    let entries = entries.as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(owned(&entries[0]), (json!("two"), json!({ "f:spec": { "f:replicas": {} } })));
    assert_eq!(entries[0]["subresource"], "scale");
    assert_eq!(entries[0]["apiVersion"], "v1");
    assert_eq!(owned(&entries[1]), (json!("one"), json!({ "f:spec": { ".": {}, "f:paused": {} } })));
    set_managed_fields(&mut live, Some(entries.clone().into()));
    assert_eq!(scale(2, &live), Value::from(entries.clone()));
}

#[test]
fn the_status_writer_does_not_own_the_spec() {
    let schema = Schema::default();
    let mut new = thing(json!({ "a": 1 }));
    new["status"] = json!({ "phase": "Ready" });
    let mut spec_of = |kind: &str, subresource: &'static str| {
        let reset = reset_fields(kind, subresource, true);
        track_update(None, &mut new, &WriteContext { reset, ..write("m", subresource, &schema) });
        let fields = take_managed_fields(&mut new).unwrap()[0]["fieldsV1"].clone();
        (fields.get("f:spec").is_some(), fields.get("f:status").is_some())
    };
    assert_eq!(spec_of("Thing", ""), (true, false));
    assert_eq!(spec_of("Thing", "status"), (false, true));
    assert_eq!(spec_of("VolumeAttachment", "status"), (false, true));
}
