//! Helpers for tests against recorded answers of kube-apiserver. Must not know what was recorded.

use serde_json::Value;

use crate::error::FieldError;

/// Field errors as the lines that are recorded.
pub fn lines(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(FieldError::to_string).collect()
}

/// Checks every case of a recording, and shows all that are wrong at once.
#[track_caller]
pub fn check_all(recording: &str, cases_min: usize, check: impl Fn(&Value) -> Result<(), String>) {
    let cases: Vec<Value> = serde_json::from_str(recording).expect("a recording is a list of cases");
    let wrong: Vec<String> = cases.iter().filter_map(|case| check(case).err()).collect();
    assert!(cases.len() > cases_min, "only {} cases", cases.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Changes an object by a recorded difference: `null` removes, objects go deeper, all else replaces.
pub fn change(object: &mut Value, difference: &Value) {
    for (name, value) in difference.as_object().expect("a difference is an object") {
        match value {
            Value::Null => drop(object.as_object_mut().expect("what changes is an object").remove(name)),
            Value::Object(_) if object[name].is_object() => change(&mut object[name], value),
            _ => object[name] = value.clone(),
        }
    }
}
