//! JSON pointers: what is read is written back the same, and following one never panics.
#![no_main]

use decide::json_pointer::JsonPointer;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: (&str, &str)| {
    let (text, document) = input;
    let Ok(pointer) = text.parse::<JsonPointer>() else { return };
    assert_eq!(pointer.to_string(), text);
    let Ok(document) = serde_json::from_str::<Value>(document) else { return };
    let _ = pointer.get(&document);
    // Each may refuse; none may panic.
    let _ = pointer.add(&mut document.clone(), Value::Null);
    let _ = pointer.replace(&mut document.clone(), Value::Null);
    let _ = pointer.remove(&mut document.clone());
});
