//! Regular expressions of schemas. They are written for Go, so they are first rewritten for the `regex`
//! crate, then compiled once and kept: never compiled for an object that is checked.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock};

use regex::{Regex, RegexBuilder};

mod rewrite;

/// A compiled pattern, or why it is none.
pub type Compiled = Result<Arc<Regex>, Arc<str>>;

/// Kept patterns; when more are in use, all are compiled anew. A guard against CRDs without end.
const KEPT_MAX: usize = 1024;
const PATTERN_BYTES_MAX: usize = 16 * 1024;
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// Guards the compiled patterns by their source text.
static KEPT: LazyLock<RwLock<HashMap<Box<str>, Compiled>>> = LazyLock::new(RwLock::default);

/// Whether a text matches a pattern. Nothing matches a pattern that is none.
pub(super) fn matches(source: &str, text: &str) -> bool {
    compiled(source).is_ok_and(|regex| regex.is_match(text))
}

/// Why a text is no regular expression, in Go's words.
pub fn fault(source: &str) -> Option<String> {
    compiled(source).err().map(|fault| fault.to_string())
}

/// The regular expression that a text is, or why it is none.
pub fn compiled(source: &str) -> Compiled {
    // A panic while the lock is held cannot leave the map half-written, so a poisoned lock is good.
    let known = KEPT.read().unwrap_or_else(|poisoned| poisoned.into_inner()).get(source).cloned();
    if let Some(known) = known {
        return known;
    }
    let fresh = compile(source);
    let mut kept = KEPT.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    if kept.len() >= KEPT_MAX {
        kept.clear();
    }
    kept.insert(Box::from(source), fresh.clone());
    fresh
}

fn compile(source: &str) -> Compiled {
    if source.len() > PATTERN_BYTES_MAX {
        return Err(Arc::from("error parsing regexp: expression too large"));
    }
    let rewritten = rewrite::for_rust(source).map_err(|fault| Arc::from(fault.to_string()))?;
    let mut builder = RegexBuilder::new(&rewritten);
    builder.size_limit(COMPILED_BYTES_MAX).dfa_size_limit(COMPILED_BYTES_MAX).nest_limit(100);
    builder.build().map(Arc::new).map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => Arc::from("error parsing regexp: expression too large"),
        // The last line of the crate's message is the reason; the lines above draw the place.
        other => Arc::from(format!(
            "error parsing regexp: {}",
            other.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ")
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_colon_in_a_class_is_a_letter_unless_a_name_follows() {
        let check = |text: &str, expected: bool| assert_eq!(matches("^[[:]$", text), expected, "{text}");
        check(":", true);
        check("[", true);
        check("]", false);
    }
}
