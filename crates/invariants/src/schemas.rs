//! Schemas of definitions, and a value under them: what is accepted compiles, decoding is idempotent, and unchanged
//! values are never refused (ratcheting).

use apiextensions::{CustomKind, compile, default_crd, keep_status, validate_crd};
use serde_json::{Value, json};

use crate::{json, lines};

pub fn invariant(input: &[u8]) {
    let Some([schema, value]) = lines(input) else { return };
    let Some(schema) = json(schema) else { return };
    let Some(kind) = accepted(&schema) else { return };
    let version = kind.versions.first().expect("an accepted definition has a version");
    let mut object = json!({
        "apiVersion": "ex.com/v1", "kind": "Case", "metadata": { "name": "n", "namespace": "default" },
        "x": json(value).unwrap_or_default(),
    });
    if kind.decode(version, &mut object).is_err() {
        return;
    }
    CustomKind::canonicalize(&mut object);
    let mut again = object.clone();
    let unknown = kind.decode(version, &mut again);
    assert_eq!((unknown.as_deref(), &again), (Ok([].as_slice()), &object), "read again");
    let errors = kind.validate_create(version, &object);
    let errors_of_same = kind.validate_update(version, &object, &object).errors;
    assert!(errors_of_same.len() <= errors.len() + 1, "{errors_of_same:?} after {errors:?}");
}

fn accepted(schema: &Value) -> Option<CustomKind> {
    let mut definition = json!({
        "metadata": { "name": "cases.ex.com" },
        "spec": {
            "group": "ex.com", "scope": "Namespaced", "names": { "plural": "cases", "kind": "Case" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "x": schema } } },
            }],
        },
    });
    default_crd(&mut definition);
    keep_status(&mut definition, None);
    let faults = validate_crd(&definition, None);
    faults.is_empty().then(|| compile(&definition).expect("what is accepted compiles"))
}
