//! The schemas as a snapshot, one fact per line, so that a review sees every change of the API. `UPDATE_EXPECT=1 cargo
//! test -p api` rewrites it.

use std::collections::BTreeMap;
use std::fmt::Write;

use expect_test::expect_file;
use serde_json::Value;

#[test]
fn the_schemas_are_the_reviewed_ones() {
    let mut text = String::new();
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for definition in api::crd::crds() {
        describe(&definition["spec"], &mut seen, &mut text);
    }
    expect_file!["facts.txt"].assert_eq(&text);
}

fn describe(spec: &Value, seen: &mut BTreeMap<String, String>, text: &mut String) {
    let names = &spec["names"];
    let words =
        |key: &str| names[key].as_array().into_iter().flatten().map(plain).collect::<Vec<_>>().join(",");
    let (short, categories) = (words("shortNames"), words("categories"));
    for version in spec["versions"].as_array().expect("versions") {
        let title = format!("{} {}", plain(&names["kind"]), plain(&version["name"]));
        let (group, scope) = (plain(&spec["group"]), plain(&spec["scope"]));
        writeln!(text, "{title} {group} {scope} [{short}] [{categories}]").expect("text");
        let mut facts = format!(
            "  served={} storage={} subresources={}\n",
            version["served"], version["storage"], version["subresources"]
        );
        for column in version["additionalPrinterColumns"].as_array().into_iter().flatten() {
            let wide = if column["priority"] == 1 { " wide" } else { "" };
            let (name, kind, path) = (&column["name"], &column["type"], &column["jsonPath"]);
            writeln!(facts, "  column {} {} {}{wide}", plain(name), plain(kind), plain(path)).expect("text");
        }
        fields(&version["schema"]["openAPIV3Schema"], "", &mut facts);
        match seen.get(&facts) {
            Some(twin) => writeln!(text, "  as {twin}").expect("text"),
            None => text.push_str(&facts),
        }
        seen.entry(facts).or_insert(title);
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// One line per field: path, type, then every other keyword in the order of the alphabet.
fn fields(schema: &Value, path: &str, text: &mut String) {
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().map(plain).collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let star = if required.contains(name) { "*" } else { "" };
        let (path, inner, keywords) = unwrapped(field, path);
        writeln!(text, "  {path}{star} {}{keywords}", inner["type"].as_str().unwrap_or("any")).expect("text");
        fields(inner, &path, text);
    }
}

/// Looks through lists and maps to what they hold; keywords of all layers are kept.
fn unwrapped(schema: &Value, path: String) -> (String, &Value, String) {
    const STRUCTURE: [&str; 6] =
        ["type", "properties", "required", "items", "additionalProperties", "description"];
    let own = schema.as_object().into_iter().flatten().filter(|(key, _)| !STRUCTURE.contains(&key.as_str()));
    let keywords: String = own.map(|(key, value)| format!(" {key}={}", plain(value))).collect();
    let layers = [("items", "[]"), ("additionalProperties", "{}")];
    for (keyword, mark) in layers {
        if let Some(inner) = schema.get(keyword) {
            let (path, inner, deeper) = unwrapped(inner, format!("{path}{mark}"));
            return (path, inner, keywords + &deeper);
        }
    }
    (path, schema, keywords)
}

/// No controller fills in the status of rollout policies, so their columns show what they say.
#[test]
fn columns_of_rollout_policies_come_from_what_is_filled_in() {
    let definitions = api::crd::crds();
    let of_rollouts = definitions
        .iter()
        .filter(|definition| plain(&definition["spec"]["names"]["kind"]).ends_with("RolloutPolicy"));
    let versions =
        of_rollouts.flat_map(|definition| definition["spec"]["versions"].as_array().into_iter().flatten());
    let columns: Vec<String> = versions
        .flat_map(|version| version["additionalPrinterColumns"].as_array().into_iter().flatten())
        .map(|column| plain(&column["jsonPath"]))
        .collect();
    assert_eq!(columns.len(), 6, "{columns:?}");
    assert!(!columns.iter().any(|path| path.starts_with(".status")), "{columns:?}");
}
