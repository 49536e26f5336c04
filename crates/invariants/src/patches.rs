//! Patches, and the object they apply to: the result is bounded in depth and size, and a merge patch is idempotent.

use merge::patch::{json_patch, merge_patch, strategic_merge};
use schema::kinds;
use serde_json::Value;

use crate::{depth, json, lines};

/// What a patch may leave behind nests no deeper.
const NESTING_MAX: usize = 100;
/// What `copy` operations may add, whatever the patch.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

pub fn invariant(input: &[u8]) {
    let Some([object, patch]) = lines(input) else { return };
    let (Some(object), Some(patch)) = (json(object), json(patch)) else { return };
    let sent_bytes = object.to_string().len() + patch.to_string().len();
    if let Ok(patched) = json_patch(&object, &patch) {
        bounded(&patched, sent_bytes + COPIED_BYTES_MAX);
    }
    if let Ok(merged) = merge_patch(&object, &patch) {
        bounded(&merged, sent_bytes);
        assert_eq!(merge_patch(&merged, &patch).as_ref(), Ok(&merged), "merged again");
    }
    let deployment = kinds::definition_named("io.k8s.api.apps.v1.Deployment").expect("a built-in kind");
    if let Ok(merged) = strategic_merge(&object, &patch, deployment) {
        bounded(&merged, sent_bytes);
    }
}

fn bounded(patched: &Value, bytes_max: usize) {
    assert!(depth(patched) <= NESTING_MAX, "nests {} deep", depth(patched));
    let bytes = patched.to_string().len();
    assert!(bytes <= bytes_max, "{bytes} bytes, and {bytes_max} would do");
}
