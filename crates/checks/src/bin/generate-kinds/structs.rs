//! Reads the tags of Go struct fields: the JSON name behind a protobuf number, and whether Go writes
//! the field when it is empty. Knows only the plain declarations that API packages use.

use std::collections::BTreeMap;

/// What Go's JSON does with one field.
#[derive(Debug, Clone)]
pub struct GoField {
    pub json: String,
    pub pointer: bool,
    pub omit_empty: bool,
    pub omit_zero: bool,
    pub inline: bool,
}

/// What a Go type is to JSON.
pub enum GoType {
    /// A struct: its fields by protobuf number.
    Struct(BTreeMap<u32, GoField>),
    /// A named slice.
    Slice,
}

/// Adds the types of one Go file, named with their package as protobuf names it.
pub fn read(text: &str, package: &str, types: &mut BTreeMap<String, GoType>) {
    let mut current: Option<(String, BTreeMap<u32, GoField>)> = None;
    for line in text.lines() {
        if let Some(declaration) = line.strip_prefix("type ") {
            let (name, rest) = declaration.split_once(' ').unwrap_or((declaration, ""));
            if rest.starts_with("[]") {
                types.insert(format!("{package}.{name}"), GoType::Slice);
            } else if rest == "struct{}" {
                types.insert(format!("{package}.{name}"), GoType::Struct(BTreeMap::new()));
            } else if rest == "struct {" {
                current = Some((format!("{package}.{name}"), BTreeMap::new()));
            }
        } else if line == "}" {
            types.extend(current.take().map(|(name, fields)| (name, GoType::Struct(fields))));
        } else if let Some((_, fields)) = &mut current {
            fields.extend(field(line.trim()));
        }
    }
}

fn field(line: &str) -> Option<(u32, GoField)> {
    if line.starts_with("//") {
        return None;
    }
    let (declaration, tags) = line.split_once('`')?;
    let number = tag(tags, "protobuf:\"")?.split(',').nth(1)?.parse().ok()?;
    let mut json = tag(tags, "json:\"")?.split(',');
    let name = json.next()?.to_owned();
    let options: Vec<&str> = json.collect();
    let go_type = declaration.split_whitespace().last()?;
    let field = GoField {
        inline: name.is_empty() && options.contains(&"inline"),
        json: name,
        pointer: go_type.starts_with('*'),
        omit_empty: options.contains(&"omitempty"),
        omit_zero: options.contains(&"omitzero"),
    };
    Some((number, field))
}

fn tag<'a>(tags: &'a str, start: &str) -> Option<&'a str> {
    tags.split_once(start)?.1.split('"').next()
}
