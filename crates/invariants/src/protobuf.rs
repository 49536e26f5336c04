//! Bodies in protobuf: whatever is sent is refused or becomes JSON that is read back the same, bounded in depth.

use schema::decode;
use schema::protobuf::decode as decode_protobuf;

use crate::{depth, json};

/// What the reader of JSON takes; deeper objects could be written and never be read again.
const NESTING_MAX: usize = 127;

pub fn invariant(input: &[u8]) {
    let _ = decode::yaml(input);
    let Ok(object) = decode_protobuf(input) else { return };
    assert!(depth(&object) <= NESTING_MAX, "nests {} deep", depth(&object));
    let written = object.to_string();
    assert_eq!(json(&written), Some(object), "{written}");
}
