//! Joins protobuf messages with Go's JSON tags into the table that the protobuf decoder reads.
//! Line 1: `apiVersion/Kind=message` for every kind. Then one line per message: its name, a tab, and
//! words: `=form` for a JSON form of its own, `number:json:type:flags` for each field.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::definitions::Definitions;
use crate::proto::{Messages, ProtoField, Shape};
use crate::structs::{self, GoField, GoType};

/// Messages whose JSON is not an object of their fields.
const FORMS: &[(&str, &str)] = &[
    ("k8s.io.apimachinery.pkg.apis.meta.v1.Time", "time"),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime", "microtime"),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1", "raw"),
    ("k8s.io.apimachinery.pkg.api.resource.Quantity", "quantity"),
    ("k8s.io.apimachinery.pkg.util.intstr.IntOrString", "intorstring"),
    ("k8s.io.apimachinery.pkg.runtime.RawExtension", "raw"),
    ("k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSON", "raw"),
    ("k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray", "either"),
    ("k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool", "orbool"),
    ("k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray", "either"),
];

/// The lines of the table for every kind that a client may send to these group versions.
pub fn lines(modules: &[PathBuf], served: &[(&str, &str)], definitions: &Definitions) -> Result<Vec<String>> {
    let mut sources = Sources { messages: Messages::new(), types: BTreeMap::new() };
    for module in modules {
        sources.read(module)?;
    }
    let mut table = Table { places: BTreeMap::new(), order: Vec::new() };
    let mut roots: Vec<String> = Vec::new();
    for (definition, gvk) in definitions.kinds().filter(|(_, gvk)| is_sent(gvk, served)) {
        let place = table.place(&message_name(definition));
        let text = |key: &str| gvk[key].as_str().unwrap_or_default();
        let group = if text("group").is_empty() { String::new() } else { format!("{}/", text("group")) };
        roots.push(format!("{group}{}/{}={place}", text("version"), text("kind")));
    }
    roots.sort_unstable();
    let mut lines = vec![roots.join(" ")];
    // The table grows while its messages are written: each names the messages of its fields.
    while let Some(name) = table.order.get(lines.len() - 1).cloned() {
        let line = sources.line(&name, &mut table).with_context(|| name.clone())?;
        lines.push(line);
    }
    Ok(lines)
}

/// Lists and watch events only travel from server to client.
fn is_sent(gvk: &Value, served: &[(&str, &str)]) -> bool {
    let text = |key: &str| gvk[key].as_str().unwrap_or_default();
    let kind = text("kind");
    served.contains(&(text("group"), text("version"))) && !kind.ends_with("List") && kind != "WatchEvent"
}

fn message_name(definition: &str) -> String {
    format!("k8s.io.{}", definition.trim_start_matches("io.k8s.").replace('-', "_"))
}

struct Table {
    places: BTreeMap<String, usize>,
    order: Vec<String>,
}

impl Table {
    fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.places.insert(name.to_owned(), self.order.len());
        self.order.push(name.to_owned());
        self.order.len() - 1
    }
}

struct Sources {
    messages: Messages,
    types: BTreeMap<String, GoType>,
}

impl Sources {
    fn read(&mut self, directory: &Path) -> Result<()> {
        let proto = directory.join("generated.proto");
        if proto.exists() {
            let text = fs::read_to_string(&proto)?;
            let package =
                text.lines().find_map(|line| line.strip_prefix("package ")).context("no package")?;
            self.read_structs(directory, package.trim_end_matches(';'))?;
            crate::proto::read(&text, &mut self.messages)?;
        }
        let entries = fs::read_dir(directory).with_context(|| format!("read {}", directory.display()))?;
        let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        paths.sort_unstable();
        paths.iter().filter(|path| path.is_dir()).try_for_each(|path| self.read(path))
    }

    fn read_structs(&mut self, directory: &Path, package: &str) -> Result<()> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let written =
                !name.starts_with("zz_") && !name.ends_with("_test.go") && !name.ends_with(".pb.go");
            if name.ends_with(".go") && written {
                structs::read(&fs::read_to_string(&path)?, package, &mut self.types);
            }
        }
        Ok(())
    }

    fn line(&self, name: &str, table: &mut Table) -> Result<String> {
        let fields = self.messages.get(name).context("no such message")?;
        let form = FORMS.iter().find(|(other, _)| *other == name).map(|(_, form)| *form);
        let tags = match self.types.get(name) {
            Some(GoType::Struct(tags)) => Some(tags),
            _ => None,
        };
        let slice = matches!(self.types.get(name), Some(GoType::Slice));
        ensure!(form.is_some() || slice || tags.is_some(), "no Go type");
        let mut words: Vec<String> =
            form.or(slice.then_some("list")).map(|form| format!("={form}")).into_iter().collect();
        for field in fields {
            let tag = tags.and_then(|tags| tags.get(&field.number));
            ensure!(form.is_some() || slice || tag.is_some(), "field {} has no tags", field.number);
            words.push(word(field, tag, table));
        }
        Ok(format!("{name}\t{}", words.join(" ")))
    }
}

fn word(field: &ProtoField, tag: Option<&GoField>, table: &mut Table) -> String {
    let shape = match field.shape {
        Shape::One => "",
        Shape::Repeated => "*",
        Shape::Map => "%",
    };
    let value = match field.value.as_str() {
        "string" => "s".to_owned(),
        "bool" => "t".to_owned(),
        "int32" => "i".to_owned(),
        "int64" => "l".to_owned(),
        "double" => "d".to_owned(),
        "bytes" => "y".to_owned(),
        message => table.place(message).to_string(),
    };
    let json = tag.map_or("", |tag| tag.json.as_str());
    let flag = |is: fn(&GoField) -> bool, letter| if tag.is_some_and(is) { letter } else { "" };
    let pointer = flag(|tag| tag.pointer, "p");
    let omit_empty = flag(|tag| tag.omit_empty, "o");
    let omit_zero = flag(|tag| tag.omit_zero, "z");
    let inline = flag(|tag| tag.inline, "n");
    format!("{}:{json}:{shape}{value}:{pointer}{omit_empty}{omit_zero}{inline}", field.number)
}
