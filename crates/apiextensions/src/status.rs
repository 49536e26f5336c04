//! Name acceptance and conditions of a definition: `acceptedNames`, `NamesAccepted`, `Established`.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{fields, list, text, texts};
use apimachinery::gotext::quoted;
use schema::validate::is_known_format;

/// Decides the accepted names and the `NamesAccepted` condition, given the other definitions, which are asked for only
/// if the names changed; a name that is free or already its own is accepted. `now` is an RFC 3339 time. True if the
/// status changed.
pub fn accept_names<Other: Borrow<Value>>(
    crd: &mut Value,
    others: impl Iterator<Item = Other>,
    now: &str,
) -> bool {
    if !crd.is_object() {
        return false;
    }
    if !crd["status"].is_object() {
        crd["status"] = json!({});
    }
    let wanted = crd["spec"]["names"].clone();
    if same_names(&wanted, &crd["status"]["acceptedNames"]) && condition(crd, "NamesAccepted").is_some() {
        return false;
    }
    let (resources, kinds) = taken(crd, others);
    let (names, verdict) = decide(&wanted, &crd["status"]["acceptedNames"], &resources, &kinds);
    let accepted = verdict.is_none();
    let (status, reason, message) = match &verdict {
        Some((reason, message)) => ("False", *reason, message.as_str()),
        None => ("True", "NoConflicts", "no conflicts found"),
    };
    let before = crd["status"].clone();
    crd["status"]["acceptedNames"] = names;
    set_condition(crd, ["NamesAccepted", status, reason, message], now);
    let established = condition(crd, "Established").map(|it| text(&it["status"]).to_owned());
    match (established.as_deref(), accepted) {
        (Some("True"), _) => {}
        (_, true) => {
            let words = ["Established", "False", "Installing", "the initial names have been accepted"];
            set_condition(crd, words, now);
        }
        (Some(_), false) => {}
        (None, false) => {
            set_condition(crd, ["Established", "False", "NotAccepted", "not all names are accepted"], now);
        }
    }
    crd["status"] != before
}

/// Marks a definition whose names are accepted as established. True if the status changed.
pub fn establish(crd: &mut Value, now: &str) -> bool {
    let is_true = |kind: &str| condition(crd, kind).is_some_and(|condition| condition["status"] == "True");
    if !is_true("NamesAccepted") || is_true("Established") {
        return false;
    }
    let words = ["Established", "True", "InitialNamesAccepted", "the initial names have been accepted"];
    set_condition(crd, words, now);
    true
}

/// Warnings about string formats in the schemas that the server does not validate, unless the old definition had
/// them.
pub fn unknown_format_warnings(crd: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.map(unknown_formats).unwrap_or_default();
    let new = unknown_formats(crd).into_iter().filter(|format| !before.contains(format));
    new.map(|format| format!("unrecognized format {}", quoted(&format))).collect()
}

fn unknown_formats(crd: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let versions = list(&crd["spec"]["versions"]);
    // Like kube-apiserver, a schema that all versions share is looked at once.
    let shared = versions.iter().all(|version| version["schema"] == versions[0]["schema"]);
    let count = if shared { 1 } else { versions.len() };
    for version in versions.iter().take(count) {
        formats_below(&version["schema"]["openAPIV3Schema"], &mut found, 0);
    }
    found
}

fn formats_below(schema: &Value, found: &mut Vec<String>, depth: usize) {
    if depth > 100 {
        return;
    }
    let format = text(&schema["format"]);
    if schema["type"] == "string" && !format.is_empty() && !is_known_format(format) {
        found.push(format.to_owned());
    }
    let single = ["items", "not", "additionalProperties"].into_iter().map(|key| &schema[key]);
    let several = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| list(&schema[key]));
    let properties = fields(&schema["properties"]).map(|(_, child)| child);
    for child in single.chain(several).chain(properties).filter(|child| child.is_object()) {
        formats_below(child, found, depth + 1);
    }
}

fn same_names(wanted: &Value, accepted: &Value) -> bool {
    ["plural", "singular", "kind", "listKind"].iter().all(|key| text(&wanted[*key]) == text(&accepted[*key]))
        && ["shortNames", "categories"].iter().all(|key| list(&wanted[*key]) == list(&accepted[*key]))
}

/// The resource names and the kinds that the group has given away, to this definition too.
fn taken(
    crd: &Value,
    others: impl Iterator<Item = impl Borrow<Value>>,
) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut resources = BTreeSet::new();
    let mut kinds = BTreeSet::new();
    let mut take = |names: &Value| {
        let words = ["plural", "singular", "shortNames"].into_iter().flat_map(|key| one_or_many(&names[key]));
        resources.extend(words.map(str::to_owned));
        kinds.extend(["kind", "listKind"].into_iter().map(|key| text(&names[key]).to_owned()));
    };
    let same_group = |other: &Value| {
        other["spec"]["group"] == crd["spec"]["group"] && other["metadata"]["name"] != crd["metadata"]["name"]
    };
    for other in others.filter(|other| same_group(other.borrow())) {
        take(&other.borrow()["status"]["acceptedNames"]);
    }
    take(&crd["status"]["acceptedNames"]);
    (resources, kinds)
}

type Conflict = (&'static str, String);

/// The names to accept and the last conflict, which is the one that kube-apiserver reports.
fn decide(
    wanted: &Value,
    accepted: &Value,
    resources: &BTreeSet<String>,
    kinds: &BTreeSet<String>,
) -> (Value, Option<Conflict>) {
    let mut names = accepted.as_object().cloned().unwrap_or_default();
    let mut conflict = None;
    for (key, used, reason) in [
        ("plural", resources, "PluralConflict"),
        ("singular", resources, "SingularConflict"),
        ("shortNames", resources, "ShortNamesConflict"),
        ("kind", kinds, "KindConflict"),
        ("listKind", kinds, "ListKindConflict"),
    ] {
        let own: Vec<&str> = one_or_many(&accepted[key]).collect();
        let new = one_or_many(&wanted[key]).filter(|name| !own.contains(name));
        let refused: Vec<String> = new
            .filter(|name| used.contains(*name))
            .map(|name| format!("{} is already in use", quoted(name)))
            .collect();
        match refused.as_slice() {
            [] => accept(&mut names, key, &wanted[key]),
            [one] => conflict = Some((reason, one.clone())),
            many => conflict = Some((reason, format!("[{}]", many.join(", ")))),
        }
    }
    accept(&mut names, "categories", &wanted["categories"]);
    (Value::Object(names), conflict)
}

fn one_or_many(value: &Value) -> impl Iterator<Item = &str> {
    value.as_str().into_iter().chain(texts(value))
}

fn accept(names: &mut Map<String, Value>, key: &str, wanted: &Value) {
    match one_or_many(wanted).next() {
        Some(_) => names.insert(key.to_owned(), wanted.clone()),
        None => names.remove(key),
    };
}

fn condition<'a>(crd: &'a Value, kind: &str) -> Option<&'a Value> {
    list(&crd["status"]["conditions"]).iter().find(|condition| condition["type"] == kind)
}

/// Writes a condition; its time moves only when its status does.
fn set_condition(crd: &mut Value, [kind, status, reason, message]: [&str; 4], now: &str) {
    let since = condition(crd, kind).filter(|known| known["status"] == status);
    let since = since.map_or(now.to_owned(), |known| text(&known["lastTransitionTime"]).to_owned());
    let fresh = json!({
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    });
    let mut all = list(&crd["status"]["conditions"]).to_vec();
    match all.iter_mut().find(|condition| condition["type"] == kind) {
        Some(known) => *known = fresh,
        None => all.push(fresh),
    }
    crd["status"]["conditions"] = Value::Array(all);
}
