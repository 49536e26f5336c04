//! Reads the messages of `generated.proto` files: field numbers and wire types. Knows only the plain
//! proto2 that Kubernetes generates.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

/// One field of a message.
pub struct ProtoField {
    pub number: u32,
    pub shape: Shape,
    pub value: String,
}

/// How often a field may occur.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    One,
    Repeated,
    Map,
}

/// Messages by full name, such as `k8s.io.api.core.v1.Pod`.
pub type Messages = BTreeMap<String, Vec<ProtoField>>;

/// Adds the messages of one file.
pub fn read(text: &str, messages: &mut Messages) -> Result<()> {
    let mut package = "";
    let mut current: Option<(String, Vec<ProtoField>)> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")) {
        if let Some(name) = line.strip_prefix("package ") {
            package = name.trim_end_matches(';');
        } else if let Some(name) = line.strip_prefix("message ") {
            current = Some((format!("{package}.{}", name.trim_end_matches(" {")), Vec::new()));
        } else if line == "}" {
            messages.extend(current.take());
        } else if let Some((_, fields)) = &mut current {
            fields.push(field(line, package).with_context(|| format!("{package}: {line}"))?);
        }
    }
    Ok(())
}

fn field(line: &str, package: &str) -> Result<ProtoField> {
    let (declaration, number) = line.trim_end_matches(';').split_once(" = ").context("no number")?;
    let number = number.parse()?;
    if let Some(map) = declaration.strip_prefix("map<") {
        let (key, rest) = map.split_once(", ").context("no map value")?;
        ensure!(key == "string", "a map key that is no string");
        let (value, _) = rest.split_once('>').context("no end of map")?;
        return Ok(ProtoField { number, shape: Shape::Map, value: full_name(value, package) });
    }
    let mut words = declaration.split(' ');
    let shape = match words.next() {
        Some("optional") => Shape::One,
        Some("repeated") => Shape::Repeated,
        other => bail!("label {other:?}"),
    };
    let value = full_name(words.next().context("no type")?, package);
    Ok(ProtoField { number, shape, value })
}

/// Scalars keep their name, messages get their package.
fn full_name(name: &str, package: &str) -> String {
    match name.strip_prefix('.') {
        Some(absolute) => absolute.to_owned(),
        None if name.starts_with(|first: char| first.is_ascii_lowercase()) => name.to_owned(),
        None => format!("{package}.{name}"),
    }
}
