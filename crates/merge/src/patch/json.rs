//! JSON patch (RFC 6902) with the latitude of the library behind kube-apiserver: negative indices count
//! from the end, `replace` of an absent field sets it, and the first segment of a path is not looked at.

use std::borrow::Cow;

use serde_json::Value;

use super::{NESTING_MAX, depth, undecodable, unprocessable, within_nesting};
use apimachinery::error::ApiError;

const DECODING: &str = "error decoding patch: ";
/// More operations than this are refused.
const OPERATIONS_MAX: usize = 10_000;
/// What all `copy` operations of one patch may add together.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Nesting that is let pass between operations; the stack is safe at ten times this.
const NESTING_BETWEEN_MAX: usize = 10 * NESTING_MAX;

/// The object after all operations of the patch, or the error of the first that fails.
pub fn json_patch(object: &Value, patch: &Value) -> Result<Value, ApiError> {
    let operations = decode(patch)?;
    if operations.len() > OPERATIONS_MAX {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            operations.len()
        );
        return Err(ApiError { message, ..ApiError::too_large(0) });
    }
    let mut document =
        Document { root: object.clone(), copied_bytes: 0, nesting_bound: depth(object).max(1) };
    for operation in &operations {
        document.apply(operation).ok_or_else(unprocessable)?;
    }
    match document.root {
        root @ Value::Object(_) => within_nesting(root),
        _ => Err(unprocessable()),
    }
}

struct Operation<'a> {
    verb: &'a str,
    path: Option<&'a str>,
    from: Option<&'a str>,
    value: &'a Value,
}

fn decode(patch: &Value) -> Result<Vec<Operation<'_>>, ApiError> {
    match patch {
        Value::Null => Ok(Vec::new()),
        Value::Array(operations) => operations.iter().map(decode_operation).collect(),
        other => Err(undecodable(DECODING, other, "Go value of type []handlers.jsonPatchOp")),
    }
}

fn decode_operation(operation: &Value) -> Result<Operation<'_>, ApiError> {
    let Value::Object(fields) = operation else {
        return Err(undecodable(DECODING, operation, "Go value of type handlers.jsonPatchOp"));
    };
    let text = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(other) => {
            Err(undecodable(DECODING, other, &format!("Go struct field jsonPatchOp.{name} of type string")))
        }
    };
    Ok(Operation {
        verb: text("op")?.unwrap_or("unknown"),
        path: text("path")?,
        from: text("from")?,
        value: fields.get("value").unwrap_or(&Value::Null),
    })
}

struct Document {
    root: Value,
    copied_bytes: usize,
    /// At least the nesting of `root`; exact only after a recount.
    nesting_bound: usize,
}

impl Document {
    fn apply(&mut self, operation: &Operation<'_>) -> Option<()> {
        let path = operation.path?;
        match operation.verb {
            "add" => self.add(path, operation.value.clone(), depth(operation.value)),
            "remove" => self.remove(path).map(drop),
            "replace" => self.replace(path, operation.value),
            "test" => self.test(path, operation.value),
            "move" => {
                let from = operation.from?;
                let moved = self.remove(from)?;
                self.add(path, moved, self.nesting_bound.saturating_sub(segments(from)))
            }
            "copy" => {
                let from = operation.from?;
                let copy = self.copied(from)?;
                self.add(path, copy, self.nesting_bound.saturating_sub(segments(from)))
            }
            _ => None,
        }
    }

    fn add(&mut self, path: &str, value: Value, value_nesting: usize) -> Option<()> {
        let (container, key) = self.container(path)?;
        match container {
            Value::Object(fields) => {
                fields.insert(key.into_owned(), value);
            }
            Value::Array(items) if key == "-" => items.push(value),
            Value::Array(items) => {
                let place = position(&key, items.len() + 1)?;
                items.insert(place, value);
            }
            _ => return None,
        }
        self.check_nesting(segments(path) + value_nesting)
    }

    fn remove(&mut self, path: &str) -> Option<Value> {
        let (container, key) = self.container(path)?;
        match container {
            Value::Object(fields) => fields.remove(&*key),
            Value::Array(items) => {
                let place = position(&key, items.len())?;
                Some(items.remove(place))
            }
            _ => None,
        }
    }

    fn replace(&mut self, path: &str, value: &Value) -> Option<()> {
        if path.is_empty() {
            self.root = value.clone();
            self.nesting_bound = depth(value).max(1);
            return Some(());
        }
        let (container, key) = self.container(path)?;
        match container {
            Value::Object(fields) => {
                fields.insert(key.into_owned(), value.clone());
            }
            Value::Array(items) => {
                let place = position(&key, items.len())?;
                items[place] = value.clone();
            }
            _ => return None,
        }
        self.check_nesting(segments(path) + depth(value))
    }

    fn test(&mut self, path: &str, wanted: &Value) -> Option<()> {
        if path.is_empty() {
            return (self.root == *wanted).then_some(());
        }
        let (container, key) = self.container(path)?;
        let found = found(container, &key)?.unwrap_or(&Value::Null);
        (found == wanted).then_some(())
    }

    /// An absent field is copied as null, as kube-apiserver does.
    fn copied(&mut self, from: &str) -> Option<Value> {
        let left = COPIED_BYTES_MAX - self.copied_bytes;
        let (container, key) = self.container(from)?;
        let source = found(container, &key)?.unwrap_or(&Value::Null);
        let bytes = size_within(source, left)?;
        let copy = source.clone();
        self.copied_bytes += bytes;
        Some(copy)
    }

    /// The container that holds the last segment of the path, and that segment.
    fn container<'p>(&mut self, path: &'p str) -> Option<(&mut Value, Cow<'p, str>)> {
        let (_, path) = path.split_once('/')?;
        let (parents, key) = match path.rsplit_once('/') {
            Some((parents, key)) => (Some(parents), key),
            None => (None, path),
        };
        let mut container = &mut self.root;
        for segment in parents.into_iter().flat_map(|parents| parents.split('/')) {
            let segment = unescaped(segment);
            container = match container {
                Value::Object(fields) => fields.get_mut(&*segment)?,
                Value::Array(items) => {
                    let place = position(&segment, items.len())?;
                    &mut items[place]
                }
                _ => return None,
            };
        }
        Some((container, unescaped(key)))
    }

    fn check_nesting(&mut self, possible: usize) -> Option<()> {
        self.nesting_bound = self.nesting_bound.max(possible);
        if self.nesting_bound > NESTING_BETWEEN_MAX {
            self.nesting_bound = depth(&self.root);
        }
        (self.nesting_bound <= NESTING_BETWEEN_MAX).then_some(())
    }
}

/// What a container holds under a key: nothing at all where the key does not fit, nothing yet where a
/// field is absent.
fn found<'a>(container: &'a Value, key: &str) -> Option<Option<&'a Value>> {
    match container {
        Value::Object(fields) => Some(fields.get(key)),
        Value::Array(items) => position(key, items.len()).map(|place| items.get(place)),
        _ => None,
    }
}

/// The index that a segment names in a list of this length.
fn position(segment: &str, length: usize) -> Option<usize> {
    let index: i64 = segment.parse().ok()?;
    let place = if index < 0 { index + i64::try_from(length).ok()? } else { index };
    usize::try_from(place).ok().filter(|place| *place < length)
}

fn segments(path: &str) -> usize {
    path.bytes().filter(|byte| *byte == b'/').count()
}

fn unescaped(segment: &str) -> Cow<'_, str> {
    match segment.contains('~') {
        true => Cow::Owned(segment.replace("~1", "/").replace("~0", "~")),
        false => Cow::Borrowed(segment),
    }
}

/// The size of the value as JSON, roughly; nothing if it is more than `left`.
fn size_within(value: &Value, left: usize) -> Option<usize> {
    let own = match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => sum_within(items.iter(), left)?,
        Value::Object(fields) => {
            let names: usize = fields.keys().map(|name| name.len() + 4).sum();
            names + sum_within(fields.values(), left.checked_sub(names)?)?
        }
        _ => 4,
    };
    (own <= left).then_some(own)
}

fn sum_within<'a>(values: impl Iterator<Item = &'a Value>, left: usize) -> Option<usize> {
    let mut sum = 2;
    for value in values {
        sum += 1 + size_within(value, left.checked_sub(sum)?)?;
    }
    Some(sum)
}
