//! Server-side apply of two managers in turns: what was applied can be applied again and then changes nothing, for a
//! custom kind with one of everything and for a built-in one.

use jiff::Timestamp;
use merge::apply::{WriteContext, server_side_apply, track_update};
use schema::Schema;
use schema::kinds;
use serde_json::{Value, json};
use std::sync::LazyLock;

use crate::{json, lines};

static THING: LazyLock<Schema> = LazyLock::new(|| {
    let string = json!({ "type": "string" });
    let keyed = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": { "type": "object", "properties": { "name": string, "value": string } },
    });
    Schema::from_openapi(
        &json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
        "text": string,
        "map": { "type": "object", "additionalProperties": string },
        "whole": { "type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": string },
        "set": { "type": "array", "x-kubernetes-list-type": "set", "items": string },
        "list": { "type": "array", "items": string },
        "keyed": keyed,
        "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    } } } }),
    )
});

pub fn invariant(input: &[u8]) {
    let Some([first, second]) = lines(input) else { return };
    let (Some(first), Some(second)) = (json(first), json(second)) else { return };
    let deployment = kinds::definition_named("io.k8s.api.apps.v1.Deployment").expect("a built-in kind");
    in_turns(&THING, ("ex.com/v1", "Thing"), [&first, &second]);
    in_turns(deployment, ("apps/v1", "Deployment"), [&first, &second]);
}

fn in_turns(schema: &Schema, (api_version, kind): (&str, &str), configurations: [&Value; 2]) {
    let write = |manager| WriteContext {
        manager,
        api_version,
        kind,
        subresource: "",
        now: Timestamp::UNIX_EPOCH,
        schema,
        builtin: kind == "Deployment",
        reset: &[],
    };
    let mut live: Option<Value> = None;
    for (manager, configuration) in [("one", configurations[0]), ("two", configurations[1])] {
        let mut configuration = configuration.clone();
        let Some(fields) = configuration.as_object_mut() else { return };
        fields.insert("apiVersion".to_owned(), api_version.into());
        fields.insert("kind".to_owned(), kind.into());
        let Ok(applied) = server_side_apply(live.as_ref(), &configuration, true, &write(manager)) else {
            return;
        };
        // A manager that applies only empty lists owns nothing, and an object without owners is treated as one that
        // predates field ownership, as in Kubernetes.
        if applied["metadata"].get("managedFields").is_none() {
            return;
        }
        let again = server_side_apply(Some(&applied), &configuration, false, &write(manager));
        assert_eq!(again.as_ref(), Ok(&applied), "{configuration} applied again");
        let mut unchanged = applied.clone();
        track_update(Some(&applied), &mut unchanged, &write("updater"));
        assert_eq!(unchanged, applied, "an update that changes nothing");
        live = Some(applied);
    }
}
