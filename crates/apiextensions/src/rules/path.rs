//! `fieldPath` of a rule: `.spec.names['a b']`, as far as it leads through the schema.

use serde_json::Value;

/// The path as errors write it; none where it is malformed or leads nowhere.
pub(crate) fn field_path(source: &str, schema: &Value) -> Option<String> {
    let mut rest = source;
    let mut schema = schema;
    let mut path = String::new();
    while !rest.is_empty() {
        let (name, after) = step(rest)?;
        rest = after;
        if schema["properties"].is_object() {
            schema = schema["properties"].get(&name)?;
            let dot = if path.is_empty() { "" } else { "." };
            path = format!("{path}{dot}{name}");
        } else if schema["additionalProperties"].is_object() {
            schema = &schema["additionalProperties"];
            path = format!("{path}[{name}]");
        } else {
            return None;
        }
    }
    Some(path)
}

/// One step and what comes after it.
fn step(text: &str) -> Option<(String, &str)> {
    if let Some(quoted) = text.strip_prefix("['") {
        let mut name = String::new();
        let mut letters = quoted.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\'' => return Some((name, quoted[at + 1..].strip_prefix(']')?)),
                '\\' => name.push(unescaped(letters.next()?.1)?),
                other => name.push(other),
            }
        }
        return None;
    }
    let plain = text.strip_prefix('.')?;
    let end = plain.find(['.', '[', ']']).unwrap_or(plain.len());
    (end > 0).then(|| (plain[..end].to_owned(), &plain[end..]))
}

fn unescaped(letter: char) -> Option<char> {
    Some(match letter {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\'' | '\\' => letter,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_through_the_schema() {
        let schema = json!({ "properties": {
            "a": { "properties": { "b c": { "type": "string" } } },
            "m": { "additionalProperties": { "properties": { "x": {} } } },
        } });
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(field_path(path, &schema).as_deref(), expected, "{path}");
        };
        check(".a", Some("a"));
        check(".a['b c']", Some("a.b c"));
        check(".m.key.x", Some("m[key].x"));
        check(".m['it\\'s']", Some("m[it's]"));
        check(".a.c", None);
        check("a", None);
        check(".a[0]", None);
        check(".a['b c'", None);
        check(".a.", None);
    }
}
