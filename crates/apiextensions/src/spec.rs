//! Validates a CustomResourceDefinition on create and update: names, versions, and everything below them, in the
//! order and the words of kube-apiserver.

use serde_json::{Value, json};

use super::{columns, conversion, flag, list, nodes, text, texts};
use apimachinery::error::FieldError;
use apimachinery::metadata;
use apimachinery::names::{self, NameRule};

/// Everything that is wrong with a definition that has its defaults and its status.
pub fn validate_crd(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = match old {
        Some(old) => metadata::validate_update(&crd["metadata"], &old["metadata"], false, "metadata"),
        None => new_metadata(crd),
    };
    errors.extend(spec(&crd["spec"]));
    if let Some(old) = old {
        errors.extend(immutable(crd, old));
    }
    errors.extend(valid_names(&crd["status"]["acceptedNames"], "status.acceptedNames"));
    errors.extend(stored_versions(crd));
    errors.extend(approval(crd, old));
    if crd["spec"]["preserveUnknownFields"] == true {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, detail));
    }
    errors
}

fn new_metadata(crd: &Value) -> Vec<FieldError> {
    let mut errors = metadata::validate_create(&crd["metadata"], false, NameRule::Subdomain, "metadata");
    let name = text(&crd["metadata"]["name"]);
    let wanted = format!("{}.{}", text(&crd["spec"]["names"]["plural"]), text(&crd["spec"]["group"]));
    if !name.is_empty() && name != wanted {
        let named = |error: &FieldError| ["metadata.name", "metadata.generateName"].contains(&&*error.field);
        let after_name = errors.iter().rposition(named).map_or(0, |index| index + 1);
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.insert(after_name, FieldError::invalid("metadata.name", name, detail));
    }
    errors
}

/// What is the same in all versions is checked once, at the path it had in the first version of this API.
struct Shared<'a> {
    schema: Option<&'a Value>,
    subresources: Option<&'a Value>,
    columns: Option<&'a Value>,
    selectable: Option<&'a Value>,
}

impl<'a> Shared<'a> {
    fn of(versions: &'a [Value]) -> Self {
        let same = |key: &str| {
            let first = &versions.first()?[key];
            versions.iter().all(|version| version[key] == *first).then_some(first)
        };
        Self {
            schema: same("schema"),
            subresources: same("subresources"),
            columns: same("additionalPrinterColumns"),
            selectable: same("selectableFields"),
        }
    }
}

fn spec(spec: &Value) -> Vec<FieldError> {
    let versions = list(&spec["versions"]);
    let shared = Shared::of(versions);
    let mut errors = group(text(&spec["group"]));
    errors.extend(scope(text(&spec["scope"])));
    for (index, version) in versions.iter().enumerate() {
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(FieldError::required(field, ""));
        }
    }
    for (index, version) in versions.iter().enumerate() {
        errors.extend(one_version(version, &shared, &format!("spec.versions[{index}]")));
    }
    errors.extend(version_set(spec, &shared));
    errors.extend(
        versions
            .first()
            .and_then(|first| valid_name(text(&first["name"]), false, String::from("spec.version"))),
    );
    for key in ["plural", "singular", "kind", "listKind"] {
        if text(&spec["names"][key]).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{key}"), ""));
        }
    }
    errors.extend(valid_names(&spec["names"], "spec.names"));
    if let Some(schema) = shared.schema {
        let status = versions.iter().any(has_status);
        errors.extend(nodes::check(&schema["openAPIV3Schema"], status, "spec.validation"));
    }
    errors.extend(
        shared.subresources.into_iter().flat_map(|it| columns::subresources(it, "spec.subresources")),
    );
    if let Some(all) = shared.columns {
        errors.extend(columns::columns(all, "spec.additionalPrinterColumns"));
    }
    errors.extend(shared_selectable(&shared));
    errors.extend(conversion::check(&spec["conversion"], "spec.conversion"));
    errors
}

/// Paths that all versions share are looked up in the schema that all versions share.
fn shared_selectable(shared: &Shared<'_>) -> Vec<FieldError> {
    const FIELD: &str = "spec.selectableFields";
    match (shared.selectable, shared.schema) {
        (Some(all), Some(schema)) => columns::selectable(all, &schema["openAPIV3Schema"], FIELD),
        (Some(all), None) if !list(all).is_empty() => {
            vec![FieldError::invalid(FIELD, "", "may only be set when validations.schema is included")]
        }
        _ => Vec::new(),
    }
}

fn group(group: &str) -> Vec<FieldError> {
    if group.is_empty() {
        return vec![FieldError::required("spec.group", "")];
    }
    let faults = names::dns_subdomain(group);
    if !faults.is_empty() {
        return vec![FieldError::invalid("spec.group", group, faults.join(","))];
    }
    match group.contains('.') {
        true => Vec::new(),
        false => vec![FieldError::invalid("spec.group", group, "should be a domain with at least one dot")],
    }
}

fn scope(scope: &str) -> Option<FieldError> {
    match scope {
        "" => Some(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => None,
        other => Some(FieldError::not_supported("spec.scope", other, &["Cluster", "Namespaced"])),
    }
}

fn one_version(version: &Value, shared: &Shared<'_>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(&version["name"]);
    let faults = names::dns_1035_label(name);
    if !faults.is_empty() {
        errors.push(FieldError::invalid(format!("{path}.name"), name, faults.join(",")));
    }
    errors.extend(deprecation(version, &format!("{path}.deprecationWarning")));
    if shared.schema.is_none() {
        let schema = &version["schema"]["openAPIV3Schema"];
        errors.extend(nodes::check(schema, has_status(version), &format!("{path}.schema")));
    }
    if shared.subresources.is_none() {
        errors.extend(columns::subresources(&version["subresources"], &format!("{path}.subresources")));
    }
    if shared.columns.is_none() {
        let path = format!("{path}.additionalPrinterColumns");
        errors.extend(columns::columns(&version["additionalPrinterColumns"], &path));
    }
    if shared.selectable.is_none() && !list(&version["selectableFields"]).is_empty() {
        let path = format!("{path}.selectableFields");
        let schema = &version["schema"]["openAPIV3Schema"];
        // kube-apiserver has moved a shared schema away by now, and does not find it.
        let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
        errors.extend(match shared.schema {
            Some(_) => vec![FieldError::invalid(path, "", detail)],
            None => columns::selectable(&version["selectableFields"], schema, &path),
        });
    }
    errors
}

fn has_status(version: &Value) -> bool {
    version["subresources"]["status"].is_object()
}

fn deprecation(version: &Value, path: &str) -> Vec<FieldError> {
    let Some(warning) = version["deprecationWarning"].as_str() else { return Vec::new() };
    let mut faults = Vec::new();
    if !flag(&version["deprecated"]) {
        faults.push(String::from("can only be set for deprecated versions"));
    } else {
        if warning.len() > 256 {
            faults.push(String::from("must be <= 256 characters long"));
        }
        if warning.is_empty() {
            faults.push(String::from("must not be an empty string"));
        }
        if let Some((index, _)) = warning.char_indices().find(|(_, letter)| letter.is_control()) {
            faults.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {index}"
            ));
        }
    }
    faults.into_iter().map(|fault| FieldError::invalid(path, warning, fault)).collect()
}

/// Names differ, and objects are stored in exactly one version.
fn version_set(spec: &Value, shared: &Shared<'_>) -> Vec<FieldError> {
    let versions = list(&spec["versions"]);
    let mut seen: Vec<&str> = versions.iter().map(|version| text(&version["name"])).collect();
    seen.sort_unstable();
    seen.dedup();
    let mut faults = Vec::new();
    if seen.len() < versions.len() {
        faults.push("must contain unique version names");
    }
    if versions.iter().filter(|version| flag(&version["storage"])).count() != 1 {
        faults.push("must have exactly one version marked as storage version");
    }
    let printed = match &spec["versions"] {
        Value::Array(versions) => versions.iter().map(|version| internal(version, shared)).collect(),
        _ => Value::Null,
    };
    faults.into_iter().map(|fault| FieldError::invalid("spec.versions", printed.clone(), fault)).collect()
}

/// A version as kube-apiserver holds and prints it. BTreeMap order differs from its field order.
fn internal(version: &Value, shared: &Shared<'_>) -> Value {
    let own = |key: &str, shared: Option<&Value>| match shared {
        Some(_) => Value::Null,
        None => version[key].clone(),
    };
    json!({
        "Name": text(&version["name"]),
        "Served": flag(&version["served"]),
        "Storage": flag(&version["storage"]),
        "Deprecated": flag(&version["deprecated"]),
        "DeprecationWarning": version["deprecationWarning"],
        "Schema": own("schema", shared.schema),
        "Subresources": own("subresources", shared.subresources),
        "AdditionalPrinterColumns": own("additionalPrinterColumns", shared.columns),
        "SelectableFields": own("selectableFields", shared.selectable),
    })
}

fn valid_names(names: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, mixed_case) in [("plural", false), ("singular", false), ("kind", true), ("listKind", true)] {
        let name = text(&names[key]);
        if !name.is_empty() {
            errors.extend(valid_name(name, mixed_case, format!("{path}.{key}")));
        }
    }
    for (index, name) in texts(&names["shortNames"]).enumerate() {
        errors.extend(valid_name(name, false, format!("{path}.shortNames[{index}]")));
    }
    let kind = text(&names["kind"]);
    if !kind.is_empty() && names["kind"] == names["listKind"] {
        let field = format!("{path}.listKind");
        errors.push(FieldError::invalid(field, kind, "kind and listKind may not be the same"));
    }
    for (index, name) in texts(&names["categories"]).enumerate() {
        errors.extend(valid_name(name, false, format!("{path}.categories[{index}]")));
    }
    errors
}

fn valid_name(name: &str, mixed_case: bool, field: String) -> Option<FieldError> {
    let (faults, note) = match mixed_case {
        true => {
            (names::dns_1035_label(&name.to_lowercase()), "may have mixed case, but should otherwise match: ")
        }
        false => (names::dns_1035_label(name), ""),
    };
    (!faults.is_empty()).then(|| FieldError::invalid(field, name, format!("{note}{}", faults.join(","))))
}

/// Scope and kind decide where and as what objects are stored; group and plural are the object's name.
fn immutable(crd: &Value, old: &Value) -> Vec<FieldError> {
    let established = list(&old["status"]["conditions"])
        .iter()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    let guarded = ["/spec/scope", "/spec/names/kind"].into_iter().filter(|_| established);
    let always = ["/spec/group", "/spec/names/plural"];
    let changed = guarded.chain(always).filter(|path| crd.pointer(path) != old.pointer(path));
    changed
        .map(|path| {
            let value = crd.pointer(path).cloned().unwrap_or_default();
            FieldError::invalid(path[1..].replace('/', "."), value, "field is immutable")
        })
        .collect()
}

fn stored_versions(crd: &Value) -> Vec<FieldError> {
    const FIELD: &str = "status.storedVersions";
    let stored: Vec<&str> = texts(&crd["status"]["storedVersions"]).collect();
    if stored.is_empty() {
        return vec![FieldError::invalid(FIELD, Value::Null, "must have at least one stored version")];
    }
    let versions = list(&crd["spec"]["versions"]);
    let named = |name: &str| versions.iter().any(|version| version["name"] == name);
    let storage =
        versions.iter().filter(|version| flag(&version["storage"])).map(|version| text(&version["name"]));
    let missing = storage.filter(|name| !stored.contains(name)).map(|name| {
        FieldError::invalid(
            FIELD,
            crd["status"]["storedVersions"].clone(),
            format!("must have the storage version {name}"),
        )
    });
    let gone = stored.iter().enumerate().filter(|(_, name)| !named(name)).map(|(index, name)| {
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in \
             spec.versions until a storage migration ensures no data remains persisted in {name} and removes \
             {name} from status.storedVersions"
        );
        FieldError::invalid(format!("{FIELD}[{index}]"), *name, detail)
    });
    missing.chain(gone).collect()
}

const APPROVED: &str = "api-approved.kubernetes.io";

/// Groups of the Kubernetes project itself need its approval, or the word that they have none.
fn approval(crd: &Value, old: Option<&Value>) -> Option<FieldError> {
    let group = text(&crd["spec"]["group"]);
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    let given = text(&crd["metadata"]["annotations"][APPROVED]);
    let state = approval_state(given);
    let before = old.map(|old| approval_state(text(&old["metadata"]["annotations"][APPROVED])));
    if !protected || before == Some(state) {
        return None;
    }
    let field = format!("metadata.annotations[{APPROVED}]");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let need = format!("protected groups must have approval annotation {APPROVED:?}");
    match state {
        Approval::Given => None,
        Approval::Missing => Some(FieldError::required(field, format!("{need}, {see}"))),
        Approval::Invalid => {
            let detail = format!("{need} with either a URL or a reason starting with \"unapproved\", {see}");
            Some(FieldError::invalid(field, given, detail))
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Approval {
    Given,
    Missing,
    Invalid,
}

fn approval_state(annotation: &str) -> Approval {
    let is_url = annotation
        .split_once("://")
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/'));
    match annotation {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") || is_url => Approval::Given,
        _ => Approval::Invalid,
    }
}
